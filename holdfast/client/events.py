"""The events of a run, from its history: they can be left and taken up at any of them, from any
process, and are the same each time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from decimal import Decimal

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from holdfast.client.ended import read_end
from holdfast.client.reading import Look, describe_run, no_such_run
from holdfast.contracts.events import AnyEvent, RunEnded, RunReset
from holdfast.errors import Refused
from holdfast.history.executions import CLOSING, time_of
from holdfast.history.fold import RESET_CAUSE, Fold
from holdfast.intake.connection import Connection
from holdfast.rendering.happenings import Moment, find_happenings

AGAIN_SECONDS = 1.0
"""The pause between two tries while the server does not answer."""
EXECUTION_LETTERS = 8
_PLACE = re.compile(r"([1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,8}))?(?:@([0-9a-f]{8}))?")
TASK_FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED


@dataclass(frozen=True, order=True)
class Place:
    """Where an event stands in the history of one execution."""

    number: int = 0
    """Of Temporal's event."""
    part: float = 0
    """Which of the events there; infinite for the last."""

    @classmethod
    def parse(cls, text: str) -> tuple[Place, str]:
        """Return the place that an event's id names, and its execution: empty for a run's first.
        Raise Refused if it is none.
        """
        found = _PLACE.fullmatch(str(text))
        if found is None:
            raise Refused(f"{text!r:.60} is no event of a run; give the `id` of one, such as 57")
        number, part, execution = found.groups()
        return cls(int(number), int(part) if part else float("inf")), execution or ""


async def follow(connection: Connection, run_id: str, after: str = "") -> AsyncIterator[AnyEvent]:
    """Yield what happened in a run, and what happens, until it has ended. `after`: the `id` of an
    event; what came up to it is left out.

    Raise NoSuchRun, and Refused if `after` names no event. While the server is away it waits.
    """
    place, execution = Place.parse(after) if after else (Place(), "")
    stream = _Stream(connection, run_id, place, execution)
    while not stream.over:
        try:
            await stream.open()
            async for event in stream.read():
                yield event
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise no_such_run(run_id) from error
            await asyncio.sleep(AGAIN_SECONDS)


async def check_run(connection: Connection, run_id: str) -> bool:
    """Return True if a run that could be followed is over. Raise NoSuchRun."""
    found = await describe_run(connection, run_id)
    return found.status is not WorkflowExecutionStatus.RUNNING


@dataclass
class _Stream:
    connection: Connection
    run_id: str
    place: Place
    """The last that was told."""
    told_of: str
    """The execution, in short, of which it was told."""
    over: bool = False
    _execution: str = ""
    _tag: str = ""
    _fold: Fold | None = None
    _moment: Moment | None = None
    _seen: int = 0
    """The last of Temporal's events that was taken in."""

    async def open(self) -> None:
        """Find the run's latest execution, which a reset replaces."""
        found = await describe_run(self.connection, self.run_id)
        if found.run_id != self._execution:
            self._execution, self._seen, self._moment = found.run_id or "", 0, None
            self._fold = Fold(self.run_id, self.connection.client.data_converter)

    async def read(self) -> AsyncIterator[AnyEvent]:
        """Yield the events of this execution that were not told yet; it waits for more."""
        client = self.connection.client
        handle = client.get_workflow_handle(self.run_id, run_id=self._execution)
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.event_id > self._seen:
                for each in await self._take(event):
                    yield each
        # Where the last event closes this execution, a reset may have begun another.
        latest = await self.connection.handle(self.run_id).describe()
        self.over = latest.run_id == self._execution and (
            latest.status is not WorkflowExecutionStatus.RUNNING
        )

    async def _take(self, event: HistoryEvent) -> list[AnyEvent]:
        fold = self._fold
        assert fold is not None
        before = fold.state
        await fold.take(event)
        self._seen = event.event_id
        if event.event_id == 1:
            first = event.workflow_execution_started_event_attributes.first_execution_run_id
            self._tag = "" if first == self._execution else self._execution[:EXECUTION_LETTERS]
        events: list[AnyEvent] = []
        if self._is_reset(event):
            events += self._go_on_from(event)
        if fold.state is not None and fold.state is not before:
            moment = Moment.of(fold.state)
            events += find_happenings(self._moment, moment)
            self._moment = moment
        if event.event_type in CLOSING and (ended := await self._ended(event)):
            events.append(ended)
        return self._placed(events, event.event_id)

    def _is_reset(self, event: HistoryEvent) -> bool:
        """True if this execution begins to differ here from the one that it replaces."""
        attributes = event.workflow_task_failed_event_attributes
        of_reset = event.event_type == TASK_FAILED and attributes.cause == RESET_CAUSE
        return of_reset and attributes.new_run_id == self._execution

    def _go_on_from(self, event: HistoryEvent) -> list[AnyEvent]:
        """Tell a follower of the execution before that it was left, and what comes now."""
        if self.told_of == self._tag:
            return []
        self.place = min(self.place, Place(event.event_id - 1, float("inf")))
        self.told_of = self._tag
        return [RunReset(id="", run_id=self.run_id, at=time_of(event))]

    async def _ended(self, event: HistoryEvent) -> RunEnded | None:
        """Return how the run ended; None if this execution was left by a reset."""
        found = await self.connection.handle(self.run_id).describe()
        if found.run_id != self._execution or found.status is None:
            return None
        fold = self._fold
        assert fold is not None
        look = Look(found.status, fold.state, fold.report, fold.lost, fold.unreadable)
        ended = read_end(self.run_id, look)
        without = "refused" if isinstance(ended.failure, Refused) else "failed"
        status = ended.report.status if ended.report else without
        view = self._moment.view if self._moment else None
        return RunEnded(
            id="",
            run_id=self.run_id,
            at=time_of(event),
            dollars=view.dollars_spent if view else Decimal(0),
            status=status,
            verdict=view.verdict if view else "",
        )

    def _placed(self, events: Iterable[AnyEvent], number: int) -> list[AnyEvent]:
        """Return those that were not told yet, each with its id."""
        all_of = [*events]
        behind = f"@{self._tag}" if self._tag else ""
        untold = []
        for part, each in enumerate(all_of, 1):
            last = part == len(all_of)
            place = Place(number, float("inf") if last else part)
            if place > self.place:
                text = f"{number}{behind}" if last else f"{number}.{part}{behind}"
                untold.append(each.model_copy(update={"id": text}))
                self.place = place
        return untold
