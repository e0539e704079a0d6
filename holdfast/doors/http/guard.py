"""Who is let in: before a handler sees a request, its host, its origin, its token and its rate are
looked at; after it, a line of the access log is written that holds no secret.

A page that a person has open can send requests to 127.0.0.1, and a name that leads there can be
anybody's: so a request must name a host of this server (DNS rebinding), and what comes from another
site's page is refused (CSRF), also where no token is asked for.
"""

from __future__ import annotations

import hmac
import math
import re
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.doors.http.pages import COOKIE, Sessions
from holdfast.doors.http.problems import Problem, problem_of
from holdfast.doors.tokens import PREFIX, Caller, Tokens, hash_of
from holdfast.text import PLAIN_ID

PUBLIC = ("/healthz", "/readyz", "/openapi.json", "/.well-known/agent-card.json")
"""What everybody may read: it tells nothing of any run."""
SIGNED = "/hooks/"
"""What has a signature in place of a token."""
LOGIN = "/login"
PAGE = re.compile(r"/runs/[^/]+/live/(?:order)?")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
RATE, BURST = 20.0, 200.0
"""Requests a second of one token, and how many at once after a pause."""
NOBODY = Caller("", None)  # type: ignore[arg-type]
SECURE = {
    b"cache-control": b"no-store",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
log = structlog.get_logger("holdfast.http")


class _Elsewhere(Exception):
    """The address to which a browser is led."""


@dataclass
class Rates:
    """A bucket of requests for each caller."""

    rate: float = RATE
    burst: float = BURST
    _left: MutableMapping[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, who: str) -> None:
        """Raise Problem where the bucket is empty."""
        now = time.monotonic()
        left, since = self._left.get(who, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        if left < 1:
            wait = math.ceil((1 - left) / self.rate)
            raise Problem(
                "too_many",
                f"more than {self.rate:g} requests a second; try again in {wait} s",
                Retry_After=str(wait),
            )
        self._left[who] = (left - 1, now)


@dataclass
class Guard:
    """The middleware in front of all."""

    app: ASGIApp
    tokens: Tokens
    hosts: frozenset[str]
    """Names, without ports, by which this server is spoken to."""
    secure: bool = False
    """True if callers reach it by https."""
    printed: str = ""
    """The hash of the token that the server has made for itself; empty: none."""
    anybody: Caller | None = None
    """Who is taken for a caller without a token; None: nobody is let in without."""
    owner: Caller | None = None
    """Who bears the printed token."""
    rates: Rates = field(default_factory=Rates)
    sessions: Sessions = field(default_factory=Sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        began, status, who = time.perf_counter(), 0, ""

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _with_secure(message["headers"])}
            await send(message)

        try:
            caller = self._admit(scope)
            who = caller.name
            state = scope.setdefault("state", {})
            state["caller"] = caller
            state["still"] = lambda: self._caller(Headers(scope=scope)) is not None
            state["bearer"] = self._bearer
            state["count"] = self.rates.take
            state["secure"] = self.secure
            await self.app(scope, receive, sending)
        except Exception as error:
            if status:
                raise
            if isinstance(error, _Elsewhere):
                await RedirectResponse(str(error), 303)(scope, receive, sending)
                return
            await problem_of(error).response()(scope, receive, sending)
        finally:
            log.info(
                "request",
                method=scope["method"],
                route=_route(scope),
                run=_run(scope),
                status=status,
                ms=round((time.perf_counter() - began) * 1000, 1),
                token=who,
            )

    def _admit(self, scope: Scope) -> Caller:
        """Return who asks. Raise Problem."""
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_origin(scope, headers)
        # Who proves who he is at a handler's is counted there: in vain, by all in common.
        if scope["path"] in (*PUBLIC, LOGIN) or scope["path"].startswith(SIGNED):
            return NOBODY
        caller = self._caller(headers) or self._visitor(scope, headers)
        if caller is None:
            self.rates.take("")
            if PAGE.fullmatch(scope["path"]) and scope["method"] == "GET":
                raise _Elsewhere(f"{LOGIN}?next={quote(scope['path'])}")
            raise Problem(
                "no_token",
                "send a token of this server: Authorization: Bearer hf_...; the command `token new`"
                " makes one",
                WWW_Authenticate='Bearer realm="holdfast"',
            )
        self.rates.take(caller.name)
        return caller

    def _visitor(self, scope: Scope, headers: Headers) -> Caller | None:
        """Return who has logged in with a browser, for the pages alone."""
        if not PAGE.fullmatch(scope["path"]):
            return None
        # A browser says where a form comes from; whoever does not is none.
        if scope["method"] != "GET" and "origin" not in headers:
            return None
        word = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        token = self.sessions.token_of(word) if word else ""
        return self._of_hash(token) if token else None

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        if len(given) != 1 or _name(given[0]) not in self.hosts:
            raise Problem("wrong_host", "this server does not answer to that host; --name adds one")

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        origin = headers.get("origin")
        scheme = "https" if self.secure else "http"
        host = headers.get("host", "")
        if origin is not None and origin != f"{scheme}://{host}":
            raise Problem("foreign_origin", "requests of other sites' pages are not taken")
        # A link on another site may lead to a page, which shows nothing without a session.
        followed = scope["method"] == "GET" and headers.get("sec-fetch-dest") == "document"
        own = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        if not own and not followed:
            raise Problem("foreign_origin", "requests of other sites' pages are not taken")

    def _caller(self, headers: Headers) -> Caller | None:
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secret.startswith(PREFIX) or len(secret) > 100:
            return self.anybody if "authorization" not in headers else None
        return self._bearer(secret)

    def _bearer(self, secret: str) -> Caller | None:
        """Return whose token this is."""
        return self._of_hash(hash_of(secret))

    def _of_hash(self, token: str) -> Caller | None:
        if self.printed and hmac.compare_digest(token, self.printed):
            return self.owner
        return self.tokens.caller_of_hash(token)


def _name(host: str) -> str:
    """Return a host without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _with_secure(headers: Any) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in headers}
    return [*headers, *(each for each in SECURE.items() if each[0] not in there)]


def _route(scope: Scope) -> str:
    """Return the handler that took the request: a path can hold anything."""
    return getattr(scope.get("endpoint"), "__name__", "")


def _run(scope: Scope) -> str:
    run_id = str(scope.get("path_params", {}).get("run_id", ""))
    return run_id if PLAIN_ID.fullmatch(run_id) and not run_id.startswith(PREFIX) else ""
