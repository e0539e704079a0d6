"""An endpoint that loses calls, in every phase of a run: what is asked meanwhile, what that costs,
and when a loss is the call's own.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from driving import Drive, subtask
from holdfast.calls.critique import Critique
from holdfast.calls.ping import Pinged
from holdfast.calls.reach import Reached, ReachMaterial
from holdfast.contracts import Bill, Reply, Unreached, policies
from holdfast.history.steps import price_step
from holdfast.rendering import running
from holdfast.state.events import Answered, Trouble, Unanswered
from holdfast.state.moves import Ask, StartAgent
from outcomes import AMPLE, PLANNED, begun, comes_back, end, in_flight, segment_ends, value_of

# ---------------------------------------------------------------- a run in each phase


def planning() -> Drive:
    return Drive(None, AMPLE)


def working() -> Drive:
    return begun(*(subtask(f"t{number}") for number in range(1, 7)))


def replanning() -> Drive:
    run = begun(subtask("a"), subtask("b", "a"), replans=1)
    end(run, "work-a-1", "out of scope")
    return run


def synthesizing() -> Drive:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    return run


def criticising() -> Drive:
    run = synthesizing()
    end(run, "synthesize-1")
    return run


def reviewing() -> Drive:
    criteria = subtask("a").model_copy(update={"acceptance_criteria": "is good"})
    run = begun(criteria)
    end(run, "work-a-1")
    return run


PHASES: dict[str, tuple[Callable[[], Drive], str]] = {
    "planning": (planning, "plan-1"),
    "work": (working, "work-t1-1"),
    "replanning": (replanning, "replan-1"),
    "synthesis": (synthesizing, "synthesize-1"),
    "critique": (criticising, "critique-1"),
    "review": (reviewing, "review-a-1"),
}
UNREACHED = Unreached(address="http://a", why="Connection refused")
LOST = Unreached(address="http://a", why="502", lost=True)
LOSSES: dict[str, tuple[str, Unreached]] = {
    "refused, unanswered, no TLS, no name, 503": ("unreachable", UNREACHED),
    "closed, reset, half-open, black hole, 502, 504, a page": ("possibly_billed", LOST),
    "500, 529": ("not_billed", LOST),
}
phases = pytest.mark.parametrize("phase", PHASES)
losses = pytest.mark.parametrize("loss", LOSSES)
lossy = pytest.mark.parametrize("loss", [*LOSSES][1:])


def loses(run: Drive, flight_id: str, loss: str) -> None:
    kind, unreached = LOSSES[loss]
    ask = flying(run, flight_id)
    bill = comes_back(ask, "possibly_billed", Decimal(1), None)
    assert isinstance(bill, Unanswered)
    paid = {"bill": bill.trouble.bill} if kind == "possibly_billed" else {}
    run.put(Unanswered(ask, Trouble(kind, "it was lost", unreached=unreached, **paid)))  # type: ignore[arg-type]


def flying(run: Drive, flight_id: str) -> Ask:
    (ask,) = (each for each in run.in_flight if isinstance(each, Ask) and each.id == flight_id)
    return ask


def pause(run: Drive, number: int) -> float:
    """Before a look."""
    material = flying(run, f"reach-{number}").material
    assert isinstance(material, ReachMaterial)
    return material.after_seconds


def looked(run: Drive, number: int, *, missed: bool = False) -> None:
    """Somebody is found; `missed`: not at the first look."""
    value = Reached(waited_seconds=1.0, missed=missed)
    run.put(Answered(flying(run, f"reach-{number}"), Reply(value=value)))


def pinged(run: Drive, number: int) -> None:
    ask = flying(run, f"ping-{number}")
    run.put(comes_back(ask, "complete", Decimal(1), Pinged()))


# ---------------------------------------------------------------- what is asked meanwhile


@phases
@losses
def test_whatever_is_lost_in_whatever_phase_nothing_is_asked_but_a_free_look(
    phase: str, loss: str
) -> None:
    make, first = PHASES[phase]
    run = make()
    flights = in_flight(run)
    for each in flights:
        loses(run, each, loss)
    assert in_flight(run) == ["reach-1"]
    assert not run.state.ledger.reserved and first in flights


@phases
@lossy
def test_a_list_that_answers_is_no_proof_so_one_small_call_a_pause_is_all_an_outage_costs(
    phase: str, loss: str
) -> None:
    run = PHASES[phase][0]()
    for each in in_flight(run):
        loses(run, each, loss)
    before = run.state.ledger.spent.dollars
    pauses = []
    for number in range(1, 7):
        pauses.append(pause(run, number))
        looked(run, number)
        assert in_flight(run) == [f"ping-{number}"]
        loses(run, f"ping-{number}", loss)
    assert pauses == [0, 4, 8, 16, 30, 30]
    assert run.state.ledger.spent.dollars - before < Decimal("0.05")
    assert run.state.stop is None, "nobody gives up"


@phases
@losses
def test_the_run_goes_on_with_all_tries_once_calls_are_answered(phase: str, loss: str) -> None:
    """Losses of an outage, however many outages there are, are no fault of what was lost."""
    run = PHASES[phase][0]()
    flights = in_flight(run)
    for number in range(1, 2 * policies.TRANSPORT_TRIES):
        for each in in_flight(run):
            loses(run, each, loss)
        looked(run, number, missed=True)
        if LOSSES[loss][1].lost:
            pinged(run, number)
        assert len(in_flight(run)) == len(flights), "all that was in flight is again"
    for _ in range(40):
        if run.state.phase == "closed":
            break
        flight = in_flight(run)[0]
        value = value_of(flying(run, flight), "complete", PLANNED)
        end(run, flight, value=Critique(issues=()) if "critique" in flight else value)
    assert run.state.phase == "closed" and run.state.stop is None
    assert run.state.outage is None


# ---------------------------------------------------------------- a call's own fault


@phases
@lossy
def test_a_call_that_is_lost_though_small_ones_are_answered_is_given_up_after_its_tries(
    phase: str, loss: str
) -> None:
    """Also where it is the last call of its run: else each go would be paid for an hour."""
    make, first = PHASES[phase]
    purpose = first.rpartition("-")[0]
    run = make()
    for other in [each for each in in_flight(run) if each != first]:
        end(run, other)
    for number in range(1, policies.TRANSPORT_TRIES + 1):
        loses(run, f"{purpose}-{number}", loss)
        if number < policies.TRANSPORT_TRIES:
            looked(run, number)
            pinged(run, number)
    assert not [each for each in in_flight(run) if each.startswith(purpose)]
    assert run.state.transport.get(purpose, 0) in (0, policies.TRANSPORT_TRIES)


def test_an_answer_that_was_on_its_way_does_not_open_the_gate_for_calls_that_would_be_lost() -> (
    None
):
    run = working()
    loses(run, "work-t1-1", "500, 529")
    end(run, "work-t2-1")
    assert not [each for each in in_flight(run) if each in ("work-t1-2", "work-t5-1")]
    looked(run, 1)
    pinged(run, 1)
    assert {"work-t1-2"} <= set(in_flight(run))


def test_a_call_that_hung_since_before_the_outage_does_not_begin_another() -> None:
    run = working()
    loss = "closed, reset, half-open, black hole, 502, 504, a page"
    loses(run, "work-t1-1", loss)
    looked(run, 1)
    run.wait(1)
    pinged(run, 1)
    run.wait(30)
    loses(run, "work-t2-1", loss)
    assert not [each for each in in_flight(run) if each.startswith("reach")]
    assert "work-t2-2" in in_flight(run)


def test_an_endpoint_that_is_lost_again_is_looked_for_later_each_time() -> None:
    run = begun(subtask("a"))
    for number, seconds in enumerate((0, 4, 8), start=1):
        loses(run, f"work-a-{number}", "500, 529")
        if number == policies.TRANSPORT_TRIES:
            break
        assert pause(run, number) == seconds
        looked(run, number)
        pinged(run, number)


# ---------------------------------------------------------------- money and limits


def test_a_small_call_never_touches_what_is_kept_for_the_synthesis() -> None:
    run = begun(subtask("a"), subtask("b"), model_calls=3)
    loses(run, "work-a-1", "closed, reset, half-open, black hole, 502, 504, a page")
    assert run.state.ledger.kept.calls == 1
    looked(run, 1)
    assert "ping-1" not in in_flight(run), "the cap leaves no call for it"
    end(run, "work-b-1")
    assert in_flight(run) == ["synthesize-1"]


def test_who_refuses_a_small_call_reads_calls() -> None:
    run = begun(subtask("a"))
    loses(run, "work-a-1", "500, 529")
    looked(run, 1)
    run.put(Unanswered(flying(run, "ping-1"), Trouble("refused", "400 too few tokens")))
    assert in_flight(run) == ["work-a-2"]


def test_a_key_that_is_refused_meanwhile_ends_the_run_and_says_why() -> None:
    run = begun(subtask("a"))
    loses(run, "work-a-1", "500, 529")
    looked(run, 1)
    run.put(Unanswered(flying(run, "ping-1"), Trouble("stopping", "401 bad key")))
    assert run.state.phase == "closed"
    assert run.state.stop is not None and run.state.stop.why == "401 bad key"


def test_the_time_of_the_small_calls_counts_towards_the_limit_and_not_towards_the_deadline() -> (
    None
):
    run = begun(subtask("a"), outage_seconds=600, deadline_seconds=60)
    loses(run, "work-a-1", "500, 529")
    for number in range(1, 10):
        looked(run, number)
        run.wait(60)
        loses(run, f"ping-{number}", "500, 529")
    options = run.state.flights["reach-10"].timeouts
    assert options["schedule_to_close_timeout"] is not None
    assert options["schedule_to_close_timeout"].total_seconds() == 60
    run.wait(60)
    run.put(Unanswered(flying(run, "reach-10"), Trouble("not_billed", "timed out")))
    stop = run.state.stop
    assert stop is not None and stop.reason == "endpoint"
    assert "the endpoint http://a fails calls since 2026-01-01 00:00:00 UTC" in stop.why


def test_who_waits_for_no_endpoint_tries_what_may_have_been_paid_three_times_at_once() -> None:
    run = begun(subtask("a"), outage_seconds=0)
    for number in range(1, policies.TRANSPORT_TRIES + 1):
        loses(run, f"work-a-{number}", "closed, reset, half-open, black hole, 502, 504, a page")
    assert run.finding("a").status == "failed"


# ---------------------------------------------------------------- agents with tools


def segment(run: Drive) -> StartAgent:
    (move,) = run.teams
    assert isinstance(move, StartAgent)
    return move


def loses_turn(run: Drive) -> None:
    event = segment_ends(segment(run), "closed on", Decimal("0.5"))
    assert event.report is not None
    run.resumes["a"] = event.report.resume
    run.put(event)


def test_an_agent_whose_turns_are_lost_in_outages_keeps_all_its_tries() -> None:
    run = begun(subtask("a", role="reader"))
    for number in range(1, 2 * policies.TRANSPORT_TRIES):
        loses_turn(run)
        assert in_flight(run) == [f"reach-{number}"]
        looked(run, number, missed=True)
        pinged(run, number)
        resume = segment(run).goal.resume
        assert resume.losses == resume.excused == number


def test_an_agent_goes_on_counting_losses_that_are_its_own() -> None:
    run = begun(subtask("a", role="reader"))
    loses_turn(run)
    looked(run, 1)
    pinged(run, 1)
    assert (segment(run).goal.resume.losses, segment(run).goal.resume.excused) == (1, 0)


# ---------------------------------------------------------------- what people are told


def test_people_are_told_since_when_why_and_what_is_tried_next() -> None:
    run = begun(subtask("a"))
    loses(run, "work-a-1", "closed, reset, half-open, black hole, 502, 504, a page")
    told = "the endpoint http://a fails calls since 2026-01-01 00:00:00 UTC (502)"
    assert notes(run) == f"waiting: {told}; looks follow at most 30 s apart; {GOES_ON}"
    looked(run, 1)
    small = "a call of a few tokens shows whether it answers again"
    assert notes(run) == f"waiting: {told}; {small}; {GOES_ON}"
    loses(run, "ping-1", "500, 529")
    later = "the next look is at 00:00:04 UTC, then at most 30 s apart"
    assert notes(run) == f"waiting: {told}; {later}; {GOES_ON}"


GOES_ON = "the run goes on when it answers"


def notes(run: Drive) -> str:
    (note,) = (each for each in running.run_view(run.state).notes if each.startswith("waiting"))
    return note


def test_a_step_that_was_lost_costs_what_the_ledger_has_booked_for_it() -> None:
    run = working()
    ask, before = flying(run, "work-t1-1"), run.state.ledger
    bill = Bill(model="claude", calls=1, dollars=None, final=False)
    lost = Unanswered(ask, Trouble("possibly_billed", "502", bill, unreached=LOST))
    run.put(lost)
    after = run.state.ledger
    assert after.all_priced and after.assumed > before.assumed
    assert price_step(lost, before, after) == after.spent.dollars - before.spent.dollars > 0
