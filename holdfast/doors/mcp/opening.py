"""The connection of a door, opened behind its back: a host wants its first answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from holdfast.client.connecting import opened
from holdfast.client.holdfast import Holdfast
from holdfast.deployment.settings import Settings
from holdfast.errors import Unreachable
from holdfast.intake.connection import Connection

OPEN_SECONDS = 22.0
"""How long one call waits for the connection."""
Opener = Callable[[], AbstractAsyncContextManager[Connection]]


class Opening:
    """A connection that a task of its own opens and holds; after a failure the next call tries
    again.
    """

    def __init__(self, settings: Settings, opener: Opener) -> None:
        self.settings = settings
        self._opener = opener
        self._found: asyncio.Future[Holdfast] | None = None
        self._holding: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, settings: Settings, *, embedded: bool = False) -> Opening:
        return cls(settings, lambda: opened(settings, embedded=embedded))

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Begin to open; close when the block is left."""
        self._begin()
        try:
            yield
        finally:
            if self._holding:
                self._holding.cancel()
                await asyncio.gather(self._holding, return_exceptions=True)
            if self._found and self._found.done() and not self._found.cancelled():
                self._found.exception()

    async def hf(self) -> Holdfast:
        """Return the open connection. Raise what opening it raised, or Unreachable if it takes
        long.
        """
        if self._found is None or (self._found.done() and self._found.exception()):
            self._begin()
        assert self._found is not None
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                return await asyncio.shield(self._found)
        except TimeoutError as error:
            raise Unreachable("the server of runs is still starting; call again") from error

    def _begin(self) -> None:
        self._found = asyncio.get_running_loop().create_future()
        self._holding = asyncio.create_task(self._hold(self._found))

    async def _hold(self, found: asyncio.Future[Holdfast]) -> None:
        try:
            async with self._opener() as connection:
                found.set_result(Holdfast.on(connection))
                await asyncio.Event().wait()
        except Exception as error:
            if not found.done():
                found.set_exception(error)
