"""The supervisor's context is a cap: for the synthesis, the judge and the critic alike."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType

from driving import BRIEFING, Drive, subtask
from holdfast.calling import context
from holdfast.contracts import Finding, Plan, Strategy, Tier, policies
from holdfast.history.landings import land_failure
from holdfast.rules import reporting
from holdfast.state.events import Unanswered
from holdfast.state.moves import Ask
from outcomes import AMPLE, begun, draft, end, in_flight

LONG = "All work and no play. " * 2_000
CAP = 1_000


def texts(ask: Ask) -> int:
    """The bytes of findings in a call's material."""
    findings: tuple[Finding, ...] = ask.material.findings  # type: ignore[attr-defined]
    return sum(len(f"{each.digest or each.content}{each.why}".encode()) for each in findings)


def asked(run: Drive, kind: str) -> list[Ask]:
    return [each for each in run.asks[""] if each.call.kind == kind]


def long_run(*ids: str, strategy: Strategy = "merge") -> Drive:
    """Each subtask has found a lot, and no digest can be had."""
    plan = Plan(goal="Compare", subtasks=tuple(map(subtask, ids)), strategy=strategy)
    run = Drive(plan, AMPLE.model_copy(update={"supervisor_context_tokens": CAP}))
    for id in ids:
        end(run, f"work-{id}-1", value=draft(id).model_copy(update={"content": f"{id}: {LONG}"}))
    while digests := [each for each in in_flight(run) if each.startswith("digest-")]:
        end(run, digests[0], "refused")
    return run


def test_what_cannot_be_digested_is_cut_to_the_cap_and_the_report_says_so() -> None:
    run = long_run("a", "b", "c")
    end(run, "synthesize-1", "failed")
    while judging := [each for each in in_flight(run) if each.startswith("judge-")]:
        end(run, judging[0])
    end(run, "critique-1", "failed")
    assert {each.call.kind for each in run.asks[""]} >= {"synthesize", "judge", "critique"}
    for kind in ("synthesize", "judge", "critique"):
        for ask in asked(run, kind):
            assert 0 < texts(ask) <= CAP * context.EXPECTED_BYTES_PER_TOKEN
    [note] = [each for each in reporting.notes(run.state) if "supervisor_context_tokens" in each]
    assert note.startswith("Only the beginning of a, b, c was read")
    assert run.finding("a").content == f"a: {LONG}", "the finding itself stays whole"


def test_a_judge_of_several_attempts_reads_no_more_than_the_cap() -> None:
    run = long_run("a", "b", strategy="select")
    [judge] = asked(run, "judge")
    assert 0 < texts(judge) <= CAP * context.EXPECTED_BYTES_PER_TOKEN


def test_a_digest_a_judge_or_a_critic_that_fails_is_left_out_with_a_note() -> None:
    run = long_run("a", "b", strategy="select")
    end(run, "judge-1", "refused")
    end(run, "synthesize-1")
    end(run, "critique-1", "refused")
    left_out = [each for each in reporting.notes(run.state) if "was left out: " in each]
    assert {each.partition(" ")[0] for each in left_out} == {"digest", "judge", "critique"}
    assert run.closed and reporting.report(run.state).status == "complete"


def test_what_fits_is_not_touched_and_no_note_is_made() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    assert asked(run, "synthesize")[0].material.cut == ()  # type: ignore[attr-defined]
    assert not [each for each in reporting.notes(run.state) if "context" in each]


@settings(max_examples=60, derandomize=True, database=None)
@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=300), min_size=1, max_size=8),
    st.integers(100, 900),
)
def test_the_cap_holds_for_any_text(contents: list[str], most: int) -> None:
    findings = [
        Finding(subtask_id=f"t{place}", status="complete", content=each)
        for place, each in enumerate(contents)
    ]
    within, cut = context.cut_to_fit(findings, most)
    sizes = [len(each.content.encode()) for each in within]
    assert sum(sizes) <= most
    whole = [each for each in findings if each.subtask_id not in cut]
    assert all(each in within for each in whole)
    if sum(len(each.encode()) for each in contents) <= most:
        assert cut == ()


def test_what_takes_a_stronger_model_too_long_as_well_is_given_back_to_be_split() -> None:
    run = begun(subtask("a"), subtask("b", "a"), subtask("c"), replans=1)
    for number in (1, 2, 3):
        assert f"work-a-{number}" in in_flight(run)
        takes_too_long(run, f"work-a-{number}")
    assert [each.call.tier for each in run.asks["a"]] == ["sonnet", "sonnet", "opus"]
    finding = run.finding("a")
    assert finding.status == "escalated" and finding.escalation is not None
    assert finding.escalation.reason == "timeout"
    assert finding.confidence is None, "nothing is there that anybody could be sure of"
    assert "replan-1" in in_flight(run)
    paid = sum((ask.amount.dollars for ask in run.asks["a"]), Decimal(0))
    assert finding.dollars == paid and policies.TOO_LONG_TRIES == 2


@pytest.mark.parametrize(
    ("tier", "asked"), [("sonnet", ["sonnet", "sonnet", "opus"]), ("opus", ["opus", "opus"])]
)
def test_a_plan_that_takes_too_long_is_asked_of_the_strongest_model_once(
    tier: Tier, asked: list[str]
) -> None:
    planner = next(each for each in BRIEFING.models if each.tier == tier)
    run = Drive(None, AMPLE, BRIEFING.model_copy(update={"planner": planner}))
    for number in range(1, len(asked) + 1):
        takes_too_long(run, f"plan-{number}")
    assert [each.call.tier for each in run.asks[""]] == asked
    assert list(run.state.work) == ["t1"], "then one agent has it all"


def test_a_subtask_that_nobody_will_split_goes_to_a_stronger_model_once() -> None:
    run = begun(subtask("a", tier="haiku"), subtask("c"), replans=0)
    end(run, "work-c-1")
    for number in (1, 2):
        takes_too_long(run, f"work-a-{number}")
    assert [each.call.tier for each in run.asks["a"]] == ["haiku", "haiku", "sonnet"]
    assert [each.verdict for each in run.state.work["a"].tries] == ["timeout"]
    assert "one call is too short" in run.asks["a"][-1].material.why  # type: ignore[attr-defined]
    takes_too_long(run, "work-a-3")
    finding = run.finding("a")
    assert finding.status == "escalated" and len(finding.tries) == 2
    paid = sum((ask.amount.dollars for ask in run.asks["a"]), Decimal(0))
    assert finding.dollars == paid


def takes_too_long(run: Drive, flight_id: str) -> None:
    """As Temporal tells it: a worker had it until its start-to-close was over."""
    flight = run.state.flights[flight_id]
    error = ActivityError(
        "activity ended",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type="work",
        activity_id=flight_id,
        retry_state=None,
    )
    error.__cause__ = TimeoutError(
        "start to close", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[]
    )
    event = land_failure(flight, error)
    assert isinstance(event, Unanswered)
    run.put(event)
