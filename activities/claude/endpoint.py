"""Find out which endpoint answers, and what it understands."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anthropic
import httpx2

from holdfast.activities.claude import passage as claude_passage
from holdfast.activities.claude.classify import lacks_api
from holdfast.contracts import Capabilities
from holdfast.deployment.address import OFFICIAL, is_loopback
from holdfast.deployment.places import UNDERSTOOD
from holdfast.text import visible

PROBE_SECONDS = 5.0
REMEMBERED_SECONDS = 60.0
EFFORTS = ("low", "medium", "high")
FULL = Capabilities(caching=True, batches=True)
"""Capabilities of the official host."""

NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
"""Without EAI_AGAIN: a resolver that does not answer knows nothing of the name."""

HOOKS: dict[str, list[Callable[..., Any]]] = {
    "request": [claude_passage.outgoing],
    "response": [claude_passage.incoming],
}

MISTAKES = (ValueError, ImportError, httpx2.InvalidURL)
"""What `make_client` raises of proxies and certificates that the environment names."""

logger = logging.getLogger(__name__)


def explain_unreached(error: BaseException) -> tuple[str, bool]:
    """Return what an exception of the transport says in its innermost cause, in one line, and
    whether it says that the name does not exist.
    """
    step, found = error, error
    while (cause := step.__cause__ or step.__context__) is not None:
        step = cause
        found = step if isinstance(step, OSError) else found
    if isinstance(found, TimeoutError | httpx2.TimeoutException):
        return "no connection in time", False
    if isinstance(found, socket.gaierror):
        return visible(str(found)), found.errno in NO_SUCH_NAME
    said = str(found)[:300] or type(found).__name__
    if isinstance(found, OSError) and found.errno and not isinstance(found, ssl.SSLError):
        # Its own text also names each address that was tried, as a tuple.
        said = os.strerror(found.errno)
    return visible(said), False


@functools.cache
def _load_trusted() -> ssl.SSLContext:
    """Return whom this machine, or SSL_CERT_FILE, trusts. Read once: reading all certificates takes
    longer than everything else in making a client.
    """
    try:
        return httpx2.create_ssl_context(trust_env=True)
    except OSError as error:
        why = error.strerror or error
        raise ValueError(f"SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {why}") from None


def make_client(
    key: str, base_url: str, timeout: httpx2.Timeout, connections: int
) -> anthropic.AsyncAnthropic:
    """Return a client of this endpoint that never retries. Must be called in the event loop that
    uses it.
    """
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    # An endpoint's cookies would tell it which calls are one deployment's.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    if is_loopback(base_url):
        # A proxy of the environment does not lead back to this machine.
        http = httpx2.AsyncClient(
            limits=limits,
            timeout=timeout,
            event_hooks=HOOKS,
            cookies=no_cookies,
            trust_env=False,
            verify=_load_trusted(),
        )
    else:
        # A redirect would carry prompt and key to another host.
        http = anthropic.DefaultAsyncHttpxClient(
            limits=limits,
            timeout=timeout,
            event_hooks=HOOKS,
            cookies=no_cookies,
            follow_redirects=False,
            verify=_load_trusted(),
        )
    # Some gateways read only the older header; the official host takes the key as a bearer.
    older = {} if base_url == OFFICIAL or not key else {"X-Api-Key": key}
    return anthropic.AsyncAnthropic(
        # Endpoints without a key still get one: without any, the SDK looks for a profile's.
        api_key=key or "none",
        base_url=base_url,
        max_retries=0,
        timeout=timeout,
        default_headers={"Accept-Encoding": "identity", **older},
        http_client=http,
    )


async def find_capabilities(
    key: str, base_url: str, configured: str, models: Sequence[str]
) -> Capabilities:
    """Return what an endpoint understands: as configured (`full`, or names of UNDERSTOOD with
    commas, or `none`), else everything for the official host, else what its free endpoints say of
    `models`.

    Never a paid call. Raise ValueError if `configured` cannot be read. An endpoint that does not
    answer is taken to understand nothing beyond text.
    """
    if configured != "auto":
        return _parse_configured(configured)
    base_url = base_url or OFFICIAL
    if base_url.rstrip("/") == OFFICIAL:
        return FULL
    try:
        client = make_client(key, base_url, httpx2.Timeout(PROBE_SECONDS), connections=2)
    except MISTAKES:
        # The first call says so.
        return Capabilities()
    try:
        listed = await _list_models(client)
        counting = bool(models) and await _can_count(client, models[0])
    finally:
        await client.close()
    described = [entry for entry in listed if entry.get("id") in models]
    features = [_mapping(entry.get("capabilities")) for entry in described]
    # Only Anthropic's own listing describes models like this.
    known = len({entry.get("id") for entry in described}) == len(set(models)) and all(features)
    return Capabilities(
        schema_mode="native"
        if known and all(_has(each, "structured_outputs") for each in features)
        else "prompt",
        effort=known and all(_has_efforts(each) for each in features),
        token_counting=counting,
        caching=known,
        batches=known and all(_has(each, "batch") for each in features),
    )


class Remembered:
    """Finds capabilities once for all runs that begin within a minute. Empty ones are not
    remembered: the endpoint may only have been away.
    """

    def __init__(self, find: Callable[[], Awaitable[Capabilities]]) -> None:
        self._find = find
        self._asking: asyncio.Future[Capabilities] | None = None
        self._until = 0.0

    async def __call__(self) -> Capabilities:
        """Return the capabilities, as `find_capabilities` does."""
        if self._asking is None or (self._asking.done() and self._stale()):
            self._asking = asyncio.ensure_future(self._find())
            self._until = time.monotonic() + REMEMBERED_SECONDS
        # A run that is cancelled takes nothing from the others that wait.
        return await asyncio.shield(self._asking)

    def _stale(self) -> bool:
        asked = self._asking
        if asked is None or asked.cancelled() or asked.exception() is not None:
            return True
        return asked.result() == Capabilities() or time.monotonic() > self._until


@dataclass(frozen=True)
class Looked:
    """Answer of an endpoint to free requests."""

    refused: str = ""
    """Why it refuses the key, in its own words; empty if it does not, or does not say so."""
    nothing_there: bool = False
    """True if it knows none of the paths: most likely the address is wrong."""
    mistake: str = ""
    """What in this process's environment keeps every call from being made."""


