"""The steps of one workflow, from the fold of its history. Pure.

Nothing but the history is asked: so a trace is the same whenever it is made, of a run that ended
well, failed, was killed or is still going on, and of one whose history came as a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from holdfast.calls.rows import MapGoal
from holdfast.calls.turn import AgentGoal, UseMaterial
from holdfast.history.charges import Asked, Outcome, read_input, read_outcome
from holdfast.history.executions import Execution, attributes_of, time_of
from holdfast.history.fold import Fold
from holdfast.history.judging import TAKEN_BACK
from holdfast.history.payloads import try_decode
from holdfast.state.moves import Ask
from holdfast.state.run import State
from holdfast.text import one_line
from holdfast.tracing import facts
from holdfast.tracing.context import MEMO_CONTEXT, SpanContext, parse_context
from holdfast.tracing.facts import Facts
from holdfast.tracing.steps import TITLE_LETTERS, Trace, TraceStep, place_steps
from holdfast.tracing.whole import (
    describe_end,
    order_steps,
    subtask_step_id,
    subtask_steps,
    sum_prices,
)


@dataclass(frozen=True)
class RunBelow:
    """A run below another, whose steps stand in a history of its own."""

    workflow_id: str
    run_id: str


def runs_below(fold: Fold) -> Iterator[RunBelow]:
    """Return the runs that this one has started, in the order in which they were asked for."""
    for each in fold.executions:
        if each.is_workflow and each.started:
            below = attributes_of(each.started).workflow_execution
            yield RunBelow(below.workflow_id, below.run_id)


async def make_trace(
    fold: Fold, below: Iterable[TraceStep] = (), *, with_content: bool = False
) -> Trace:
    """Return the trace of a run, with what runs below it did."""
    own = fold.executions.own
    steps = await make_steps(fold, fold.run_id, with_content=with_content)
    first_run = attributes_of(own.scheduled).first_execution_run_id if own else ""
    caller = await _caller(fold, own) if own else None
    return Trace(fold.run_id, first_run, place_steps((*steps, *below)), caller, fold.unreadable)


async def make_steps(
    fold: Fold, session: str, *, above: str = "", with_content: bool = False
) -> tuple[TraceStep, ...]:
    """Return what one workflow did, in the order in which it was scheduled.

    `session`: the run that a person started. `above`: the step in the history above that stands for
    this workflow; empty: there is none.
    """
    return await _Maker(fold, session, above, with_content).steps()


async def _caller(fold: Fold, own: Execution) -> SpanContext | None:
    """Return the context that the run's starter handed on with it."""
    memo = attributes_of(own.scheduled).memo.fields
    given = [memo[MEMO_CONTEXT]] if MEMO_CONTEXT in memo else []
    header = await try_decode(fold.converter, given, str)
    return parse_context(header) if isinstance(header, str) else None


@dataclass(frozen=True)
class _Maker:
    fold: Fold
    session: str
    above: str
    with_content: bool

    async def steps(self) -> tuple[TraceStep, ...]:
        whole, state = self.fold.executions.own, self._state
        asked = await read_input(self.fold.converter, whole) if whole else None
        agent = asked if isinstance(asked, AgentGoal | MapGoal) else None
        found = [await self._of_execution(each, agent) for each in self.fold.executions]
        if whole is not None and not self.above:
            found.append(await self._of_run(whole))
        if state is None:
            return tuple(found)
        found += order_steps(state, self.session, self._own)
        return (*found, *subtask_steps(state, found, self.session, self._own, self._closed))

    @property
    def _own(self) -> str:
        """Return the id of the step that this workflow is."""
        return self.above or self.fold.run_id

    @property
    def _state(self) -> State | None:
        return None if self.fold.unreadable else self.fold.state

    @property
    def _closed(self) -> datetime | None:
        own = self.fold.executions.own
        return time_of(own.ended) if own and own.ended else None

    async def _of_execution(
        self, execution: Execution, agent: AgentGoal | MapGoal | None
    ) -> TraceStep:
        asked, outcome = await self._read(execution)
        known = facts.describe_asked(execution, asked)
        if execution.is_workflow:
            # `RUN.SUBTASK.NUMBER`: an id may hold full stops itself.
            numbered = execution.id.removeprefix(f"{self.fold.run_id}.")
            known["subtask"] = numbered.rpartition(".")[0]
        if agent is not None:
            known["subtask"] = agent.work.subtask.id
            if isinstance(agent, AgentGoal) and isinstance(asked, UseMaterial) and asked.approved:
                known["by"] = facts.describe_approvals(agent).get(asked.use.id, "")
        if outcome is not None:
            known |= facts.describe_price(execution, outcome)
            known |= facts.describe_outcome(execution, outcome)
        known |= self._judged(execution)
        subtask = known.get("subtask", "")
        # What was taken back is no part of the subtask that the plan has by that id, if it has one.
        back = known.get("verdict") == TAKEN_BACK
        alone = self.fold.is_agent or not subtask or back
        return TraceStep(
            session=self.session,
            id=execution.id if execution.is_workflow else f"{self._own}/{execution.id}",
            parent=self._own if alone else subtask_step_id(self._own, subtask),
            run=self.fold.run_id,
            name=execution.id,
            attempt=execution.attempt,
            lost=execution.lost,
            **self._times(execution),
            **await self._content(execution),
            **known,
        )

    async def _of_run(self, whole: Execution) -> TraceStep:
        asked, outcome = await self._read(whole)
        state, known = self._state, facts.describe_asked(whole, asked)
        if not self.fold.is_agent:
            known["kind"] = "run"
        if state is not None:
            title = one_line(state.title)[:TITLE_LETTERS]
            known |= {**sum_prices(state), **describe_end(state), "title": title}
        if outcome is not None:
            if outcome.returned is not None:
                known |= facts.describe_price(whole, outcome)
            known |= facts.describe_outcome(whole, outcome)
        return TraceStep(
            session=self.session,
            id=self._own,
            run=self.fold.run_id,
            name=self.fold.run_id,
            **self._times(whole),
            **await self._content(whole),
            **known,
        )

    async def _read(self, execution: Execution) -> tuple[Asked | None, Outcome | None]:
        step, converter = self.fold.step_of(execution), self.fold.converter
        if step is not None and isinstance(step.move, Ask):
            # The rules have just made it: to decode it again is dear.
            asked: Asked | None = step.move.call
        else:
            asked = await read_input(converter, execution)
        ended = execution.ended is not None
        return asked, await read_outcome(converter, execution, asked) if ended else None

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

    async def _content(self, execution: Execution) -> Facts:
        if not self.with_content:
            return {}
        content = {"input": await facts.decode_content(self.fold.converter, execution.input)}
        if execution.end == "completed":
            content["output"] = await facts.decode_content(self.fold.converter, execution.result)
        return content


def _seconds(start: datetime | None, end: datetime | None) -> float:
    return max((end - start).total_seconds(), 0.0) if start and end else 0.0
