"""Turn exceptions of the SDK and the transport into the errors of `Model`.

Causes are cut off: they would reach the history with whatever the endpoint said in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import anthropic
import httpx2

from holdfast.activities.claude.classify import (
    Meaning,
    Point,
    classify,
    lacks_api,
    retry_after,
)
from holdfast.activities.claude.endpoint import explain_unreached
from holdfast.activities.claude.heard import Heard
from holdfast.activities.claude.passage import Passage
from holdfast.activities.claude.stream import StreamError, Transcript
from holdfast.contracts import Bill, Unreached, Usage
from holdfast.contracts.errors import (
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    TookTooLong,
)
from holdfast.deployment.address import address_of
from holdfast.ports import ModelRequest, PriceOf
from holdfast.text import sentence, visible
from holdfast.untrusted.known_secrets import KnownSecrets

NEVER_VALID = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL)
TRANSPORT = (httpx2.TransportError, OSError)
CUT = "cancellation"
"""The reason of a call that was cancelled."""
LONGEST_LINE = 500
"""Characters of an endpoint's message that an error repeats."""


@dataclass
class Exchange:
    """Progress of a call."""

    request: ModelRequest
    prompt_tokens: int
    passage: Passage
    transcript: Transcript = field(default_factory=Transcript)

    @property
    def usage(self) -> Usage:
        return self.transcript.usage(self.prompt_tokens, self.request.max_output)


