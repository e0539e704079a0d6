"""Watching a run to its end. Worker, server and network may die meanwhile: the watcher waits, says
so, and goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text
from temporalio.client import (
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from cli import outcome
from cli.board import board, changes
from cli.connection import Connection
from cli.exits import Stop
from cli.screen import ERR, say_all
from orchestrator.view import RunView

POLL_SECONDS = 0.4
LOOK_SECONDS = 3.0
"""How long one request may take before the watcher says that nobody answers."""
FRAMES_PER_SECOND = 5
UNTOUCHED_EVENTS = 4
"""A history shorter than this has no finished workflow task: no worker has seen the run yet."""
STUCK_ATTEMPTS = 3
"""Failures of one workflow task after which its code, not the world, is at fault."""


class Progress(Protocol):
    """Where a watched run is shown."""

    def update(self, view: RunView | None, notes: tuple[str, ...]) -> None:
        """Show the latest view; None keeps the one before. `notes` are the watcher's own."""
        ...


@dataclass
class LiveBoard:
    """The board, redrawn in place. Between two views the clocks of running subtasks go on."""

    view: RunView | None = None
    notes: tuple[str, ...] = ()

    def update(self, view: RunView | None, notes: tuple[str, ...]) -> None:
        self.view = view or self.view
        self.notes = notes

    def frame(self) -> RenderableType:
        """What the screen shows right now."""
        if self.view is None:
            return Text(" · ".join(("starting", *self.notes)), style="bold")
        shown = board(self.view, at=datetime.now(UTC), notes=self.notes, width=ERR.width)
        # The terminal echoes Ctrl-C where the cursor is: on an empty line it cannot break one.
        return Group(shown, Text(""))


@dataclass
class Lines:
    """One plain line for each change: for logs, pipes and screens that cannot redraw."""

    only_notes: bool = False
    """Whether the run itself is shown in another way."""
    view: RunView | None = None
    notes: tuple[str, ...] = ()

    def update(self, view: RunView | None, notes: tuple[str, ...]) -> None:
        if view and not self.only_notes:
            say_all(changes(self.view, view, at=datetime.now(UTC)))
            self.view = view
        say_all(f"! {note}" for note in notes if note not in self.notes)
        self.notes = notes


@contextmanager
def progress() -> Iterator[Progress]:
    """A live board in a terminal, which stays on screen in its last state; plain lines
    elsewhere.
    """
    if not ERR.is_terminal:
        yield Lines()
        return
    live_board = LiveBoard()
    live = Live(
        console=ERR,
        get_renderable=live_board.frame,
        refresh_per_second=FRAMES_PER_SECOND,
        transient=True,
    )
    try:
        with live:
            yield live_board
    finally:
        if live_board.view:
            ERR.print(board(live_board.view, width=ERR.width))
            ERR.print()


@dataclass(frozen=True)
class Look:
    """What one look at a run found."""

    closed: WorkflowExecutionStatus | None = None
    view: RunView | None = None
    notes: tuple[str, ...] = ()


async def follow(connection: Connection, run_id: str, shown: Progress) -> outcome.Ended:
    """Show a run until it closes; how it ended. Stop if there is no such run."""
    look = await watch(connection, run_id, shown, lambda _: False)
    assert look.closed is not None
    return await outcome.read(connection, run_id, look.closed)


async def watch(
    connection: Connection, run_id: str, shown: Progress, until: Callable[[RunView], bool]
) -> Look:
    """Show a run until it closes or has come to a point; the last look at it."""
    while True:
        look = await look_at(connection, run_id)
        shown.update(look.view, look.notes)
        if look.closed or (look.view and until(look.view)):
            return look
        await asyncio.sleep(POLL_SECONDS)


async def look_at(connection: Connection, run_id: str) -> Look:
    """The state of a run now, as far as server and worker answer. Stop if there is no such run."""
    handle = connection.handle(run_id)
    limit = timedelta(seconds=LOOK_SECONDS)
    trouble = (connection.trouble,) if connection.trouble else ()
    try:
        description = await handle.describe(rpc_timeout=limit)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_such_run(run_id) from error
        return Look(notes=(f"server at {connection.target.address} gone, waiting", *trouble))
    running = description.status is WorkflowExecutionStatus.RUNNING
    closed = None if running else description.status
    try:
        view = await handle.query("view", result_type=RunView, rpc_timeout=limit)
    except (RPCError, WorkflowQueryFailedError):
        return Look(closed=closed, notes=(_unanswered(description), *trouble))
    return Look(closed=closed, view=view, notes=trouble)


def _unanswered(description: WorkflowExecutionDescription) -> str:
    """Why the run does not answer, from what the server alone knows."""
    raw = description.raw_description
    if raw.pending_workflow_task.attempt > STUCK_ATTEMPTS:
        return (
            "the supervisor's code keeps failing; the Web UI shows the error, a fixed worker heals"
        )
    if description.history_length < UNTOUCHED_EVENTS:
        return "waiting for a worker"
    flying = sorted(each.activity_id for each in raw.pending_activities)
    return "worker gone, waiting" + (f"; in flight: {', '.join(flying)}" if flying else "")


def no_such_run(run_id: str) -> Stop:
    """The refusal of an unknown id."""
    return Stop(f"no run {run_id!r}; `list` shows the runs there are")