async def check_key(key: str, base_url: str, model: str) -> Looked:
    """Return what the endpoint says of this key. Never a paid call: it lists models and, because
    some endpoints show that to anybody, also counts tokens.
    """
    timeout = httpx2.Timeout(PROBE_SECONDS)
    try:
        client = make_client(key, base_url or OFFICIAL, timeout, connections=1)
    except MISTAKES as error:
        return Looked(mistake=str(error))
    question: list[anthropic.types.MessageParam] = [{"role": "user", "content": "?"}]
    try:
        listed = await _read_refusal(client.get("/v1/models?limit=1", cast_to=object))
        if listed.refused:
            return listed
        counted = await _read_refusal(client.messages.count_tokens(model=model, messages=question))
        nothing = listed.nothing_there and counted.nothing_there
        return Looked(counted.refused, nothing_there=nothing)
    finally:
        await client.close()


async def _read_refusal(asked: Awaitable[object]) -> Looked:
    try:
        await asked
    except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as error:
        why = error.api_message or error.type or "no reason given"
        return Looked(f"{error.status_code} {why}")
    except (anthropic.APIError, httpx2.HTTPError, ValueError) as error:
        logger.info("the key could not be checked: %s", error)
        if isinstance(error, anthropic.APIStatusError):
            nothing = lacks_api(error.status_code, error.api_message or "", model="")
            return Looked(nothing_there=nothing)
    return Looked()


def _parse_configured(text: str) -> Capabilities:
    if text == "full":
        return FULL
    names = {name.strip() for name in text.split(",") if name.strip()} - {"none"}
    unknown = sorted(names - set(UNDERSTOOD))
    if unknown:
        raise ValueError(
            f"unknown capabilities {unknown}; known: auto, full, none, or "
            f"a list of {', '.join(UNDERSTOOD)}"
        )
    return Capabilities(
        schema_mode="native" if "schemas" in names else "prompt",
        effort="effort" in names,
        token_counting="counting" in names,
        caching="caching" in names,
        batches="batches" in names,
    )


async def _list_models(client: anthropic.AsyncAnthropic) -> list[dict[str, Any]]:
    try:
        answer: object = await client.get("/v1/models?limit=1000", cast_to=object)
    except (anthropic.APIError, httpx2.HTTPError, ValueError) as error:
        logger.info("the endpoint lists no models: %s", error)
        return []
    data = _mapping(answer).get("data")
    return [_mapping(entry) for entry in data] if isinstance(data, list) else []


async def _can_count(client: anthropic.AsyncAnthropic, model: str) -> bool:
    question: list[anthropic.types.MessageParam] = [{"role": "user", "content": "?"}]
    try:
        counted = await client.messages.count_tokens(model=model, messages=question)
    except (anthropic.APIError, httpx2.HTTPError, ValueError):
        return False
    return isinstance(getattr(counted, "input_tokens", None), int)


def _has(features: dict[str, Any], name: str) -> bool:
    return _mapping(features.get(name)).get("supported") is True


def _has_efforts(features: dict[str, Any]) -> bool:
    return all(_has(_mapping(features.get("effort")), effort) for effort in EFFORTS)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
