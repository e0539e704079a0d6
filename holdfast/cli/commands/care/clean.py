"""`clean`: what this deployment keeps on disk and nobody needs, shown first and then removed."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import agrees, at_terminal, draw, say
from holdfast.cli.shared.connection import connect_command
from holdfast.cli.shared.options import Embedded
from holdfast.client.connecting import configured_target
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.embedded.server import RETENTION
from holdfast.errors import EmbeddedError, Undecipherable, Unreachable
from holdfast.storage import DirectoryStore, Store
from holdfast.storage.references import find_needed
from holdfast.temporal.connection import Target
from holdfast.upkeep import cleaning
from holdfast.upkeep.cleaning import BY_RULE, Kind, Needed


def command(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    embedded: Embedded = False,
) -> int:
    """Remove what no run needs any more from store, journal, reports, edits and snapshots."""
    return asyncio.run(run(Settings(), yes=yes, only_embedded=embedded))


async def run(settings: Settings, *, yes: bool, only_embedded: bool) -> int:
    """Show what may go, ask, and remove it."""
    target, found = await _find_needed(settings, only_embedded)
    unused = _unused(target)
    kinds = await asyncio.to_thread(
        cleaning.list_kinds, settings, target, found, unused, time.time()
    )
    draw(_table(kinds))
    going = [item for kind in kinds for item in kind.going]
    if not going:
        say("Nothing to remove.")
        return Code.COMPLETE
    if not yes and not await _confirm(len(going)):
        return Code.COMPLETE
    gone = await asyncio.to_thread(lambda: [item for kind in kinds for item in kind.remove_all()])
    say(f"Removed {len(gone)} ({_megabytes(cleaning.total_size(gone))}).")
    return Code.COMPLETE


async def _find_needed(settings: Settings, only_embedded: bool) -> tuple[Target, Needed]:
    """Return the deployment and what its server says is needed, or why that cannot be known."""
    try:
        async with connect_command(settings, embedded=only_embedded) as connection:
            return connection.target, await _ask(connection.client, connection.store)
    except (EmbeddedError, Unreachable) as error:
        return _target(settings, only_embedded), f"the server's runs cannot be read: {error}"


async def _ask(client: Client, store: Store) -> Needed:
    if not isinstance(store, DirectoryStore):
        return BY_RULE
    say("Reading what the server's runs refer to …", "dim")
    try:
        found, runs = await find_needed(client, store)
    except (RPCError, Undecipherable) as error:
        return f"the server's runs cannot be read: {error}"
    say(f"{runs} runs need {len(found)} blobs.", "dim")
    return found


def _target(settings: Settings, only_embedded: bool) -> Target:
    """Return the deployment without its server."""
    if settings.uses_own_server and not only_embedded:
        return configured_target(settings)
    state = StateDir.of(settings)
    endpoint = state.endpoint()
    if endpoint:
        return endpoint.target
    return Target("", store_url=state.store.as_uri(), key_file=settings.key_file)


def _unused(target: Target) -> timedelta:
    """Return for how long a blob must have been unused: a day, which spares what a starting run has
    put; longer beside a server of one's own, whose store may have other users.
    """
    return cleaning.DAY if target.embedded else RETENTION


async def _confirm(count: int) -> bool:
    if not at_terminal():
        say("Nothing was removed; --yes removes it.")
        return False
    return await agrees(f"Remove {count}?")


def _table(kinds: tuple[Kind, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("", "goes", "stays"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    table.add_column("", overflow="fold")
    for kind in kinds:
        going, staying = (
            Text(f"{len(items)} ({_megabytes(cleaning.total_size(items))})")
            for items in (kind.going, kind.staying)
        )
        table.add_row(Text(kind.name), going, staying, Text(kind.why, style="magenta"))
    return table


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
