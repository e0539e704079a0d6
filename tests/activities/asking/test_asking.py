"""One paid call, seen from inside its activity: what becomes of a refusal, and how often a call
that was surely not billed is tried again.
"""

from __future__ import annotations

import asyncio
from dataclasses import astuple, dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.testing import ActivityEnvironment

from holdfast.activities.asking import heartbeat, senders
from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.replies import Shape
from holdfast.activities.asking.sending import SPREAD
from holdfast.calls.digest import Digest, DigestAnswer, DigestMaterial, to_digest
from holdfast.contracts import Bill, Call, Claim, ModelCard, Reply, Unreached, Usage
from holdfast.contracts.errors import NotBilled, OrchestrationError, PossiblyBilled
from holdfast.contracts.policies import FAULT_TRIES, OVERLOAD_TRIES
from holdfast.errors import MissingKey
from holdfast.ports import Head, ModelAnswer, ModelRequest
from holdfast.storage import StoreAway
from holdfast.workers.noting import Sent, noting

pytestmark = pytest.mark.anyio

CALL = Call(
    purpose="digest-t1",
    kind="digest",
    tier="haiku",
    model=ModelCard(tier="haiku", id="claude-haiku-5-5", prices=()),
    max_output=4_000,
    ceiling=Decimal(1),
    token_ceiling=100_000,
)
SHORT = Digest(text="- short", claims=(Claim(claim="short"),))
MATERIAL = DigestMaterial(goal="Compare the offers", findings=())
SHAPE = Shape(DigestAnswer, lambda answer: to_digest(answer, MATERIAL))
ANSWER = ModelAnswer(
    '{"claims": [{"claim": "short", "sources": []}]}', "end_turn", "claude-haiku-5-5", Usage()
)
UNKNOWN = Bill(model="claude-haiku-5-5", calls=1, dollars=None, final=False)
THROTTLE = NotBilled("429", retry_after=timedelta(seconds=12), throttled=True)
FAULT = NotBilled("500 api_error")


@dataclass
class Lines:
    """A model that says these, one a call."""

    lines: list[ModelAnswer | OrchestrationError]
    requests: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        line = self.lines.pop(0)
        if isinstance(line, OrchestrationError):
            raise line
        return line

    async def count_tokens(self, request: ModelRequest) -> int:
        return 100

    async def reach(self) -> str:
        return ""


@dataclass
class Watched:
    """A gate that notes what it hears, and is shut when it is told to be."""

    shut: NotBilled | None = None
    throttles: list[tuple[str, float, str]] = field(default_factory=list)
    remembered: list[tuple[int, ...]] = field(default_factory=list)
    """What the activity tells its next attempt."""

    sizes: list[tuple[int, int]] = field(default_factory=list)
    """Tokens of the prompt, and most of the answer, of each call that asks for its turn."""
    heads: list[Head] = field(default_factory=list)

    async def turn(self, tier: str, tokens: int = 0, max_output: int = 0) -> str:
        self.sizes.append((tokens, max_output))
        if self.shut:
            raise self.shut
        return ""

    def heard(self, head: Head) -> None:
        self.heads.append(head)

    def ended(self, output_tokens: int = 0) -> None:
        """Nothing is counted."""

    async def throttled(self, tier: str, seconds: float, reason: str) -> None:
        self.throttles.append((tier, seconds, reason))


async def ask(
    folder: Path,
    model: Lines,
    gate: Watched,
    attempt: int = 1,
    past: Past | None = None,
    call: Call | None = None,
) -> Reply[Digest]:
    environment = ActivityEnvironment()
    remembered = astuple(past) if past else ()
    environment.info = replace(environment.info, attempt=attempt, heartbeat_details=remembered)
    environment.on_heartbeat = lambda *counts: gate.remembered.append(counts)
    asking = Asking(model, FileJournal(folder), lambda *_: Decimal(0), gate, lambda: 0.5)
    reply: Reply[Digest] = await environment.run(
        asking.ask, call or CALL, MATERIAL, SHAPE, "S", "P"
    )
    return reply


async def test_the_one_call_of_an_attempt_is_noted_once_it_is_marked_as_sent(
    tmp_path: Path,
) -> None:
    journal, noted = FileJournal(tmp_path), list[Sent]()
    asking = Asking(Lines([THROTTLE, ANSWER]), journal, lambda *_: Decimal(0))

    async def attempt() -> None:
        noting.set(noted.append)
        await asking.ask(CALL, MATERIAL, SHAPE, "S", "P")

    with pytest.raises(NotBilled):
        await ActivityEnvironment().run(attempt)
    assert not await journal.sent(noted[0].key), "its mark is taken back"
    await ActivityEnvironment().run(attempt)
    assert [each.model for each in noted] == ["claude-haiku-5-5"] * 2
    assert await journal.sent(noted[1].key) and noted[0] == noted[1]


