"""Finds in a history what a reset of its run would undo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from holdfast.calls.rows import MapGoal
from holdfast.calls.turn import AgentGoal
from holdfast.contracts import Bill, Call, Lost, Tier
from holdfast.history.charges import Asked, read_input, read_outcome, reserved_for
from holdfast.history.executions import Execution, executions_in

CANCEL = "cancel"


@dataclass(frozen=True)
class Undoing:
    """One activity, or one run of a team, that came to its end after the point, or has not yet."""

    id: str
    bill: Bill
    """Cost; the reservation while in flight, or where the cost is unknown."""
    tier: Tier | None = None
    """None: no model is asked by it."""
    in_flight: bool = False
    rows: bool = False
    """True of a map, whose rows count in dollars alone."""

    @property
    def lost(self) -> Lost | None:
        """Return the loss for the bill of the run as it goes on; None: nothing was paid, or the
        bill has it.
        """
        counts = self.bill.calls and not self.bill.earlier
        return Lost(id=self.id, bill=self.bill, rows=self.rows) if counts else None


async def find_undone(
    events: Iterable[HistoryEvent],
    point: int,
    converter: DataConverter,
    under_way: frozenset[str],
) -> tuple[Undoing, ...]:
    """Return what a reset to a point undoes, in the order in which it was scheduled. `under_way`:
    activities of which an attempt has begun; what only waits in its queue was not paid.
    """
    undone = (
        each for each in executions_in(events) if not each.ended or each.ended.event_id >= point
    )
    return tuple([await _undoing(each, converter, under_way) for each in undone])


async def _undoing(
    execution: Execution, converter: DataConverter, under_way: frozenset[str]
) -> Undoing:
    asked = await read_input(converter, execution)
    id, tier, rows = _id(execution, asked), _tier(asked), isinstance(asked, MapGoal)
    if execution.ended:
        bill = (await read_outcome(converter, execution, asked)).bill
        return Undoing(id, bill, tier, rows=rows)
    begun = execution.is_workflow or execution.id in under_way
    bill = reserved_for(execution, asked) if begun else Bill()
    return Undoing(id, bill, tier, in_flight=True, rows=rows)


def _id(execution: Execution, asked: Asked | None) -> str:
    """Return the id under which it is reserved for: what is answered from the journal when it is
    done again is found by that.
    """
    if isinstance(asked, MapGoal):
        return f"map-{asked.work.subtask.id}-{execution.id.rpartition('.')[2]}"
    if isinstance(asked, AgentGoal):
        return f"agent-{asked.work.subtask.id}-{execution.id.rpartition('.')[2]}"
    return execution.id


def _tier(asked: Asked | None) -> Tier | None:
    match asked:
        case Call(model=card, tier=tier):
            return tier if card else None
        case AgentGoal(model=card) | MapGoal(models=(card, *_)):
            return card.tier
    return None


def orders_after(events: Iterable[HistoryEvent], point: int) -> tuple[str, ...]:
    """Return what people told the run after the point. Temporal tells it again, except for a
    cancel.
    """
    accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    cancel = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
    names: Mapping[int, str] = {accepted: "", cancel: CANCEL}
    found = []
    for event in events:
        if event.event_id > point and event.event_type in names:
            request = event.workflow_execution_update_accepted_event_attributes.accepted_request
            found.append(names[event.event_type] or request.input.name)
    return tuple(found)
