"""Message Batches behind `Batches`: many requests in one, read when all of them have ended.

Bodies are put together and results read piece by piece, so that a batch of megabytes holds up no
other call. The address of results that the endpoint names is not followed: it may be another host.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

from anthropic._constants import RAW_RESPONSE_HEADER

from holdfast.activities.claude.answering import make_answer
from holdfast.activities.claude.clients import Clients
from holdfast.activities.claude.failures import Exchange, Failures
from holdfast.activities.claude.passage import BYTES_FOR_A_TOKEN, ROOM, Passage, under_way
from holdfast.activities.claude.stream import StreamError
from holdfast.activities.claude.wire import shape
from holdfast.contracts import Bill
from holdfast.contracts.errors import (
    BlobLost,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
)
from holdfast.ports import BatchResult, BatchState, ModelRequest
from holdfast.untrusted.known_secrets import KnownSecrets

PATH = "/v1/messages/batches"
CREATE_SECONDS = 180.0
"""How long a batch of megabytes may take to be taken."""
SECONDS = 30.0
"""The same for a look at one."""
SILENCE_SECONDS = 60.0
"""The longest silence between two lines of results."""
LISTED = 100
MOST_PAGES = 10
LINE_BYTES = 64 * 2**20
"""The longest line of results."""
AGAIN = timedelta(seconds=5)
MOST_SAID = 300
NEVER = ("invalid_request_error", "request_too_large", "not_found_error")
"""Errors of a request that it would meet again."""


class ClaudeBatches:
    """Implements `Batches` with the connections of `Claude`."""

    def __init__(self, clients: Clients, failures: Failures, known: KnownSecrets) -> None:
        self._clients = clients
        self._failures = failures
        self._known = known

    async def create(self, requests: Sequence[tuple[str, ModelRequest]]) -> str:
        """Make a batch. A status from 500 on may come from a gateway behind which it was made."""
        body = await asyncio.to_thread(_write, requests)
        about = requests[0][1]
        passage = Passage()
        try:
            with self._failures_of(about, passage):
                async with asyncio.timeout(CREATE_SECONDS):
                    with under_way(passage), self._clients.borrow() as client:
                        made: Any = await client.post(
                            PATH,
                            cast_to=object,
                            content=body,
                            options={
                                "headers": {"Content-Type": "application/json"},
                                "timeout": CREATE_SECONDS,
                            },
                        )
        except PossiblyBilled:
            raise
        except OrchestrationError as error:
            if passage.status >= 500 or (passage.left and not passage.status):
                raise PossiblyBilled(error.message, Bill(calls=0)) from None
            raise
        batch = made.get("id") if isinstance(made, dict) else None
        if not isinstance(batch, str) or not batch:
            raise PossiblyBilled("what came back is no batch", Bill(calls=0))
        return batch

    async def since(self, when: datetime) -> tuple[BatchState, ...]:
        """Return the batches made since, page by page until an older one is seen."""
        found: list[BatchState] = []
        after = ""
        for _ in range(MOST_PAGES):
            page = await self._get(
                f"{PATH}?limit={LISTED}" + (f"&after_id={after}" if after else "")
            )
            listed = [each for each in page.get("data") or () if isinstance(each, dict)]
            found += [_state(each) for each in listed if _created(each) >= when]
            after = str(page.get("last_id") or "")
            older = any(_created(each) < when for each in listed)
            if older or not listed or not page.get("has_more") or not after:
                break
        return tuple(found)

    async def look(self, batch: str) -> BatchState | None:
        """Return how a batch stands; None if the endpoint knows none."""
        try:
            return _state(await self._get(f"{PATH}/{batch}"))
        except BlobLost:
            return None

    async def cancel(self, batch: str) -> None:
        """Cancel a batch, unless it has ended by itself."""
        passage = Passage()
        try:
            with self._free(batch, passage):
                async with asyncio.timeout(SECONDS):
                    with under_way(passage), self._clients.borrow() as client:
                        await client.post(f"{PATH}/{batch}/cancel", cast_to=object)
        except (CallRefused, BlobLost):
            # It has ended, or there is none.
            return

    async def results(
        self, batch: str, request_of: Callable[[str], ModelRequest | None]
    ) -> AsyncGenerator[BatchResult]:
        """Yield what became of each request, and raise NotBilled if fewer came than it has."""
        standing = await self.look(batch)
        if standing is None:
            raise BlobLost(f"the endpoint knows no batch {batch}")
        if not standing.ended:
            raise NotBilled(f"batch {batch} has not ended", retry_after=AGAIN)
        seen = 0
        async for line in self._lines(batch, standing.rows):
            if not line.strip():
                continue
            seen += 1
            yield self._read(batch, line, request_of)
        if seen < standing.rows:
            said = f"{seen} of {standing.rows} results of batch {batch} came"
            raise NotBilled(said, retry_after=AGAIN)

    async def _lines(self, batch: str, rows: int) -> AsyncIterator[bytes]:
        most = ROOM + rows * (ROOM // 16 + BYTES_FOR_A_TOKEN * 1_000)
        passage = Passage(most_bytes=most)
        rest = bytearray()
        with self._free(batch, passage), self._clients.borrow() as client:
            with under_way(passage):
                response: Any = await client.get(
                    f"{PATH}/{batch}/results",
                    cast_to=object,
                    options={
                        "headers": {RAW_RESPONSE_HEADER: "stream"},
                        "timeout": SILENCE_SECONDS,
                    },
                )
            try:
                chunks = response.http_response.aiter_bytes()
                while True:
                    async with asyncio.timeout(SILENCE_SECONDS):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    rest.extend(chunk)
                    if len(rest) > LINE_BYTES:
                        raise StreamError("", "a line of results is too long")
                    *lines, last = bytes(rest).split(b"\n")
                    rest = bytearray(last)
                    for line in lines:
                        yield line
            finally:
                await response.close()
        if rest:
            yield bytes(rest)

    def _read(
        self, batch: str, line: bytes, request_of: Callable[[str], ModelRequest | None]
    ) -> BatchResult:
        """Return what one line says. Raise NotBilled if it is no whole one."""
        try:
            told = json.loads(line)
            id, result = str(told["custom_id"]), told["result"]
            kind = result["type"]
        except (ValueError, TypeError, KeyError, RecursionError):
            said = f"the results of batch {batch} came in pieces"
            raise NotBilled(said, retry_after=AGAIN) from None
        request = request_of(id)
        if kind == "succeeded" and request is not None:
            return BatchResult(id, make_answer(request, result.get("message"), self._known))
        error = _mapping(_mapping(result.get("error")).get("error"))
        said = " ".join(str(error.get(name) or "") for name in ("type", "message")).strip()
        why = self._known.blot(said[:MOST_SAID]) or str(kind)
        return BatchResult(id, why=why, invalid=str(error.get("type")) in NEVER)

    async def _get(self, path: str) -> Mapping[str, Any]:
        passage = Passage()
        with self._free(path, passage):
            async with asyncio.timeout(SECONDS):
                with under_way(passage), self._clients.borrow() as client:
                    found: object = await client.get(path, cast_to=object)
            if not isinstance(found, dict):
                raise StreamError("", "what came back is not JSON")
            return found

    @contextmanager
    def _free(self, what: str, passage: Passage) -> Iterator[None]:
        """Raise the errors of `Batches` for anything that costs nothing; what is not clear may be
        tried again. BlobLost for 404.
        """
        try:
            with self._failures_of(ModelRequest("batch", "", "", {}, 0), passage):
                yield
        except (NotBilled, BlobLost):
            raise
        except PossiblyBilled as error:
            raise NotBilled(error.message, retry_after=AGAIN) from None
        except (EndpointUnreachable, CallRefused) as error:
            if passage.status == 404:
                raise BlobLost(f"the endpoint knows no {what}") from None
            if isinstance(error, CallRefused) and passage.status < 400:
                raise NotBilled(error.message, retry_after=AGAIN) from None
            raise

    @contextmanager
    def _failures_of(self, request: ModelRequest, passage: Passage) -> Iterator[None]:
        exchange = Exchange(replace(request, attempt=1), 0, passage)
        try:
            with self._failures.translate(exchange):
                yield
        except TimeoutError:
            raise self._failures.cut(exchange, "time", late=True) from None


def _write(requests: Sequence[tuple[str, ModelRequest]]) -> bytes:
    """Return the body of a batch. It has megabytes, and is in memory once."""
    body = BytesIO()
    body.write(b'{"requests": [')
    for place, (id, request) in enumerate(requests):
        told = {"custom_id": id, "params": _params(request)}
        body.write(b"," if place else b"")
        body.write(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"))
    body.write(b"]}")
    return body.getvalue()


def _params(request: ModelRequest) -> dict[str, Any]:
    body = shape(request, request.capabilities)
    return {name: value for name, value in body.items() if name != "stream"}


def _state(told: Mapping[str, Any]) -> BatchState:
    counts = _mapping(told.get("request_counts"))
    numbers = {name: each for name, each in counts.items() if type(each) is int}
    return BatchState(
        id=str(told.get("id") or ""),
        ended=told.get("processing_status") == "ended",
        rows=sum(numbers.values()),
    )


def _created(told: Mapping[str, Any]) -> datetime:
    """Return when a batch was made; what says nothing of it may be as old as any."""
    try:
        return datetime.fromisoformat(str(told.get("created_at")))
    except ValueError:
        return datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
