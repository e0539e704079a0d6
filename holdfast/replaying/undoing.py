"""What a reset of a run would undo: read from its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from holdfast.calls.turn import AgentGoal, AgentReport
from holdfast.contracts import Bill, Call, Contract, Goal, Lost, Report, Tier, Usage
from holdfast.history.troubles import detail, report_in
from holdfast.replaying.faults import SCHEDULED, UNREAD

RESULTS = (
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED,
)
TEAM_RESULTS = (
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED,
)
CANCEL = "cancel"
AGENT = "AgentWorkflow"


@dataclass(frozen=True)
class Undoing:
    """One activity, or one run of a team, that came to its end after the point, or has not yet."""

    id: str
    bill: Bill
    """What it had cost; of one in flight, and of one that nobody knows, what was reserved."""
    tier: Tier | None = None
    """None: no model is asked by it."""
    in_flight: bool = False

    @property
    def lost(self) -> Lost | None:
        """For the bill of the run as it goes on; None: nothing was paid, or it is in there."""
        counts = self.bill.calls and not self.bill.earlier
        return Lost(id=self.id, bill=self.bill) if counts else None


class _Billed(Contract):
    """Of any reply, what it cost."""

    bill: Bill = Bill()


async def undone_by(
    events: Sequence[HistoryEvent],
    point: int,
    converter: DataConverter,
    under_way: frozenset[str],
) -> tuple[Undoing, ...]:
    """What a reset to a point undoes, in the order in which it was scheduled. `under_way`:
    activities of which an attempt has begun; what only waits in its queue was not paid.
    """
    ends = {_began(each): each for each in events if each.event_type in (*RESULTS, *TEAM_RESULTS)}
    found = []
    for event in events:
        end = ends.get(event.event_id)
        if event.event_type not in UNREAD or (end is not None and end.event_id < point):
            continue
        reading = _activity if event.event_type == SCHEDULED else _team
        found.append(await reading(event, end, converter, under_way))
    return tuple(found)


def _began(event: HistoryEvent) -> int:
    """The event that scheduled what an event ends."""
    attributes = getattr(event, str(event.WhichOneof("attributes")))
    kind = "scheduled" if event.event_type in RESULTS else "initiated"
    return int(getattr(attributes, f"{kind}_event_id"))


async def _activity(
    event: HistoryEvent,
    end: HistoryEvent | None,
    converter: DataConverter,
    under_way: frozenset[str],
) -> Undoing:
    attributes = event.activity_task_scheduled_event_attributes
    id, arguments = attributes.activity_id, attributes.input.payloads
    # Only a model activity has two arguments: the call, and what it works from.
    call = await _read(converter, arguments[:1], Call) if len(arguments) == 2 else None
    if call is None or call.model is None:
        return Undoing(id, Bill(), in_flight=end is None)
    unknown = _reserved(call)
    if end is None:
        return Undoing(id, unknown if id in under_way else Bill(), call.tier, in_flight=True)
    return Undoing(id, await _bill(end, converter, unknown), call.tier)


def _reserved(call: Call) -> Bill:
    assert call.model is not None
    dollars = call.ceiling if call.model.prices else None
    return Bill(model=call.model.id, calls=1, dollars=dollars, assumed=call.ceiling)


async def _bill(end: HistoryEvent, converter: DataConverter, unknown: Bill) -> Bill:
    """What a call had cost by the event that ended it."""
    if end.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        payloads = end.activity_task_completed_event_attributes.result.payloads
        reply = await _read(converter, payloads, _Billed)
        return unknown if reply is None else reply.bill
    if end.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
        return Bill()
    if end.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        left = end.activity_task_timed_out_event_attributes.started_event_id
        return unknown if left else Bill()
    failure = end.activity_task_failed_event_attributes.failure
    cause = await converter.decode_failure(failure)
    bill = detail(cause.details, Bill) if isinstance(cause, ApplicationError) else None
    if bill is None or not bill.calls:
        return Bill()
    if bill.usage.total and bill.dollars is not None:
        return bill
    return unknown.model_copy(update={"earlier": bill.earlier})


async def _team(
    event: HistoryEvent,
    end: HistoryEvent | None,
    converter: DataConverter,
    _under_way: frozenset[str],
) -> Undoing:
    attributes = event.start_child_workflow_execution_initiated_event_attributes
    id = attributes.workflow_id
    if attributes.workflow_type.name == AGENT:
        return await _segment(event, end, converter)
    report = await _report(end, converter) if end is not None else None
    if report is not None:
        return Undoing(id, _bill_of(report))
    goal = await _read(converter, attributes.input.payloads, Goal)
    if goal is None:
        return Undoing(id, Bill(calls=1, dollars=None), in_flight=end is None)
    # Nobody knows what it spent: its whole slice counts.
    limits = goal.limits
    bill = Bill(
        calls=limits.model_calls,
        usage=Usage(output_tokens=limits.tokens),
        dollars=limits.dollars,
        assumed=limits.dollars,
    )
    return Undoing(id, bill, in_flight=end is None)


async def _segment(
    event: HistoryEvent, end: HistoryEvent | None, converter: DataConverter
) -> Undoing:
    """A segment of an agent, under the id that its slice is reserved under: what of it is answered
    from the journal when it is done again is found by that.
    """
    attributes = event.start_child_workflow_execution_initiated_event_attributes
    goal: AgentGoal | None = await _read(converter, attributes.input.payloads, AgentGoal)
    if goal is None:
        return Undoing(attributes.workflow_id, Bill(calls=1, dollars=None), in_flight=end is None)
    id = f"agent-{goal.work.subtask.id}-{attributes.workflow_id.rpartition('.')[2]}"
    tier = goal.model.tier
    report: AgentReport | None = None
    if end is not None:
        payloads = end.child_workflow_execution_completed_event_attributes.result.payloads
        report = await _read(converter, payloads, AgentReport)
    if report is not None:
        return Undoing(id, report.bill, tier)
    # Nobody knows what it spent: its whole slice counts.
    part = goal.slice
    dollars = part.dollars if goal.model.prices else None
    usage = Usage(output_tokens=part.tokens)
    bill = Bill(calls=part.calls, usage=usage, dollars=dollars, assumed=part.dollars)
    return Undoing(id, bill, tier, in_flight=end is None)


async def _report(end: HistoryEvent, converter: DataConverter) -> Report | None:
    """What a team closed with; None: it has no report, or none that can be read."""
    if end.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
        failure = end.child_workflow_execution_failed_event_attributes.failure
        with suppress(Exception):
            return report_in(await converter.decode_failure(failure))
    payloads = end.child_workflow_execution_completed_event_attributes.result.payloads
    report: Report | None = await _read(converter, payloads, Report)
    return report


def _bill_of(report: Report) -> Bill:
    return Bill(
        calls=report.model_calls,
        usage=report.usage,
        dollars=report.dollars,
        assumed=report.assumed,
    )


async def _read(converter: DataConverter, payloads: Any, kind: type[Any]) -> Any:
    """The one value in some payloads; None when it cannot be had."""
    try:
        (value,) = await converter.decode(list(payloads), [kind])
    except Exception:
        return None
    return value


def orders_after(events: Iterable[HistoryEvent], point: int) -> tuple[str, ...]:
    """What people told the run after the point. Temporal tells it again, except for a cancel."""
    accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    cancel = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
    names: Mapping[int, str] = {accepted: "", cancel: CANCEL}
    found = []
    for event in events:
        if event.event_id > point and event.event_type in names:
            request = event.workflow_execution_update_accepted_event_attributes.accepted_request
            found.append(names[event.event_type] or request.input.name)
    return tuple(found)
