"""The steps of one workflow, from Temporal's own events of it. Pure.

Nothing but the history is asked: so a trace is the same whenever it is made, of a run that ended
well, failed, was killed or is still going on, and of one whose history came as a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from holdfast.history.history import CLOSING, Fold
from holdfast.history.losses import loss_in
from holdfast.history.payloads import Unreadable
from holdfast.rules.timers import to_datetime
from holdfast.state.moves import Ask
from holdfast.tracing import facts
from holdfast.tracing.context import MEMO_CONTEXT, SpanContext, context_in
from holdfast.tracing.steps import Step, StepStatus, Trace, placed
from holdfast.tracing.whole import of_orders, of_subtasks, of_view, subtask_step

ENDS = ("completed", "failed", "timed_out", "canceled", "terminated")
_STATUS: dict[str, StepStatus] = {"completed": "ok", "canceled": "cancelled"}


@dataclass(frozen=True)
class RunBelow:
    """A run below this one, whose steps stand in a history of its own."""

    workflow_id: str
    run_id: str


@dataclass
class Recorder:
    """Takes in one history. `session`: the run that a person started."""

    workflow_id: str
    session: str
    converter: DataConverter
    with_content: bool = False
    above: str = ""
    """The step in the history above that stands for this workflow; empty: there is none."""
    below: list[RunBelow] = field(default_factory=list)
    first_run: str = ""
    """Temporal's id of the first execution."""
    caller: SpanContext | None = None
    """What the run's starter handed on with it."""
    unreadable: str = ""
    """Why verdicts and subtasks are not known; empty: they are."""
    _steps: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By the event that scheduled them; the run itself by 0."""
    _fold: Fold | None = None
    _agent: bool = False
    _subtask: str = ""
    """Of an agent: the subtask that it works on."""
    _approved: Mapping[str, str] = field(default_factory=dict)
    """Of an agent: by whom which calls of tools were approved."""

    async def take(self, event: HistoryEvent) -> None:
        """Take in the next event."""
        name = str(event.WhichOneof("attributes") or "").removesuffix("_event_attributes")
        told: Any = getattr(event, f"{name}_event_attributes", None)
        at = to_datetime(event.event_time.ToNanoseconds())
        if name == "workflow_execution_started":
            await self._begun(told, at)
        elif name == "activity_task_scheduled":
            await self._activity(event.event_id, told, at)
        elif name == "start_child_workflow_execution_initiated":
            await self._child(event.event_id, told, at)
        elif name == "activity_task_started":
            lost = loss_in(told.last_failure)
            begun = {"began": at, "attempt": told.attempt, "lost": lost}
            self._steps[told.scheduled_event_id] |= begun
        elif name == "child_workflow_execution_started":
            self._child_began(told, at)
        elif event.event_type in CLOSING:
            await self._ended(0, name.removeprefix("workflow_execution_"), told, at)
        elif (end := _end_of(name)) is not None:
            await self._ended(_began(told), end, told, at)
        if self._fold is not None and not self.unreadable:
            try:
                await self._fold.take(event)
            except Unreadable as error:
                self.unreadable = str(error)

    def trace(self, below: Iterable[Step] = ()) -> Trace:
        """The whole, with what runs below this one did."""
        steps = placed((*self.steps(), *below))
        return Trace(self.workflow_id, self.first_run, steps, self.caller, self.unreadable)

    def steps(self) -> tuple[Step, ...]:
        """What is known by now."""
        found = [self._step(key, each) for key, each in self._steps.items() if key]
        whole = self._steps.get(0)
        if whole is not None and not self.above:
            found.append(self._step(0, whole))
        state = self._fold.state if self._fold and not self.unreadable else None
        if state is None:
            return tuple(found)
        found += of_orders(state, self.session, self._own)
        return (*found, *of_subtasks(state, found, self.session, self._own, self._closed))

    # ------------------------------------------------------------ what begins

    async def _begun(self, told: Any, at: datetime) -> None:
        self.first_run = told.first_execution_run_id
        self._agent = told.workflow_type.name == facts.AGENT
        read = await self._content("input", told.input.payloads)
        self._steps[0] = {"name": self.workflow_id, "began": at, "asked": at, **read}
        if self._agent:
            known = await facts.of_child(self.converter, facts.AGENT, told.input.payloads)
            self._subtask = known.get("subtask", "")
            self._approved = known.get(facts.APPROVED, {})
            self._steps[0] |= known
        else:
            self._steps[0] |= {"kind": "run"}
            given = [each for key, each in told.memo.fields.items() if key == MEMO_CONTEXT]
            header = await facts.read(self.converter, given, str)
            self.caller = context_in(header) if isinstance(header, str) else None
            self._fold = Fold(self.workflow_id, self.converter)

    async def _activity(self, key: int, told: Any, at: datetime) -> None:
        kind, payloads = told.activity_type.name, told.input.payloads
        step = self._fold.steps.by_id.get(told.activity_id) if self._fold else None
        if step is not None and isinstance(step.move, Ask):
            # The rules have just made it: to decode it again is dear.
            known = facts.of_call(step.move.call)
        else:
            known = await facts.of_activity(self.converter, kind, payloads)
            known["by"] = self._approved.get(known.get(facts.USE, ""), "")
        read = await self._content("input", payloads)
        self._steps[key] = {"name": told.activity_id, "asked": at, **known, **read}

    async def _child(self, key: int, told: Any, at: datetime) -> None:
        kind, payloads = told.workflow_type.name, told.input.payloads
        known = await facts.of_child(self.converter, kind, payloads)
        # `RUN.SUBTASK.NUMBER`: an id may hold full stops itself.
        known["subtask"] = told.workflow_id.removeprefix(f"{self.workflow_id}.").rpartition(".")[0]
        read = await self._content("input", payloads)
        self._steps[key] = {"name": told.workflow_id, "asked": at, **known, **read}

    def _child_began(self, told: Any, at: datetime) -> None:
        step = self._steps[told.initiated_event_id]
        step |= {"began": at, "attempt": 1}
        execution = told.workflow_execution
        self.below.append(RunBelow(execution.workflow_id, execution.run_id))

    # ------------------------------------------------------------ what ends

    async def _ended(self, key: int, end: str, told: Any, at: datetime) -> None:
        known: dict[str, Any] = {"status": _STATUS.get(end, "error"), "ended": at}
        if end == "completed":
            payloads = told.result.payloads
            below = self._steps[key].get("kind") in ("run", "team", "agent")
            reading = facts.of_report if below else facts.of_result
            known |= await reading(self.converter, payloads)
            known |= await self._content("output", payloads)
        elif "failure" in told.DESCRIPTOR.fields_by_name:
            step = self._steps[key]
            ceiling = step.get(facts.CEILING) if step.get("attempt") else None
            known |= await facts.of_failure(self.converter, told.failure, ceiling)
        elif end == "terminated":
            known |= {"verdict": "terminated", "why": getattr(told, "reason", "")}
        self._steps[key] |= known

    async def _content(self, name: str, payloads: Sequence[Any]) -> dict[str, Any]:
        return {name: await facts.content(self.converter, payloads)} if self.with_content else {}

    # ------------------------------------------------------------ what is told

    @property
    def _own(self) -> str:
        """The step that this workflow is."""
        return self.above or self.workflow_id

    @property
    def _closed(self) -> datetime | None:
        return self._steps[0].get("ended") if 0 in self._steps else None

    def _step(self, key: int, known: dict[str, Any]) -> Step:
        given = {name: value for name, value in known.items() if name not in facts.ASIDE}
        asked, began = given.pop("asked", None), given.pop("began", None)
        ended = given.get("ended")
        if ended is None and self._closed is not None:
            given |= {"status": "unfinished", "ended": self._closed}
            ended = self._closed
        given |= self._judged(key) if key else self._of_run(given)
        subtask = given.get("subtask") or self._subtask
        return Step(
            session=self.session,
            id=self._id(key, given),
            parent=self._parent(key, subtask),
            run=self.workflow_id,
            started=began or (asked if ended else None),
            seconds=_seconds(began, ended),
            queued=_seconds(asked, began),
            **{**given, "subtask": subtask},
        )

    def _id(self, key: int, given: dict[str, Any]) -> str:
        if given["kind"] in ("team", "agent") or not key:
            return str(given["name"])
        return f"{self._own}/{given['name']}"

    def _parent(self, key: int, subtask: str) -> str:
        if not key:
            return ""
        return self._own if self._agent or not subtask else subtask_step(self._own, subtask)

    def _judged(self, key: int) -> dict[str, Any]:
        step = self._fold.step(key) if self._fold else None
        if step is None:
            return {}
        said = {name: text for name in ("verdict", "why") if (text := getattr(step, name))}
        return {"try_number": step.try_number, **said}

    def _of_run(self, given: dict[str, Any]) -> dict[str, Any]:
        state = self._fold.state if self._fold and not self.unreadable else None
        return of_view(state, given) if state is not None else {}


def _end_of(name: str) -> str | None:
    for kind in ("activity_task", "child_workflow_execution"):
        end = name.removeprefix(f"{kind}_")
        if end in ENDS and end != name:
            return end
    return "failed" if name == "start_child_workflow_execution_failed" else None


def _began(told: Any) -> int:
    names = told.DESCRIPTOR.fields_by_name
    kind = "scheduled" if "scheduled_event_id" in names else "initiated"
    return int(getattr(told, f"{kind}_event_id"))


def _seconds(start: datetime | None, end: datetime | None) -> float:
    return max((end - start).total_seconds(), 0.0) if start and end else 0.0
