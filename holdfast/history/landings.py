"""Makes an event of what came back from a flight: the one reading of results, which the executor
and every reader of a history share. Pure.
"""

from __future__ import annotations

from typing import Any, cast

from temporalio.exceptions import ActivityError, ChildWorkflowError

from holdfast.calls import KINDS
from holdfast.calls.rows import MapReport
from holdfast.calls.turn import AgentReport
from holdfast.contracts import Briefing, Draft, Reply, Report
from holdfast.history.troubles import (
    classify_refusal,
    classify_trouble,
    describe_error,
    find_end,
    find_report,
    spent_nothing,
)
from holdfast.state.events import (
    AgentEnded,
    Answered,
    Event,
    Examined,
    MapEnded,
    NotPrepared,
    Prepared,
    TeamEnded,
    Unanswered,
)
from holdfast.state.moves import Ask, Examine, Prepare, StartAgent, StartMap, StartTeam
from holdfast.state.parts import Flight

Result = Briefing | Reply[Any] | Report | AgentReport | MapReport


def result_type(flight: Flight) -> Any:
    """Return the type of what a flight comes back with."""
    match flight.move:
        case Prepare():
            return Briefing
        case Examine():
            return Reply[Draft]
        case Ask(call=call):
            return KINDS[call.kind].reply
        case StartTeam():
            return Report
        case StartAgent():
            return AgentReport
        case StartMap():
            return MapReport


def land_result(flight: Flight, result: Result) -> Event:
    """Return the event of a flight that came back with its result."""
    match flight.move:
        case Prepare():
            return Prepared(cast(Briefing, result))
        case Ask() as move:
            return Answered(move, cast(Reply[Any], result))
        case Examine() as move:
            reply = cast(Reply[Draft], result)
            at = reply.span.ended if reply.span else None
            return Examined(move, reply.value or Draft(status="failed"), at)
        case StartTeam() as move:
            return TeamEnded(move, cast(Report, result))
        case StartAgent() as move:
            return AgentEnded(move, cast(AgentReport, result))
        case StartMap() as move:
            return MapEnded(move, cast(MapReport, result))


def land_failure(flight: Flight, error: ActivityError | ChildWorkflowError) -> Event:
    """Return the event of a flight that came back without a result."""
    if isinstance(error, ChildWorkflowError):
        if isinstance(flight.move, StartAgent):
            return AgentEnded(flight.move, None, describe_error(error), spent_nothing(error.cause))
        if isinstance(flight.move, StartMap):
            return MapEnded(flight.move, None, describe_error(error), spent_nothing(error.cause))
        assert isinstance(flight.move, StartTeam)
        report = find_report(error.cause)
        return TeamEnded(flight.move, report, describe_error(error), spent_nothing(error.cause))
    assert flight.options is not None
    if isinstance(flight.move, Ask):
        told = classify_trouble(error, flight.started, flight.options, flight.cut_at)
        return Unanswered(flight.move, told)
    at = find_end(error, flight.started, flight.options)
    if isinstance(flight.move, Examine):
        return Examined(flight.move, Draft(status="failed", why=describe_error(error)), at)
    return NotPrepared(describe_error(error), classify_refusal(error), at)


def land_taken_name(flight: Flight, run_id: str) -> Event:
    """Return the event of a run below that was not started: another with its name is open."""
    why = f"another run named {run_id} is open"
    if isinstance(flight.move, StartAgent):
        return AgentEnded(flight.move, None, why, unpaid=True)
    if isinstance(flight.move, StartMap):
        return MapEnded(flight.move, None, why, unpaid=True)
    assert isinstance(flight.move, StartTeam)
    return TeamEnded(flight.move, None, why, unpaid=True)
