"""How far the maps of a run are: read from their own histories, each event once, and from what
their activities tell while they are under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError

from holdfast.calls.rows import RowsBeat
from holdfast.history.executions import MAP
from holdfast.history.fold import Fold
from holdfast.history.mapping import ASK, MapFold
from holdfast.history.payloads import try_decode
from holdfast.intake.connection import Connection
from holdfast.rendering.progress import progress_line
from holdfast.replaying.tracing import AT_ONCE
from holdfast.state.run import State

SECONDS = 3.0
PAGE = 200
"""Events that are read at a time, newest first, until known ones come."""
FEWEST = 3
"""Rows from which on it is said how long the others may take."""


@dataclass
class Maps:
    """What was read of a run's maps so far."""

    connection: Connection
    _folds: dict[str, MapFold] = field(default_factory=dict)
    """By the id of each one's workflow."""

    async def at(self, run: Fold) -> Mapping[str, str]:
        """Return how far each map under way is, by subtask; what is not known is left out. Costs a
        look at each, and a second one where its history has grown.
        """
        open_ = [each.id for each in run.executions if each.type == MAP and each.end is None]
        if not open_ or run.state is None:
            return {}
        for old in set(self._folds) - set(open_):
            del self._folds[old]
        turn = asyncio.Semaphore(AT_ONCE)
        told = await asyncio.gather(*(self._at(each, run.state, turn) for each in open_))
        return {subtask: line for subtask, line in told if line}

    async def _at(self, name: str, state: State, turn: asyncio.Semaphore) -> tuple[str, str]:
        subtask = name.removeprefix(f"{state.run_id}.").rpartition(".")[0]
        converter = self.connection.client.data_converter
        fold = self._folds.setdefault(name, MapFold(converter))
        handle = self.connection.client.get_workflow_handle(name)
        async with turn:
            try:
                seen = await handle.describe(rpc_timeout=timedelta(seconds=SECONDS))
                if seen.history_length > fold.last_event:
                    for event in await self._new_events(name, fold.last_event):
                        await fold.take(event)
            except RPCError:
                # It has not begun, or the server is away.
                return subtask, ""
        beats = [(each.activity_id, await self._beat(each)) for each in _asking(seen)]
        known = state.work.get(subtask)
        before = known.paid.dollars if known is not None else Decimal(0)
        return subtask, _line(fold, beats, before, datetime.now(UTC))

    async def _new_events(self, name: str, last: int) -> list[HistoryEvent]:
        """Return the events after one, oldest first, read from the end."""
        found: list[HistoryEvent] = []
        token = b""
        while True:
            request = GetWorkflowExecutionHistoryReverseRequest(
                namespace=self.connection.target.namespace,
                execution=WorkflowExecution(workflow_id=name),
                maximum_page_size=PAGE,
                next_page_token=token,
            )
            service = self.connection.client.workflow_service
            limit = timedelta(seconds=SECONDS)
            page = await service.get_workflow_execution_history_reverse(request, timeout=limit)
            events = page.history.events
            found += [each for each in events if each.event_id > last]
            token = page.next_page_token
            if not token or (events and events[-1].event_id <= last + 1):
                return found[::-1]

    async def _beat(self, activity: PendingActivityInfo) -> RowsBeat:
        payloads = activity.heartbeat_details.payloads
        told = await try_decode(self.connection.client.data_converter, payloads, RowsBeat)
        return told if isinstance(told, RowsBeat) else RowsBeat()


def _asking(seen: WorkflowExecutionDescription) -> list[PendingActivityInfo]:
    pending = seen.raw_description.pending_activities
    return [each for each in pending if each.activity_type.name == ASK]


def _line(
    fold: MapFold, beats: list[tuple[str, RowsBeat]], before: Decimal | None, now: datetime
) -> str:
    """Return how far a map is; `before`: what its earlier segments have cost."""
    if not fold.items:
        return "reads its input"
    at = fold.stands(beats)
    dollars = None if at.dollars is None or before is None else before + at.dollars
    left = None
    if fold.began is not None and at.here >= FEWEST and not fold.batches:
        each = (now - fold.began).total_seconds() / at.here
        left = max(each, 0.0) * (at.items - at.done)
    line = progress_line(at.done, at.items, at.failed, dollars, left)
    more = [f"{fold.batches:,} in batches"] if fold.batches else []
    more += ["its texts are merged"] if fold.merging else []
    return ", ".join([line, *more])
