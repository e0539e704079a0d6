"""What a shell gets to complete: ids of runs and subtasks; playbooks, roles,
limits and tiers, for which no server is asked.

Looking for ids starts nothing, says nothing, and gives up after a second: a shell that hangs on a
key is worse than one that does not complete.

Shells evaluate what they are offered, and ids come from whoever starts a workflow and from what
models plan. So only ids of plain letters are offered, and no words beside them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

from holdfast.text import PLAIN_ID

if TYPE_CHECKING:
    # What looks is loaded when a shell asks: every command has options that can be completed.
    from holdfast.temporal.connection import Target

VARIABLE = "_HOLDFAST_COMPLETE"
"""What a shell sets to ask for completion. The name that typer makes of starter.py by itself has a
dot in it, which no shell can set.
"""
SECONDS = 1.0
MOST = 50
CAPS = ("dollars", "model_calls", "tokens")
Ids = list[str]


def prepare() -> None:
    """Let typer answer a shell that asks for completion; by itself it does so only where it
    installs completion.
    """
    if VARIABLE in os.environ:
        completion_init()


def words() -> list[str]:
    """Return the words that a shell asks to complete; none if no shell asks."""
    if VARIABLE not in os.environ:
        return []
    typed = os.environ.get("COMP_WORDS", "") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    given = typed.split()[1:]
    # A word that is still being typed names no command.
    return given if len(given) > 1 or typed.endswith((" ", "\n")) else []


def playbooks(incomplete: str) -> Ids:
    """Return the names of the usable playbooks."""
    from holdfast.activities.catalogue.catalogue import Catalogue
    from holdfast.deployment.settings import Settings

    return _offer(lambda: Catalogue.of(Settings().project).playbooks, incomplete)


def roles(incomplete: str) -> Ids:
    """Return the names of the roles that any plan may use."""
    from holdfast.activities.catalogue.catalogue import Catalogue
    from holdfast.deployment.settings import Settings

    return _offer(lambda: Catalogue.of(Settings().project).roles, incomplete)


def limits(incomplete: str) -> Ids:
    """Return the names of the limits, each followed by `=`."""
    from holdfast.contracts import Limits

    return [f"{name}=" for name in _offer(lambda: Limits.model_fields, incomplete)]


def caps(incomplete: str) -> Ids:
    """Return the names of the limits that can be raised during a run, each followed by `=`."""
    return [f"{name}=" for name in _offer(lambda: CAPS, incomplete)]


def approvals(incomplete: str) -> Ids:
    """Return when a plan may wait for a person, without amounts of dollars."""
    return _offer(lambda: ("always", "auto"), incomplete)


def _offer(look: Callable[[], Iterable[str]], incomplete: str) -> Ids:
    # Whatever is wrong with a file is said by the command itself, once it is given.
    with suppress(Exception):
        return sorted(n for n in look() if n.startswith(incomplete) and PLAIN_ID.fullmatch(n))
    return []


def run_ids(incomplete: str) -> Ids:
    """Return the ids of the newest runs."""
    return _look(lambda target: _runs(target, "", incomplete))


def open_run_ids(incomplete: str) -> Ids:
    """Return the ids of open runs."""
    return _look(lambda target: _runs(target, " AND ExecutionStatus = 'Running'", incomplete))


def subtask_ids(context: typer.Context, incomplete: str) -> Ids:
    """Return the ids of the subtasks of the run named before."""
    run_id = context.params.get("run_id")
    if not isinstance(run_id, str):
        return []
    return _look(lambda target: _subtasks(target, run_id, incomplete))


def _look(look: Callable[[Target], Awaitable[Ids]]) -> Ids:
    async def limited() -> Ids:
        target = _target()
        async with asyncio.timeout(SECONDS):
            return await look(target) if target else []

    # Whatever is wrong is said by the command itself, once it is given.
    with suppress(Exception):
        return [each for each in asyncio.run(limited()) if PLAIN_ID.fullmatch(each)]
    return []


def _target() -> Target | None:
    """Return the server that a command would use, if it is running."""
    from holdfast import embedded
    from holdfast.client.connecting import configured_target
    from holdfast.deployment.settings import Settings

    settings = Settings()
    if settings.uses_own_server:
        return configured_target(settings)
    status = embedded.status(settings)
    return status.endpoint.target if status.endpoint and status.server_pid else None


async def _runs(target: Target, which: str, incomplete: str) -> Ids:
    from holdfast.contracts.search import RUNS
    from holdfast.temporal.connection import connect, is_part

    client = await connect(target, SECONDS)
    found: Ids = []
    async for each in client.list_workflows(f"{RUNS}{which}", page_size=MOST, limit=MOST):
        if not is_part(each) and each.id.startswith(incomplete):
            found.append(each.id)
    return found


async def _subtasks(target: Target, run_id: str, incomplete: str) -> Ids:
    from holdfast.client.reading import Reader
    from holdfast.deployment.settings import Settings
    from holdfast.intake.connection import Connection
    from holdfast.temporal.connection import connect

    connection = Connection(Settings(), target, await connect(target, SECONDS))
    view = (await Reader(connection, run_id).look()).view
    rows = view.rows if view else ()
    return [row.id for row in rows if row.id.startswith(incomplete)]
