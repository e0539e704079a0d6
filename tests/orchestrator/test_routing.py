"""Which role has a subtask, one rule after the other: the plan's first, or its second."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from driving import BRIEFING, Drive, subtask
from holdfast.contracts import Plan, Reply, Span, Subtask
from holdfast.plans import validity
from holdfast.rendering import findings, running
from holdfast.rules import reporting
from holdfast.state.events import Answered
from holdfast.state.moves import Ask
from outcomes import DRAFTS, begun, comes_back, end, in_flight


def routed(id: str, *depends_on: str, role: str = "researcher", second: str = "expert") -> Subtask:
    return subtask(id, *depends_on, role=role).model_copy(update={"secondary": second})


def answers(run: Drive, flight_id: str, *, queued: float, worked: float) -> None:
    """The call comes back; it waited for its turn, and then it worked, so many seconds."""
    (move,) = (each for each in run.in_flight if each.id == flight_id)
    assert isinstance(move, Ask)
    began = run.state.flights[flight_id].started + timedelta(seconds=queued)
    run.wait(queued + worked)
    back = comes_back(move, "complete", Decimal("0.5"), DRAFTS["complete"](flight_id))
    assert isinstance(back, Answered)
    span = Span(started=began, ended=began + timedelta(seconds=worked))
    reply: Reply[Any] = back.reply.model_copy(update={"span": span})
    run.put(replace(back, reply=reply))


def roles(run: Drive, subtask_id: str) -> list[str]:
    return [each.call.role for each in run.asks.get(subtask_id, [])]


def test_the_plans_second_role_takes_over_before_the_fallback_of_the_role() -> None:
    run = begun(routed("a"))
    end(run, "work-a-1", "out of scope")
    assert roles(run, "a") == ["researcher", "expert"]
    end(run, "work-a-2", "out of scope")
    assert run.finding("a").status == "escalated", "the expert has no fallback of its own"


def test_a_second_role_that_gives_it_back_hands_it_to_its_own_fallback() -> None:
    run = begun(routed("a", role="analyst", second="researcher"), tries_per_subtask=5)
    end(run, "work-a-1", "out of scope")
    end(run, "work-a-2", "out of scope")
    assert roles(run, "a") == ["analyst", "researcher"], "its fallback has had it"


def test_a_role_whose_calls_waited_longer_than_the_work_takes_is_passed_over() -> None:
    run = begun(subtask("a", role="researcher"), routed("b", "a"))
    answers(run, "work-a-1", queued=90, worked=10)
    assert roles(run, "b") == ["expert"]
    note = (
        "b: expert does it instead of researcher, whose last call lost 90 s in the queue; the work"
        " itself takes about 10 s."
    )
    assert note in running.run_view(run.state).notes, "the board says so"
    assert note in reporting.report(run.state).notes
    row = running.run_view(run.state).rows[1]
    assert row.who == "expert for researcher"


def test_a_role_whose_wait_is_shorter_than_the_work_keeps_it() -> None:
    run = begun(subtask("a", role="researcher"), routed("b", "a"))
    answers(run, "work-a-1", queued=9, worked=10)
    assert roles(run, "b") == ["researcher"]
    assert not [each for each in reporting.report(run.state).notes if "instead of" in each]


def test_a_role_that_brought_no_answer_twice_is_passed_over() -> None:
    run = begun(subtask("a", role="researcher"), subtask("c"), routed("b", "c"))
    end(run, "work-a-1", "possibly_billed")
    end(run, "work-a-2", "possibly_billed")
    end(run, "work-c-1")
    assert roles(run, "b") == ["expert"]
    assert "researcher, whose last 2 calls brought no answer" in run.state.notes[0]


@pytest.mark.parametrize("trouble", ["over_reservation", "allowance"])
def test_what_ends_the_calls_of_any_role_is_no_fault_of_one(trouble: str) -> None:
    run = begun(subtask("a", role="researcher"))
    end(run, "work-a-1", trouble)
    assert not run.state.lately


def test_nobody_is_passed_over_for_a_role_that_is_waited_for_longer() -> None:
    first = subtask("a", role="researcher"), subtask("c", role="expert")
    run = begun(*first, routed("b", "a", "c"))
    answers(run, "work-a-1", queued=90, worked=10)
    answers(run, "work-c-1", queued=900, worked=10)
    assert roles(run, "b") == ["researcher"]


def test_without_a_second_role_the_first_is_waited_for() -> None:
    run = begun(subtask("a", role="researcher"), subtask("b", "a", role="researcher"))
    answers(run, "work-a-1", queued=90, worked=10)
    assert roles(run, "b") == ["researcher"], "its fallback is for what fails, not for haste"


def test_only_the_last_calls_of_a_role_count() -> None:
    chain = [subtask(each, before, role="researcher") for each, before in ("bc", "cd", "de")]
    run = begun(subtask("e", role="researcher"), *chain, routed("a", "b"))
    answers(run, "work-e-1", queued=900, worked=10)
    for id in "dcb":
        answers(run, f"work-{id}-1", queued=0, worked=10)
    assert roles(run, "a") == ["researcher"]


def test_who_was_passed_over_does_not_get_it_back() -> None:
    run = begun(subtask("a", role="researcher"), routed("b", "a"), tries_per_subtask=1)
    answers(run, "work-a-1", queued=90, worked=10)
    end(run, "work-b-1", "unsure")
    assert run.finding("b").status == "failed"
    assert roles(run, "b") == ["expert"]
    report = reporting.report(run.state)
    told = findings.alone(report, run.finding("b"))
    assert "expert for researcher" in told and "second role: expert" in told
    assert in_flight(run) == ["synthesize-1"]


@pytest.mark.parametrize(
    ("role", "second", "wrong"),
    [
        ("researcher", "nobody", "secondary: unknown role 'nobody'"),
        ("researcher", "researcher", "secondary: 'researcher' is its role already"),
        ("researcher", "scanner", "secondary: role 'scanner' has no model, and cannot stand in"),
        ("scanner", "researcher", "secondary: no effect, because role 'scanner' has no model"),
        ("researcher", "analyst", ""),
        ("researcher", "", ""),
    ],
)
def test_a_second_role_that_could_not_do_it_is_refused_with_the_plan(
    role: str, second: str, wrong: str
) -> None:
    plan = Plan(goal="Compare", subtasks=(routed("a", role=role, second=second),))
    found = validity.problems(plan, BRIEFING.roles, (), 6)
    assert wrong in "; ".join(found) if wrong else found == ()
