"""The steps of one workflow, from the fold of its history. Pure.

Nothing but the history is asked: so a trace is the same whenever it is made, of a run that ended
well, failed, was killed or is still going on, and of one whose history came as a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure

from holdfast.calls.turn import AgentGoal, AgentReport, UseMaterial
from holdfast.history.charges import Asked, read_input, read_outcome
from holdfast.history.executions import Execution, attributes_of, time_of
from holdfast.history.fold import Fold
from holdfast.history.payloads import try_decode
from holdfast.rules.reporting import title
from holdfast.state.moves import Ask
from holdfast.state.run import State
from holdfast.text import one_line
from holdfast.tracing import facts
from holdfast.tracing.context import MEMO_CONTEXT, SpanContext, context_in
from holdfast.tracing.facts import Facts
from holdfast.tracing.steps import TITLE_LETTERS, Trace, TraceStep, place_steps
from holdfast.tracing.whole import describe_state, order_steps, subtask_step_id, subtask_steps

_CLOSING = "EVENT_TYPE_WORKFLOW_EXECUTION_"


@dataclass(frozen=True)
class RunBelow:
    """A run below another, whose steps stand in a history of its own."""

    workflow_id: str
    run_id: str


def runs_below(fold: Fold) -> Iterator[RunBelow]:
    """Return the runs that this one has started, in the order in which they were asked for."""
    for each in fold.executions:
        if each.is_child and each.started:
            below = attributes_of(each.started).workflow_execution
            yield RunBelow(below.workflow_id, below.run_id)


async def make_trace(
    fold: Fold, below: Iterable[TraceStep] = (), *, with_content: bool = False
) -> Trace:
    """Return the trace of a run, with what runs below it did."""
    own = await make_steps(fold, fold.run_id, with_content=with_content)
    caller, first_run = None, ""
    if fold.opening is not None:
        attributes = attributes_of(fold.opening)
        caller, first_run = await _caller(fold), attributes.first_execution_run_id
    return Trace(fold.run_id, first_run, place_steps((*own, *below)), caller, fold.unreadable)


async def make_steps(
    fold: Fold, session: str, *, above: str = "", with_content: bool = False
) -> tuple[TraceStep, ...]:
    """Return what one workflow did, in the order in which it was scheduled.

    `session`: the run that a person started. `above`: the step in the history above that stands for
    this workflow; empty: there is none.
    """
    return await _Maker(fold, session, above, with_content).steps()


async def _caller(fold: Fold) -> SpanContext | None:
    """Return the context that the run's starter handed on with it."""
    memo = attributes_of(fold.opening).memo.fields if fold.opening else {}
    given = [memo[MEMO_CONTEXT]] if MEMO_CONTEXT in memo else []
    header = await try_decode(fold.converter, given, str)
    return context_in(header) if isinstance(header, str) else None


