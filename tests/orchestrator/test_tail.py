"""Between the last finding and the end of a run: digests ahead, an answer that needs no critic."""

from __future__ import annotations

from typing import Any

import pytest

from driving import Drive, subtask
from holdfast.contracts import Checked, Plan, Synthesis
from holdfast.errors import Refused
from holdfast.intake.plans import parse_plan
from holdfast.rules import preview, reporting
from outcomes import AMPLE, draft, end, in_flight

LONG = "All work and no play. " * 2_000
SURE = Synthesis(answer="It costs 12 [a].", checked=Checked(figures=1, citations=1))


def plan_of(*subtasks: Any, **fields: Any) -> Plan:
    return Plan(goal="Compare", subtasks=tuple(subtasks), **fields)


def ends_long(run: Drive, id: str) -> None:
    end(run, f"work-{id}-1", value=draft(id).model_copy(update={"content": LONG}))


def test_a_long_finding_is_digested_while_the_last_subtasks_are_at_work() -> None:
    run = Drive(plan_of(subtask("a"), subtask("b")), AMPLE)
    ends_long(run, "a")
    assert in_flight(run) == ["work-b-1", "digest-a-1"]
    end(run, "digest-a-1")
    end(run, "work-b-1")
    assert in_flight(run) == ["synthesize-1"], "it is not digested again"
    assert run.finding("a").digest


@pytest.mark.parametrize(
    ("subtasks", "concurrency"),
    [
        ((subtask("a"), subtask("b"), subtask("c")), 2),
        ((subtask("a"), subtask("b"), subtask("c", "b")), 5),
    ],
)
def test_what_has_yet_to_start_comes_before_a_digest_for_the_answer(
    subtasks: Any, concurrency: int
) -> None:
    run = Drive(plan_of(*subtasks), AMPLE.model_copy(update={"concurrency": concurrency}))
    ends_long(run, "a")
    assert not any(each.startswith("digest") for each in in_flight(run))
    end(run, "work-b-1")
    assert "work-c-1" in in_flight(run) and "digest-a-1" in in_flight(run)


def test_no_attempt_is_digested_that_may_be_put_aside() -> None:
    run = Drive(plan_of(subtask("a"), subtask("b"), choices=(("a", "b"),)), AMPLE)
    ends_long(run, "a")
    assert in_flight(run) == ["work-b-1"]


# ---------------------------------------------------------------- the critic


def answered(critic: str, synthesis: Synthesis) -> Drive:
    run = Drive(plan_of(subtask("a"), subtask("b"), critic=critic), AMPLE)
    end(run, "work-a-1")
    end(run, "work-b-1")
    end(run, "synthesize-1", value=synthesis)
    return run


def test_no_critic_is_asked_where_code_has_checked_the_answer_and_that_is_enough() -> None:
    run = answered("unless_checked", SURE)
    assert run.closed
    said = "Checked by code: 1 figure, 1 citation; no critic read its words, as the plan says."
    assert said in reporting.report(run.state).notes


@pytest.mark.parametrize(
    ("critic", "update"),
    [("always", {}), ("unless_checked", {"checked": None})],
)
def test_a_critic_is_asked_where_one_of_the_two_is_missing(
    critic: str, update: dict[str, Any]
) -> None:
    run = answered(critic, SURE.model_copy(update=update))
    assert in_flight(run) == ["critique-1"]
    end(run, "critique-1")
    assert not any("by code" in each for each in reporting.report(run.state).notes)


def test_contradictions_are_for_a_critic_whatever_code_has_checked() -> None:
    run = answered("unless_checked", SURE.model_copy(update={"conflicts": ("a or b",)}))
    while judging := [each for each in in_flight(run) if each.startswith("judge-")]:
        end(run, judging[0])
    assert "critique-1" in run.started


def test_the_price_of_a_critic_that_may_not_be_asked_begins_at_nothing() -> None:
    def row(critic: str) -> Any:
        run = Drive(plan_of(subtask("a"), subtask("b"), critic=critic), AMPLE)
        return next(each for each in preview.predict(run.state).rows if each.id == "critique")

    always, unless = row("always"), row("unless_checked")
    assert (unless.low, unless.expected, unless.high) == (0, always.expected, always.high)
    assert always.low and unless.title == f"{always.title}, unless code can check it"


def test_what_a_plan_says_of_its_critic_is_one_of_two_words() -> None:
    text = "goal: C\ncritic: never\nsubtasks: [{id: a, title: A, instruction: Look, role: analyst}]"
    with pytest.raises(Refused, match=r"^plan: critic: .*'always' or 'unless_checked'"):
        parse_plan(text, "plan", as_yaml=True)
    assert parse_plan(text.replace("never", "always"), "plan", as_yaml=True).critic == "always"
