"""Watching a run to its end. Worker, server and network may die meanwhile: the watcher waits, says
so, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from holdfast.cli.screen.board import board, changes
from holdfast.cli.screen.streams import ERR, say_all
from holdfast.client.ended import Ended, read_end
from holdfast.client.reading import Look, Reader
from holdfast.contracts.view import RunView
from holdfast.intake.connection import Connection

FRAMES_PER_SECOND = 5


class Display(Protocol):
    """A place that shows a watched run."""

    def update(self, view: RunView | None, notes: tuple[str, ...]) -> None:
        """Show the latest view (None: keep the one before) and the watcher's own `notes`."""
        ...


@dataclass
class LiveBoard:
    """The board, redrawn in place; between two views the clocks of running subtasks go on."""

    view: RunView | None = None
    notes: tuple[str, ...] = ()

    def update(self, view: RunView | None, notes: tuple[str, ...]) -> None:
        self.view = view or self.view
        self.notes = notes

    def frame(self) -> RenderableType:
        """Return what the screen shows right now."""
        if self.view is None:
            return Text(" · ".join(("starting", *self.notes)), style="bold")
        now, width = datetime.now(UTC), ERR.width
        shown = board(self.view, at=now, notes=self.notes, width=width, brief=True)
        # The terminal echoes Ctrl-C where the cursor is: on an empty line it cannot break one.
        return Group(shown, Text(""))


@dataclass
class Lines:
    """One plain line for each change: for logs, pipes and screens that cannot redraw."""

    only_notes: bool = False
    """True if the run itself is shown in another way."""
    view: RunView | None = None
    notes: tuple[str, ...] = ()

    def update(self, view: RunView | None, notes: tuple[str, ...]) -> None:
        if view and not self.only_notes:
            say_all(changes(self.view, view, at=datetime.now(UTC)))
            self.view = view
        say_all(f"! {note}" for note in notes if note not in self.notes)
        self.notes = notes


@contextmanager
def display() -> Iterator[Display]:
    """Yield a live board on a terminal, which stays in its last state, and plain lines
    elsewhere.
    """
    if not ERR.is_terminal or ERR.is_dumb_terminal:
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


async def follow(connection: Connection, run_id: str, shown: Display) -> Ended:
    """Show a run until it closes; return how it ended. Exit if there is no such run."""
    return read_end(run_id, await watch(connection, run_id, shown, lambda _: False))


async def watch(
    connection: Connection,
    run_id: str,
    shown: Display,
    until: Callable[[RunView], bool],
    *,
    while_stuck: bool = True,
) -> Look:
    """Show a run until it closes or `until` is true of it; return the last look.

    If not `while_stuck`, also return once only a person can make it go on.
    """
    async with aclosing(Reader(connection, run_id).looks()) as looks:
        async for look in looks:
            view = look.view
            lost = (look.losses,) if look.losses and not look.closed else ()
            shown.update(view, (*look.notes, *lost))
            if look.closed or (view and until(view)) or (look.stuck and not while_stuck):
                return look
    raise AssertionError("looks end with a closed run")


async def look_at(connection: Connection, run_id: str) -> Look:
    """Return the state of a run now, as far as the server answers. Exit if there is no such run."""
    return await Reader(connection, run_id).look()