@dataclass(frozen=True)
class _Maker:
    fold: Fold
    session: str
    above: str
    with_content: bool

    async def steps(self) -> tuple[TraceStep, ...]:
        agent = await self._agent()
        found = [await self._of_execution(each, agent) for each in self.fold.executions]
        if self.fold.opening is not None and not self.above:
            found.append(await self._of_run(agent))
        state = self._state
        if state is None:
            return tuple(found)
        found += order_steps(state, self.session, self._own)
        return (*found, *subtask_steps(state, found, self.session, self._own, self._closed))

    @property
    def _own(self) -> str:
        """The step that this workflow is."""
        return self.above or self.fold.run_id

    @property
    def _state(self) -> State | None:
        return None if self.fold.unreadable else self.fold.state

    @property
    def _closed(self) -> datetime | None:
        return time_of(self.fold.closing) if self.fold.closing else None

    async def _agent(self) -> AgentGoal | None:
        if not self.fold.is_agent or self.fold.opening is None:
            return None
        payloads = attributes_of(self.fold.opening).input.payloads
        goal: AgentGoal | None = await try_decode(self.fold.converter, payloads, AgentGoal)
        return goal

    async def _of_execution(self, execution: Execution, agent: AgentGoal | None) -> TraceStep:
        converter, asked = self.fold.converter, await self._asked(execution)
        known = facts.describe_asked(execution, asked)
        if execution.is_child:
            # `RUN.SUBTASK.NUMBER`: an id may hold full stops itself.
            numbered = execution.id.removeprefix(f"{self.fold.run_id}.")
            known["subtask"] = numbered.rpartition(".")[0]
        if agent is not None:
            known["subtask"] = agent.work.subtask.id
            if isinstance(asked, UseMaterial) and asked.approved:
                known["by"] = facts.describe_approvals(agent).get(asked.use.id, "")
        if execution.ended is not None:
            outcome = await read_outcome(converter, execution, asked)
            known |= facts.describe_outcome(execution, outcome)
        known |= await self._content("input", execution.input)
        if execution.end == "completed":
            known |= await self._content("output", execution.result)
        known |= self._judged(execution)
        subtask = known.get("subtask", "")
        alone = self.fold.is_agent or not subtask
        return TraceStep(
            session=self.session,
            id=execution.id if execution.is_child else f"{self._own}/{execution.id}",
            parent=self._own if alone else subtask_step_id(self._own, subtask),
            run=self.fold.run_id,
            name=execution.id,
            attempt=execution.attempt,
            lost=execution.lost,
            **self._times(execution),
            **known,
        )

    async def _asked(self, execution: Execution) -> Asked | None:
        step = self.fold.step_of(execution)
        if step is not None and isinstance(step.move, Ask):
            # The rules have just made it: to decode it again is dear.
            return step.move.call
        return await read_input(self.fold.converter, execution)

    def _judged(self, execution: Execution) -> Facts:
        """Return what the supervisor made of it."""
        step = self.fold.step_of(execution)
        if step is None:
            return {}
        said = {name: text for name in ("verdict", "why") if (text := getattr(step, name))}
        return {"try_number": step.try_number, **said}

    def _times(self, execution: Execution) -> Facts:
        queued = time_of(execution.scheduled)
        started = time_of(execution.started) if execution.started else None
        ended = time_of(execution.ended) if execution.ended else self._closed
        times = {
            "started": started or (queued if ended else None),
            "ended": ended,
            "seconds": _seconds(started, ended),
            "queued": _seconds(queued, started),
        }
        cut_off = execution.ended is None and ended is not None
        return {**times, "status": "unfinished"} if cut_off else times

    async def _of_run(self, agent: AgentGoal | None) -> TraceStep:
        opening = self.fold.opening
        assert opening is not None
        started, ended, state = time_of(opening), self._closed, self._state
        known: Facts = await self._content("input", attributes_of(opening).input.payloads)
        if agent is not None:
            known |= facts.describe_agent(agent)
        if state is not None:
            known |= describe_state(state)
            known["title"] = one_line(title(state))[:TITLE_LETTERS]
        return TraceStep(
            session=self.session,
            id=self._own,
            name=self.fold.run_id,
            run=self.fold.run_id,
            started=started,
            ended=ended,
            seconds=_seconds(started, ended),
            **{"kind": "agent" if self.fold.is_agent else "run", **known, **await self._end()},
        )

    async def _end(self) -> Facts:
        """Return how the run closed."""
        closing = self.fold.closing
        if closing is None:
            return {}
        attributes = attributes_of(closing)
        end = EventType.Name(closing.event_type).removeprefix(_CLOSING).lower()
        known: Facts = {"status": facts.STATUS.get(end, "error")}
        if end == "terminated":
            known |= {"verdict": "terminated", "why": attributes.reason}
        elif end == "failed":
            known |= facts.describe_cause(await self._cause(attributes.failure))
        if self.fold.report is not None:
            known |= facts.describe_report(self.fold.report)
        if end == "completed":
            payloads = attributes.result.payloads
            known |= await self._content("output", payloads)
            if self.fold.is_agent:
                segment = await try_decode(self.fold.converter, payloads, AgentReport)
                known |= facts.describe_segment(segment) if segment else {}
        return known

    async def _cause(self, failure: Failure) -> BaseException | None:
        try:
            return await self.fold.converter.decode_failure(failure)
        except Exception:
            return None

    async def _content(self, name: str, payloads: Sequence[Payload]) -> dict[str, Any]:
        if not self.with_content:
            return {}
        return {name: await facts.decode_content(self.fold.converter, payloads)}


def _seconds(start: datetime | None, end: datetime | None) -> float:
    return max((end - start).total_seconds(), 0.0) if start and end else 0.0
