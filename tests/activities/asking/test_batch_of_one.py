"""A call that may wait goes as a batch of one: found again, paid once, at half the price."""

from __future__ import annotations

import asyncio
from dataclasses import astuple, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.testing import ActivityEnvironment
from test_asking import ANSWER, CALL, MATERIAL, SHAPE, Lines

from holdfast.activities.asking.batch_of_one import BatchOfOne
from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.journal import FileJournal
from holdfast.calling.lanes import as_batches
from holdfast.calls.digest import Digest
from holdfast.contracts import Bill, Briefing, Call, Capabilities, PriceStep, Reply, Usage
from holdfast.contracts.errors import BadGoal, CallRefused, NoRoom, NotBilled, PossiblyBilled
from holdfast.contracts.policies import FAULT_TRIES
from holdfast.ledger.pricing import at_lane
from holdfast.ports import BatchResult
from waiting_batches import WaitingBatches

pytestmark = pytest.mark.anyio
CARD = CALL.model
assert CARD is not None
PRICED = CARD.model_copy(
    update={
        "prices": (
            PriceStep(
                above=0,
                input=Decimal("0.000001"),
                output=Decimal("0.000004"),
                cache_read=Decimal(0),
                cache_write=Decimal(0),
            ),
        )
    }
)
WAITS = CALL.model_copy(update={"model": at_lane(PRICED, "batch")})
SAID = replace(ANSWER, usage=Usage(input_tokens=1_000, output_tokens=100))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchOfOne, "first_pause", 0.001)


def environment(attempt: int = 1, past: Past | None = None) -> ActivityEnvironment:
    made = ActivityEnvironment()
    told = astuple(past) if past else ()
    made.info = replace(made.info, attempt=attempt, heartbeat_details=told)
    return made


async def ask(
    folder: Path,
    batches: WaitingBatches | None,
    here: ActivityEnvironment | None = None,
    call: Call = WAITS,
) -> Reply[Digest]:
    asking = Asking(Lines([]), FileJournal(folder), lambda *_: Decimal(1), batches=batches)
    reply: Reply[Digest] = await (here or environment()).run(
        asking.ask, call, MATERIAL, SHAPE, "S", "P"
    )
    return reply


async def test_the_answer_of_its_batch_is_paid_at_half_the_price_and_is_asked_once(
    tmp_path: Path,
) -> None:
    batches = WaitingBatches(Lines([SAID]), looks=3)
    reply = await ask(tmp_path, batches)
    assert reply.bill.dollars == Decimal("0.0007") and reply.value is not None
    again = await ask(tmp_path, batches, environment(2))
    assert again.bill == reply.bill and len(batches.made) == 1


@dataclass
class Till:
    """A budget that notes what batches cost."""

    settled: list[Decimal | None] = field(default_factory=list)

    async def hold_batch(self, *_given: object) -> None:
        """There is room for all."""

    async def release(self, _key: str) -> None:
        """Nothing is held."""

    async def settle_batch(self, _key: str, dollars: Decimal | None) -> None:
        self.settled.append(dollars)


async def test_it_counts_towards_the_day_at_the_workers_own_prices(tmp_path: Path) -> None:
    till: Any = Till()
    batches = WaitingBatches(Lines([SAID]))
    asking = Asking(
        Lines([]), FileJournal(tmp_path), lambda *_: Decimal(3), budget=till, batches=batches
    )
    await environment().run(asking.ask, WAITS, MATERIAL, SHAPE, "S", "P")
    assert till.settled == [Decimal("1.5")], "whatever prices the call names"


async def test_while_others_hold_the_days_dollars_it_waits_however_often_it_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    till: Any = Till()
    batches = WaitingBatches(Lines([SAID]))
    asking = Asking(
        Lines([]), FileJournal(tmp_path), lambda *_: Decimal(3), budget=till, batches=batches
    )

    async def full(*_given: object) -> None:
        raise NoRoom("set aside for calls under way")

    last = environment(2, Past(faults=FAULT_TRIES - 1))
    with monkeypatch.context() as others:
        others.setattr(till, "hold_batch", full)
        with pytest.raises(NoRoom) as waits:
            await last.run(asking.ask, WAITS, MATERIAL, SHAPE, "S", "P")
        assert not waits.value.non_retryable
    reply: Any = await environment(3).run(asking.ask, WAITS, MATERIAL, SHAPE, "S", "P")
    assert reply.value is not None and len(batches.made) == 1


async def test_a_worker_that_ends_hands_the_wait_on_and_cancels_nothing(tmp_path: Path) -> None:
    batches, here = WaitingBatches(Lines([SAID]), looks=10**9), environment()
    asked = asyncio.create_task(ask(tmp_path, batches, here))
    await batches.looked.wait()
    here.worker_shutdown()
    with pytest.raises(NotBilled, match="handed on"):
        await asked
    assert not batches.cancelled
    batches.left["batch-1"] = 0
    gone = Past(sent=1, machine=1, process=2**22 + 1)
    reply = await ask(tmp_path, batches, environment(2, gone))
    assert reply.bill.calls == 1 and [*batches.made] == ["batch-1"]


async def test_a_call_that_is_cut_cancels_its_batch_and_costs_nothing(tmp_path: Path) -> None:
    batches, here = WaitingBatches(Lines([SAID]), looks=10**9), environment()
    asked = asyncio.create_task(ask(tmp_path, batches, here))
    await batches.looked.wait()
    here.cancel(cancellation_details=ActivityCancellationDetails(cancel_requested=True))
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert batches.cancelled == ["batch-1"]


async def test_what_expired_in_its_batch_was_not_billed_and_is_made_anew(tmp_path: Path) -> None:
    batches = WaitingBatches(Lines([SAID]), outcomes=[BatchResult("", why="expired")])
    with pytest.raises(NotBilled, match="expired"):
        await ask(tmp_path, batches)
    reply = await ask(tmp_path, batches, environment(2))
    assert reply.bill.calls == 1 and len(batches.made) == 2


async def test_a_request_that_the_endpoint_never_takes_is_refused(tmp_path: Path) -> None:
    batches = WaitingBatches(Lines([]), outcomes=[BatchResult("", why="no", invalid=True)])
    with pytest.raises(CallRefused, match="no"):
        await ask(tmp_path, batches)


async def test_a_batch_that_may_have_been_made_and_is_not_known_counts_as_lost(
    tmp_path: Path,
) -> None:
    batches = WaitingBatches(Lines([]), refusals=[PossiblyBilled("502", Bill(calls=0))])
    with pytest.raises(PossiblyBilled) as lost:
        await ask(tmp_path, batches)
    bill = lost.value.details[0]
    assert (bill.calls, bill.dollars) == (1, None)
    with pytest.raises(PossiblyBilled):
        await ask(tmp_path, batches, environment(2))
    assert not batches.made


async def test_an_endpoint_without_batches_is_asked_nothing(tmp_path: Path) -> None:
    with pytest.raises(CallRefused, match="takes no batches"):
        await ask(tmp_path, None)


async def test_a_run_that_may_wait_is_refused_where_the_endpoint_takes_no_batches() -> None:
    with pytest.raises(BadGoal, match="this endpoint takes none"):
        as_batches(Briefing(roles=(), inputs=(), version="", models=(PRICED,)))
    able = Briefing(
        roles=(), inputs=(), version="", models=(PRICED,), capabilities=Capabilities(batches=True)
    )
    assert as_batches(able).models == (at_lane(PRICED, "batch"),)
