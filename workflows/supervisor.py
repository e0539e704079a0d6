"""The supervisor: owns a run from its goal to its report.

What happens next is decided by two pure functions, `reducer.apply` and `moves.next_moves`. This
class carries out
moves, turns what comes back into events, and does nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from activities.agents import Agents
from activities.preparation import Preparation
from activities.use_tool import Tools
from orchestrator import moves, policies, reducer, reporting, troubles
from orchestrator.board import board
from orchestrator.contracts import Call, Draft, Goal, Plan, Reply, Report, Synthesis
from orchestrator.ledger import Ledger
from orchestrator.state import (
    Abandoned,
    Answered,
    Ask,
    CancelAsked,
    Cut,
    DeadlineReached,
    Event,
    Move,
    Prepared,
    Started,
    State,
    Stop,
    ToolEnded,
    Unanswered,
    UseTool,
)
from orchestrator.view import Phase, RunView


@workflow.defn
class SupervisorWorkflow:
    """Plan a goal, work through the graph, synthesize, report. Wire name: renaming it breaks
    histories.
    """

    @workflow.init
    def __init__(self, goal: Goal) -> None:
        self._state = State(
            run_id=workflow.info().workflow_id,
            goal=goal,
            started=workflow.now(),
            ledger=Ledger.under(goal.limits),
        )
        self._inbox: list[Event] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @workflow.run
    async def run(self, goal: Goal) -> Report:
        """The run's story. A run that made a Report completes, whatever the report's status."""
        try:
            await self._prepare(goal)
            await self._during("planning")
            await self._during("working")
            await self._during("synthesizing")
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            await self._settle_cancelled()
            raise
        await self._end_timers()
        return reporting.report(self._state, workflow.now())

    @workflow.query
    def view(self) -> RunView:
        """The state of the run, for readers; the only query that watchers poll."""
        return reporting.run_view(self._state, workflow.now())

    @workflow.query
    def report(self) -> Report:
        """The report as it stands; of a cancelled run, the last word."""
        return reporting.report(self._state, workflow.now())

    # ------------------------------------------------------------ the event loop

    async def _prepare(self, goal: Goal) -> None:
        briefing = await workflow.execute_activity_method(
            Preparation.prepare,
            goal,
            activity_id="prepare",
            summary="resolve roles, inputs, prices",
            **policies.options("prepare"),
        )
        self._apply(Prepared(briefing))

    async def _during(self, phase: Phase) -> None:
        """Carry out moves and take in what comes back until the phase is over."""
        while self._state.phase == phase:
            for move in moves.next_moves(self._state, workflow.now()):
                self._carry_out(move)
            if self._state.phase == phase:
                await self._take_in()

    async def _take_in(self) -> None:
        await workflow.wait_condition(lambda: bool(self._inbox))
        while self._inbox:
            self._apply(self._inbox.pop(0))

    def _apply(self, event: Event) -> None:
        self._state = reducer.apply(self._state, event, workflow.now())
        workflow.set_current_details(board(self.view()))

    async def _settle_cancelled(self) -> None:
        """Cut what is in flight and wait for its bill: a run never closes with a call in flight."""
        if self._state.phase in ("preparing", "closed"):
            return
        self._apply(CancelAsked())
        await self._during(self._state.phase)
        await self._end_timers()

    async def _end_timers(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        for task in self._tasks.values():
            try:
                await task
            except asyncio.CancelledError:
                continue

    # ------------------------------------------------------------ carrying out moves

    def _carry_out(self, move: Move) -> None:
        self._apply(Started(move))
        match move:
            case Ask():
                self._spawn(move.call.id, self.ask(move.call))
                self._watch_deadline()
            case UseTool():
                self._spawn(move.id, self._use_tool(move))
            case Cut():
                for flight_id in move.ids:
                    self._tasks[flight_id].cancel()
                self._spawn("grace", self._grace(move.ids))
            case Stop():
                workflow.logger.info("work stopped", extra={"why": move.why})

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = asyncio.create_task(work, name=name)

    async def ask(self, call: Call) -> None:
        """The only place that schedules a model activity; the reducer has reserved its worst
        case.
        """
        try:
            reply = await self._schedule(call)
        except ActivityError as error:
            flight = self._state.flights.get(call.id)
            cut = flight is not None and flight.cut
            self._inbox.append(Unanswered(call, troubles.trouble(error, cut=cut)))
        else:
            self._inbox.append(Answered(call, reply))

    async def _schedule(self, call: Call) -> Reply[Plan] | Reply[Draft] | Reply[Synthesis]:
        queue = workflow.info().task_queue
        limit = self._state.goal.limits.subtask_timeout_seconds
        seconds = max(limit, call.max_output // policies.OUTPUT_TOKENS_PER_SECOND)
        where: dict[str, Any] = {
            "activity_id": call.id,
            "task_queue": f"{queue}-{call.tier}" if call.model else queue,
            "summary": _summary(call),
            **policies.options(call.kind, seconds),
        }
        if call.kind == "plan":
            return await workflow.execute_activity_method(
                Agents.plan, args=[call, moves.plan_material(self._state)], **where
            )
        if call.kind == "synthesize":
            return await workflow.execute_activity_method(
                Agents.synthesize, args=[call, moves.synthesis_material(self._state)], **where
            )
        return await workflow.execute_activity_method(
            Agents.work, args=[call, moves.work_material(self._state, call.subtask_id)], **where
        )

    async def _use_tool(self, move: UseTool) -> None:
        # The tool ends itself at the limit and says so; this bound only catches one that does not.
        limit = self._state.goal.limits.subtask_timeout_seconds + policies.TOOL_MARGIN_SECONDS
        try:
            draft = await workflow.execute_activity_method(
                Tools.use_tool,
                moves.work_material(self._state, move.subtask_id),
                activity_id=move.id,
                summary=f"{move.subtask_id} · {move.tool}",
                **policies.options("use_tool", limit),
            )
        except ActivityError as error:
            draft = Draft(status="failed", reason=troubles.words(error))
        self._inbox.append(ToolEnded(move, draft))

    # ------------------------------------------------------------ timers

    def _watch_deadline(self) -> None:
        """One timer for the whole run, from the first paid call."""
        if self._state.work_deadline is not None and "deadline" not in self._tasks:
            self._spawn("deadline", self._deadline())

    async def _deadline(self) -> None:
        deadline = self._state.work_deadline
        assert deadline is not None
        await workflow.sleep(deadline - workflow.now(), summary="deadline of the work")
        self._inbox.append(DeadlineReached())

    async def _grace(self, ids: tuple[str, ...]) -> None:
        await workflow.sleep(policies.CANCEL_GRACE, summary="grace for what was cut")
        self._inbox.append(Abandoned(ids))


def _summary(call: Call) -> str:
    """What the timeline of the Web UI shows: `t3 analyst · sonnet · 2`."""
    what = f"{call.subtask_id} {call.role}" if call.subtask_id else call.kind
    how = call.tier if call.model else "no model"
    return f"{what} · {how}" + (f" · {call.number}" if call.number > 1 else "")
