"""A journal whose answers outlive their machine: the store of the deployment has them as well."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from temporalio import activity

from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.journal import dump_entry, load_entry
from holdfast.errors import MissingKey, Undecipherable
from holdfast.ports import Journal, Store

PATIENCE = (5.0, 120.0)
"""Seconds that an answer waits to be in the store, at least, and at most if its call has them."""
MARGIN = 10.0
"""Seconds that a call keeps of them, to report its answer."""
PAUSE = 1.0
"""Between two tries to write an answer."""
LATE = 3.0
"""Seconds in which the answer to a call of another machine may still come to be there."""
UNWRITTEN = 500
"""Answers that wait to be written, at most: more are on this machine alone."""

logger = logging.getLogger(__name__)


def is_first(key: str) -> bool:
    """True for a call of the running activity on its first attempt: nobody can have asked it
    before.
    """
    if not activity.in_activity():
        return False
    info = activity.info()
    place = f"{info.workflow_namespace}/{info.workflow_id}/{info.workflow_run_id}"
    return info.attempt == 1 and key.startswith(f"{place}/{info.activity_id}/")


class SharedJournal:
    """Implements `Journal`: one on this machine, with its answers in the store as well.

    An answer costs one request to the store, and one to look for it only where another machine may
    have asked. That a call was sent stays with its machine: an attempt's heartbeats tell that to
    the next one.
    """

    def __init__(
        self, own: Journal, store: Store, is_new: Callable[[str], bool] = is_first
    ) -> None:
        self._own, self._store, self._is_new = own, store, is_new
        self._writing: set[asyncio.Task[None]] = set()

    @property
    def place(self) -> int:
        return self._own.place

    async def sent(self, key: str) -> bool:
        return await self._own.sent(key)

    async def mark_sent(self, key: str) -> None:
        await self._own.mark_sent(key)

    async def withdraw(self, key: str) -> None:
        await self._own.withdraw(key)

    async def answer(self, key: str) -> str | None:
        """Return the recorded answer, of whatever machine. OSError if the store cannot tell."""
        found = await self._own.answer(key)
        if found is not None or self._is_new(key):
            return found
        found = await self._look(key)
        if found is None and activity.in_activity() and Past.read().sent:
            await asyncio.sleep(LATE)
            found = await self._look(key)
        return found

    async def _look(self, key: str) -> str | None:
        try:
            kept = await self._store.read(_name_of(key))
            return None if kept is None else load_entry(kept)
        except MissingKey:
            raise
        except (ValueError, Undecipherable) as error:
            logger.warning("%s in the store counts as none: %s", _name_of(key), error)
            return None

    async def record(self, key: str, answer: str) -> None:
        """Record the answer here and, at the same time, in the store.

        While the store is away the call waits, for as long as it has time: another attempt, which
        may be elsewhere, would not find what is paid. Afterwards it is written as soon as the store
        takes it, while this process lives.
        """
        writing = asyncio.create_task(self._write(key, answer))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await self._own.record(key, answer)
        clock = asyncio.get_running_loop().time
        until = clock() + _seconds_left()
        while not writing.done() and clock() < until and not _is_cut():
            await asyncio.wait({writing}, timeout=0.5)

    async def _write(self, key: str, answer: str) -> None:
        told = False
        while True:
            try:
                await self._store.write(_name_of(key), dump_entry(answer))
                return
            except OSError as error:
                if not told:
                    logger.warning("an answer is on this machine alone so far: %s", error)
                if len(self._writing) > UNWRITTEN:
                    return
            told = True
            await asyncio.sleep(PAUSE)


def _seconds_left() -> float:
    """Return how long an answer may wait to be in the store."""
    least, most = PATIENCE
    if not activity.in_activity():
        return least
    info = activity.info()
    if info.start_to_close_timeout is None:
        return least
    gone = datetime.now(UTC) - info.started_time
    return max(least, min(most, (info.start_to_close_timeout - gone).total_seconds() - MARGIN))


def _is_cut() -> bool:
    return activity.in_activity() and activity.is_cancelled()


def _name_of(key: str) -> str:
    return f"journal/{hashlib.sha256(key.encode()).hexdigest()}.answer"
