"""The supervisor: owns a run from its goal to its report.

What happens next is decided by two pure functions, `reducer.apply` and `moves.next_moves`. This
class carries out
moves, turns what comes back into events, and does nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    is_cancelled_exception,
)
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from activities.agents import Agents
from activities.preparation import Preparation
from activities.use_tool import Tools
from orchestrator import (
    finishing,
    material,
    moves,
    policies,
    reducer,
    reporting,
    steering,
    troubles,
)
from orchestrator.board import board, call_summary, tool_summary
from orchestrator.contracts import Call, CallKind, Contract, Draft, Goal, Order, Report
from orchestrator.events import (
    Abandoned,
    Answered,
    AnyReply,
    Ask,
    AskPerson,
    AskRaise,
    CancelAsked,
    Cut,
    DeadlineReached,
    Event,
    Move,
    NobodyCame,
    Prepared,
    Started,
    StartTeam,
    Steered,
    Stop,
    TeamEnded,
    ToolEnded,
    Unanswered,
    UseTool,
)
from orchestrator.ledger import Ledger
from orchestrator.state import State
from orchestrator.view import Phase, RunView

ACTIVITIES: dict[CallKind, Callable[..., Awaitable[AnyReply]]] = {
    "plan": Agents.plan,
    "work": Agents.work,
    "review": Agents.review,
    "refine": Agents.refine,
    "replan": Agents.replan,
    "judge": Agents.judge,
    "digest": Agents.digest,
    "synthesize": Agents.synthesize,
    "critique": Agents.critique,
}


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
        self._orders = 0
        self._published: list[SearchAttributeUpdate[Any]] = []
        self._refused: dict[int, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        for name in steering.COMMANDS:
            self._steerable(name)

    @workflow.run
    async def run(self, goal: Goal) -> Report:
        """The run's story. A run that made a Report completes, whatever the report's status."""
        try:
            await self._prepare(goal)
            await self._during("planning")
            await self._approval()
            await self._during("working")
            await self._during("synthesizing")
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            await self._settle_cancelled()
            raise
        await self._end()
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

    def _take(self, event: Event) -> None:
        self._inbox.append(event)

    async def _approval(self) -> None:
        """Wait for days, holding no slot, for a person to approve, edit or reject the plan."""
        if self._state.phase == "approval":
            self._wait_for_person("approval")
        await self._during("approval")

    async def _take_in(self) -> None:
        await workflow.wait_condition(lambda: bool(self._inbox))
        self._drain()

    def _drain(self) -> None:
        while self._inbox:
            event = self._inbox[0]
            why = ""
            if isinstance(event, Steered):
                # Another order may have won since this one was accepted.
                why = steering.refusal(self._state, event.command, event.order)
            if why and isinstance(event, Steered):
                self._refused[event.number] = why
            else:
                self._apply(event)
            self._inbox.pop(0)

    def _apply(self, event: Event) -> None:
        self._state = reducer.apply(self._state, event, workflow.now())
        workflow.set_current_details(board(self.view()))
        self._publish()

    def _publish(self) -> None:
        """Search attributes, as far as the namespace has them and they have changed."""
        told = reporting.search_attributes(self._state)
        changed = [
            each
            for each in told
            if each.key.name in self._state.goal.search_attributes and each not in self._published
        ]
        if changed:
            self._published = told
            workflow.upsert_search_attributes(changed)

    async def _settle_cancelled(self) -> None:
        """Cut what is in flight and wait for its bill: a run never closes with a call in flight."""
        if self._state.phase == "closed":
            return
        self._apply(CancelAsked())
        if self._state.flights:
            await self._during(self._state.phase)
        await self._end()

    async def _end(self) -> None:
        """Leave nothing behind: no timer, and nobody who waits for the outcome of an order."""
        while not workflow.all_handlers_finished():
            self._drain()
            await workflow.wait_condition(
                lambda: bool(self._inbox) or workflow.all_handlers_finished()
            )
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
                self._spawn(move.call.id, self.ask(move.call, self._material(move.call)))
                self._watch_deadline()
            case UseTool():
                self._spawn(move.id, self._use_tool(move))
            case StartTeam():
                self._spawn(move.id, self._run_team(move))
            case AskPerson():
                self._wait_for_person(move.subtask_id)
            case AskRaise():
                self._wait_for_person("raise")
            case Cut():
                for flight_id in move.ids:
                    self._tasks[flight_id].cancel()
                self._spawn("grace", self._grace(move.ids))
            case Stop():
                workflow.logger.info("work stopped", extra={"why": move.why})

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = asyncio.create_task(work, name=name)

    async def ask(self, call: Call, wanted: Contract) -> None:
        """The only place that schedules a model activity; the reducer has reserved its worst
        case.
        """
        try:
            reply = await self._schedule(call, wanted)
        except ActivityError as error:
            flight = self._state.flights.get(call.id)
            cut = flight is not None and flight.cut
            self._take(Unanswered(call, troubles.trouble(error, cut=cut)))
        else:
            self._take(Answered(call, reply))

    async def _schedule(self, call: Call, wanted: Contract) -> AnyReply:
        limit = self._state.goal.limits.subtask_timeout_seconds
        seconds = max(limit, call.max_output // policies.OUTPUT_TOKENS_PER_SECOND)
        queue = workflow.info().task_queue
        return await workflow.execute_activity_method(
            ACTIVITIES[call.kind],
            args=[call, wanted],
            activity_id=call.id,
            task_queue=f"{queue}-{call.tier}" if call.model else queue,
            summary=call_summary(call),
            **policies.options(call.kind, seconds, free=call.model is None),
        )

    def _material(self, call: Call) -> Contract:
        """What a call works from, as it stands when the call is scheduled."""
        if call.subtask_id:
            return material.for_subtask(self._state, self._state.work[call.subtask_id])
        return finishing.material_of(self._state, call)

    async def _use_tool(self, move: UseTool) -> None:
        # The tool ends itself at the limit and says so; this bound only catches one that does not.
        limit = self._state.goal.limits.subtask_timeout_seconds + policies.TOOL_MARGIN_SECONDS
        try:
            draft = await workflow.execute_activity_method(
                Tools.use_tool,
                material.for_work(self._state, self._state.work[move.subtask_id]),
                activity_id=move.id,
                summary=tool_summary(self._state.work[move.subtask_id].subtask),
                **policies.options("use_tool", limit),
            )
        except ActivityError as error:
            draft = Draft(status="failed", reason=troubles.words(error))
        self._take(ToolEnded(move, draft))

    async def _run_team(self, move: StartTeam) -> None:
        """The run of a role that is a team; should this one be closed from outside, it is told."""
        name = f"{workflow.info().workflow_id}.{move.subtask_id}.{move.id.rpartition('-')[2]}"
        try:
            report = await workflow.execute_child_workflow(
                SupervisorWorkflow.run,
                move.goal,
                id=name,
                parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
                cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                static_summary=f"team of {move.subtask_id}",
            )
        except ChildWorkflowError as error:
            why, refused = troubles.words(error), troubles.refused(error)
            self._take(TeamEnded(move, None, why, refused))
        else:
            self._take(TeamEnded(move, report))

    # ------------------------------------------------------------ people

    def _steerable(self, name: str) -> None:
        """Accept an Update of this name: it appends an event and awaits its outcome."""

        async def order(order: Order) -> str:
            self._orders += 1
            ticket = Steered(self._orders, name, order)
            self._take(ticket)
            await workflow.wait_condition(lambda: ticket not in self._inbox)
            if ticket.number in self._refused:
                raise ApplicationError(self._refused.pop(ticket.number), type="Refused")
            return await self._outcome(name, order)

        def refuse(order: Order) -> None:
            why = steering.refusal(self._state, name, order)
            if why:
                raise ApplicationError(why, type="Refused")

        workflow.set_update_handler(name, order, validator=refuse)

    async def _outcome(self, name: str, order: Order) -> str:
        """What came of it. Ending a subtask can be overtaken by its completion: that is said."""
        done = steering.COMMANDS[name].done.format(id=order.subtask_id)
        progress = self._state.work.get(order.subtask_id)
        if progress is None or not progress.ending:
            return done
        await workflow.wait_condition(lambda: self._state.settled(order.subtask_id))
        finding = self._state.work[order.subtask_id].finding
        if finding is not None and finding.status == "complete":
            return f"{order.subtask_id} completed before it could be ended"
        return done

    def _wait_for_person(self, about: str) -> None:
        self._spawn(f"person-{about}", self._wait_for(about))

    async def _wait_for(self, about: str) -> None:
        await workflow.sleep(policies.patience(about), summary=f"{about} waits for a person")
        self._take(NobodyCame(about))

    # ------------------------------------------------------------ timers

    def _watch_deadline(self) -> None:
        """One timer for the whole run, from the first paid call."""
        if self._state.work_deadline is not None and "deadline" not in self._tasks:
            self._spawn("deadline", self._deadline())

    async def _deadline(self) -> None:
        """Sleep until the deadline, wherever waiting for people has moved it meanwhile."""
        for kind in ("work_deadline", "deadline"):
            while (due := getattr(self._state, kind)) is None or due > workflow.now():
                if due is None:
                    await workflow.wait_condition(lambda: self._state.deadline is not None)
                else:
                    await workflow.sleep(due - workflow.now(), summary=kind.replace("_", " "))
            self._take(DeadlineReached())

    async def _grace(self, ids: tuple[str, ...]) -> None:
        await workflow.sleep(policies.CANCEL_GRACE, summary="grace for what was cut")
        self._take(Abandoned(ids))
