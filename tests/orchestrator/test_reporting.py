"""How a run is judged and shown, from runs that were driven to that state."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Literal

import pytest

from driving import BRIEFING, Drive, subtask
from holdfast.calling import gathering
from holdfast.calls.critique import Critique, Issue
from holdfast.contracts import (
    Approval,
    Check,
    Finding,
    Order,
    Plan,
    PlaybookCard,
    Report,
    Share,
    Synthesis,
    policies,
)
from holdfast.rendering import findings, running
from holdfast.rendering import report as page
from holdfast.rendering.amounts import money
from holdfast.rules import reporting, steering
from holdfast.state.events import CancelAsked, Steered
from holdfast.state.work import Work
from outcomes import AMPLE, begun, end, in_flight, wait_until_cut

TO_TYPE = "{} {}".format


def closed(run: Drive) -> Report:
    """The report, once everything that is left has come back complete."""
    while run.in_flight:
        end(run, in_flight(run)[0])
    assert run.closed
    return reporting.report(run.state)


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
    report = reporting.report(run.state)
    assert (run.closed, report.status, report.answer) == (True, "cancelled", "")
    assert report.findings[0].content == "found by work-a-1"


def test_a_refused_key_is_said_with_what_is_missing_because_of_it() -> None:
    run = begun(subtask("a"), subtask("b"), concurrency=1)
    end(run, "work-a-1", "stopping")
    report = closed(run)
    assert report.status == "failed"
    assert "Work was stopped: it was stopping." in report.notes
    assert (report.model_calls, report.unpaid_calls) == (0, 1), "a model was asked all the same"
    assert [gap.why for gap in report.gaps] == ["it was stopping", "not started: it was stopping"]


def test_a_run_at_the_cap_of_its_deployment_was_stopped_for_money_and_has_not_failed() -> None:
    for done in ([], ["a"]):
        run = begun(subtask("a"), subtask("b"), concurrency=1)
        for each in done:
            end(run, f"work-{each}-1")
        end(run, f"work-{'b' if done else 'a'}-1", "allowance")
        report = closed(run)
        assert report.status == "budget_stopped"
        assert report.answer or not done, "what is complete is shown, and nothing paid for it"
        assert "Work was stopped: it was allowance." in report.notes
        assert ("before anything was finished" in page.as_markdown(report, TO_TYPE)) == (not done)
        if not done:
            # A map of which some rows are complete.
            rows = report.findings[0].model_copy(update={"data": {"rows": {"complete": 184}}})
            some = report.model_copy(update={"findings": (rows,)})
            assert "the answer covers what was finished" in page.as_markdown(some, TO_TYPE)


def test_a_cap_of_the_deployment_that_comes_after_the_whole_answer_changes_nothing() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    end(run, "synthesize-1")
    end(run, "critique-1", "allowance")
    assert closed(run).status == "complete"


def test_a_subtask_that_failed_in_transport_lists_its_calls_and_what_each_counts_at() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1", "not_billed")
    for number in range(1, policies.TRANSPORT_TRIES + 1):
        end(run, f"work-b-{number}", "possibly_billed")
    report = reporting.report(run.state)
    free, lost = report.findings
    assert [(each.id, each.dollars) for each in free.unanswered] == [("work-a-1", Decimal(0))]
    assert [each.id for each in lost.unanswered] == ["work-b-1", "work-b-2", "work-b-3"]
    assert all(each.why == "it was possibly_billed" for each in lost.unanswered)
    paid = [each.dollars for each in lost.unanswered]
    assert all(paid) and sum(filter(None, paid), Decimal(0)) == lost.dollars == lost.assumed
    assert (report.model_calls, report.unpaid_calls) == (3, 1)


def test_each_try_has_what_its_answered_calls_cost() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1", "possibly_billed")
    end(run, "work-a-2", "fails a check")
    end(run, "work-a-3")
    finding = run.finding("a")
    lost, first, second = (ask.amount.dollars for ask in run.asks["a"])
    assert [each.dollars for each in finding.unanswered] == [lost]
    assert [each.dollars for each in finding.tries] == [first, second]
    assert finding.dollars == lost + first + second


def test_an_answer_that_a_template_made_says_so() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    end(run, "synthesize-1", "refused")
    end(run, "synthesize-2", value=Synthesis(answer="found", by_template=True, notes=("Short.",)))
    report = reporting.report(run.state)
    assert report.answer == "found"
    assert "because the synthesis failed: it was refused" in report.gaps[0].why
    assert report.status == "complete_with_gaps" and "Short." in report.notes
    assert not any("template" in note for note in report.notes), "said once, by the gap"


def test_a_template_s_paste_in_place_of_a_synthesis_has_no_confidence() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    end(run, "synthesize-1", "refused")
    end(run, "synthesize-2", value=Synthesis(answer="found", by_template=True, confidence=90))
    assert reporting.report(run.state).confidence is None
    meant = run.state.goal.model_copy(update={"use_models": False})
    finishing = replace(run.state.finishing, unwritten="")
    by_code = replace(run.state, goal=meant, finishing=finishing)
    assert reporting.report(by_code).confidence == 90, "an answer that code was to write keeps it"


def test_a_template_s_answer_is_no_warning_where_no_model_was_to_be_asked() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1")
    done = replace(run.state.finishing, synthesis=Synthesis(answer="found", by_template=True))
    free = run.state.goal.model_copy(update={"use_models": False})
    assert reporting.notes(replace(run.state, finishing=done, goal=free)) == ()


def test_what_a_template_misses_is_said_by_the_gaps_alone() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1", "refused")
    end(run, "synthesize-1", "refused")
    merged = Synthesis(answer="found", by_template=True, gaps=("b: it was refused",))
    end(run, "synthesize-2", value=merged)
    report = reporting.report(run.state)
    assert "it was refused" in [gap.why for gap in report.gaps]
    assert not any(note.startswith("b:") for note in report.notes)


def test_the_orders_of_people_are_in_the_report_with_who_when_and_what() -> None:
    run = begun(subtask("a"), subtask("b"))
    run.wait(5)
    run.put(Steered(1, "skip", Order(subtask_id="b", text="not needed", by="ana")))
    end(run, "work-b-1", "cut")
    run.put(Steered(2, "resume", Order(by="ben")))
    given = closed(run).orders
    assert [(each.command, each.order.by, each.order.text) for each in given] == [
        ("skip", "ana", "not needed"),
        ("resume", "ben", ""),
    ]
    assert given[0].at == run.state.started + timedelta(seconds=5)
    assert [each.refused for each in given] == ["", "the run is not paused"]


def test_a_plan_that_was_rejected_is_in_the_report_with_its_estimate() -> None:
    plan = Plan(goal="g", subtasks=(subtask("a"), subtask("b")))
    run = Drive(plan, AMPLE, BRIEFING, approval=Approval(when="always"))
    run.put(Steered(1, "reject", Order()))
    made = closed(run)
    assert made.status == "declined" and not made.findings
    assert made.plan == plan and made.dollars_estimated


def test_an_edit_keeps_the_plan_that_it_changed() -> None:
    run = begun(subtask("a"))
    asked = replace(run.state, phase="approval", work=Work(), flights={})
    other = Plan(goal="another", subtasks=(subtask("b"),))
    edited = steering.steer(asked, Steered(1, "edit", Order(plan=other, by="ana")))
    (given,) = edited.orders
    assert given.before is not None and [each.id for each in given.before.subtasks] == ["a"]
    assert given.order.plan == other


def test_a_plan_is_judged_when_its_edit_arrives_and_never_again() -> None:
    """Another version, or another RE2, may judge otherwise: what was accepted replays."""
    run = begun(subtask("a"))
    asked = replace(run.state, phase="approval", work=Work(), flights={})
    bad = subtask("b").model_copy(update={"checks": (Check(kind="regex", argument="("),)})
    order = Order(plan=Plan(goal="g", subtasks=(bad,)))
    assert "checks: regex '('" in steering.refusal_on_arrival(asked, "edit", order)
    (given,) = steering.steer(asked, Steered(1, "edit", order)).orders
    assert given.refused == ""


def test_what_a_person_answered_is_a_source_of_the_finding() -> None:
    run = Drive(Plan(goal="g", subtasks=(subtask("a"),)), AMPLE, people=True)
    end(run, "work-a-1", "with a partial")
    run.put(Steered(1, "answer", Order(subtask_id="a", text="The fiscal year.", by="ana")))
    end(run, "work-a-2")
    (finding,) = closed(run).findings
    assert finding.sources == ("answered by ana: The fiscal year.",)


@pytest.mark.parametrize(("said", "least"), [(None, 80), (50, 50), (0, 0)])
def test_the_least_confidence_of_the_limits_is_that_of_a_reviews_remarks(
    said: int | None, least: int
) -> None:
    playbook = PlaybookCard(name="review", min_confidence=80)
    briefing = BRIEFING.model_copy(update={"playbook": playbook})
    limits = AMPLE.model_copy(update={"min_confidence": said})
    run = Drive(Plan(goal="g", subtasks=(subtask("a"),)), limits, briefing)
    end(run, "work-a-1")
    assert gathering.for_synthesis(run.state).min_confidence == least


@pytest.mark.parametrize("approval", ["", "always"])
def test_what_a_playbook_has_approved_is_what_runs_and_no_planner_changes_it(
    approval: Literal["", "always"],
) -> None:
    playbook = PlaybookCard(name="case", approval=approval, notice="Checked by nobody.")
    briefing = BRIEFING.model_copy(update={"playbook": playbook})
    plan = Plan(goal="g", subtasks=(subtask("a"), subtask("b", "a"), subtask("c")))
    run = Drive(plan, AMPLE.model_copy(update={"replans": 2}), briefing)
    if approval:
        assert not run.in_flight, "though its goal says auto"
        run.put(Steered(1, "approve", Order(by="ana")))
    end(run, "work-a-1", "refused")
    assert ("replan-1" in in_flight(run)) is not bool(approval)
    if approval:
        report = closed(run)
        assert [each.subtask_id for each in report.gaps] == ["a", "b"]
        assert report.answer == "> **Checked by nobody.**\n\nthe answer"
        assert running.run_view(run.state).answer == report.answer


def test_who_cancelled_a_run_is_said() -> None:
    run = begun(subtask("a"))
    run.put(CancelAsked("ana", run.state.now))
    end(run, "work-a-1", "cut")
    report = reporting.report(run.state)
    assert "Work was stopped: the run was cancelled by ana." in report.notes
    assert [(each.command, each.order.by) for each in report.orders] == [("cancel", "ana")]


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
    assert timings.waited == 0.0


def test_the_time_that_a_run_waited_for_people_is_told_before_and_after_the_first_payment() -> None:
    plan = Plan(goal="g", subtasks=(subtask("a"), subtask("b", "a")))
    run = Drive(plan, AMPLE, BRIEFING, approval=Approval(when="always"))
    run.wait(30)
    run.put(Steered(2, "approve", Order()))
    run.wait(4)
    run.put(Steered(3, "pause", Order()))
    run.wait(2)
    end(run, "work-a-1")
    run.wait(50)
    run.put(Steered(4, "resume", Order()))
    timings = closed(run).timings
    assert (timings.makespan, timings.waited) == (86.0, 80.0)
    assert run.state.deadline is None or run.state.waited == 50.0


def test_what_a_subtask_waited_for_a_person_is_no_work_of_it_nor_of_the_longest_chain() -> None:
    run = Drive(Plan(goal="g", subtasks=(subtask("a"), subtask("b", "a"))), AMPLE, people=True)
    run.wait(3)
    end(run, "work-a-1", "with a partial")
    run.wait(500)
    assert running.run_view(run.state).rows[0].seconds == 3.0
    run.put(Steered(1, "answer", Order(subtask_id="a", text="The fiscal year.", by="ana")))
    run.wait(2)
    end(run, "work-a-2")
    run.wait(1)
    made = closed(run)
    assert [(each.seconds, each.waited) for each in made.findings] == [(5.0, 500.0), (1.0, 0.0)]
    assert [row.seconds for row in running.run_view(run.state).rows] == [5.0, 1.0]
    assert (made.timings.waited, made.timings.critical_path) == (500.0, 6.0)
    assert (
        "The longest chain of subtasks took 6.0 s, that waiting not counted."
        in page.as_markdown(made, TO_TYPE)
    )


def test_a_wait_that_began_before_a_subtask_is_none_of_its_own() -> None:
    run = begun(subtask("a"), subtask("b", "a"))
    run.put(Steered(1, "pause", Order()))
    end(run, "work-a-1")
    run.wait(50)
    run.put(Steered(2, "resume", Order()))
    run.wait(4)
    made = closed(run)
    assert made.timings.waited == 50.0
    assert [(each.seconds, each.waited) for each in made.findings] == [(0.0, 0.0), (4.0, 0.0)]


def test_how_long_a_person_took_says_nothing_of_what_the_next_call_will_take() -> None:
    limits = AMPLE.model_copy(update={"deadline_seconds": 600})
    run = Drive(Plan(goal="g", subtasks=(subtask("a"), subtask("b", "a"))), limits, people=True)
    end(run, "work-a-1", "with a partial")
    run.wait(1_800)
    run.put(Steered(1, "answer", Order(subtask_id="a", text="The fiscal year.", by="ana")))
    end(run, "work-a-2")
    assert in_flight(run) == ["work-b-1"]


def test_what_was_never_started_takes_no_time() -> None:
    run = begun(subtask("a"), subtask("b", "a"))
    run.wait(2)
    end(run, "work-a-1", "refused")
    timings = closed(run).timings
    assert (timings.work, timings.critical_path) == (2.0, 2.0)


def test_the_price_is_what_was_paid_and_what_is_still_reserved() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    asks = [run.asks["a"][0], run.asks["b"][0]]
    report = reporting.report(run.state)
    assert report.dollars == sum(ask.amount.dollars for ask in asks)
    assert report.model_calls == 2
    view = running.run_view(run.state)
    assert (view.dollars_spent, view.dollars_reserved) == tuple(ask.amount.dollars for ask in asks)


def test_a_run_of_unpriced_models_shows_no_price_at_all() -> None:
    models = tuple(card.model_copy(update={"prices": ()}) for card in BRIEFING.models)
    plan = Plan(goal="Compare", subtasks=(subtask("a"),))
    run = Drive(plan, AMPLE, BRIEFING.model_copy(update={"models": models}))
    end(run, "work-a-1", "possibly_billed")
    assert reporting.report(run.state).dollars is None
    view = running.run_view(run.state)
    assert view.dollars_spent is None
    assert view.rows[0].dollars is None


def test_a_subtask_that_the_cap_left_a_cheaper_model_for_is_noted_once() -> None:
    run = begun(subtask("a", tier="sonnet"), subtask("b", "a"), dollars=Decimal("0.2"))
    told = [each for each in reporting.notes(run.state) if "a was asked" in each]
    assert told == ["a was asked of haiku instead of sonnet: the cap left no more."]
    end(run, "work-a-1", "malformed")
    end(run, "repair-a-1")
    (ask,) = run.asks["b"]
    assert ask.call.tier == "haiku"
    (note,) = [each for each in reporting.notes(run.state) if "instead of sonnet" in each]
    assert note == "a, b were asked of haiku instead of sonnet: the cap left no more."
    ample = begun(subtask("a", tier="sonnet"))
    assert reporting.notes(ample.state) == ()


def test_findings_are_listed_in_the_plans_order() -> None:
    run = begun(subtask("b"), subtask("a"))
    end(run, "work-a-1")
    found: tuple[Finding, ...] = closed(run).findings
    assert [each.subtask_id for each in found] == ["b", "a"]
    assert all(each.dollars and each.dollars > Decimal(0) for each in found)


def test_what_a_revision_may_still_mend_is_not_called_not_mended() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    end(run, "synthesize-1")
    end(run, "critique-1", "failed")
    assert in_flight(run) == ["synthesize-2"]
    assert "Not mended: wrong" not in running.run_view(run.state).notes
    end(run, "synthesize-2", "refused")
    assert "Not mended: wrong" in closed(run).notes


def test_what_a_critic_found_and_what_became_of_it_stands_in_each_form() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    end(run, "synthesize-1")
    issues = (
        Issue(severity="warning", problem="The year is wrong."),
        Issue(severity="info", problem="It is long"),
    )
    end(run, "critique-1", value=Critique(issues=issues))
    end(run, "synthesize-2")
    notes = closed(run).notes
    assert (
        "A critic found 1 fault in the answer, and it was written anew: The year is wrong." in notes
    )
    assert "A remark of the critic that was not passed on: It is long." in notes


def test_what_the_answer_calls_missing_is_told_once_where_it_is_a_gap() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1", "refused")
    end(run, "work-b-1")
    more = "The invoice lumen-108 is in no sum [a]"
    gaps = ("a has no finding", more, "Prices of 2025 are not known")
    value = Synthesis(answer="it is so", gaps=gaps, confidence=70)
    end(run, "synthesize-1", value=value)
    notes = closed(run).notes
    assert "Prices of 2025 are not known" in notes and "a has no finding" not in notes
    assert more in notes, "it says what of the subtask is missing where"


def test_the_price_says_what_of_it_no_subtask_has() -> None:
    report = closed(begun(subtask("a"), subtask("b", "a")))
    own = sum((each.dollars or Decimal(0) for each in report.findings), Decimal(0))
    assert report.dollars is not None and report.dollars > own > 0
    told = f"{money(report.dollars - own)} of it went into "
    assert f"{told}the answer and its critic." in page.as_markdown(report, TO_TYPE)

    def paid_for(*kinds: str) -> Report:
        shares = [Share(kind=each, dollars=Decimal("0.01")) for each in ("work", *kinds)]
        return report.model_copy(update={"shares": tuple(shares)})

    assert f"{told}proofs and patches." in page.as_markdown(paid_for("fix", "prove"), TO_TYPE)
    whole = paid_for("plan", "synthesize", "critique", "lost")
    named = "the plan, the answer, its critic and calls lost by a reset."
    assert told + named in page.as_markdown(whole, TO_TYPE)


@pytest.mark.parametrize(
    ("limits", "said", "more"),
    [
        ({"model_calls": 3}, "the limit of 3 model calls does not cover another call", "6"),
        ({"tokens": 60_000}, "the limit of 60,000 tokens does not cover another call", "120000"),
        ({"dollars": Decimal("0.4")}, "the rest of the budget does not cover another call", "0.8"),
    ],
)
def test_a_limit_that_ends_a_run_is_named_and_what_finishes_it_is_given_twice_as_much(
    limits: dict[str, object], said: str, more: str
) -> None:
    run = begun(*(subtask(each) for each in "abcd"), concurrency=1, **limits)
    report = closed(run)
    assert report.status in ("budget_stopped", "failed") and run.state.stop is not None
    assert run.state.stop.why.startswith(said)
    assert ("though $" in run.state.stop.why) == ("dollars" not in limits)
    assert report.more == (f"{next(iter(limits))}={more}",)
    assert page.to_go_on(report, TO_TYPE)[1] == f"fork run --limits {report.more[0]}"


def test_a_finding_that_was_taken_over_tells_its_tries_as_those_of_the_other_run() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1", "unsure")
    report = closed(run)
    taken = report.findings[0].model_copy(update={"reused_from": "before"})
    (told, *_) = [line for line in findings.tries(taken)]
    assert told.startswith("in run `before`: try 1 on sonnet")
    assert "in run" not in next(findings.tries(report.findings[0]))
