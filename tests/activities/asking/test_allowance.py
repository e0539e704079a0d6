"""The deployment's own caps: dollars a run, which the Briefing carries, and dollars a day, which
are added up where calls leave.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError
from temporalio.testing import ActivityEnvironment
from test_asking import ANSWER, CALL, MATERIAL, SHAPE, THROTTLE, Lines

from driving import BRIEFING, START, Drive, subtask
from holdfast.activities.asking import senders
from holdfast.activities.asking.allowance import Allowance, Unreadable, spent_today
from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.journal import FileJournal
from holdfast.cli.checks.kept import check_storage
from holdfast.contracts import Bill, Goal, Limits, Order, Plan, Usage
from holdfast.contracts.errors import (
    AllowanceReached,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    SpendLimitReached,
)
from holdfast.deployment.settings import Settings
from holdfast.embedded.identity import model_environment, worker_environment
from holdfast.rules import keeping
from holdfast.rules.reducer import apply
from holdfast.rules.steering import COMMANDS
from holdfast.state.events import Prepared, Started
from holdfast.state.moves import Prepare
from holdfast.state.run import first_state

pytestmark = pytest.mark.anyio

DAY = date(2026, 11, 22)
RATE = Decimal("0.001")
"""Dollars a token, whatever it is."""
PLAN = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b")))


def price(model: str, usage: Usage) -> Decimal | None:
    return None if model == "unknown" else RATE * (usage.total + usage.searches)


def allowance(
    folder: Path, day: str | None = "1", run: str | None = None, when: date = DAY
) -> Allowance:
    most_run, most_day = (Decimal(each) if each is not None else None for each in (run, day))
    return Allowance(folder / "spent.json", price, most_run, most_day, lambda: when)


def spent(folder: Path, when: date = DAY) -> tuple[str, str]:
    paid, held = spent_today(folder / "spent.json", when)
    return f"{paid:f}", f"{held:f}"


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


# ---------------------------------------------------------------- a day: the file


async def test_what_calls_cost_adds_up_and_what_is_above_is_refused(tmp_path: Path) -> None:
    budget = allowance(tmp_path)
    await budget.hold("one", "m", 300, 300)
    assert spent(tmp_path) == ("0", "0.600")
    await budget.settle("one", "m", "m", Usage(input_tokens=100, output_tokens=400))
    assert spent(tmp_path) == ("0.500", "0")
    with pytest.raises(AllowanceReached) as refused:
        await budget.hold("two", "m", 501, 0)
    assert str(refused.value).endswith(
        "this deployment allows $1 a day, for all runs together (HOLDFAST_MOST_DOLLARS_DAY);"
        " $0.500 of it are spent since 0:00 UTC, and this call may cost $0.501;"
        " there is room again from 2026-11-23 0:00 UTC,"
        " or its operator can raise HOLDFAST_MOST_DOLLARS_DAY"
    )
    await budget.hold("two", "m", 500, 0)


async def test_searches_of_the_endpoint_are_set_aside_with_their_call(tmp_path: Path) -> None:
    budget = allowance(tmp_path)
    await budget.hold("one", "m", 300, 300, 3)
    assert spent(tmp_path) == ("0", "0.603")
    with pytest.raises(AllowanceReached):
        await budget.hold("two", "m", 999, 0, 2)


async def test_a_call_that_no_day_has_room_for_is_promised_none(tmp_path: Path) -> None:
    with pytest.raises(AllowanceReached, match="more than a whole day has") as refused:
        await allowance(tmp_path).hold("one", "m", 1001, 0)
    assert "room again" not in str(refused.value)


async def test_what_was_not_billed_is_given_back_and_what_nobody_knows_is_not(
    tmp_path: Path,
) -> None:
    budget = allowance(tmp_path)
    await budget.hold("one", "m", 100, 0)
    await budget.release("one")
    assert spent(tmp_path) == ("0", "0")
    for served, usage in (("m", None), ("unknown", Usage(input_tokens=1))):
        await budget.hold(served, "m", 100, 0)
        await budget.settle(served, "m", served, usage)
    assert spent(tmp_path) == ("0.200", "0")


async def test_a_call_waits_for_what_others_have_set_aside(tmp_path: Path) -> None:
    budget = allowance(tmp_path)
    await budget.hold("one", "m", 900, 0)
    with pytest.raises(NotBilled) as waits:
        await budget.hold("two", "m", 200, 0)
    assert not waits.value.non_retryable and waits.value.next_retry_delay
    await budget.settle("one", "m", "m", Usage(input_tokens=10))
    await budget.hold("two", "m", 200, 0)


def a_dead_process() -> int:
    """The id of a process that has ended."""
    code = "import os; print(os.getpid())"
    ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    return int(ended.stdout)


async def test_what_a_dead_worker_had_set_aside_stays_paid(tmp_path: Path) -> None:
    held = {"dollars": "0.9", "machine": senders.this_machine(), "process": a_dead_process()}
    content = {str(DAY): {"paid": "0", "held": {"x": held}}}
    (tmp_path / "spent.json").write_text(json.dumps(content))
    with pytest.raises(AllowanceReached):
        await allowance(tmp_path).hold("two", "m", 200, 0)


async def test_a_new_day_begins_at_nothing_and_settles_what_was_sent_before(tmp_path: Path) -> None:
    await allowance(tmp_path).hold("late", "m", 900, 0)
    after = allowance(tmp_path, when=DAY + timedelta(days=1))
    await after.hold("early", "m", 900, 0)
    await after.settle("late", "m", "m", Usage(input_tokens=500))
    assert spent(tmp_path) == ("0.500", "0")
    assert spent(tmp_path, DAY + timedelta(days=1)) == ("0", "0.900")
    # A clock that is set back finds the day as it was.
    with pytest.raises(AllowanceReached):
        await allowance(tmp_path).hold("again", "m", 600, 0)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"2026-11-22": {"paid": "-5"}}', "\x00" * 99])
async def test_a_damaged_file_lets_nothing_pass_and_says_so(tmp_path: Path, content: str) -> None:
    (tmp_path / "spent.json").write_text(content)
    with pytest.raises(SpendLimitReached, match="cannot be told"):
        await allowance(tmp_path).hold("one", "m", 1, 0)
    with pytest.raises(Unreadable):
        spent(tmp_path)


async def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("{}")
    (tmp_path / "spent.json").symlink_to(tmp_path / "other")
    with pytest.raises(SpendLimitReached):
        await allowance(tmp_path).hold("one", "m", 1, 0)


async def test_many_at_once_never_overshoot_together(tmp_path: Path) -> None:
    # Two objects, as two workers would have: only the lock of the file is between them.
    budgets = [allowance(tmp_path), allowance(tmp_path)]
    calls = (budgets[n % 2].hold(f"call {n}", "m", 100, 0) for n in range(24))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(each is None for each in outcomes) == 10
    assert spent(tmp_path) == ("0", "1.000")


async def test_without_a_price_nothing_leaves(tmp_path: Path) -> None:
    for day, run in (("1", None), (None, "1")):
        with pytest.raises(SpendLimitReached, match="no price is known for 'unknown'"):
            await allowance(tmp_path, day, run).hold("one", "unknown", 1, 1)


async def test_one_call_above_the_cap_of_a_run_is_refused_whoever_asks(tmp_path: Path) -> None:
    with pytest.raises(AllowanceReached, match="HOLDFAST_MOST_DOLLARS_RUN"):
        await allowance(tmp_path, day=None, run="0.5").hold("one", "m", 501, 0)
    assert not (tmp_path / "spent.json").exists(), "nothing is kept without a cap for the day"


# ---------------------------------------------------------------- a day: a call


async def ask(folder: Path, model: Lines, day: str) -> object:
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *_: None
    budget = allowance(folder, day)
    asking = Asking(model, FileJournal(folder / "journal"), price, budget=budget)
    return await environment.run(asking.ask, CALL, MATERIAL, SHAPE, "S", "P")


async def test_a_call_that_is_not_allowed_never_leaves_and_may_be_sent_tomorrow(
    tmp_path: Path,
) -> None:
    model = Lines([ANSWER])
    with pytest.raises(AllowanceReached):
        await ask(tmp_path, model, "3.9")
    assert model.requests == [] and not [*(tmp_path / "journal").iterdir()]
    await ask(tmp_path, model, "100")
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
    try:
        await ask(tmp_path, Lines([line]), "100")
    except OrchestrationError as error:
        assert error is line or isinstance(error, type(line))
    found, held = spent_today(tmp_path / "spent.json", DAY)
    assert held == 0
    assert found == paid if paid is not None else found > 4, "its worst case, where nobody knows"


# ---------------------------------------------------------------- settings and doctor


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


def test_doctor_says_what_is_left_of_the_day(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    settings = Settings(_env_file=None, state_dir=tmp_path)
    assert "spent today" not in {name for name, _, _ in check_storage(settings)}
    settings = settings.model_copy(update={"most_dollars_day": Decimal("2.5")})
    ((mark, said),) = [line[1:] for line in check_storage(settings) if line[0] == "spent today"]
    assert mark == "ok" and "$0 of $2.5" in said and "HOLDFAST_MOST_DOLLARS_DAY" in said
    (tmp_path / "spent.json").write_text("{")
    ((mark, _),) = [line[1:] for line in check_storage(settings) if line[0] == "spent today"]
    assert mark == "bad"