async def test_a_throttle_slows_its_tier_for_as_long_as_the_server_asks(tmp_path: Path) -> None:
    gate = Watched()
    with pytest.raises(NotBilled) as refusal:
        await ask(tmp_path, Lines([THROTTLE]), gate, attempt=40)
    assert gate.throttles == [("haiku", 12.0, "429")]
    assert refusal.value.next_retry_delay == timedelta(seconds=12 * (1 + SPREAD / 2))
    assert not refusal.value.non_retryable, "however often it was throttled already"


async def test_a_fault_of_the_endpoint_slows_nobody(tmp_path: Path) -> None:
    gate = Watched()
    with pytest.raises(NotBilled):
        await ask(tmp_path, Lines([FAULT]), gate)
    assert gate.throttles == []


async def test_a_fault_of_the_endpoint_is_tried_a_few_times(tmp_path: Path) -> None:
    gate, final = Watched(), []
    for _ in range(FAULT_TRIES):
        past = Past(*gate.remembered[-1]) if gate.remembered else None
        with pytest.raises(NotBilled) as refusal:
            await ask(tmp_path, Lines([FAULT]), gate, past=past)
        final.append(refusal.value.non_retryable)
    assert final == [False] * (FAULT_TRIES - 1) + [True]


AWAY = Unreached(address="http://a", why="529", lost=True)
UNNAMED = NotBilled("429", retry_after=timedelta(seconds=40), throttled=True, named=False)
OVERLOAD = NotBilled(
    "529", retry_after=timedelta(seconds=60), throttled=True, named=False, unreached=AWAY
)


async def test_a_call_that_nobody_named_a_wait_is_soon_back_at_the_gate_which_knows_more(
    tmp_path: Path,
) -> None:
    gate = Watched()
    with pytest.raises(NotBilled) as refusal:
        await ask(tmp_path, Lines([UNNAMED]), gate, past=Past(throttled=9))
    assert gate.throttles == [("haiku", 40.0, "429")]
    assert refusal.value.next_retry_delay == timedelta(seconds=1 + SPREAD / 2)
    assert not refusal.value.non_retryable


async def test_an_overload_that_lasts_is_an_outage_for_its_run(tmp_path: Path) -> None:
    final = []
    for refused in range(OVERLOAD_TRIES):
        with pytest.raises(NotBilled) as refusal:
            await ask(tmp_path, Lines([OVERLOAD]), Watched(), past=Past(throttled=refused))
        final.append(refusal.value.non_retryable)
    assert final == [False] * (OVERLOAD_TRIES - 1) + [True]
    assert refusal.value.details == (AWAY,)


async def test_the_last_of_the_tries_says_that_it_is_the_endpoint(tmp_path: Path) -> None:
    fault = NotBilled("500", unreached=AWAY)
    with pytest.raises(NotBilled) as first:
        await ask(tmp_path, Lines([fault]), Watched())
    assert first.value.details == ()
    with pytest.raises(NotBilled) as last:
        await ask(tmp_path, Lines([fault]), Watched(), past=Past(faults=FAULT_TRIES - 1))
    assert last.value.details == (AWAY,) and last.value.non_retryable


@pytest.mark.parametrize("error", [NotBilled("500", unreached=AWAY), OVERLOAD])
async def test_the_small_call_of_an_outage_is_sent_once_because_its_run_keeps_the_time(
    tmp_path: Path, error: NotBilled
) -> None:
    gate = Watched()
    with pytest.raises(NotBilled) as refusal:
        await ask(tmp_path, Lines([error]), gate, call=CALL.model_copy(update={"kind": "ping"}))
    assert refusal.value.non_retryable and refusal.value.details == (AWAY,)
    assert all(seconds <= 5 for _, seconds, _ in gate.throttles), "and shuts its tier for no longer"


async def test_waiting_and_being_throttled_are_no_faults(
    tmp_path: Path,
) -> None:
    past = Past(throttled=30, faults=1)
    with pytest.raises(NotBilled) as refusal:
        await ask(tmp_path, Lines([FAULT]), Watched(), attempt=50, past=past)
    assert not refusal.value.non_retryable


