"""Calls that outlive the attempts that started them: what a frozen process finds when it wakes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.testing import ActivityEnvironment
from test_asking import ANSWER, CALL, MATERIAL, SHAPE, SHORT

from holdfast.activities.asking import flights, senders
from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.flights import Flights
from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.replies import dump_answer
from holdfast.calls.digest import Digest
from holdfast.contracts import Bill, Reply, Unreached
from holdfast.contracts.errors import (
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
)
from holdfast.ports import ModelAnswer, ModelRequest

pytestmark = pytest.mark.anyio

LOST_SIGHT = (
    ActivityCancellationDetails(not_found=True),
    ActivityCancellationDetails(timed_out=True),
    ActivityCancellationDetails(paused=True),
    ActivityCancellationDetails(reset=True),
)
UNWANTED = (
    ActivityCancellationDetails(cancel_requested=True),
    ActivityCancellationDetails(worker_shutdown=True),
)


@dataclass
class Slow:
    """A model that answers when it is told to."""

    end: ModelAnswer | OrchestrationError = ANSWER
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.calls += 1
        self.asked.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            raise PossiblyBilled("cut", Bill(calls=1)) from None
        if isinstance(self.end, OrchestrationError):
            raise self.end
        return self.end

    async def count_tokens(self, request: ModelRequest) -> int:
        return 100

    async def reach(self) -> str:
        return ""


@dataclass
class Process:
    """What attempts of one call share while their process lives."""

    model: Any
    journal: FileJournal
    flights: Flights = field(default_factory=Flights)

    def attempt(
        self, number: int = 1, past: Past | None = None
    ) -> tuple[ActivityEnvironment, asyncio.Task[Reply[Digest]]]:
        environment = ActivityEnvironment()
        details = tuple(vars(past).values()) if past else ()
        environment.info = replace(
            environment.info,
            attempt=number,
            heartbeat_details=details,
            start_to_close_timeout=timedelta(seconds=60),
        )
        asking = Asking(
            self.model, self.journal, lambda *_: Decimal(0), None, lambda: 0.0, self.flights
        )

        async def run() -> Reply[Digest]:
            reply: Reply[Digest] = await environment.run(
                asking.ask, CALL, MATERIAL, SHAPE, "S", "P"
            )
            return reply

        return environment, asyncio.create_task(run())


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(Slow(), FileJournal(tmp_path))


@pytest.mark.parametrize("details", LOST_SIGHT)
async def test_the_next_attempt_joins_the_call_of_one_that_the_server_lost_sight_of(
    details: ActivityCancellationDetails, process: Process
) -> None:
    environment, first = process.attempt()
    await process.model.asked.wait()
    environment.cancel(details)
    with pytest.raises(asyncio.CancelledError):
        await first
    _, second = process.attempt(2)
    await asyncio.sleep(0.05)
    process.model.may_end.set()
    assert (await second).value == SHORT
    assert process.model.calls == 1


@pytest.mark.parametrize("details", [*LOST_SIGHT, *UNWANTED])
async def test_a_run_that_was_reset_joins_what_its_old_execution_asked_and_pays_it_once(
    details: ActivityCancellationDetails, process: Process
) -> None:
    environment, old = process.attempt()
    await process.model.asked.wait()
    _, new = process.attempt()
    await asyncio.sleep(0.05)
    environment.cancel(details)
    with pytest.raises(asyncio.CancelledError):
        await old
    process.model.may_end.set()
    reply = await new
    assert reply.value == SHORT and process.model.calls == 1
    assert reply.bill.earlier, "the old execution's bill has it"


async def test_an_answer_that_comes_when_nobody_waits_is_in_the_journal(process: Process) -> None:
    environment, first = process.attempt()
    await process.model.asked.wait()
    environment.cancel(LOST_SIGHT[0])
    with pytest.raises(asyncio.CancelledError):
        await first
    process.model.may_end.set()
    _, second = process.attempt(2)
    assert (await second).value == SHORT
    after = Process(Slow(), process.journal)
    _, elsewhere = after.attempt(3)
    assert (await elsewhere).value == SHORT
    assert (process.model.calls, after.model.calls) == (1, 0)


async def test_a_refusal_that_comes_when_nobody_waits_is_not_a_lost_call(
    tmp_path: Path,
) -> None:
    process = Process(Slow(end=NotBilled("429", throttled=True)), FileJournal(tmp_path))
    environment, first = process.attempt()
    await process.model.asked.wait()
    environment.cancel(LOST_SIGHT[0])
    with pytest.raises(asyncio.CancelledError):
        await first
    process.model.may_end.set()
    await asyncio.sleep(0.05)
    _, second = process.attempt(2, Past().leaving())
    with pytest.raises(NotBilled):
        await second


async def test_an_outcome_that_nobody_takes_is_forgotten_in_the_end(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights, "KEPT_SECONDS", 0.05)
    process.model.end = NotBilled("429", throttled=True)
    environment, first = process.attempt()
    await process.model.asked.wait()
    environment.cancel(LOST_SIGHT[0])
    with pytest.raises(asyncio.CancelledError):
        await first
    process.model.may_end.set()
    await asyncio.sleep(0.5)
    process.model.end = ANSWER
    _, second = process.attempt(2)
    assert (await second).value == SHORT


async def test_all_attempts_of_a_call_get_its_one_answer(process: Process) -> None:
    attempts = [process.attempt(number)[1] for number in (1, 2, 3)]
    await process.model.asked.wait()
    process.model.may_end.set()
    replies = await asyncio.gather(*attempts)
    assert replies[0] == replies[1] == replies[2]
    assert process.model.calls == 1


@pytest.mark.parametrize("details", UNWANTED)
async def test_a_call_that_nobody_wants_any_more_is_cut_and_says_what_it_used(
    details: ActivityCancellationDetails, process: Process
) -> None:
    environment, first = process.attempt()
    await process.model.asked.wait()
    environment.cancel(details)
    with pytest.raises(PossiblyBilled, match="cut"):
        await first


async def test_what_a_call_notes_reaches_the_server_through_every_attempt(
    process: Process,
) -> None:
    heard: list[tuple[int, ...]] = []
    environment, first = process.attempt()
    environment.on_heartbeat = lambda *numbers: heard.append(numbers)
    await process.model.asked.wait()
    async with asyncio.timeout(10):
        while not heard:  # noqa: ASYNC110 - it is told a little later
            await asyncio.sleep(0.01)
    assert heard[-1][2:] == (1, senders.this_machine(), os.getpid())
    process.model.may_end.set()
    await first


# ---------------------------------------------------------------- another process of this machine

FROZEN = "import time; time.sleep(60)"


@dataclass
class Sibling:
    """Another process, which has sent the call."""

    popen: subprocess.Popen[bytes]

    @property
    def past(self) -> Past:
        return replace(Past().leaving(), process=self.popen.pid)


@pytest.fixture
def sibling() -> Any:
    popen = subprocess.Popen([sys.executable, "-c", FROZEN])
    os.kill(popen.pid, signal.SIGSTOP)
    yield Sibling(popen)
    popen.kill()
    popen.wait()


async def sent_by_sibling(process: Process) -> str:
    """Mark the call as sent; its key."""
    keys: list[str] = []
    real = process.journal.mark_sent

    async def noted(key: str) -> None:
        keys.append(key)
        await real(key)

    process.journal.mark_sent = noted  # type: ignore[method-assign]
    environment, first = process.attempt()
    await process.model.asked.wait()
    environment.cancel()
    with pytest.raises(PossiblyBilled):
        await first
    return keys[0]


async def test_a_frozen_process_that_sent_the_call_is_waited_for(
    process: Process, sibling: Sibling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.asking.sending.SIBLING_SECONDS", 0.02)
    key = await sent_by_sibling(process)
    here = Process(Slow(), process.journal)
    _, second = here.attempt(2, sibling.past)
    await asyncio.sleep(0.1)
    assert not second.done()
    await process.journal.record(key, dump_answer(ANSWER))
    assert (await second).value == SHORT
    assert here.model.calls == 0


async def test_a_process_that_was_killed_is_not_waited_for(
    process: Process, sibling: Sibling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.asking.sending.SIBLING_SECONDS", 0.02)
    await sent_by_sibling(process)
    _, second = Process(Slow(), process.journal).attempt(2, sibling.past)
    await asyncio.sleep(0.1)
    assert not second.done()
    # Nobody has looked at its end yet: it is there, and dead.
    sibling.popen.kill()
    with pytest.raises(PossiblyBilled, match="its worker died"):
        await second


async def test_a_process_of_another_machine_is_not_waited_for(
    process: Process, sibling: Sibling
) -> None:
    await sent_by_sibling(process)
    past = replace(sibling.past, machine=1)
    with pytest.raises(PossiblyBilled, match="its worker died"):
        await Process(Slow(), process.journal).attempt(2, past)[1]


async def test_a_call_that_a_frozen_process_took_back_is_sent(
    process: Process, sibling: Sibling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.asking.sending.SIBLING_SECONDS", 0.02)
    key = await sent_by_sibling(process)
    here = Process(Slow(), process.journal)
    here.model.may_end.set()
    _, second = here.attempt(2, sibling.past)
    await asyncio.sleep(0.1)
    await process.journal.withdraw(key)
    assert (await second).value == SHORT
    assert here.model.calls == 1


# ---------------------------------------------------------------- an endpoint out of reach


@dataclass
class Away:
    """A model that is out of reach for this many calls."""

    calls: int
    asked: int = 0

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.asked += 1
        if self.asked <= self.calls:
            raise EndpointUnreachable(Unreached(address="http://a", why="Connection refused"))
        return ANSWER

    async def count_tokens(self, request: ModelRequest) -> int:
        return 100

    async def reach(self) -> str:
        return ""


async def test_a_blip_costs_no_round_trip(tmp_path: Path) -> None:
    process = Process(Away(3), FileJournal(tmp_path))
    assert (await process.attempt()[1]).value == SHORT


async def test_an_endpoint_that_stays_away_is_said_after_seconds_and_may_be_asked_again(
    tmp_path: Path,
) -> None:
    process = Process(Away(1_000), FileJournal(tmp_path))
    with pytest.raises(EndpointUnreachable) as raised:
        await process.attempt()[1]
    assert raised.value.non_retryable
    assert raised.value.details == (Unreached(address="http://a", why="Connection refused"),)
    assert 2 <= process.model.asked <= 5
    process.model.calls = 0
    assert (await process.attempt(2)[1]).value == SHORT
