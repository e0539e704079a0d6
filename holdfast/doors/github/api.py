"""GitHub's API, as far as this door needs it: REST, the three things of review threads that only
GraphQL has, and what its limits ask for.

Nothing is ever doubled: what creates something is not sent again by itself after a failure that
leaves open whether it was done. `Unclear` says that, and whoever asked looks first.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from holdfast.errors import HoldfastError, Refused
from holdfast.text import for_terminal

Json = dict[str, Any]
Say = Callable[[str], None]

PUBLIC = "https://api.github.com"
VERSION = "2022-11-28"
SECONDS = 30.0
"""Time limit of one request."""
TRIES = 6
MOST_WAIT = 600.0
"""Seconds that all waits of one command may take together."""
SECONDARY_WAIT = 60.0
"""Seconds to wait at a secondary limit that names none, the first time."""
PAGE = 100
MOST_PAGES = 30
"""GitHub lists no more than 3,000 files of a pull request."""
SAID_LETTERS = 200
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ApiFailed(HoldfastError):
    """GitHub did not do what was asked; one line, without the token."""


class NotAllowed(ApiFailed):
    """The token may not do this, or does not see what it is done to."""


class UnknownToken(NotAllowed):
    """Nobody has this token, or nobody any more (401)."""


class NotThere(NotAllowed):
    """What a mutation is about is not there, or no longer."""


class NotTaken(ApiFailed):
    """GitHub does not take this (422), as for a line that is not in the difference."""


class Limited(ApiFailed):
    """A limit of GitHub's lasts longer than this command waits."""


class Unclear(ApiFailed):
    """Nobody knows whether it was done: the answer was lost, or the server failed."""