@dataclass(frozen=True)
class Failures:
    """Explains the failures of one endpoint."""

    known: KnownSecrets
    base_url: str
    price: PriceOf
    heard: Heard

    @contextmanager
    def translate(self, exchange: Exchange) -> Iterator[None]:
        """Raise the errors of `Model`, and no others, for anything that happens in the block."""
        try:
            yield
        except OrchestrationError:
            raise
        except anthropic.APIStatusError as error:
            raise self._refusal(exchange, error) from None
        except StreamError as error:
            meant = classify("stream", 200, error.type, {}, error_code=error.error_code)
            said = f"{error.type}: {error}" if error.type else str(error)
            raise self._error(exchange, meant, said) from None
        except UnicodeDecodeError:
            said = "the answer is not UTF-8"
            raise self._error(exchange, Meaning(PossiblyBilled), said) from None
        except Exception as error:
            raise self._broken(exchange, error) from None

    def cut(self, exchange: Exchange, reason: str, *, late: bool = False) -> OrchestrationError:
        """Return the error of a call that this side ended; `late`: at its deadline."""
        if not exchange.passage.left:
            return self._unreached(f"no connection: {reason}")
        said, bill = f"{exchange.request.model}: cut by {reason}", self._bill(exchange)
        # What came at all was only slow; of nothing in all its time nobody knows that.
        silent = not exchange.passage.status if late else reason != CUT
        lost = self._lost(f"no answer: {reason}") if silent else None
        return (TookTooLong if late else PossiblyBilled)(said, bill, lost)

    def _refusal(self, exchange: Exchange, error: anthropic.APIStatusError) -> OrchestrationError:
        # What the body says may be of any type.
        type, code, text = (
            each if isinstance(each, str) else ""
            for each in (error.type, error.error_code, error.api_message)
        )
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        meant = classify(
            "status",
            error.status_code,
            type,
            headers,
            error_code=code,
            message=text,
            model=exchange.request.model,
            attempt=exchange.request.attempt,
        )
        if 300 <= error.status_code < 400:
            text = "a redirect; ANTHROPIC_BASE_URL must name the endpoint itself"
        if lacks_api(error.status_code, text, exchange.request.model):
            why = f"no Messages API answers there, but {error.status_code} {text}".rstrip()
            twice = self.base_url.rstrip("/").endswith("/v1")
            why += "; leave out /v1 at its end, it is added" if twice else ""
            return self._unreached(why, mistaken=True)
        said = [str(error.status_code), type, text]
        said += [f"({error.request_id})"] if error.request_id else []
        if meant.beyond is not None:
            waited = f"tried again after {meant.retry_after:g} s"
            said.append(f"(asked to wait {meant.beyond:.6g} s; {waited})")
        # Who refuses for the rate, or says when there is room, is at home.
        named = retry_after(headers, datetime.now(UTC)) is not None
        at_home = error.status_code == 429 or (meant.throttled and named)
        return self._error(
            exchange, meant, " ".join(filter(None, said)), at_home=at_home, named=named
        )

    def _broken(self, exchange: Exchange, error: Exception) -> OrchestrationError:
        """Return the error of anything else in the transport, in the SDK or in reading an answer:
        what counts is whether the request left.
        """
        cause = error.__cause__ if isinstance(error, anthropic.APIConnectionError) else error
        cause = cause or error
        said = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        if exchange.passage.left:
            point: Point = "stream" if exchange.transcript.begun else "sent"
            return self._error(exchange, classify(point, 0, "", {}), said)
        if isinstance(cause, httpx2.PoolTimeout):
            # This machine's own congestion; the endpoint may be well.
            return NotBilled(f"{exchange.request.model}: no connection is free")
        if isinstance(cause, NEVER_VALID) or not isinstance(cause, TRANSPORT):
            # Its own words may repeat an address with the password in it.
            kind = f"{type(cause).__name__}: look at ANTHROPIC_BASE_URL and at the proxy's address"
            said = kind if isinstance(cause, NEVER_VALID) else said
            return self._error(exchange, Meaning(CallRefused), said)
        if isinstance(cause, httpx2.ProxyError) and str(cause).startswith("4"):
            refused = f"the proxy refuses: {cause}; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
            return self._error(exchange, Meaning(CallRefused), refused)
        return self._unreached(*self._why(exchange, cause))

    def _why(self, exchange: Exchange, cause: Exception) -> tuple[str, bool]:
        why, unknown_host = explain_unreached(cause)
        if isinstance(cause, httpx2.ProxyError):
            return f"the proxy says {why}", False
        why = f"no host has this name: {why}" if unknown_host else why
        host = httpx2.URL(self.base_url).host
        if exchange.passage.towards not in ("", host):
            return f"the proxy {exchange.passage.towards}: {why}", unknown_host
        return why, unknown_host

    def _error(
        self,
        exchange: Exchange,
        meant: Meaning,
        said: str,
        *,
        at_home: bool = False,
        named: bool = True,
    ) -> OrchestrationError:
        said = self._line(said)
        message = f"{exchange.request.model}: {said}"
        if issubclass(meant.error, EndpointUnreachable):
            return self._unreached(said)
        if issubclass(meant.error, PossiblyBilled):
            return meant.error(message, self._bill(exchange), self._lost(said))
        if issubclass(meant.error, NotBilled):
            wait = meant.retry_after
            return meant.error(
                message,
                retry_after=None if wait is None else timedelta(seconds=wait),
                throttled=meant.throttled,
                unreached=None if at_home else self._lost(said),
                named=named,
            )
        if meant.advice:
            message = f"{sentence(message)} {meant.advice}"
        return meant.error(message)

    def _unreached(self, why: str, mistaken: bool = False) -> EndpointUnreachable:
        where = address_of(self.base_url)
        return EndpointUnreachable(
            Unreached(
                address=where,
                why=self._line(why),
                # Who has answered before is away; who never did is most likely a mistake.
                mistaken=mistaken and not self.heard.known,
            )
        )

    def _lost(self, why: str) -> Unreached:
        """Return that the endpoint did not answer what it was sent."""
        return Unreached(address=address_of(self.base_url), why=self._line(why), lost=True)

    def _line(self, said: str) -> str:
        """Return one line, fit for a history and a screen, without secrets: an endpoint, or a proxy
        before it, may repeat what it was sent.
        """
        said = self.known.blot(said[: 4 * LONGEST_LINE])
        return visible(" ".join(said.split()))[:LONGEST_LINE]

    def _bill(self, exchange: Exchange) -> Bill:
        """Return what is known of a lost call: without the last count its price is not."""
        transcript, usage = exchange.transcript, exchange.usage
        model = transcript.model or exchange.request.model
        price = exchange.request.price or self.price
        cost = price(model, usage) if transcript.counted else None
        return Bill(model=model, calls=1, usage=usage, dollars=cost, final=transcript.counted)