@pytest.mark.parametrize("error", [StoreAway("s3://kept", "SlowDown"), MissingKey("key 'one'")])
async def test_a_store_that_is_away_and_a_missing_key_are_no_faults_of_a_call(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(*_: object) -> None:
        raise error

    with monkeypatch.context() as away:
        away.setattr(FileJournal, "answer", answer)
        with pytest.raises(type(error)):
            await ask(tmp_path, Lines([]), Watched(), past=Past(faults=FAULT_TRIES - 1))
    assert (await ask(tmp_path, Lines([ANSWER]), Watched())).value == SHORT


async def test_what_happened_to_a_call_is_not_forgotten_while_its_tier_is_shut(
    tmp_path: Path,
) -> None:
    gate = Watched(shut=THROTTLE)
    with pytest.raises(NotBilled):
        await ask(tmp_path, Lines([]), gate, past=Past(2, 1))
    assert gate.remembered[-1] == (2, 1, 0, 0, 0)


async def test_a_call_that_the_journal_has_as_sent_is_not_sent_again(tmp_path: Path) -> None:
    gate, model = Watched(), Lines([PossiblyBilled("lost", Bill(calls=1))])
    with pytest.raises(PossiblyBilled, match="lost"):
        await ask(tmp_path, model, gate)
    with pytest.raises(PossiblyBilled, match="its worker died") as unknown:
        await ask(tmp_path, model, Watched(), attempt=2)
    assert len(model.requests) == 1
    assert unknown.value.details[0] == Bill(
        model="claude-haiku-5-5", calls=1, dollars=None, final=False
    )


async def test_a_cut_counts_what_an_earlier_attempt_may_have_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process lives, so this attempt waits for the answer, and nobody wants it any more."""
    with pytest.raises(PossiblyBilled):
        await ask(tmp_path, Lines([PossiblyBilled("dropped", UNKNOWN)]), Watched())
    waiting = asyncio.Event()

    def lives(_machine: int, _process: int) -> bool:
        waiting.set()
        return True

    monkeypatch.setattr(senders, "is_alive", lives)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=2, heartbeat_details=(0, 0, 1, 1, 1))
    asking = Asking(Lines([]), FileJournal(tmp_path), lambda *_: Decimal(0), Watched())
    cut = asyncio.create_task(environment.run(asking.ask, CALL, MATERIAL, SHAPE, "S", "P"))
    await waiting.wait()
    environment.cancel(ActivityCancellationDetails(cancel_requested=True))
    with pytest.raises(PossiblyBilled, match="an attempt before this one had sent it") as raised:
        await cut
    assert raised.value.details[0] == UNKNOWN


async def test_what_the_journal_has_before_the_first_attempt_was_paid_before_a_reset(
    tmp_path: Path,
) -> None:
    model = Lines([ANSWER, PossiblyBilled("lost", Bill(calls=1))])
    first, again = [await ask(tmp_path / "a", model, Watched()) for _ in range(2)]
    assert (first.bill.earlier, again.bill.earlier) == (False, True)
    assert (await ask(tmp_path / "a", model, Watched(), attempt=2)).bill == first.bill
    with pytest.raises(PossiblyBilled, match="lost"):
        await ask(tmp_path / "b", model, Watched())
    with pytest.raises(PossiblyBilled) as unknown:
        await ask(tmp_path / "b", model, Watched())
    assert unknown.value.details[0].earlier


async def test_a_call_that_is_soon_over_costs_no_heartbeat(tmp_path: Path) -> None:
    quick = Watched()
    await ask(tmp_path, Lines([ANSWER]), quick)
    assert quick.remembered == []


async def test_a_call_that_left_from_another_machine_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "SOON", 0.0)
    there, here = Watched(), Lines([])
    await ask(tmp_path / "there", Lines([ANSWER]), there)
    left = Past(*there.remembered[-1])
    assert left.sent
    with pytest.raises(PossiblyBilled) as unknown:
        await ask(tmp_path / "here", here, Watched(), attempt=2, past=left)
    assert here.requests == []
    assert unknown.value.details[0] == Bill(
        model="claude-haiku-5-5", calls=1, dollars=None, final=False
    )


@pytest.mark.parametrize("refusal", [THROTTLE, FAULT])
async def test_a_call_that_was_refused_may_be_sent_from_another_machine(
    refusal: NotBilled, tmp_path: Path
) -> None:
    there = Watched()
    with pytest.raises(NotBilled):
        await ask(tmp_path / "there", Lines([refusal]), there)
    past = Past(*there.remembered[-1])
    reply = await ask(tmp_path / "here", Lines([ANSWER]), Watched(), past=past)
    assert reply.value == SHORT


async def test_each_throttle_makes_the_next_wait_longer(tmp_path: Path) -> None:
    model = Lines([ANSWER])
    await ask(tmp_path, model, Watched(), attempt=50, past=Past(throttled=3))
    assert model.requests[0].attempt == 4


async def test_a_call_whose_tier_is_shut_is_not_sent_and_may_be_sent_later(tmp_path: Path) -> None:
    model = Lines([ANSWER])
    with pytest.raises(NotBilled):
        await ask(tmp_path, model, Watched(shut=THROTTLE))
    assert model.requests == []
    reply = await ask(tmp_path, model, Watched())
    assert reply.value == SHORT


async def test_a_call_that_was_throttled_is_sent_again_and_its_answer_only_once(
    tmp_path: Path,
) -> None:
    model = Lines([THROTTLE, ANSWER])
    with pytest.raises(NotBilled):
        await ask(tmp_path, model, Watched())
    first, second = [await ask(tmp_path, model, Watched(), attempt) for attempt in (2, 3)]
    assert first == second
    assert len(model.requests) == 2


async def test_a_gate_is_told_how_large_a_call_is_and_hears_the_head_of_its_answer(
    tmp_path: Path,
) -> None:
    gate, model = Watched(), Lines([ANSWER])
    await ask(tmp_path, model, gate)
    ((tokens, max_output),) = gate.sizes
    assert max_output == CALL.max_output
    assert 0 < tokens < 1_000
    model.requests[0].heard(Head(True))
    assert gate.heads == [Head(True)]
