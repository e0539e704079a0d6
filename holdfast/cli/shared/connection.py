"""The connection of a command: what takes long, and what was found, is printed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from holdfast.cli.screen.patience import patience
from holdfast.cli.screen.streams import say
from holdfast.client import connecting
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection


def with_connection(
    settings: Settings, embedded: bool, do: Callable[[Connection], Coroutine[Any, Any, int]]
) -> int:
    """Run a command with a connection; return its exit code."""

    async def done() -> int:
        async with connect_command(settings, embedded=embedded) as connection:
            return await do(connection)

    return asyncio.run(done())


def connect_command(
    settings: Settings, *, embedded: bool
) -> AbstractAsyncContextManager[Connection]:
    """Return a connection for one command."""
    return connecting.opened(settings, embedded=embedded, tell=tell, waiting=patience)


def tell(line: str, *, warning: bool = False) -> None:
    """Print what is said to whoever waits."""
    say(line, "magenta" if warning else "dim")


async def announce(connection: Connection, run_id: str) -> None:
    """Print the run's id and where to watch its board in a browser."""
    say(f"Run: {run_id}", "bold")
    await say_where(connection, run_id)


async def say_where(connection: Connection, run_id: str) -> None:
    """Print where the Web UI shows a run's board, if its address is known."""
    if link := await connection.board(run_id):
        say(f"Web UI: {link}")
