"""Removes once a day, beside a worker's work, what nobody needs any more."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.deployment.settings import Settings
from holdfast.embedded.server import RETENTION
from holdfast.embedded.state import StateDir
from holdfast.errors import Undecipherable
from holdfast.storage import DirectoryStore
from holdfast.storage.references import find_needed
from holdfast.temporal.connection import Target
from holdfast.upkeep import cleaning

LOOK_SECONDS = 3_600.0
"""How often it is asked whether a day has passed: a machine may have slept."""
log = logging.getLogger(__name__)


async def keep_clean(settings: Settings, target: Target, client: Client) -> None:
    """Forever: clean up when nobody has done so for a day, which may be at once. Nothing that goes
    wrong here ends a worker.
    """
    stamp = StateDir.of(settings).cleaned
    while True:
        try:
            if _due(settings, time.time()):
                stamp.touch(mode=0o600)
                await clean(settings, target, client)
        except Exception:
            log.exception("cleaning up failed; it is tried again in a day")
        await asyncio.sleep(LOOK_SECONDS)


async def clean(settings: Settings, target: Target, client: Client) -> None:
    """Remove what nobody needs; several workers may do so at once."""
    found: cleaning.Needed = cleaning.BY_RULE
    store = target.store
    try:
        if isinstance(store, DirectoryStore):
            found, _ = await find_needed(client, store)
    except (RPCError, Undecipherable) as error:
        found = str(error)
    await asyncio.to_thread(_remove, settings, target, found)


def _remove(settings: Settings, target: Target, found: cleaning.Needed) -> None:
    for kind in cleaning.list_kinds(settings, target, found, RETENTION, time.time()):
        gone = kind.remove_all()
        if gone:
            log.info("%s: removed %d, %d bytes", kind.name, len(gone), cleaning.total_size(gone))
        over = cleaning.total_size(kind.staying) - settings.keep_megabytes * 1_000_000
        if over > 0:
            log.warning("%s: %d bytes above HOLDFAST_KEEP_MEGABYTES are needed", kind.name, over)


def _due(settings: Settings, now: float) -> bool:
    with suppress(FileNotFoundError):
        last = StateDir.of(settings).cleaned.stat().st_mtime
        # A clock that was put back must not stop it for good.
        return not now - cleaning.DAY.total_seconds() < last <= now + LOOK_SECONDS
    return True
