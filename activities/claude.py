"""The Messages API behind the `Model` seam: one exchange, always streamed, never retried here.

Trying again is Temporal's when nothing was paid and the ledger's when something may have been, so
that no retry is invisible or unpaid-for. What differs between endpoints is in `shape`, what a
failure means in `classify`, what arrives in `Transcript`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import anthropic
import httpx2

from activities.classify import Phase, Verdict, classify
from activities.claude_endpoint import OFFICIAL, make_client
from activities.claude_stream import StreamError, Transcript
from activities.claude_wire import countable, extract_json, most_tokens, shape
from activities.seam import ModelAnswer, ModelRequest
from orchestrator.contracts import Bill, Usage
from orchestrator.errors import (
    AuthenticationRefused,
    CallRefused,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    SpendLimitReached,
)

STALL_SECONDS = 60.0
"""Between two bytes; pings count, so a model that thinks for minutes does not stall."""
CONNECT_SECONDS = 5.0
POOL_SECONDS = 10.0
COUNT_SECONDS = 10.0
DRAIN_SECONDS = 0.5
CONNECTIONS = 1_000
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
NEVER_VALID = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL)

Price = Callable[[str, Usage], Decimal | None]


@dataclass
class _Exchange:
    """How far a call came, for whoever has to explain its end."""

    request: ModelRequest
    prompt_tokens: int
    sent: bool = False
    transcript: Transcript = field(default_factory=Transcript)

    @property
    def phase(self) -> Phase:
        return "stream" if self.transcript.begun else "sent"

    @property
    def usage(self) -> Usage:
        return self.transcript.usage(self.prompt_tokens, self.request.max_output)


class Claude:
    """Implements the `Model` seam. One instance a worker process, used from one event loop."""

    def __init__(
        self,
        *,
        key: str = "",
        base_url: str = "",
        price: Price,
        stall_seconds: float = STALL_SECONDS,
        pool_seconds: float = POOL_SECONDS,
        connections: int = CONNECTIONS,
    ) -> None:
        """`price` prices the bills of failed calls."""
        self._key = key
        self._base_url = base_url or OFFICIAL
        self._price = price
        self._connections = connections
        self._timeout = httpx2.Timeout(
            stall_seconds, connect=min(CONNECT_SECONDS, stall_seconds), pool=pool_seconds
        )
        self._client: anthropic.AsyncAnthropic | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Send, wait for the whole answer; the errors of the seam, never others."""
        body = shape(request, request.capabilities)
        exchange = _Exchange(request, most_tokens(countable(body)))
        try:
            async with asyncio.timeout(request.deadline_seconds), self._failures(exchange):
                await self._send(body, exchange)
        except TimeoutError:
            if not exchange.transcript.complete:
                raise self._cut(exchange, f"deadline of {request.deadline_seconds:g} s") from None
        except asyncio.CancelledError:
            if not exchange.sent:
                raise
            if not exchange.transcript.complete:
                raise self._cut(exchange, "cancellation") from None
        # A complete answer is paid: it is returned even if the cut came in the same moment.
        return _answer(exchange)

    async def count_tokens(self, request: ModelRequest) -> int:
        """Input tokens of a request: counted by the endpoint where it can, else UTF-8 bytes / 2."""
        body = countable(shape(request, request.capabilities))
        if request.capabilities.token_counting:
            try:
                counted = await self._connected().messages.count_tokens(
                    **body, timeout=COUNT_SECONDS
                )
            except (anthropic.APIError, httpx2.HTTPError, ValueError):
                # Counting is a courtesy: without it the bytes bound the price just as safely.
                return most_tokens(body)
            # What is no JSON arrives as a string.
            tokens = getattr(counted, "input_tokens", None)
            if isinstance(tokens, int):
                return tokens
        return most_tokens(body)

    async def aclose(self) -> None:
        """Close the connections; the instance may be used again in another event loop."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _connected(self) -> anthropic.AsyncAnthropic:
        """The process's client, made on first use because its connections belong to a loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop = loop
            self._client = make_client(self._key, self._base_url, self._timeout, self._connections)
        return self._client

    async def _send(self, body: dict[str, Any], exchange: _Exchange) -> None:
        api = self._connected().messages.with_streaming_response
        exchange.sent = True
        async with api.create(**body, timeout=self._timeout) as response:
            raw = response.http_response
            if "json" in raw.headers.get("content-type", ""):
                exchange.transcript.load((await raw.aread()).decode("utf-8"))
            else:
                events = anthropic.AsyncStream.raw_events(raw)
                async for event in events:
                    exchange.transcript.feed(event.event, event.data)
                    if exchange.transcript.complete:
                        await _drain(events)
                        break
        if not exchange.transcript.complete:
            raise StreamError("", "the answer ended before its message was complete")

    @asynccontextmanager
    async def _failures(self, exchange: _Exchange) -> AsyncIterator[None]:
        """Turn what the SDK and the transport raise into the errors of the seam.

        Causes are cut off: they would reach the history with whatever the endpoint said in them.
        """
        try:
            yield
        except anthropic.APIStatusError as error:
            raise self._refusal(exchange, error) from None
        except (anthropic.APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            cause = error.__cause__ if isinstance(error, anthropic.APIError) else error
            said = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
            if isinstance(cause, NEVER_VALID):
                verdict = Verdict("refused")
            else:
                phase = "connect" if isinstance(cause, NEVER_SENT) else exchange.phase
                verdict = classify(phase, 0, "", {})
            raise self._error(exchange, verdict, said) from None
        except StreamError as error:
            verdict = classify("stream", 200, error.type, {}, error_code=error.error_code)
            said = f"{error.type}: {error}" if error.type else str(error)
            raise self._error(exchange, verdict, said) from None
        except UnicodeDecodeError:
            verdict = classify("stream", 200, "", {})
            raise self._error(exchange, verdict, "the answer is not UTF-8") from None

    def _refusal(self, exchange: _Exchange, error: anthropic.APIStatusError) -> OrchestrationError:
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        verdict = classify(
            "status",
            error.status_code,
            str(error.type or ""),
            headers,
            error_code=error.error_code or "",
            message=error.api_message or "",
            attempt=exchange.request.attempt,
        )
        said = " ".join(
            part
            for part in (
                f"{error.status_code}",
                str(error.type or ""),
                error.api_message or "",
                f"({error.request_id})" if error.request_id else "",
            )
            if part
        )
        return self._error(exchange, verdict, said)

    def _error(self, exchange: _Exchange, verdict: Verdict, said: str) -> OrchestrationError:
        if self._key:
            # An endpoint, or a proxy before it, may repeat what it was sent.
            said = said.replace(self._key, "[key]")
        message = f"{exchange.request.model}: {said[:500]}"
        match verdict.kind:
            case "not_billed":
                wait = verdict.retry_after
                return NotBilled(
                    message,
                    retry_after=None if wait is None else timedelta(seconds=wait),
                    throttled=verdict.throttled,
                )
            case "possibly_billed":
                return PossiblyBilled(message, self._bill(exchange))
            case "refused":
                return CallRefused(message)
            case "authentication":
                return AuthenticationRefused(f"{message}. {verdict.advice}")
            case "spend_limit":
                return SpendLimitReached(f"{message}. {verdict.advice}")

    def _cut(self, exchange: _Exchange, reason: str) -> OrchestrationError:
        return PossiblyBilled(f"{exchange.request.model}: cut by {reason}", self._bill(exchange))

    def _bill(self, exchange: _Exchange) -> Bill:
        model = exchange.transcript.model or exchange.request.model
        usage = exchange.usage
        return Bill(model=model, calls=1, usage=usage, dollars=self._price(model, usage))


async def _drain(events: AsyncIterator[object]) -> None:
    """Read what follows a complete message, so that the connection can be used again."""
    with suppress(TimeoutError, httpx2.HTTPError, UnicodeDecodeError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass


def _answer(exchange: _Exchange) -> ModelAnswer:
    transcript = exchange.transcript
    text = transcript.text
    if exchange.request.capabilities.schema_mode == "prompt":
        text = extract_json(text)
    return ModelAnswer(
        text=text,
        stop_reason=transcript.stop_reason,
        model=transcript.model or exchange.request.model,
        usage=exchange.usage,
        detail=transcript.detail,
        tool_calls=transcript.tool_calls,
        raw=transcript.raw,
    )
