"""How far a map has come, by the history of its segment: taken in event by event, and complete with
what its activities tell while they are under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from holdfast.calls.rows import (
    CollectMaterial,
    Items,
    MapGoal,
    MapTable,
    RowsBeat,
    RowsDone,
    RowsMaterial,
    Submitted,
)
from holdfast.contracts import Money
from holdfast.history.executions import time_of
from holdfast.history.payloads import try_decode

OPEN, CLOSE, ASK, SUBMIT = "open_map", "close_map", "ask_rows", "submit_rows"
COLLECT = "collect_rows"
"""Names of a map's activities, as they stand in histories."""


@dataclass
class MapFold:
    """How far one segment has come, as far as its history was taken in. A row whose answer is no
    result counts as failed until another answer cures it.
    """

    converter: DataConverter
    last_event: int = 0
    items: int = 0
    """0: nobody has counted them yet."""
    merging: bool = False
    """True once its rows have ended, and their texts are merged."""
    batches: int = 0
    """Rows that are out in batches."""
    dollars: Money | None = Decimal(0)
    """What this segment has cost so far; None: its model has no price."""
    began: datetime | None = None
    """When its first rows were asked."""
    now: datetime | None = None
    _complete: int = 0
    _failed: int = 0
    _before: int = 0
    """Rows that had ended when this segment began."""
    _scheduled: dict[int, str] = field(default_factory=dict)
    """Types of the activities under way, by the event that scheduled each."""
    _again: set[str] = field(default_factory=set)
    """Ids of activities under way whose rows had an answer before."""
    _ids: dict[int, str] = field(default_factory=dict)

    async def take(self, event: HistoryEvent) -> None:
        """Take in the next event; one that was taken in before changes nothing."""
        if event.event_id <= self.last_event:
            return
        self.last_event, self.now = event.event_id, time_of(event)
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
                await self._begin(event)
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                await self._schedule(event)
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                await self._complete_one(event)

    async def _begin(self, event: HistoryEvent) -> None:
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        goal: MapGoal | None = await try_decode(self.converter, payloads, MapGoal)
        if goal is None:
            return
        stands = goal.resume
        self.items, self.merging = stands.items, stands.level > 0
        waiting = sum(len(each.rows) for each in stands.portions if each.step)
        self._complete = stands.complete + stands.repeated
        self._failed = stands.failed + waiting
        self._before = self._complete + self._failed
        self.dollars = Decimal(0) if goal.models and goal.models[0].prices else None

    async def _schedule(self, event: HistoryEvent) -> None:
        told = event.activity_task_scheduled_event_attributes
        kind, id = told.activity_type.name, told.activity_id
        self._scheduled[event.event_id], self._ids[event.event_id] = kind, id
        payloads = told.input.payloads
        if kind == OPEN and self.items:
            # The input is read once: what is opened then are groups of texts.
            self.merging = True
        elif kind == ASK:
            self.began = self.began or time_of(event)
            rows: RowsMaterial | None = await try_decode(self.converter, payloads, RowsMaterial)
            if rows is not None and rows.before:
                self._again.add(id)
        elif kind == COLLECT:
            batch: CollectMaterial | None = await try_decode(
                self.converter, payloads, CollectMaterial
            )
            if batch is not None and batch.rows.before:
                self._again.add(id)

    async def _complete_one(self, event: HistoryEvent) -> None:
        told = event.activity_task_completed_event_attributes
        kind = self._scheduled.pop(told.scheduled_event_id, "")
        id, payloads = self._ids.pop(told.scheduled_event_id, ""), told.result.payloads
        if kind == OPEN and not self.merging:
            items: Items | None = await try_decode(self.converter, payloads, Items)
            if items is not None:
                self.items, self._failed = items.count, items.broken
                self._complete = items.reused + items.repeated
                self._before = self._complete + self._failed
        elif kind == CLOSE:
            table: MapTable | None = await try_decode(self.converter, payloads, MapTable)
            if table is not None and table.counts.items:
                counts = table.counts
                self._complete = counts.complete + counts.supplied + counts.skipped
                self._failed = counts.failed
        elif kind == SUBMIT:
            made: Submitted | None = await try_decode(self.converter, payloads, Submitted)
            self.batches += made.rows if made is not None else 0
        elif kind in (ASK, COLLECT):
            done: RowsDone | None = await try_decode(self.converter, payloads, RowsDone)
            if done is not None:
                self._take_rows(done, again=id in self._again, batch=kind == COLLECT)
            self._again.discard(id)

    def _take_rows(self, done: RowsDone, *, again: bool, batch: bool) -> None:
        bill = done.bill.dollars
        known = None if self.dollars is None or bill is None else self.dollars + bill
        self.dollars = known if done.bill.calls else self.dollars
        wrong = len(done.failed) + len(done.declined)
        if batch:
            back = done.complete + wrong + done.hopeless + len(done.lost) + len(done.left)
            self.batches = max(self.batches - back, 0)
        if self.merging:
            return
        self._complete += done.complete
        self._failed += -done.complete if again else wrong + done.hopeless

    def stands(self, beats: Sequence[tuple[str, RowsBeat]] = ()) -> Standing:
        """Return how far it is, with what its activities under way told last, by id."""
        complete, failed, dollars = self._complete, self._failed, self.dollars
        for id, beat in () if self.merging else beats:
            good = max(beat.done - beat.failed, 0)
            complete += good
            failed += -good if id in self._again else beat.failed
        for _, beat in beats:
            dollars = None if dollars is None else dollars + beat.dollars
        done = min(complete + max(failed, 0), self.items)
        return Standing(done, self.items, max(failed, 0), dollars, done - self._before)


@dataclass(frozen=True)
class Standing:
    """Rows of a map at a moment."""

    done: int
    items: int
    failed: int
    dollars: Money | None
    """What the segment has cost."""
    here: int
    """Rows that have ended in this segment."""
