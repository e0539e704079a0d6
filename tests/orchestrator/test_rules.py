"""The supervisor's rules, one by one, as sentences: what follows when this comes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from driving import BRIEFING, ROLES, START, Drive, model, subtask
from holdfast.calls.replan import Change, Patch
from holdfast.contracts import Goal, Limits, Order, Plan, Span, Tier, policies
from holdfast.plans import revision
from holdfast.rendering import running
from holdfast.rules import reporting
from holdfast.rules.reducer import apply
from holdfast.state.events import Answered, Started, Steered
from holdfast.state.moves import Ask, Stop
from holdfast.state.run import first_state
from outcomes import AMPLE, begun, comes_back, draft, end, in_flight, wait_until_cut

LEAST = AMPLE.model_copy(update={"dollars": Decimal(0)})
"""Of which the smallest synthesis would be kept."""
TIERS: tuple[Tier, ...] = ("haiku", "sonnet", "opus")


def test_a_failure_skips_what_needs_it_and_says_so_and_leaves_the_rest_alone() -> None:
    run = begun(subtask("a"), subtask("b", "a"), subtask("c", "b"), subtask("d"))
    end(run, "work-a-1", "refused")
    assert run.finding("a").status == "failed"
    assert run.finding("b").why == "needs a, which failed"
    assert run.finding("c").why == "needs b, which was skipped"
    assert in_flight(run) == ["work-d-1"]
    end(run, "work-d-1")
    assert in_flight(run) == ["synthesize-1"]
    end(run, "synthesize-1")
    assert reporting.report(run.state).gaps[0].took_down == ("b", "c")


def test_a_partial_is_passed_on_and_an_empty_escalation_is_not() -> None:
    run = begun(subtask("a"), subtask("b", "a"), subtask("c"), subtask("d", "c"))
    end(run, "work-a-1", "too slow")
    end(run, "work-c-1", "out of scope")
    assert in_flight(run) == ["work-b-1"]
    assert run.finding("d").why == "needs c, which gave it back"


def test_each_rejected_try_climbs_one_tier_and_never_above_opus() -> None:
    run = begun(subtask("a", tier="haiku"), tries_per_subtask=4)
    for flight_id in ("work-a-1", "work-a-2", "refine-a-1", "work-a-3", "refine-a-2", "work-a-4"):
        end(run, flight_id, "unsure" if flight_id.startswith("work") else "complete")
    assert [each.tier for each in run.finding("a").tries] == ["haiku", "sonnet", "opus", "opus"]
    assert run.finding("a").status == "failed"


TRIED = ("work-a-1", "work-a-2", "refine-a-1", "work-a-3")


def tried_in_vain(role: str = "researcher", **limits: object) -> Drive:
    """Three tries that nobody is sure of."""
    run = begun(subtask("a", role=role), subtask("b"), **limits)
    for flight_id in TRIED:
        end(run, flight_id, "unsure" if flight_id.startswith("work") else "complete")
    return run


def test_after_the_last_try_the_roles_fallback_has_one_and_then_it_has_failed_for_good() -> None:
    run = tried_in_vain()
    fallback = run.asks["a"][-1].call
    assert (fallback.role, fallback.tier) == ("analyst", "opus")
    end(run, "work-a-4", "unsure")
    assert run.finding("a").status == "failed"
    assert [each.tier for each in run.finding("a").tries] == ["haiku", "sonnet", "opus", "opus"]
    assert [each.role for each in run.finding("a").tries] == ["", "", "", "analyst"]
    row = running.run_view(run.state).rows[0]
    assert (row.role, row.who, row.try_number) == ("analyst", "analyst for researcher", 4)
    saved = tried_in_vain()
    end(saved, "work-a-4")
    assert saved.finding("a").status == "complete"
    assert tried_in_vain("analyst").finding("a").status == "failed", "it has no fallback"


def test_a_role_that_had_a_subtask_never_gets_it_again() -> None:
    roles = (
        ROLES[0],
        ROLES[1].model_copy(update={"fallback": "researcher"}),
    )
    plan = Plan(goal="Compare", subtasks=(subtask("a", role="researcher"), subtask("b")))
    run = Drive(plan, AMPLE, BRIEFING.model_copy(update={"roles": roles}))
    end(run, "work-a-1", "out of scope")
    assert run.asks["a"][-1].call.role == "analyst"
    end(run, "work-a-2", "out of scope")
    assert run.finding("a").status == "escalated"


def test_what_is_out_of_scope_at_the_last_try_goes_to_the_fallback_all_the_same() -> None:
    run = begun(subtask("a", role="researcher"), subtask("b"), tries_per_subtask=1)
    end(run, "work-a-1", "out of scope")
    assert run.asks["a"][-1].call.role == "analyst"
    end(run, "work-a-2", "unsure")
    assert run.finding("a").status == "failed"


def test_an_agent_in_doubt_is_followed_by_a_stronger_one() -> None:
    run = begun(subtask("a", tier="haiku"))
    end(run, "work-a-1", "in doubt")
    assert run.asks["a"][-1].call.tier == "sonnet"
    end(run, "work-a-2")
    assert [each.verdict for each in run.finding("a").tries] == ["confidence_too_low", "accepted"]


def test_a_fixed_tier_does_not_climb() -> None:
    run = begun(subtask("a", role="sorter"))
    for flight_id in ("work-a-1", "work-a-2", "refine-a-1", "work-a-3"):
        end(run, flight_id, "unsure" if flight_id.startswith("work") else "complete")
    assert [each.tier for each in run.finding("a").tries] == ["haiku"] * 3


def test_a_truncated_answer_is_asked_for_once_more_with_twice_the_room() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1", "truncated")
    end(run, "work-a-2", "truncated")
    first, second, third = (ask.call for ask in run.asks["a"])
    assert (first.max_output * 2, second.tier) == (second.max_output, first.tier)
    assert (third.max_output, third.tier) == (first.max_output, "opus")


def test_a_refused_reservation_is_made_again_as_large_as_the_worker_said() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1", "over_reservation")
    first, second = run.asks["a"]
    assert second.amount.dollars > first.amount.dollars
    assert second.amount.tokens == first.amount.tokens + 100


def test_a_call_that_may_have_been_billed_is_asked_again_in_a_call_of_its_own() -> None:
    run = begun(subtask("a"))
    for number in range(1, policies.TRANSPORT_TRIES + 1):
        end(run, f"work-a-{number}", "possibly_billed")
    assert run.finding("a").status == "failed"
    paid = sum((ask.amount.dollars for ask in run.asks["a"]), Decimal(0))
    assert run.finding("a").dollars == run.state.ledger.spent.dollars == paid


def test_when_the_cap_is_near_a_role_falls_to_a_cheaper_tier_and_a_fixed_one_stops() -> None:
    kept = Drive(None, LEAST).state.ledger.kept.dollars
    cheap = begun(subtask("a", role="expert"), subtask("b", "a"), dollars=kept + Decimal("0.05"))
    assert [ask.call.tier for ask in cheap.asks["a"]] == ["haiku"]
    end(cheap, "work-a-1")
    assert [each.tier for each in cheap.finding("a").tries] == ["haiku"]
    fixed = begun(subtask("a", role="sorter"), subtask("b"), dollars=kept + Decimal("0.01"))
    assert fixed.finding("a").why.startswith("not started: the rest of the budget")


def test_a_small_cap_keeps_a_smaller_synthesis_and_at_last_one_by_a_cheaper_model() -> None:
    def kept(dollars: str) -> Decimal:
        limits = AMPLE.model_copy(update={"dollars": Decimal(dollars)})
        return Drive(None, limits).state.ledger.kept.dollars

    sizes = [kept(dollars) for dollars in ("10", "1.5", "1.1", "1", "0.5", "0.05")]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes)
    assert all(
        size <= Decimal(cap) / 4
        for size, cap in zip(sizes[:-1], ("10", "1.5", "1.1", "1", "0.5"), strict=True)
    )


def test_the_synthesis_takes_the_most_room_that_is_left() -> None:
    two = subtask("a", role="sorter"), subtask("b", role="scanner")
    run = begun(*two, dollars=Decimal("0.35"))
    end(run, "work-a-1")
    end(run, "examine-b-1")
    (ask,) = run.in_flight
    assert isinstance(ask, Ask) and ask.call.kind == "synthesize"
    assert (ask.call.tier, ask.call.max_output) == ("sonnet", 16_000)
    small = begun(*two, dollars=Decimal("0.125"))
    end(small, "work-a-1")
    end(small, "examine-b-1")
    (ask,) = small.in_flight
    assert isinstance(ask, Ask)
    assert (ask.call.tier, ask.call.max_output) == ("sonnet", 2_000)


def test_a_plan_that_a_cheaper_model_makes_because_of_the_cap_is_noted() -> None:
    kept = Drive(None, LEAST).state.ledger.kept.dollars
    run = Drive(None, AMPLE.model_copy(update={"dollars": kept + Decimal("0.02")}))
    (ask,) = run.in_flight
    assert isinstance(ask, Ask) and ask.call.tier == "haiku"
    (note,) = run.state.notes
    assert note == "The plan was asked of haiku instead of sonnet: the cap left no more."


def test_what_was_abandoned_counts_at_its_reservation_and_changes_nothing_later() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    wait_until_cut(run)
    assert in_flight(run) == ["work-b-1"]
    run.wait(policies.CANCEL_GRACE.total_seconds())
    assert in_flight(run) == ["synthesize-1"]
    before = run.state
    end(run, "work-b-1")
    assert run.state == before
    assert run.finding("b").dollars == run.asks["b"][0].amount.dollars


def test_the_grace_of_what_was_cut_does_not_end_the_synthesis_that_follows() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    wait_until_cut(run)
    end(run, "work-b-1", "cut")
    run.wait(policies.CANCEL_GRACE.total_seconds())
    assert in_flight(run) == ["synthesize-1"]


def answer_at(run: Drive, flight_id: str, seconds: float) -> None:
    """An answer that is recorded so long after the start of the run; no timer has come before."""
    flight = run.state.flights[flight_id].move
    assert isinstance(flight, Ask)
    event = comes_back(flight, "complete", Decimal("0.5"), draft(flight_id))
    assert isinstance(event, Answered)
    at = START + timedelta(seconds=seconds)
    reply = event.reply.model_copy(update={"span": Span(started=at, ended=at)})
    run.put(replace(event, reply=reply))


def test_of_a_time_in_which_nobody_serves_a_run_one_part_of_its_deadline_counts() -> None:
    run = begun(subtask("a"), subtask("b"), deadline_seconds=600)
    answer_at(run, "work-a-1", 5_000)
    assert run.state.waited == 5_000 - 600 / policies.DEADLINE_BEATS
    assert run.state.stop is None and in_flight(run) == ["work-b-1"]
    wait_until_cut(run)
    assert run.now == START + timedelta(seconds=480 + run.state.waited)


def test_a_worker_that_is_only_busy_takes_no_time_from_the_deadline() -> None:
    run = begun(subtask("a"), subtask("b"), deadline_seconds=600)
    answer_at(run, "work-a-1", 33)
    assert run.state.waited == 0


def test_what_was_cut_is_given_up_only_by_a_worker_that_has_seen_half_of_its_grace() -> None:
    """Its answer may stand behind a timer that fired while nobody was there."""
    run = begun(subtask("a"), subtask("b"), deadline_seconds=600)
    end(run, "work-a-1")
    wait_until_cut(run)
    run.now += timedelta(hours=1)
    run._fire()
    assert in_flight(run) == ["work-b-1"]
    run._fire()
    assert in_flight(run) == ["synthesize-1"]


def test_a_tool_that_fails_by_itself_after_the_work_was_stopped_has_failed() -> None:
    run = begun(subtask("a"), subtask("b", role="scanner"))
    end(run, "work-a-1", "stopping")
    end(run, "examine-b-1", "failed")
    assert run.finding("b").status == "failed"


def test_without_a_complete_finding_a_partial_is_shown_but_no_synthesis_is_paid() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1", "too slow")
    assert in_flight(run) == ["synthesize-1"]
    end(run, "synthesize-1")
    assert reporting.report(run.state).status == "failed"
    assert "" not in run.asks


def test_a_call_without_a_price_that_may_have_been_billed_never_counts_as_free() -> None:
    unpriced = tuple(model(tier, 0).model_copy(update={"prices": ()}) for tier in TIERS)
    run = Drive(
        Plan(goal="Compare", subtasks=(subtask("a"),)),
        AMPLE,
        BRIEFING.model_copy(update={"models": unpriced}),
    )
    for number in range(1, policies.TRANSPORT_TRIES + 1):
        end(run, f"work-a-{number}", "possibly_billed")
    assert run.finding("a").dollars is None
    assert reporting.report(run.state).dollars is None


def test_when_a_replan_is_not_affordable_what_does_not_need_it_still_runs() -> None:
    kept = Drive(None, LEAST).state.ledger.kept.dollars
    work = (subtask(each, role="sorter") for each in ("a", "c"))
    room = kept + Decimal("0.016")
    run = begun(*work, subtask("b", "a"), dollars=room, concurrency=1, replans=2)
    end(run, "work-a-1", "refused")
    assert in_flight(run) == ["work-c-1"]
    end(run, "work-c-1")
    assert run.finding("c").status == "complete"
    assert run.finding("b").status == "skipped"


def test_what_was_asked_is_frozen_for_a_replan_and_keeps_its_bill() -> None:
    run = begun(
        *(subtask("a"), subtask("b"), subtask("c", "a"), subtask("d", "a")),
        *(subtask("e", "c"), subtask("f", "d")),
        concurrency=2,
        replans=1,
    )
    end(run, "work-a-1")
    end(run, "work-b-1", "possibly_billed")
    assert in_flight(run) == ["work-c-1", "work-d-1"]
    end(run, "work-c-1", "refused")
    assert in_flight(run) == ["work-d-1", "replan-1"]
    assert run.replanned_from is not None
    standings = {each.subtask_id: each.status for each in run.replanned_from.standings}
    assert (standings["b"], standings["e"]) == ("running", "waiting")
    other = subtask("b", role="researcher")
    end(run, "replan-1", value=Patch(changes=(Change(op="replace", subtask=other),)))
    assert run.state.work["b"].subtask == subtask("b")
    end(run, "work-b-2")
    paid = sum(ask.amount.dollars for ask in run.asks["b"])
    assert run.finding("b").dollars == paid


def test_what_came_back_for_a_subtask_that_a_person_ended_is_a_try_of_its_finding() -> None:
    run = begun(subtask("a"), subtask("b"))
    run.put(Steered(1, "cancel_subtask", Order(subtask_id="a", by="me")))
    end(run, "work-a-1", "unsure")
    assert run.finding("a").status == "cancelled"
    assert [each.number for each in run.finding("a").tries] == [1]


def test_what_a_person_ends_is_cut_while_the_run_is_paused() -> None:
    run = begun(subtask("a"), subtask("b"))
    run.put(Steered(1, "pause", Order(by="me")))
    run.put(Steered(2, "cancel_subtask", Order(subtask_id="a", by="me")))
    assert {key: flight.cut for key, flight in run.state.flights.items()} == {
        "work-a-1": 1,
        "work-b-1": 0,
    }


def test_what_no_replan_saves_any_more_is_said_to_lack_what_it_needs() -> None:
    run = begun(subtask("a"), subtask("b", "a"), replans=1)
    (ask,) = run.asks["a"]
    state = apply(run.state, comes_back(ask, "refused", Decimal(1), None))
    assert state.replanning.setbacks and state.work["b"].finding is None
    finding = apply(state, Started(Stop("budget", "no money is left"))).work["b"].finding
    assert finding is not None and finding.why == "needs a, which failed"


def test_a_replan_may_change_a_subtask_once() -> None:
    run = begun(subtask("a"), subtask("b", "a"), subtask("c", "b"), replans=1)
    end(run, "work-a-1", "refused")
    assert run.replanned_from is not None
    twice = Patch(
        changes=(
            Change(op="replace", subtask=subtask("c", "c")),
            Change(op="drop", subtask=subtask("c")),
        )
    )
    assert revision.problems(twice, run.replanned_from) == (
        "changes[1] drop 'c': it is changed twice",
    )


@pytest.mark.parametrize(
    "deadline, working, below",
    [(12, 9, 6.75), (60, 45, 33.75), (240, 180, 135), (300, 240, 180), (900, 720, 576)],
)
def test_a_short_deadline_is_mostly_for_work_also_in_a_team(
    deadline: int, working: float, below: float
) -> None:
    """A fifth is kept for the answer, at least a minute, but never more than a quarter."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    run = first_state("run", Goal(text="g", limits=Limits(deadline_seconds=deadline)), now, "")
    assert run.seconds_left == working
    limits = Limits(deadline_seconds=int(run.seconds_left))
    assert first_state("team", Goal(text="g", limits=limits), now, "").seconds_left == below
