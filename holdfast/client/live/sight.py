"""Read what the live page can show of its run now: the run as it stands, or as it was seen last,
and why there is nothing newer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus

from holdfast.client.doing import Turns
from holdfast.client.ended import read_end
from holdfast.client.reading import Look, Reader
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection

LOOK_SECONDS = 2.0
"""How long a page waits for the server before it is shown as it was."""
WHY = "it was deleted, or the server was started with another state"


@dataclass(frozen=True)
class Sight:
    """A page to show, and the status of the response."""

    look: Look | None
    """The run; None: it was never seen."""
    status: HTTPStatus = HTTPStatus.OK
    away: str = ""
    """Why this view is out of date; empty: it is current."""

    @property
    def final(self) -> bool:
        """True if nothing else will ever be shown as long as the page is served."""
        closed = self.look is not None and self.look.closed is not None
        return closed or self.status in (HTTPStatus.GONE, HTTPStatus.NOT_FOUND)


@dataclass
class Sights:
    """Looks at one run, and remembers what it saw last."""

    connection: Connection
    run_id: str
    _last: Look | None = None
    _at: str = ""
    """When that was, for people."""
    _looking: asyncio.Task[Look] | None = None

    def __post_init__(self) -> None:
        self._reader = Reader(self.connection, self.run_id)
        self._turns = Turns(self.connection, self.run_id)

    async def next(self) -> Sight:
        try:
            look = await self._look()
        except HoldfastError as error:
            if self._last is None:
                return self._old(HTTPStatus.NOT_FOUND, str(error))
            return self._old(HTTPStatus.GONE, f"there is no run {self.run_id} any more: {WHY}")
        if look.away:
            return self._old(HTTPStatus.SERVICE_UNAVAILABLE, "; ".join(look.notes))
        if look.state is None:
            return self._not_begun(look)
        if not look.closed:
            await self._reader.find_doing()
        turns = await self._turns.of(look.steps)
        below = self._reader.paused_below
        look = replace(look, doing=self._reader.doing, paused_below=below, turns=turns)
        self._last, self._at = look, f"{datetime.now().astimezone():%H:%M:%S}"
        return Sight(look)

    async def leave(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> Look:
        """Return a look that does not keep a reader waiting: the client tries again for ten seconds
        and more while a server is away. It must not be cut, so the next look goes on with it.
        """
        if self._looking is None:
            self._looking = asyncio.create_task(self._reader.look())
        await asyncio.wait({self._looking}, timeout=LOOK_SECONDS)
        if not self._looking.done():
            address = self.connection.target.address
            return Look(notes=(f"the server at {address} does not answer",), away=True)
        found, self._looking = self._looking, None
        return found.result()

    def _old(self, status: HTTPStatus, why: str) -> Sight:
        shown = f". This is how the run was seen last, at {self._at}." if self._last else "."
        return Sight(self._last, status, f"{_upper(why)}{shown}")

    def _not_begun(self, look: Look) -> Sight:
        if look.closed:
            return Sight(look, away=f"{_upper(read_end(self.run_id, look).reason)}.")
        said = "; ".join((f"The run {look.blank}", *look.notes))
        return Sight(look, HTTPStatus.SERVICE_UNAVAILABLE, f"{said}.")


def _upper(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}"
