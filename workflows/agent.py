"""An agent with tools: one segment of its conversation, from a slice of money to its report.

`holdfast.agent.rules` decides what happens next; this class carries out moves and turns what comes
back into events, one at a time, like the supervisor.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from holdfast.agent import rules
from holdfast.agent.approvals import first_state
from holdfast.agent.state import (
    End,
    Event,
    Flight,
    TakeTurn,
    ToolEnded,
    ToolLost,
    TurnEnded,
    TurnLost,
    UseTool,
)
from holdfast.calls.turn import READ_FINDING, AgentGoal, AgentReport, UseMaterial
from holdfast.contracts.signals import HOLD
from holdfast.history.troubles import classify_trouble, describe_error, find_end, is_unsent
from holdfast.rendering.board import agent_board
from holdfast.rules.timers import to_datetime
from holdfast.state.events import HoldAsked, cut_event
from holdfast.tracing import story
from holdfast.workflows import scheduling, telling


@workflow.defn
class AgentWorkflow:
    """One segment of an agent. Its name stands in histories."""

    @workflow.init
    def __init__(self, goal: AgentGoal) -> None:
        self._state = first_state(goal, workflow.info().workflow_start_time)
        self._inbox: list[Event] = []
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._report: AgentReport | None = None

    @workflow.run
    async def run(self, goal: AgentGoal) -> AgentReport:  # noqa: ARG002
        """Take turns until there is an answer, no money, a pause or a cut."""
        self._go_on()
        while self._report is None:
            await self._next_event()
            self._go_on()
        return self._report

    @workflow.signal(name=HOLD)
    def hold(self, *_: Any) -> None:
        """Take in that the run above is paused, behind all results of this workflow task. Arguments
        are ignored: any client can send them.
        """
        self._inbox.append(HoldAsked())

    def _go_on(self) -> None:
        for move in rules.next_moves(self._state):
            if isinstance(move, End):
                self._report = move.report
                return
            flight = Flight(move, self._state.now, rules.options_of(self._state, move))
            self._state = rules.take_off(self._state, flight)
            telling.tell(story.tell_dispatch(move, self._state.goal.work.subtask.id))
            self._flying[move.id] = asyncio.create_task(self._fly(flight), name=move.id)
        workflow.set_current_details(agent_board(self._state))

    async def _next_event(self) -> None:
        try:
            await workflow.wait_condition(lambda: bool(self._inbox))
        except asyncio.CancelledError:
            by = workflow.cancellation_reason()
            if by is None or self._state.cut:
                raise  # this worker only drops it from its cache
            self._inbox.append(cut_event(by, to_datetime(workflow.time_ns())))
            for task in self._flying.values():
                task.cancel()
        event = self._inbox.pop(0)
        self._state = rules.apply(self._state, event)
        telling.tell(story.tell_agent_event(event, self._state.goal.work.subtask.id))

    async def _fly(self, flight: Flight) -> None:
        move = flight.move
        try:
            if isinstance(move, TakeTurn):
                reply = await scheduling.ask(move.call, move.material, flight.options)
                self._inbox.append(TurnEnded(move, reply))
            else:
                result = await scheduling.use_tool(move, self._material(move), flight.options)
                self._inbox.append(ToolEnded(move, result))
        except ActivityError as error:
            if isinstance(move, TakeTurn):
                told = classify_trouble(error, flight.started, flight.options, self._state.cut_at)
                self._inbox.append(TurnLost(move, told))
            else:
                at = find_end(error, flight.started, flight.options)
                self._inbox.append(ToolLost(move, describe_error(error), at, is_unsent(error)))
        finally:
            del self._flying[move.id]

    def _material(self, move: UseTool) -> UseMaterial:
        goal = self._state.goal
        return UseMaterial(
            work=goal.work,
            tools=goal.role.tools,
            transcript=self._state.resume.transcript,
            use=move.use,
            approved=move.approved,
            made=self._state.resume.files,
            findings=goal.findings if move.use.name == READ_FINDING else {},
            run=goal.first_run,
            project=goal.project,
        )
