"""A run as a reader has it: its history, folded as it comes in, and what the server knows besides.

Nothing here asks a worker: to read disturbs no takeover, costs them nothing, and needs none alive.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

from holdfast.activities.gate.queue_rates import read_rate
from holdfast.client.connecting import full
from holdfast.client.doing import agents_at
from holdfast.client.maps import Maps
from holdfast.client.pauses import (
    BY,
    pause_notes,
    paused_activities,
    paused_below,
    run_paused,
    with_pauses,
)
from holdfast.contracts import Report
from holdfast.contracts.search import WORKFLOW
from holdfast.contracts.view import RunView
from holdfast.deployment.invocation import to_type
from holdfast.embedded.supervision import is_starting
from holdfast.errors import NoSuchRun
from holdfast.history.actions import bills_actions
from holdfast.history.executions import AGENT
from holdfast.history.fold import Fold
from holdfast.history.losses import Loss, describe_losses, describe_paid_again, loss_in
from holdfast.history.payloads import failure_message
from holdfast.history.steps import Step
from holdfast.intake.connection import Connection
from holdfast.rendering.running import run_view, tiers_in_flight
from holdfast.state.run import State
from holdfast.tracing.steps import TraceStep
from holdfast.workers import served
from holdfast.workers.versions import find_buildless, pinned_build

LOOK_SECONDS = 3.0
"""How long one request may take before the reader says that nobody answers."""
ANSWER_TIME = timedelta(seconds=10)
"""The same for a single request, which nobody repeats."""
LOOK_AGAIN_SECONDS = 1.0
"""How often the server is asked for what is not in the history, when that does not change."""
SETTLE_SECONDS = 0.05
"""Events come in groups: a little later the whole group is there."""
AGAIN_SECONDS = 1.0
"""The pause between two tries to follow a history while the server does not answer."""
WORKERS_SECONDS = 2.0
"""The pause between two looks at who serves the run."""
AGENTS_SECONDS = 1.0
"""The pause between two looks at what agents do."""
STARTING_SECONDS = 20.0
"""How long a run that has not begun may lack a worker before that is said: one may be starting."""
STARTING = "the worker is starting"
NEW_WORKER_SECONDS = 60.0
"""How long a worker that took the place of another may take until it is called missing."""
STUCK_ATTEMPTS = 3
"""Failures of one workflow task after which its history or its code, not the world, is at fault."""
NONDETERMINISM = "TMPRL1100"
"""How Temporal names a history that the code does not repeat: nothing that passes by itself."""


@dataclass(frozen=True)
class Look:
    """What one look at a run found."""

    closed: WorkflowExecutionStatus | None = None
    state: State | None = None
    report: Report | None = None
    """Report that the run closed with; None if it was refused, cancelled or closed from outside."""
    lost: tuple[tuple[str, Loss], ...] = ()
    """Activities of the run itself that were lost with their worker, by name."""
    unreadable: str = ""
    """Why the history cannot be read any further; empty: it can. Also a note."""
    notes: tuple[str, ...] = ()
    stuck: str = ""
    """Why the run cannot go on by itself, and what frees it; also the first note. Empty: it can."""
    away: bool = False
    """True if the server did not answer: then nothing is known but the notes."""
    doing: Mapping[str, str] = field(default_factory=dict)
    """Current work of agents, by subtask, if it was read."""
    held: bool = False
    """True if an operator has paused the whole run by Temporal's own means: why it is `stuck`."""
    paused: tuple[str, ...] = ()
    """Activities that an operator has paused by Temporal's own means; also notes."""
    paused_below: Mapping[str, str] = field(default_factory=dict)
    """The same of its agents and teams, by subtask in words, as far as it was looked for."""
    actions: str = ""
    """The server's bill for the history, as a note; empty: it does not bill actions."""
    steps: tuple[Step, ...] = ()
    """Steps of the run, past and under way."""
    turns: Mapping[str, Sequence[TraceStep]] = field(default_factory=dict)
    """Turns of each agent with tools, by the id of its workflow, if they were read."""

    @property
    def besides(self) -> tuple[str, ...]:
        """The notes that only the history gives, for the report."""
        lost = self.losses
        again = describe_paid_again(self.state.ledger) if lost and self.state else ""
        return tuple(filter(None, (f"{lost} {again}".strip(), self.actions)))

    @property
    def losses(self) -> str:
        """What was lost with workers, in a sentence; empty: nothing is known to have been."""
        agents = (step for steps in self.turns.values() for step in steps)
        lost = (*self.lost, *((each.subtask, each.lost) for each in agents if each.lost))
        return describe_losses(lost) if self.state else ""

    @property
    def blank(self) -> str:
        """Why there is no state, as what is said of the run."""
        return "cannot be read here" if self.unreadable else "has not begun"

    @property
    def view(self) -> RunView | None:
        """The state as people are shown it; None before the run's first step."""
        if self.state is None:
            return None
        view = run_view(self.state)
        if self.held:
            # It takes in nothing, so nobody is asked for anything else.
            view = view.model_copy(update={"held": BY, "waiting": ()})
        if self.paused or self.paused_below:
            view = with_pauses(view, self.state, self.paused, self.paused_below)
        rows = (
            # Meanwhile it may have come back.
            row.model_copy(update={"doing": self.doing.get(row.id, "")})
            if row.status == "running"
            else row
            for row in view.rows
        )
        return view.model_copy(update={"rows": tuple(rows)}) if self.doing else view


