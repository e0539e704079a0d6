"""The Messages API behind `Model`: one exchange, always streamed, never retried here.

Trying again is Temporal's when nothing was paid and the ledger's when something may have been, so
that no retry is invisible or unpaid-for. What differs between endpoints is in `shape`, what a
failure means in `classify`, what arrives in `Transcript`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2

from holdfast.activities.asking.patience import Patience, finish
from holdfast.activities.claude.answering import answer_of
from holdfast.activities.claude.batches import ClaudeBatches
from holdfast.activities.claude.classify import NO_SUCH_PATH, NOBODY_HOME
from holdfast.activities.claude.clients import Clients
from holdfast.activities.claude.endpoint import explain_unreached, make_client
from holdfast.activities.claude.failures import CUT, Exchange, Failures
from holdfast.activities.claude.heard import Heard
from holdfast.activities.claude.passage import BYTES_FOR_A_TOKEN, ROOM, Passage, events, under_way
from holdfast.activities.claude.stream import MOST_BYTES_PER_TOKEN, StreamError
from holdfast.activities.claude.wire import countable, most_tokens, shape
from holdfast.deployment.address import OFFICIAL, address_of, withheld_of
from holdfast.ports import ModelAnswer, ModelRequest, PriceOf
from holdfast.untrusted.known_secrets import KnownSecrets

STALL_SECONDS = 60.0
"""The longest silence between two bytes; pings count, so long thinking is no stall."""
CONNECT_SECONDS = 5.0
POOL_SECONDS = 10.0
COUNT_SECONDS = 10.0
MODELS_SECONDS = 10.0
"""How long the list of models may take, which shows that the endpoint answers."""
DRAIN_SECONDS = 0.5
CONNECTIONS = 1_000
NOT_REACHED = (502, 504, *NOBODY_HOME)
HEAVY_BYTES = 2**14
"""Bytes of a text beyond which it is read in a thread: the event loop serves every call."""


class Claude:
    """Implements `Model`. One instance per worker process, used from one event loop."""

    def __init__(
        self,
        *,
        key: str = "",
        base_url: str = "",
        price: PriceOf,
        known: KnownSecrets | None = None,
        stall_seconds: float = STALL_SECONDS,
        pool_seconds: float = POOL_SECONDS,
        connections: int = CONNECTIONS,
        heard: Path | None = None,
    ) -> None:
        """`price` prices the bills of failed calls. `known` are the secrets that no message of an
        endpoint is repeated with: at least the key and what the address carries.
        """
        self._base_url = base_url or OFFICIAL
        self._known = known or KnownSecrets((key, *withheld_of(base_url)))
        self._heard = Heard(address_of(self._base_url), heard)
        self._failures = Failures(self._known, self._base_url, price, self._heard)
        self._stall = stall_seconds
        # Silence is `Patience`'s: the transport's own timeouts do not know that the process slept.
        self._timeout = httpx2.Timeout(
            None, connect=min(CONNECT_SECONDS, stall_seconds), pool=pool_seconds
        )
        self._clients = Clients(
            lambda most: make_client(key, self._base_url, self._timeout, most), connections
        )
        self._drains: set[asyncio.Task[None]] = set()
        self.batches = ClaudeBatches(self._clients, self._failures, self._known)

    @property
    def address(self) -> str:
        """The endpoint's address, without user, password and query."""
        return address_of(self._base_url)

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Send, and return the whole answer. Raises the errors of `Model` and no others."""
        body = shape(request, request.capabilities)
        patience = Patience(self._stall, request.deadline_seconds)
        most_bytes = ROOM + BYTES_FOR_A_TOKEN * request.max_output
        passage = Passage(most_bytes, patience.moved, request.heard)
        exchange = Exchange(request, most_tokens(countable(body)), passage)
        request.so_far.read = lambda: self._known.blot(exchange.transcript.text)
        try:
            async with patience:
                with self._failures.translate(exchange), under_way(passage):
                    await self._send(body, exchange)
        except TimeoutError:
            if not exchange.transcript.complete:
                raise self._failures.cut(exchange, patience.why, late=patience.over) from None
        except asyncio.CancelledError:
            if not passage.left:
                raise
            if not exchange.transcript.complete:
                raise self._failures.cut(exchange, CUT) from None
        finally:
            if passage.status and passage.status not in NO_SUCH_PATH:
                self._heard.note()
        # A complete answer is paid: it is returned even if the cut came in the same moment.
        if exchange.transcript.seen_bytes < HEAVY_BYTES:
            return _answer(exchange, self._known)
        return await finish(asyncio.to_thread(_answer, exchange, self._known))

    async def count_tokens(self, request: ModelRequest) -> int:
        """Return the input tokens of a request: counted by the endpoint where it can, else as many
        as bytes.

        An endpoint's count is taken only if it is possible: not above that, nor below 8 bytes a
        token.
        """
        body = countable(shape(request, request.capabilities))
        most = most_tokens(body)
        if not request.capabilities.token_counting:
            return most
        counted: object = None
        # Counting is a courtesy: without it the bytes bound the price just as safely.
        with suppress(Exception):
            async with asyncio.timeout(COUNT_SECONDS):
                with under_way(Passage()), self._clients.borrow() as client:
                    counted = await client.messages.count_tokens(**body)
        # What is not JSON arrives as a string.
        tokens = getattr(counted, "input_tokens", None)
        if type(tokens) is not int or not 0 < tokens <= most:
            return most
        return max(tokens, most // MOST_BYTES_PER_TOKEN)

    async def reach(self) -> str:
        """Ask for the list of models, which is free. Return why the endpoint is out of reach; empty
        if it answers, whatever it says.
        """
        passage = Passage()
        why = ""
        try:
            async with asyncio.timeout(MODELS_SECONDS):
                with under_way(passage), self._clients.borrow() as client:
                    await client.get("/v1/models?limit=1", cast_to=object)
        except TimeoutError:
            why = f"no answer within {MODELS_SECONDS:g} s"
        except Exception as error:
            why = explain_unreached(error.__cause__ or error)[0]
        if passage.status and passage.status not in NO_SUCH_PATH:
            self._heard.note()
        if passage.status in NOT_REACHED:
            return f"status {passage.status}"
        return "" if passage.status else why

    async def aclose(self) -> None:
        """Close the connections; the instance may be used again in another event loop."""
        drains, self._drains = self._drains, set()
        await asyncio.gather(*drains)
        await self._clients.aclose()

    async def _send(self, body: dict[str, Any], exchange: Exchange) -> None:
        transcript = exchange.transcript
        async with AsyncExitStack() as stack:
            client = stack.enter_context(self._clients.borrow())
            api = client.messages.with_streaming_response
            response = await stack.enter_async_context(api.create(**body, timeout=self._timeout))
            raw = response.http_response
            if "json" in raw.headers.get("content-type", ""):
                transcript.load((await raw.aread()).decode("utf-8"))
            else:
                arriving, writing = events(raw.aiter_bytes()), False
                async for event, data in arriving:
                    transcript.feed(event, data)
                    if transcript.writing and not writing:
                        writing = True
                        exchange.request.begins()
                    if transcript.complete:
                        self._drain_later(stack.pop_all(), arriving)
                        break
        if not transcript.complete:
            form = raw.headers.get("content-type", "") or "of no type"
            nothing = f"what came back is not a message ({form[:100]})"
            ended = "the answer ended before its message was complete"
            raise StreamError("", ended if transcript.begun else nothing)

    def _drain_later(self, open: AsyncExitStack, arriving: AsyncIterator[object]) -> None:
        """Read what follows a complete message, so that the connection can be used again; the
        answer does not wait for it.
        """
        drain = asyncio.create_task(_drain(open, arriving))
        self._drains.add(drain)
        drain.add_done_callback(self._drains.discard)


async def _drain(open: AsyncExitStack, arriving: AsyncIterator[object]) -> None:
    # Nothing depends on it any more.
    with suppress(Exception):
        async with open, asyncio.timeout(DRAIN_SECONDS):
            async for _ in arriving:
                pass


def _answer(exchange: Exchange, known: KnownSecrets) -> ModelAnswer:
    return answer_of(exchange.request, exchange.transcript, exchange.usage, known)
