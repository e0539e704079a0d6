"""The supervisor: owns a run from its goal to its report.

Two pure functions decide what happens next, `reducer.apply` and `next_moves`. This class carries
out moves, turns what comes back into events, and does nothing else. It takes one event at a time
and carries out what follows from it before it takes the next, and it reads no clock: so the same
history leads to the same commands, however its results were delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
)

from holdfast.contracts import Goal, Order, Report, policies
from holdfast.contracts.signals import SIGNALS
from holdfast.contracts.view import RunView
from holdfast.history import landings
from holdfast.history.signals import parse_signal
from holdfast.rendering import listing, running
from holdfast.rendering.board import agent_summary, board
from holdfast.rendering.maps import map_summary
from holdfast.rules import early, next_moves, reducer, reporting, steering
from holdfast.rules.timers import timers, to_datetime
from holdfast.state.events import RUN_FAILED, Event, Started, Steered, cancel_event
from holdfast.state.moves import (
    Ask,
    Cut,
    Examine,
    Hold,
    Move,
    Notify,
    Prepare,
    StartAgent,
    StartMap,
    StartTeam,
    TellAbove,
)
from holdfast.state.parts import Flight
from holdfast.state.run import first_state
from holdfast.tracing import story
from holdfast.workflows import scheduling, telling
from holdfast.workflows.agent import AgentWorkflow
from holdfast.workflows.alarms import Alarms
from holdfast.workflows.below import Below
from holdfast.workflows.map import MapWorkflow
from holdfast.workflows.notifiers import Notifiers


@workflow.defn
class SupervisorWorkflow:
    """Plan a goal, work through the graph, synthesize, report. Its name stands in histories."""

    @workflow.init
    def __init__(self, goal: Goal) -> None:
        info = workflow.info()
        self._state = first_state(
            info.workflow_id, goal, info.workflow_start_time, info.first_execution_run_id
        )
        self._inbox: list[Event] = []
        self._accepted = 0
        self._published: list[SearchAttributeUpdate[Any]] = []
        self._listed = ""
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._below = Below(lambda flight_id: self._state.flights.get(flight_id))
        self._alarms = Alarms(self._take)
        self._notifiers = Notifiers(self._take)
        self._failure: ActivityError | None = None
        for name in steering.COMMANDS:
            self._steerable(name)
        for name in SIGNALS:
            self._listen(name)

    @workflow.run
    async def run(self, goal: Goal) -> Report:
        """Run the goal and return its Report. A failed run fails its workflow, with the Report as
        the failure's detail. A cancelled team still returns its Report; a cancelled run that a
        person started closes as cancelled.
        """
        self._go_on()
        while self._state.phase != "closed":
            await self._next_event()
            self._go_on()
        await self._answer_orders()
        await self._notifiers.all_started()
        if self._state.stopped_by("cancelled") and not goal.depth:
            raise asyncio.CancelledError
        if self._failure is not None and not self._state.stopped_by("cancelled"):
            raise self._failure
        report = reporting.report(self._state)
        if report.status == "failed":
            why = reporting.why_failed(self._state)
            raise ApplicationError(why, report, type=RUN_FAILED, non_retryable=True)
        return report

    @workflow.query
    def view(self) -> RunView:
        """Return the state of the run, for readers that do not follow its history."""
        return running.run_view(self._state)

    @workflow.query
    def report(self) -> Report:
        """Return the report as it stands; for a cancelled run, the last word."""
        return reporting.report(self._state)

    def details(self) -> str:
        return board(self.view())

    # ------------------------------------------------------------ the event loop

    def _go_on(self) -> None:
        """Carry out what follows from the state, and keep exactly its timers running."""
        for move in next_moves.next_moves(self._state):
            self._carry_out(move)
        # Those of a run that closes, the server forgets without being told.
        if self._state.phase != "closed":
            self._alarms.set(timers(self._state), self._state.now)

    async def _next_event(self) -> None:
        """Wait for one event and take it in. A cancellation is an event like any other."""
        try:
            await workflow.wait_condition(lambda: bool(self._inbox))
        except asyncio.CancelledError:
            by = workflow.cancellation_reason()
            if by is None or self._state.stopped_by("cancelled"):
                raise  # nobody cancels the run now: this worker only drops it from its cache
            self._take(cancel_event(by, to_datetime(workflow.time_ns())))
        self._apply(self._inbox.pop(0))

    def _take(self, event: Event) -> None:
        self._inbox.append(event)

    def _apply(self, event: Event) -> None:
        before, self._state = self._state, reducer.apply(self._state, event)
        telling.tell(story.tell_event(before, event, self._state))
        self._publish()

    def _publish(self) -> None:
        """Update the search attributes that the namespace has and that have changed; at the end,
        and in an outage, also the memo, for lists.
        """
        wanted = self._state.goal.search_attributes
        told = [each for each in listing.search_attributes(self._state) if each.key.name in wanted]
        changed = [each for each in told if each not in self._published]
        if changed:
            self._published = told
            workflow.upsert_search_attributes(changed)
        before, self._listed = self._listed, listing.where(self._state)
        if self._listed != before and listing.stands(self._state):
            workflow.upsert_memo(listing.memo(self._state))

    async def _answer_orders(self) -> None:
        """Answer everybody who still waits for the outcome of an order."""
        while not workflow.all_handlers_finished():
            # Cancelled now, it is too late: the report is made.
            with suppress(asyncio.CancelledError):
                await workflow.wait_condition(
                    lambda: bool(self._inbox) or workflow.all_handlers_finished()
                )
            while self._inbox:
                self._apply(self._inbox.pop(0))

    # ------------------------------------------------------------ carrying out moves

    def _carry_out(self, move: Move) -> None:
        self._apply(Started(move))
        match move:
            case Prepare() | Ask() | Examine() | StartTeam() | StartAgent() | StartMap():
                self._spawn(move.id, self._fly(self._state.flights[move.id]))
            case Cut():
                for flight_id in move.ids:
                    self._cut(self._state.flights[flight_id])
            case Hold():
                for flight_id in move.ids:
                    self._below.tell(flight_id)
            case TellAbove(word=word):
                name = f"word {word.number} to the run above"
                self._spawn(name, scheduling.tell_above(word))
            case Notify():
                self._notifiers.start(move)

    def _cut(self, flight: Flight) -> None:
        if isinstance(flight.move, StartTeam | StartAgent | StartMap):
            self._below.tell(flight.move.id)
        elif (activity := self._flying.get(flight.move.id)) is not None:
            activity.cancel()

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._flying[name] = asyncio.create_task(work, name=name)

    async def _fly(self, flight: Flight) -> None:
        try:
            result = await self._result(flight)
        except (ActivityError, ChildWorkflowError) as error:
            if isinstance(flight.move, Prepare) and isinstance(error, ActivityError):
                self._failure = error
            # As it is now: it may have been cut meanwhile.
            now = self._state.flights.get(flight.move.id, flight)
            self._take(landings.land_failure(now, error))
        except WorkflowAlreadyStartedError as error:
            self._take(landings.land_taken_name(flight, error.workflow_id))
        else:
            self._take(landings.land_result(flight, result))
        finally:
            del self._flying[flight.move.id]

    async def _result(self, flight: Flight) -> landings.Result:
        match flight.move:
            case Prepare() as move:
                return await scheduling.prepare(move, self._state.goal, flight.timeouts)
            case Ask() as move:
                anew = early.is_anew(self._state, move)
                return await scheduling.ask(move.call, move.material, flight.timeouts, anew=anew)
            case Examine() as move:
                return await scheduling.examine(move, flight.timeouts)
            case StartTeam() as move:
                said = f"team of {move.subtask_id}"
                return await self._below.run(SupervisorWorkflow.run, move, said)
            case StartAgent() as move:
                said = agent_summary(move.goal, anew=early.is_anew(self._state, move))
                return await self._below.run(AgentWorkflow.run, move, said)
            case StartMap() as move:
                return await self._below.run(MapWorkflow.run, move, map_summary(move.goal))

    # ------------------------------------------------------------ people

    def _steerable(self, name: str) -> None:
        """Accept an Update of this name: it appends an event and awaits its outcome."""

        async def order(order: Order) -> str:
            # An order's turn comes with a timer, which has a place of its own among the results.
            # When it was accepted is recorded: the moment of the workflow task that carried it.
            self._accepted += 1
            ticket = Steered(self._accepted, name, order, to_datetime(workflow.time_ns()))
            await workflow.sleep(policies.SHORTEST_SLEEP, summary=ticket.name)
            self._take(ticket)
            await workflow.wait_condition(lambda: self._state.find_order(ticket.number) is not None)
            given = self._state.find_order(ticket.number)
            if given is not None and given.refused:
                raise ApplicationError(given.refused, type="Refused")
            if steering.about_rows(name, order):
                return await self._outcome_of_rows(name, order, ticket.number)
            return await self._outcome(name, order)

        def refuse(*given: Any) -> None:
            # A client of somebody else's may send nothing, or null: accepted it would stop the run.
            order = given[0] if len(given) == 1 else None
            why = (
                steering.refusal_on_arrival(self._state, name, order)
                if isinstance(order, Order)
                else f"{name} takes one argument, an Order; {{}} is one without any details"
            )
            if why:
                raise ApplicationError(why, type="Refused")

        workflow.set_update_handler(name, order, validator=refuse)

    async def _outcome(self, name: str, order: Order) -> str:
        """Return what came of an order; completion can overtake the end of a subtask."""
        done = steering.say_done(name, order)
        progress = self._state.work.get(order.subtask_id)
        if progress is None or not progress.ending:
            return done
        await workflow.wait_condition(lambda: self._state.is_settled(order.subtask_id))
        finding = self._state.work[order.subtask_id].finding
        if finding is not None and finding.status == "complete":
            return f"{order.subtask_id} completed before it could be ended"
        return done

    async def _outcome_of_rows(self, name: str, order: Order, number: int) -> str:
        """Return what came of an order about rows of a map; or when it is carried out, where that
        may take long.
        """
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: steering.rows_settled(self._state, order, number),
                timeout=policies.ROWS_ANSWER,
                timeout_summary=f"outcome of order {number}",
            )
        said, refused = steering.say_rows(self._state, name, order, number)
        if refused:
            raise ApplicationError(refused, type="Refused")
        return said

    # ------------------------------------------------------------ other runs

    def _listen(self, name: str) -> None:
        """Take in a Signal of this name; a task's Signals come before its results."""

        def signal(*told: Any) -> None:
            event = parse_signal(name, told[0] if told else None, to_datetime(workflow.time_ns()))
            if event is not None:
                self._take(event)

        workflow.set_signal_handler(name, signal)