def with_notes(report: Report, notes: tuple[str, ...]) -> Report:
    """Return the report with these notes added."""
    return report.model_copy(update={"notes": (*report.notes, *notes)}) if notes else report


@dataclass
class Reader:
    """Reads one run. When the run is reset, the reader goes on with the new execution."""

    connection: Connection
    run_id: str
    fold: Fold | None = None
    execution: str = ""
    """Temporal's id of what is being read."""
    held_up: tuple[str, ...] = ()
    """Reasons why the run does not go on: no worker, no models, or a slowed tier."""
    build: str = ""
    """The build that the run stays on; empty: any may carry it on."""
    doing: Mapping[str, str] = field(default_factory=dict)
    """The turn and the tool that agents are at, and how far maps are, by subtask."""
    maps: Maps | None = None
    """What was read of its maps; None: nothing yet."""
    paused_below: Mapping[str, str] = field(default_factory=dict)
    """Agents and teams with something that an operator has paused, by subtask."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    began: float = field(default_factory=time.monotonic)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self) -> Look:
        """Return the run as it stands now, as far as the server answers. Raise NoSuchRun."""
        limit = timedelta(seconds=LOOK_SECONDS)
        trouble = (self.connection.trouble,) if self.connection.trouble else ()
        try:
            description = await describe_run(self.connection, self.run_id, limit)
            await self._catch_up(description)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise no_such_run(self.run_id) from error
            target = self.connection.target
            gone = f"server at {target.address} gone, waiting{full(target)}"
            return Look(notes=(gone, *trouble), away=True)
        self.build = pinned_build(description)
        running = description.status is WorkflowExecutionStatus.RUNNING
        held = run_paused(description)
        stuck = (held or self._stuck(description)) if running else ""
        paused = paused_activities(description) if running else ()
        notes = trouble
        if running:
            notes = (*((stuck,) if stuck else await self._notes(description)), *trouble)
            notes = (*pause_notes(paused, self.paused_below), *notes)
        closed = None if running else description.status
        if self.fold is None:
            return Look(closed, notes=notes, stuck=stuck, held=bool(held))
        fold, steps = self.fold, tuple(self.fold.steps.by_id.values())
        if fold.unreadable:
            notes = (f"the history cannot be read: {fold.unreadable}", *notes)
        actions = fold.actions if bills_actions(self.connection.target.address) else ""
        return Look(
            closed,
            fold.state,
            fold.report,
            fold.lost,
            fold.unreadable,
            notes,
            stuck,
            doing=self.doing,
            held=bool(held),
            paused=paused,
            paused_below=self.paused_below if running else {},
            actions=actions,
            steps=steps,
        )

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Read the history as it is written, and who serves the run, until the block is left;
        `changed` signals either.
        """
        watching = (self._follow(), self._watch_workers(), self._watch_agents())
        tasks = [asyncio.create_task(each) for each in watching]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def looks(self) -> AsyncGenerator[Look]:
        """Yield the run as it is now and each time that something is new, at least once a second;
        the last look is at a closed run.
        """
        look = await self.look()
        yield look
        if look.closed:
            return
        async with self.following():
            while not look.closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                        await self.changed.wait()
                await asyncio.sleep(SETTLE_SECONDS)
                self.changed.clear()
                look = await self.look()
                yield look

    async def find_held_up(self) -> None:
        """Look once who serves the run and how fast: takes milliseconds, or seconds if nobody
        does.
        """
        client, target = self.connection.client, self.connection.target
        state = self.fold.state if self.fold else None
        tiers = tiers_in_flight(state) if state else ()
        lines = await served.find_unserved(
            client, target.task_queue, embedded=target.embedded, models=bool(tiers)
        )
        if not lines and self.build:
            lines = await find_buildless(client, target.task_queue, self.build)
        if not lines:
            self.connection.new_worker = ""
        elif self.connection.new_worker and time.monotonic() < self.began + NEW_WORKER_SECONDS:
            # Nobody is missing: whoever reads this run has asked for the change.
            lines = (self.connection.new_worker,)
        elif target.embedded and await asyncio.to_thread(is_starting, self.connection.settings):
            lines = (STARTING,)
        with suppress(RPCError):
            for tier in tiers:
                rate = await read_rate(client, target.task_queue, tier)
                if rate.rate is not None:
                    lines = (*lines, rate.explain(tier, time.time()))
        self.held_up = lines

    async def find_doing(self) -> None:
        """Look once at what the run's agents and maps do: two requests to the server for each."""
        state = self.fold.state if self.fold else None
        if self.fold and state:
            self.maps = self.maps or Maps(self.connection)
            agents, mapped, self.paused_below = await asyncio.gather(
                agents_at(self.connection, state),
                self.maps.at(self.fold),
                paused_below(self.connection, state),
            )
            self.doing = {**agents, **mapped}

    async def find_maps(self) -> None:
        """Look once at how far the run's maps are."""
        if self.fold and self.fold.state:
            self.maps = self.maps or Maps(self.connection)
            self.doing = await self.maps.at(self.fold)

    async def _watch_agents(self) -> None:
        while True:
            before = self.doing, self.paused_below
            await self.find_doing()
            if (self.doing, self.paused_below) != before:
                self.changed.set()
            await asyncio.sleep(AGENTS_SECONDS)

    async def _watch_workers(self) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            before = self.held_up
            await self.find_held_up()
            begun = self.fold is not None and self.fold.state is not None
            if not begun and self.connection.target.embedded and clock() < began + STARTING_SECONDS:
                self.held_up = ()
            if self.held_up != before:
                self.changed.set()
            await asyncio.sleep(WORKERS_SECONDS)

    async def _follow(self) -> None:
        while True:
            try:
                await self._read(self.execution, wait=True)
            except RPCError:
                self.changed.set()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _catch_up(self, description: WorkflowExecutionDescription) -> None:
        assert description.run_id is not None
        if description.run_id != self.execution:
            async with self._turn:
                converter = self.connection.client.data_converter
                self.fold = Fold(self.run_id, converter)
                self.execution = description.run_id
        if self.fold and self.fold.last_event < description.history_length:
            await self._read(self.execution, wait=False)

    async def _read(self, execution: str, *, wait: bool) -> None:
        """Read what is new of an execution; with `wait`, until it is over."""
        handle = self.connection.client.get_workflow_handle(self.run_id, run_id=execution or None)
        limit = None if wait else timedelta(seconds=LOOK_SECONDS)
        async for event in handle.fetch_history_events(wait_new_event=wait, rpc_timeout=limit):
            async with self._turn:
                if self.fold is None or execution != self.execution:
                    return
                await self.fold.take(event)
                self.changed.set()

    # ------------------------------------------------------------ what the server alone knows

    def _stuck(self, description: WorkflowExecutionDescription) -> str:
        """Return why no worker can take the run's next step; empty if it is not known to be
        stuck.
        """
        failed = description.raw_description.pending_workflow_task.attempt - 1
        why = self.fold.task_failure if self.fold else ""
        # The server counts from one again when something comes in meanwhile.
        failed = max(failed, 1 if why else 0)
        if failed < (1 if NONDETERMINISM in why else STUCK_ATTEMPTS):
            return ""
        often = f"{failed} time{'s' * (failed != 1)}"
        return (
            f"the run is stuck: its next step failed {often}{f' ({why})' * bool(why)};"
            f" why, and what frees it: {to_type('reset', self.run_id)}"
        )

    async def _notes(self, description: WorkflowExecutionDescription) -> tuple[str, ...]:
        """Return why the run does not go on as fast as it could."""
        raw = description.raw_description
        if self.held_up:
            return self.held_up
        converter = self.connection.client.data_converter
        again = [each for each in raw.pending_activities if _failed(each)]
        return tuple([await describe_again(each, converter) for each in again])