@dataclass
class Api:
    """Sends requests with a token, waits where GitHub asks for that, and says so."""

    token: str = field(repr=False)
    address: str = PUBLIC
    say: Say = print
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time
    _waited: float = 0.0
    _client: httpx2.AsyncClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise Refused(
                f"GITHUB_API_URL {self.address!r}: a token goes to https alone; write https://HOST"
            )
        self.address = self.address.rstrip("/")
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": VERSION,
            "User-Agent": "holdfast",
        }
        self._client = httpx2.AsyncClient(headers=headers, timeout=SECONDS)

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self._client.aclose()

    # ------------------------------------------------------------ REST

    async def get(self, path: str, **query: str | int) -> Any:
        return (await self._answer("GET", path, query=query)).json()

    async def pages(self, path: str, **query: str | int) -> AsyncIterator[Any]:
        """Yield the items of a list, page after page."""
        for page in range(1, MOST_PAGES + 1):
            found = await self.get(path, per_page=PAGE, page=page, **query)
            for each in found:
                yield each
            if len(found) < PAGE:
                return

    async def send(self, method: str, path: str, body: Json, *, again: bool | None = None) -> Any:
        """Send something and return the answer. `again`: twice is as good as once, so it is sent
        again after a failure of the server, too; left out: true of all but POST.
        """
        again = method != "POST" if again is None else again
        return (await self._answer(method, path, body=body, again=again)).json()

    # ------------------------------------------------------------ GraphQL

    async def graphql(self, document: str, **variables: Any) -> tuple[Json, list[Json]]:
        """Return the data of a query or of mutations that may be repeated, and the errors beside
        it. NotAllowed or NotThere where there is nothing but errors.
        """
        body = {"query": document, "variables": variables}
        answer = (await self._answer("POST", self._graphql, body=body, again=True)).json()
        with as_described():
            data, errors = answer.get("data") or {}, answer.get("errors") or []
            if errors and not any(data.values()):
                said = f"GraphQL: {_plain(errors[0].get('message', ''))}"
                raise NotThere(said) if errors[0].get("type") == "NOT_FOUND" else NotAllowed(said)
        return data, errors

    @property
    def _graphql(self) -> str:
        # Of a server of one's own REST is below /api/v3.
        return f"{self.address.removesuffix('/v3')}/graphql"

    # ------------------------------------------------------------ one request

    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Json | None = None,
        again: bool = True,
    ) -> httpx2.Response:
        """Return a good answer; what limits and failures ask for is done here."""
        address = f"{self.address}{path}" if path.startswith("/") else path
        given = query or None
        content = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if content else {}
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                answer = await self._client.request(
                    method, address, params=given, content=content, headers=kind
                )
            except httpx2.ConnectError as error:
                # Nothing was sent.
                if last:
                    raise ApiFailed(f"{self._host} is not reachable: {_plain(error)}") from None
                await self._wait(2.0**attempt, f"{self._host} is not reachable")
                continue
            except httpx2.TransportError as error:
                kept = type(error).__name__
                if last or not again:
                    raise Unclear(f"{method} {path}: the answer was lost ({kept})") from None
                await self._wait(2.0**attempt, f"{self._host} did not answer ({kept})")
                continue
            if not last and (moved := self._moved(answer)):
                address, given = moved, None if urlsplit(moved).query else given
                continue
            if said := _broken(answer):
                said = f"{self._host} answers {said}"
                if last or not again:
                    raise Unclear(f"{method} {path}: {said}")
                await self._wait(2.0**attempt, said)
                continue
            if (pause := self._limit(answer, attempt)) is not None:
                if last:
                    raise Limited(f"{method} {path}: limit of requests: {_message(answer)}")
                await self._wait(pause, f"GitHub's limit of requests ({answer.status_code})")
                continue
            return _good(answer, method, path)
        raise AssertionError("the last attempt returns or raises")

    def _moved(self, answer: httpx2.Response) -> str:
        """Return where a renamed repository is now, at the same host alone: the token goes there,
        too. Empty: it was not moved, or elsewhere.
        """
        if answer.status_code not in (301, 302, 307, 308):
            return ""
        to = urljoin(str(answer.url), answer.headers.get("location", ""))
        same = urlsplit(to)[:2] == urlsplit(self.address)[:2]
        return to if same and to != str(answer.url) else ""

    def _limit(self, answer: httpx2.Response, attempt: int) -> float | None:
        """Return the seconds that a limit asks to wait; None if the answer is none of a limit."""
        limited = answer.status_code == 429
        if answer.status_code == 403:
            spent = answer.headers.get("x-ratelimit-remaining") == "0"
            said = "retry-after" in answer.headers or "rate limit" in _message(answer).lower()
            limited = spent or said
        elif answer.status_code == 200 and answer.url.path.endswith("/graphql"):
            limited = any(each.get("type") == "RATE_LIMITED" for each in _errors(answer))
        if not limited:
            return None
        after = answer.headers.get("retry-after", "")
        if after.isdecimal():
            return float(after)
        reset = answer.headers.get("x-ratelimit-reset", "")
        if reset.isdecimal() and answer.headers.get("x-ratelimit-remaining") == "0":
            return max(float(reset) - self.now(), 0.0) + 1.0
        return SECONDARY_WAIT * 2.0**attempt

    async def _wait(self, seconds: float, why: str) -> None:
        """Wait, and say so. Limited if that is longer than what is left for waits."""
        if self._waited + seconds > MOST_WAIT:
            raise Limited(f"{why}: it asks to wait {seconds:.0f} s, which is too long here")
        self._waited += seconds
        self.say(f"{why}: again in {seconds:.0f} s")
        await self.sleep(seconds)

    @property
    def _host(self) -> str:
        return urlsplit(self.address).netloc


@contextmanager
def as_described() -> Iterator[None]:
    """Raise ApiFailed where an answer has not the shape that GitHub describes."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ApiFailed(f"an answer is not as GitHub describes it ({_plain(error)})") from error


def _good(answer: httpx2.Response, method: str, path: str) -> httpx2.Response:
    code = answer.status_code
    if code < 300:
        return answer
    said = f"{method} {path}: {code} {_message(answer)}"
    if code == 401:
        raise UnknownToken(f"{said}; GITHUB_TOKEN is wrong, or over")
    if code == 404:
        raise NotAllowed(f"{said}: it is not there, or the token does not see it")
    if code == 403:
        raise NotAllowed(said)
    raise NotTaken(said) if code == 422 else ApiFailed(said)


def _broken(answer: httpx2.Response) -> str:
    """Return what shows that a server, or a proxy before it, failed; empty for any real answer."""
    if answer.status_code >= 500:
        return str(answer.status_code)
    if answer.status_code < 300 and _read(answer) is None:
        return f"{answer.status_code} with what is no JSON"
    return ""


def _read(answer: httpx2.Response) -> Any:
    """Return what the body says; None if it is no JSON."""
    try:
        return answer.json()
    except ValueError:
        return None


def _message(answer: httpx2.Response) -> str:
    found = _read(answer)
    return _plain(found.get("message", "")) if isinstance(found, dict) else ""


def _errors(answer: httpx2.Response) -> list[Json]:
    answered = _read(answer)
    found = answered.get("errors") if isinstance(answered, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _plain(text: object) -> str:
    return for_terminal(" ".join(str(text).split()))[:SAID_LETTERS]
