"""The events of a run as they happen, by server-sent events.

The id of each is its place in the run's history, so `Last-Event-ID` takes a stream up anywhere, for
ever, at any replica of this server, and nothing is kept for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import structlog
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.client.events import Place
from holdfast.client.runs import Run
from holdfast.doors.http import ag_ui
from holdfast.doors.http.problems import Problem
from holdfast.errors import HoldfastError

PING_SECONDS = 15
MOST_STREAMS = 200
FORMATS = ("holdfast", "ag-ui")
log = structlog.get_logger("holdfast.http")


class Sent(ServerSentEvent):
    """An event whose lines end as a shell's tools expect."""

    DEFAULT_SEPARATOR = "\n"


@dataclass
class Streams:
    """The streams that are open."""

    count: int = 0

    async def respond(
        self, request: Request, events: AsyncIterator[ServerSentEvent], *, over: bool
    ) -> Response:
        """Return the stream of these events, until the caller's token is revoked; 204 if the run is
        `over` and there are none, after which a browser does not ask again.
        """
        if over:
            left = [each async for each in events]
            if not left:
                return Response(status_code=204)
            events = _each(left)
        if self.count >= MOST_STREAMS:
            raise Problem("too_many", f"{MOST_STREAMS} streams are open", Retry_After="10")
        return _Counted(
            self,
            self._until_revoked(events, request.state.still),
            ping=PING_SECONDS,
            headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
            sep=Sent.DEFAULT_SEPARATOR,
        )

    async def _until_revoked(
        self, events: AsyncIterator[ServerSentEvent], still: Callable[[], bool]
    ) -> AsyncIterator[ServerSentEvent]:
        try:
            async with aclosing(events) as these:  # type: ignore[type-var]
                async for each in these:
                    if not still():
                        return
                    yield each
        except HoldfastError as error:
            # Whoever comes back with the last id is told why.
            log.warning("stream ended", why=str(error))


class _Counted(EventSourceResponse):
    """A stream that counts from when it is promised: many may be asked for before one begins."""

    def __init__(self, streams: Streams, *of: Any, **how: Any) -> None:
        super().__init__(*of, **how)
        self._streams = streams
        streams.count += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.count -= 1


def events_of(run: Run, request: Request) -> AsyncIterator[ServerSentEvent]:
    """Return the events behind the one that the request names, in the format that it asks for.
    Raise Problem or Refused.
    """
    after = request.headers.get("last-event-id", "") or request.query_params.get("after", "")
    form = request.query_params.get("format", FORMATS[0])
    if form not in FORMATS:
        raise Problem("bad_input", f"format: give {' or '.join(FORMATS)}")
    if form == "ag-ui":
        return _of_ag_ui(run, ag_ui.Seen.of(after))
    if after:
        Place.parse(after)
    return _own(run, after)


async def _own(run: Run, after: str) -> AsyncIterator[ServerSentEvent]:
    async for event in run.events(after):
        yield Sent(event.model_dump_json(), event=event.kind, id=event.id)


async def _of_ag_ui(run: Run, seen: ag_ui.Seen) -> AsyncIterator[ServerSentEvent]:
    async for id, event in ag_ui.retell(run, ag_ui.Story(run.id, run.id), seen):
        text = event.model_dump_json(by_alias=True)
        yield Sent(text, id=id)


async def _each(events: list[ServerSentEvent]) -> AsyncIterator[ServerSentEvent]:
    for each in events:
        yield each
