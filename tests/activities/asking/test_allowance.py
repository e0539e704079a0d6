"""The deployment's own caps: dollars a run, which the Briefing carries, and dollars a day, which
a treasurer keeps, from whom calls take where they leave.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.testing import ActivityEnvironment
from test_asking import ANSWER, CALL, MATERIAL, SHAPE, THROTTLE, Lines

from desk import NOON, Desk
from driving import BRIEFING, START, Drive, subtask
from holdfast.activities.asking import purses
from holdfast.activities.asking.allowance import Allowance
from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.purses import Purses
from holdfast.contracts import Bill, Goal, Limits, Order, Plan, Usage
from holdfast.contracts.errors import (
    AllowanceReached,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    SpendLimitReached,
)
from holdfast.contracts.treasury import Asked, Books, Caps, Given
from holdfast.deployment.settings import Settings
from holdfast.embedded.identity import model_environment, worker_environment
from holdfast.ledger import treasury
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.rules import keeping
from holdfast.rules.reducer import apply
from holdfast.rules.steering import COMMANDS
from holdfast.state.events import Prepared, Started
from holdfast.state.moves import Prepare
from holdfast.state.run import first_state
from holdfast.temporal.treasury import Treasurer, Unanswered

pytestmark = pytest.mark.anyio

RATE = Decimal("0.001")
"""Dollars a token, whatever it is."""
PLAN = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b")))


def price(model: str, usage: Usage) -> Decimal | None:
    return None if model == "unknown" else RATE * (usage.total + usage.searches)


def allowance(desk: Desk | None, run: str | None = None) -> Allowance:
    """The allowance of a worker process of its own."""
    purses = Purses(desk) if desk else None
    return Allowance(price, Decimal(run) if run is not None else None, purses)


async def settled(desk: Desk, budget: Allowance) -> tuple[str, str]:
    """What is paid and held once a worker has given back what it need not hold."""
    assert budget.purses is not None
    await budget.purses.close()
    return desk.spent()


# ---------------------------------------------------------------- a run: pure


def capped(most: str) -> Drive:
    brief = BRIEFING.model_copy(update={"most_dollars": Decimal(most)})
    return Drive(PLAN, Limits(dollars=Decimal(5)), brief)


def test_a_run_has_the_smaller_of_its_goal_and_its_deployment() -> None:
    drive = capped("0.9")
    assert drive.state.ledger.cap.dollars == Decimal("0.9")
    assert drive.state.goal.limits.dollars == Decimal("0.9"), "what teams below are cut from"
    assert any("HOLDFAST_MOST_DOLLARS_RUN" in each for each in drive.state.notes)
    assert drive.state.ledger.kept.dollars <= Decimal("0.9")


def test_a_goal_below_the_deployments_cap_is_as_it_would_be_without_one() -> None:
    assert replace(capped("5").state, briefing=None) == replace(
        Drive(PLAN, Limits(dollars=Decimal(5))).state, briefing=None
    )


def test_nobody_raises_a_run_above_it() -> None:
    bad = COMMANDS["raise_cap"].refusal
    state = capped("0.9").state
    said = bad(state, Order(limits=Limits(dollars=Decimal("0.91"))))
    assert "at most $0.9" in said and "HOLDFAST_MOST_DOLLARS_RUN" in said
    more_calls = Limits(dollars=Decimal("0.9"), model_calls=100)
    assert bad(state, Order(limits=more_calls)) == "", "other limits still can be"


def test_a_raise_that_came_before_the_briefing_is_bounded_by_it() -> None:
    goal = Goal(text="Compare", plan=PLAN, use_models=True, limits=Limits(dollars=Decimal(50)))
    state = first_state("run", goal, START, "first")
    brief = BRIEFING.model_copy(update={"most_dollars": Decimal(1)})
    state = apply(apply(state, Started(Prepare(), START)), Prepared(brief))
    assert state.ledger.cap.dollars == 1


def test_a_cap_too_small_for_the_run_names_the_setting_and_no_limit_that_would_not_help() -> None:
    goal = Goal(text="Compare", plan=PLAN, use_models=True)
    brief = BRIEFING.model_copy(update={"most_dollars": Decimal("0.01")})
    said = keeping.short_of(goal, brief)
    assert "HOLDFAST_MOST_DOLLARS_RUN" in said and "--limits" not in said
    assert keeping.is_hopeless(goal, brief) and not keeping.is_hopeless(goal, BRIEFING)


# ---------------------------------------------------------------- a day: the treasurer


async def test_what_calls_cost_adds_up_and_what_is_above_is_refused() -> None:
    desk = Desk.of()
    budget = allowance(desk)
    await budget.hold("one", "m", 300, 300)
    await budget.settle("one", "m", "m", Usage(input_tokens=100, output_tokens=400))
    with pytest.raises(AllowanceReached) as refused:
        await budget.hold("two", "m", 501, 0)
    assert str(refused.value).endswith(
        "this deployment allows $1 a day, for all runs together; $0.500 of it are spent since"
        " 0:00 UTC, and this call may cost $0.501; there is room again from 2026-11-23 0:00 UTC,"
        " or its operator can raise it: holdfast budget --day"
    )
    await budget.hold("two", "m", 500, 0)
    await budget.release("two")
    assert await settled(desk, budget) == ("0.500", "0")


async def test_searches_of_the_endpoint_are_set_aside_with_their_call() -> None:
    budget = allowance(Desk.of())
    await budget.hold("one", "m", 300, 300, 3)
    with pytest.raises(AllowanceReached):
        await budget.hold("two", "m", 999, 0, 2)


async def test_a_call_that_no_day_has_room_for_is_promised_none() -> None:
    with pytest.raises(AllowanceReached, match="more than a whole day has") as refused:
        await allowance(Desk.of()).hold("one", "m", 1001, 0)
    assert "room again" not in str(refused.value)


async def test_what_was_not_billed_is_given_back_and_what_nobody_knows_is_not() -> None:
    desk = Desk.of()
    budget = allowance(desk)
    await budget.hold("one", "m", 100, 0)
    await budget.release("one")
    for served, usage in (("m", None), ("unknown", Usage(input_tokens=1))):
        await budget.hold(served, "m", 100, 0)
        await budget.settle(served, "m", served, usage)
    assert await settled(desk, budget) == ("0.200", "0")


async def test_a_call_waits_for_what_other_workers_have_set_aside() -> None:
    desk = Desk.of()
    budget, other = allowance(desk), allowance(desk)
    await budget.hold("one", "m", 900, 0)
    with pytest.raises(NotBilled) as waits:
        await other.hold("two", "m", 200, 0)
    assert not waits.value.non_retryable and waits.value.next_retry_delay
    await budget.settle("one", "m", "m", Usage(input_tokens=10))
    assert await settled(desk, budget) == ("0.010", "0")
    await other.hold("two", "m", 200, 0)


async def test_calls_take_from_what_is_leased_ahead_and_the_treasurer_is_asked_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk, asked = Desk.of("100"), 0
    ask = desk.ask

    async def count(each: Sequence[Asked]) -> list[Given]:
        nonlocal asked
        asked += 1
        return await ask(each)

    monkeypatch.setattr(desk, "ask", count)
    budget = allowance(desk)
    for number in range(40):
        await budget.hold(f"{number}", "m", 100, 0)
    assert asked <= 6, "as much again as is under way, so half a dozen questions for forty calls"
    for number in range(40):
        await budget.settle(f"{number}", "m", "m", Usage(input_tokens=50))
    assert await settled(desk, budget) == ("2.000", "0")


async def test_what_a_dead_worker_had_set_aside_counts_as_paid_after_a_while() -> None:
    desk = Desk.of()
    await allowance(desk).hold("one", "m", 900, 0)
    desk.now += timedelta(seconds=purses.SILENT_SECONDS - 1)
    with pytest.raises(NotBilled):
        await allowance(desk).hold("two", "m", 200, 0)
    desk.now += timedelta(seconds=1)
    with pytest.raises(AllowanceReached):
        await allowance(desk).hold("two", "m", 200, 0)
    assert desk.spent()[1] == "0"


async def test_a_worker_without_caps_is_held_by_those_that_its_deployment_has_got() -> None:
    desk, now = Desk(Books()), 0.0
    budget = Allowance(price, None, Purses(desk, clock=lambda: now, bind=False))
    await budget.hold("one", "unknown", 900, 0)
    await budget.release("one")
    assert desk.spent() == ("0", "0")
    desk.books = Books(caps=Caps(day=Decimal(1)))
    now += purses.RENEW_SECONDS
    with pytest.raises(AllowanceReached, match=r"allows \$1 a day"):
        await budget.hold("two", "m", 2_000, 0)


async def test_the_last_worker_gives_back_what_somebody_reads_much_later() -> None:
    desk = Desk.of()
    budget = allowance(desk)
    await budget.hold("one", "m", 900, 0)
    await budget.settle("one", "m", "m", Usage(input_tokens=100))
    desk.now += timedelta(hours=1)
    assert await settled(desk, budget) == ("0.100", "0")


async def test_a_worker_that_was_silent_for_too_long_begins_anew_and_counts_nothing_twice() -> None:
    desk = Desk.of()
    budget = allowance(desk)
    await budget.hold("one", "m", 200, 0)
    desk.now += timedelta(hours=1)
    await budget.settle("one", "m", "m", Usage(input_tokens=100))
    await budget.hold("two", "m", 600, 0)
    await budget.settle("two", "m", "m", Usage(input_tokens=300))
    paid, held = await settled(desk, budget)
    assert held == "0" and Decimal("0.5") <= Decimal(paid) <= Decimal("0.6")


async def test_what_a_lost_answer_may_have_granted_is_not_spent_and_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk, lost = Desk.of(), True
    answer = desk.ask

    async def ask(asked: Sequence[Asked]) -> list[Given]:
        nonlocal lost
        given = await answer(asked)
        if lost:
            lost = False
            raise Unanswered("the line is cut")
        return given

    monkeypatch.setattr(desk, "ask", ask)
    budget = allowance(desk)
    with pytest.raises(NotBilled, match="does not answer: the line is cut") as waits:
        await budget.hold("one", "m", 700, 0)
    assert not waits.value.non_retryable
    await budget.hold("one", "m", 700, 0)
    await budget.settle("one", "m", "m", Usage(input_tokens=600))
    assert await settled(desk, budget) == ("0.600", "0")


async def test_a_new_day_begins_at_nothing_with_what_is_under_way() -> None:
    desk = Desk.of()
    desk.now = NOON.replace(hour=23, minute=59)
    budget, other = allowance(desk), allowance(desk)
    await budget.hold("early", "m", 800, 0)
    await budget.settle("early", "m", "m", Usage(input_tokens=800))
    await budget.hold("late", "m", 180, 0)
    desk.now += timedelta(seconds=90)
    with pytest.raises(NotBilled):
        await other.hold("next", "m", 950, 0)
    # What was told on the next day is of that day.
    await budget.settle("late", "m", "m", Usage(input_tokens=20))
    assert await settled(desk, budget) == ("0.020", "0")


async def test_a_month_and_a_requester_have_caps_of_their_own() -> None:
    desk = Desk.of("1", month=Decimal("1.5"), each={"anna": Decimal("0.3")})
    one = Purses(desk)
    await one.take("a", Decimal("0.2"), "anna")
    with pytest.raises(
        purses.Refused, match=r"allows \$0.3 a day to anna, for all runs"
    ) as refused:
        await one.take("b", Decimal("0.4"), "anna")
    assert refused.value.over and "more than a whole day has" in str(refused.value)
    one.give("a", Decimal("0.2"))
    await one.take("c", Decimal("0.7"), "bob")
    one.give("c", Decimal("0.7"))
    await one.close()
    assert treasury.look(desk.books, desk.now).today.by == {
        "anna": Decimal("0.2"), "bob": Decimal("0.7"),
    }  # fmt: skip
    desk.now = NOON + timedelta(days=1)
    with pytest.raises(purses.Refused, match=r"a month, .*room again from 2026-12-01 0:00 UTC"):
        await one.take("d", Decimal("0.7"), "bob")
    await one.take("d", Decimal("0.6"), "bob")


async def test_a_batch_is_held_whatever_process_ends_and_settled_by_any() -> None:
    desk = Desk.of("10")
    await allowance(desk).hold_batch("batch", "m", [1000, 1000], 1000)
    assert Decimal(desk.spent()[1]) == 2
    desk.now += timedelta(hours=35)
    assert Decimal(desk.spent()[1]) == 2
    await allowance(desk).settle_batch("batch", Decimal("0.5"))
    assert desk.spent() == ("0.5", "0"), "by the next day"
    await allowance(desk).hold_batch("lost", "m", [1000], 1000)
    await allowance(desk).settle_batch("lost", None)
    await allowance(desk).hold_batch("refused", "m", [1000], 1000)
    await allowance(desk).release("refused")
    assert [Decimal(each) for each in desk.spent()] == [Decimal("1.5"), 0]


async def test_many_at_once_never_overshoot_together() -> None:
    desk = Desk.of()
    budgets = [allowance(desk), allowance(desk)]
    calls = (budgets[n % 2].hold(f"call {n}", "m", 100, 0) for n in range(24))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    # A slice for calls to come is a tenth of what is left: too little for one at the end.
    assert 8 <= sum(each is None for each in outcomes) <= 10
    assert Decimal(desk.spent()[1]) <= 1


@pytest.mark.parametrize("seed", range(12))
async def test_whoever_dies_and_whatever_is_lost_no_cap_is_passed_and_nothing_leaks(
    seed: int,
) -> None:
    chance, most, sent = random.Random(seed), Decimal(20), Decimal(0)
    desk = Desk.of(str(most))

    class Line:
        """A way to the desk on which questions and answers are lost."""

        async def ask(self, asked: Sequence[Asked]) -> list[Given]:
            with self._losing():
                return await desk.ask(asked)

        async def give_back(self, asked: Sequence[Asked]) -> None:
            with self._losing():
                await desk.give_back(asked)

        async def is_there(self) -> bool:
            return True

        @contextmanager
        def _losing(self) -> Iterator[None]:
            if chance.random() < 0.1:
                raise Unanswered("lost on its way there")
            yield
            if chance.random() < 0.1:
                raise Unanswered("lost on its way back")

    workers = [Purses(Line()) for _ in range(8)]
    under_way = list[tuple[Purses, str, Decimal]]()
    for number in range(300):
        desk.now += timedelta(seconds=chance.choice((0, 1, 5, 100)))
        place = chance.randrange(8)
        match chance.choices(("take", "give", "die", "close", "cap"), (50, 40, 4, 4, 1))[0]:
            case "take":
                worst = Decimal(chance.randint(1, 99)) / 100
                try:
                    await workers[place].take(f"{number}", worst, chance.choice(("a", "b")))
                except (purses.Refused, Unanswered):
                    continue
                under_way.append((workers[place], f"{number}", worst))
            case "give" if under_way:
                worker, key, worst = under_way.pop(chance.randrange(len(under_way)))
                paid = worst * chance.randint(0, 100) / 100
                # What was sent by a worker that has died was paid, too.
                sent += worst if worker not in workers else paid
                worker.give(key, paid)
            case "die":
                workers[place] = Purses(Line())
            case "close":
                await workers[place].close()
            case "cap":
                most += 1
                desk.books = desk.books.model_copy(update={"caps": Caps(day=most)})
        found = treasury.look(desk.books, desk.now)
        at_stake = sum((worst for _, _, worst in under_way), Decimal(0))
        assert sent + at_stake <= most, "what may have been paid"
        assert found.today.paid + found.held <= most
        assert sent <= found.today.paid + found.held, "nothing that was paid is not counted"
    desk.now += timedelta(days=1)
    assert treasury.look(desk.books, desk.now).held == 0
    assert sum(each.paid for each in treasury.expire(desk.books, desk.now).months.values()) <= most


async def test_without_a_price_nothing_leaves() -> None:
    for desk, run in ((Desk.of(), None), (None, "1")):
        with pytest.raises(SpendLimitReached, match="no price is known for 'unknown'"):
            await allowance(desk, run).hold("one", "unknown", 1, 1)


async def test_one_call_above_the_cap_of_a_run_is_refused_whoever_asks() -> None:
    with pytest.raises(AllowanceReached, match="HOLDFAST_MOST_DOLLARS_RUN"):
        await allowance(None, run="0.5").hold("one", "m", 501, 0)


def test_a_persons_cap_outlives_a_worker_that_starts_and_not_a_changed_setting() -> None:
    books = treasury.tell(Books(), Caps(day=Decimal(50)))
    assert books.caps.day == 50
    books = books.model_copy(update={"caps": Caps(day=Decimal(80), each={"a": Decimal(1)})})
    books = treasury.tell(books, Caps(day=Decimal(50)))
    assert books.caps.day == 80
    books = treasury.tell(books, Caps(day=Decimal(60), month=Decimal(900)))
    assert books.caps == Caps(day=Decimal(60), month=Decimal(900), each={"a": Decimal(1)})


# ---------------------------------------------------------------- a day: a call


async def ask(folder: Path, model: Lines, budget: Allowance) -> object:
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *_: None
    asking = Asking(model, FileJournal(folder / "journal"), price, budget=budget)
    return await environment.run(asking.ask, CALL, MATERIAL, SHAPE, "S", "P")


async def test_a_call_that_is_not_allowed_never_leaves_and_may_be_sent_tomorrow(
    tmp_path: Path,
) -> None:
    model = Lines([ANSWER])
    with pytest.raises(AllowanceReached):
        await ask(tmp_path, model, allowance(Desk.of("3.9")))
    assert model.requests == [] and not [*(tmp_path / "journal").iterdir()]
    await ask(tmp_path, model, allowance(Desk.of("100")))
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("line", "paid"),
    [
        (replace(ANSWER, usage=Usage(input_tokens=7)), Decimal("0.007")),
        (THROTTLE, Decimal(0)),
        (SpendLimitReached("theirs"), Decimal(0)),
        (PossiblyBilled("cut", Bill(calls=1)), None),
    ],
)
async def test_a_call_counts_at_what_it_cost(
    tmp_path: Path, line: OrchestrationError, paid: Decimal | None
) -> None:
    desk = Desk.of("100")
    budget = allowance(desk)
    try:
        await ask(tmp_path, Lines([line]), budget)
    except OrchestrationError as error:
        assert error is line or isinstance(error, type(line))
    found, held = await settled(desk, budget)
    assert held == "0"
    most = Decimal(found)
    assert most == paid if paid is not None else most > 4, "its worst case, where nobody knows"


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("wrong", ["-1", "nan", "inf", "1e999999", "much"])
def test_a_cap_that_is_none_is_a_mistake_of_the_setting(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("HOLDFAST_MOST_DOLLARS_DAY", wrong)
    with pytest.raises(ValidationError):
        Settings(_env_file=None)


def test_another_cap_makes_another_worker_and_reaches_it() -> None:
    plain = Settings(_env_file=None, anthropic_api_key="k")
    held = plain.model_copy(update={"most_dollars_day": Decimal(0)})
    assert model_environment(plain, "") != model_environment(held, "")
    assert worker_environment(held)["HOLDFAST_MOST_DOLLARS_DAY"] == "0"
    assert worker_environment(plain)["HOLDFAST_MOST_DOLLARS_RUN"] == ""


class Hung:
    """A treasurer that no worker answers for, as the SDK shows it."""

    def get_workflow_handle(self, _id: str) -> Hung:
        return self

    async def execute_update(self, *_given: object, **_more: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise WorkflowUpdateRPCTimeoutOrCancelledError from None


async def test_a_question_to_the_treasurer_ends_with_the_process_that_asks() -> None:
    client: Any = Hung()
    treasurer = Treasurer(lambda: client, "holdfast", Caps())
    asking = asyncio.create_task(treasurer.ask([]))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled(), "else its process would ask again and again, and never end"


async def test_what_a_call_cost_that_ended_as_nobody_foresaw_counts_in_full(tmp_path: Path) -> None:
    class Broken(Lines):
        async def ask(self, request: ModelRequest) -> ModelAnswer:
            raise RuntimeError("the connection is upside down")

    desk = Desk.of("100")
    budget = allowance(desk)
    with pytest.raises(PossiblyBilled, match="upside down"):
        await ask(tmp_path, Broken([]), budget)
    paid, held = await settled(desk, budget)
    assert Decimal(paid) > 0 and held == "0"
