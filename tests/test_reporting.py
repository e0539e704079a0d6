"""How a run is judged and shown, from runs that were driven to that state."""

from __future__ import annotations

from decimal import Decimal

import pytest

from driving import BRIEFING, Drive, subtask
from orchestrator import reporting
from orchestrator.contracts import Finding, Plan, Report, Synthesis
from outcomes import AMPLE, DRAFTS, begun, end, in_flight, wait_until_cut


def closed(run: Drive) -> Report:
    """The report, once everything that is left has come back complete."""
    while run.in_flight:
        end(run, in_flight(run)[0])
    assert run.closed
    return reporting.report(run.state, run.now)


def test_a_run_with_every_subtask_complete_is_complete() -> None:
    report = closed(begun(subtask("a"), subtask("b", "a")))
    assert (report.status, report.gaps) == ("complete", ())
    assert report.answer == "the answer"
    assert report.confidence == 80


def test_one_gap_makes_it_complete_with_gaps() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1", "refused")
    report = closed(run)
    assert report.status == "complete_with_gaps"
    assert [(gap.subtask_id, gap.status, gap.why) for gap in report.gaps] == [
        ("a", "failed", "it was refused")
    ]


def test_a_gap_names_all_it_took_down_and_what_it_took_down_is_a_gap_too() -> None:
    run = begun(subtask("a"), subtask("b", "a"), subtask("c", "b"), subtask("d"))
    end(run, "work-a-1", "refused")
    report = closed(run)
    assert {gap.subtask_id: gap.took_down for gap in report.gaps} == {
        "a": ("b", "c"),
        "b": (),
        "c": (),
    }


def test_an_escalation_is_a_gap_that_took_nothing_down_when_its_partial_went_on() -> None:
    run = begun(subtask("a"), subtask("b", "a"))
    end(run, "work-a-1", "too slow")
    report = closed(run)
    assert report.status == "complete_with_gaps"
    assert [(gap.status, gap.took_down) for gap in report.gaps] == [("escalated", ())]


def test_a_run_without_a_complete_finding_has_failed() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1", "refused")
    assert closed(run).status == "failed"


def test_what_was_cut_at_the_deadline_is_a_partial_answer_that_says_so() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    wait_until_cut(run)
    end(run, "work-b-1", "cut")
    report = closed(run)
    assert report.status == "deadline_partial"
    assert report.gaps[0].status == "cancelled"
    assert any("the deadline was reached" in note for note in report.notes)


def test_a_cancelled_run_is_cancelled_whatever_it_had() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    run.cancel()
    end(run, "work-b-1", "cut")
    report = reporting.report(run.state, run.now)
    assert (run.closed, report.status, report.answer) == (True, "cancelled", "")
    assert report.findings[0].content == "found by work-a-1"


def test_a_refused_key_is_said_with_what_is_missing_because_of_it() -> None:
    run = begun(subtask("a"), subtask("b"), concurrency=1)
    end(run, "work-a-1", "stopping")
    report = closed(run)
    assert report.status == "failed"
    assert "Work was stopped: it was stopping." in report.notes
    assert [gap.why for gap in report.gaps] == ["it was stopping", "not started: it was stopping"]


def test_an_answer_that_a_template_made_says_so() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1")
    end(run, "synthesize-1", "refused")
    end(run, "synthesize-2", value=Synthesis(answer="found", by_template=True, notes=("Short.",)))
    report = reporting.report(run.state, run.now)
    assert report.answer == "found"
    assert any("The model's synthesis failed (it was refused)" in note for note in report.notes)
    assert {"Short.", "The answer was merged by a template, without a model."} <= {*report.notes}


def test_durations_are_measured_from_when_things_happened() -> None:
    run = begun(subtask("a"), subtask("b"), subtask("c", "a", "b"))
    run.wait(2)
    end(run, "work-a-1")
    run.wait(4)
    end(run, "work-b-1")
    run.wait(10)
    end(run, "work-c-1")
    run.wait(3)
    timings = closed(run).timings
    assert (timings.makespan, timings.work) == (19.0, 16.0)
    assert timings.critical_path == 16.0
    assert timings.subtasks == 18.0
    assert timings.speed_up == pytest.approx(18 / 16, abs=0.01)


def test_what_was_never_started_takes_no_time() -> None:
    run = begun(subtask("a"), subtask("b", "a"))
    run.wait(2)
    end(run, "work-a-1", "refused")
    timings = closed(run).timings
    assert (timings.work, timings.subtasks, timings.critical_path) == (2.0, 2.0, 2.0)


def test_the_price_is_what_was_paid_and_what_is_still_reserved() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    asks = [run.asks["a"][0], run.asks["b"][0]]
    report = reporting.report(run.state, run.now)
    assert report.dollars == sum(ask.amount.dollars for ask in asks)
    assert report.model_calls == 2
    view = reporting.run_view(run.state, run.now)
    assert (view.dollars_spent, view.dollars_reserved) == tuple(ask.amount.dollars for ask in asks)


def test_a_run_of_unpriced_models_shows_no_price_at_all() -> None:
    models = tuple(card.model_copy(update={"prices": ()}) for card in BRIEFING.models)
    plan = Plan(goal="Compare", subtasks=(subtask("a"),))
    run = Drive(plan, AMPLE, BRIEFING.model_copy(update={"models": models}))
    end(run, "plan-1")
    end(run, "work-a-1", "possibly_billed")
    assert reporting.report(run.state, run.now).dollars is None
    view = reporting.run_view(run.state, run.now)
    assert view.dollars_spent is None
    assert view.rows[0].dollars is None


def test_the_view_shows_each_subtask_as_it_stands() -> None:
    run = begun(
        *(subtask("a"), subtask("b", role="scanner"), subtask("c", "a")),
        *(subtask("d"), subtask("e", "d")),
    )
    end(run, "work-a-1", "unsure")
    found = DRAFTS["complete"]("use_tool-b-1").model_copy(update={"data": {"remarks": [1]}})
    end(run, "use_tool-b-1", value=found)
    end(run, "work-d-1", "refused")
    run.wait(5)
    view = reporting.run_view(run.state, run.now)
    rows = {row.id: row for row in view.rows}
    assert {id: row.status for id, row in rows.items()} == {
        "a": "running",
        "b": "complete",
        "c": "waiting",
        "d": "failed",
        "e": "skipped",
    }
    assert (rows["a"].try_number, rows["a"].tier, rows["a"].seconds) == (2, "opus", 5.0)
    assert rows["a"].note == "confidence 10 is below 60"
    assert rows["b"].note == "1 remark"
    assert rows["d"].note == "it was refused"
    assert (view.phase, view.status) == ("working", None)


def test_the_status_is_shown_only_when_the_run_is_over() -> None:
    run = begun(subtask("a"))
    assert reporting.run_view(run.state, run.now).status is None
    closed(run)
    run.wait(60)
    view = reporting.run_view(run.state, run.now)
    assert (view.phase, view.status) == ("closed", "complete")
    assert view.now == run.state.finished, "the clock stops with the run"


def test_findings_are_listed_in_the_plans_order() -> None:
    run = begun(subtask("b"), subtask("a"))
    end(run, "work-a-1")
    found: tuple[Finding, ...] = closed(run).findings
    assert [each.subtask_id for each in found] == ["b", "a"]
    assert all(each.dollars and each.dollars > Decimal(0) for each in found)