def _failed(activity: PendingActivityInfo) -> bool:
    waits = activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return waits and activity.attempt > 1 and bool(activity.last_failure.message)


async def describe_again(activity: PendingActivityInfo, converter: DataConverter) -> str:
    if loss_in(activity.last_failure) == "silent":
        why = "its worker was not heard of for too long"
    else:
        why = (await failure_message(converter, activity.last_failure))[:200]
    return f"{activity.activity_id} is tried again: {why}"


async def describe_run(
    connection: Connection, run_id: str, limit: timedelta | None = None
) -> WorkflowExecutionDescription:
    """Return what the server says of a run. Raise NoSuchRun where there is none: also for an agent
    of one, and for other workflows of the namespace, which are not ours.
    """
    try:
        found = await connection.handle(run_id).describe(rpc_timeout=limit or ANSWER_TIME)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_such_run(run_id) from error
        raise
    if found.workflow_type == AGENT:
        raise NoSuchRun(agent_of(found))
    if found.workflow_type != WORKFLOW:
        raise no_such_run(run_id)
    return found


def agent_of(description: WorkflowExecutionDescription) -> str:
    """Return what to say of a workflow that is only an agent of a run."""
    run_id = description.parent_id or ""
    shown = to_type("show", run_id)
    return f"{description.id} is an agent of {run_id}, no run; its run shows it: {shown}"


def no_such_run(run_id: str) -> NoSuchRun:
    """Return the refusal of an unknown id."""
    return NoSuchRun(f"no run {run_id!r}; `list` shows the runs there are")
