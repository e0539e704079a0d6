"""A run's events as those of AG-UI 1.0, for interfaces that speak it.

A question to a person ends AG-UI's run with an interrupt, and what follows begins it again: the run
itself goes on. What AG-UI has no name for is a custom event, `holdfast.` and our own kind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ag_ui.core.events import (
    BaseEvent,
    CustomEvent,
    Interrupt,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from holdfast.client.events import Place
from holdfast.client.runs import Run
from holdfast.contracts.events import (
    AnyEvent,
    BudgetReached,
    CallWaits,
    PlanWaits,
    QuestionAsked,
    RunEnded,
    RunReset,
    RunStarted,
    SubtaskEnded,
    SubtaskStarted,
)
from holdfast.errors import Refused, RunFailed

VERSION = "1.0"
PART = "~"
"""Between the id of our event and the number of AG-UI's event of it, in an id."""


@dataclass
class Story:
    """Turns events into AG-UI's, from the first on: what is open at one depends on all before."""

    thread_id: str
    run_id: str
    """AG-UI's own: a run of ours is a thread of such runs, from question to question."""
    answer: str = ""
    """What the run has found, once it has ended: the message that its end brings."""
    _open: dict[str, None] = field(default_factory=dict)
    _interrupted: bool = False
    _dollars: Decimal | None = None

    def tell(self, event: AnyEvent) -> tuple[BaseEvent, ...]:
        """Return AG-UI's events of one of ours."""
        made = (*self._again(event), *self._parts(event))
        at = int(event.at.timestamp() * 1000)
        for each in made:
            each.timestamp = at
        return made

    def _again(self, event: AnyEvent) -> Iterator[BaseEvent]:
        """Yield what begins AG-UI's run again after an interrupt."""
        if self._interrupted and not isinstance(event, RunStarted):
            self._interrupted = False
            yield self._started()
            yield from (StepStartedEvent(step_name=each) for each in self._open)

    def _parts(self, event: AnyEvent) -> Iterator[BaseEvent]:
        match event:
            case RunStarted():
                yield self._started()
                self._dollars = event.dollars
                state: dict[str, Any] = {
                    "goal": event.goal,
                    "dollars": _money(event),
                    "subtasks": {},
                }
                yield StateSnapshotEvent(snapshot=state)
                return
            case SubtaskStarted():
                if event.subtask not in self._open:
                    self._open[event.subtask] = None
                    yield StepStartedEvent(step_name=event.subtask)
                yield _delta(event, f"/subtasks/{_pointer(event.subtask)}")
            case SubtaskEnded():
                if event.subtask in self._open:
                    del self._open[event.subtask]
                    yield StepFinishedEvent(step_name=event.subtask)
                yield _delta(event, f"/subtasks/{_pointer(event.subtask)}")
            case RunReset():
                yield _custom(event)
                yield from self._close()
                yield self._started()
                return
        if not isinstance(event, SubtaskStarted | SubtaskEnded):
            yield _custom(event)
        if event.dollars != self._dollars:
            self._dollars = event.dollars
            yield _set("/dollars", _money(event))
        match event:
            case PlanWaits() | CallWaits() | QuestionAsked() | BudgetReached():
                yield from (StepFinishedEvent(step_name=each) for each in self._open)
                self._interrupted = True
                yield self._finished(RunFinishedInterruptOutcome(interrupts=[_interrupt(event)]))
            case RunEnded():
                yield from self._close()
                yield from self._say(f"{event.run_id}-answer")
                yield self._end(event)

    def _say(self, id: str) -> Iterator[BaseEvent]:
        if self.answer:
            yield TextMessageStartEvent(message_id=id, role="assistant")
            yield TextMessageContentEvent(message_id=id, delta=self.answer)
            yield TextMessageEndEvent(message_id=id)

    def _close(self) -> Iterator[BaseEvent]:
        names, self._open = [*self._open], {}
        yield from (StepFinishedEvent(step_name=each) for each in names)

    def _started(self) -> BaseEvent:
        return RunStartedEvent(
            thread_id=self.thread_id, run_id=self.run_id, protocol_version=VERSION
        )

    def _finished(self, outcome: Any) -> BaseEvent:
        return RunFinishedEvent(thread_id=self.thread_id, run_id=self.run_id, outcome=outcome)

    def _end(self, event: RunEnded) -> BaseEvent:
        if event.status in ("failed", "refused"):
            return RunErrorEvent(message=f"run {event.run_id}: {event.status}", code=event.status)
        if event.status in ("cancelled", "declined"):
            return self._finished(RunFinishedCancelledOutcome())
        return self._finished(RunFinishedSuccessOutcome())


async def retell(run: Run, story: Story, seen: Seen) -> AsyncIterator[tuple[str, BaseEvent]]:
    """Yield AG-UI's events of a run that were not seen, with their ids."""
    async for event in run.events():
        if isinstance(event, RunEnded):
            with suppress(RunFailed):
                story.answer = (await run.report()).answer
        for number, each in enumerate(story.tell(event), 1):
            if not seen.has(event, number):
                yield f"{event.id}{PART}{number}", each


@dataclass
class Seen:
    """Where a caller left the stream."""

    place: Place = field(default_factory=Place)
    part: int = 0
    execution: str = ""
    passed: bool = True
    """True once what comes is new."""

    @classmethod
    def of(cls, after: str) -> Seen:
        """Return what whoever names this id has seen. Raise Refused if it is none."""
        if not after:
            return cls()
        event, _, part = after.partition(PART)
        place, execution = Place.parse(event)
        if not (part.isascii() and part.isdigit() and len(part) < 10):
            raise Refused(f"{after!r:.60} is no event of AG-UI's; give the `id` of one")
        return cls(place, int(part), execution, passed=False)

    def has(self, event: AnyEvent, part: int) -> bool:
        if self.passed:
            return False
        place, execution = Place.parse(event.id)
        if execution == self.execution:
            self.passed = (place, part) > (self.place, self.part)
        else:
            # The execution that was followed was left by a reset; none was before the first.
            self.passed = isinstance(event, RunReset) or not execution
        return not self.passed


def _interrupt(event: PlanWaits | CallWaits | QuestionAsked | BudgetReached) -> Interrupt:
    text = event.text if not isinstance(event, PlanWaits) else "The plan waits for approval"
    call = str(event.call) if isinstance(event, CallWaits) else None
    return Interrupt(id=event.id, reason=event.kind, message=text, tool_call_id=call)


def _custom(event: AnyEvent) -> BaseEvent:
    return CustomEvent(name=f"holdfast.{event.kind}", value=event.model_dump(mode="json"))


def _delta(event: SubtaskStarted | SubtaskEnded, place: str) -> BaseEvent:
    told = event.model_dump(mode="json", exclude={"id", "run_id", "dollars", "subtask"})
    return _set(place, told)


def _set(place: str, value: Any) -> BaseEvent:
    """Return a change of the state: `add` replaces what is there (RFC 6902)."""
    return StateDeltaEvent.model_validate({"delta": [{"op": "add", "path": place, "value": value}]})


def _pointer(name: str) -> str:
    """Return a name as JSON Pointer has it."""
    return name.replace("~", "~0").replace("/", "~1")


def _money(event: AnyEvent) -> str | None:
    return None if event.dollars is None else str(event.dollars)
