"""Carry requests to an endpoint by aiohttp, and tell the passage of each how far it has come.

The SDK's usual transport reads HTTP in Python, which costs a worker twice the processor time for an
answer that comes in ten pieces. The one that the SDK offers for aiohttp does not say whether a
request has left, which decides whether it may have been paid.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from yarl import URL

from holdfast.activities.claude.passage import current_passage

KEPT_SECONDS = 5.0
"""How long a connection is kept for the next request."""


class Transport(httpx2.AsyncBaseTransport):
    """Implements the SDK's transport. Its connections belong to the event loop that first used
    it.
    """

    def __init__(self, connections: int, trusted: ssl.SSLContext, proxy: str = "") -> None:
        self._connections = connections
        self._trusted = trusted
        self._proxy = URL(proxy) if proxy else None
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send, and return the answer as soon as its head has come. Raise httpx2.TransportError."""
        passage = current_passage()
        timeout = request.extensions.get("timeout", {})
        with _translated():
            passage.towards = (self._proxy.host if self._proxy else request.url.host) or ""
            response = await self._opened().request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=request.headers,
                data=await request.aread() or None,
                allow_redirects=False,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(
                    connect=timeout.get("pool"),
                    sock_connect=timeout.get("connect"),
                    sock_read=timeout.get("read"),
                ),
                trace_request_ctx=passage,
            )
        headers = httpx2.Headers(list(response.raw_headers))
        body = passage.arrive(response.status, headers, _Body(response))
        return httpx2.Response(response.status, headers=headers, stream=body, request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._connections, ssl=self._trusted, keepalive_timeout=KEPT_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trace_configs=[_told_to_passages()],
            )
        return self._session


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        # One that was not read to its end closes its connection.
        self._response.release()


def proxy_of(base_url: str) -> str:
    """Return the proxy that the environment names for an endpoint; empty: none."""
    url = httpx2.URL(base_url)
    if proxy_bypass(url.host):
        return ""
    proxies = getproxies()
    return proxies.get(url.scheme) or proxies.get("all") or ""


def _told_to_passages() -> aiohttp.TraceConfig:
    async def waits(_: object, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.waits = True

    async def connects(_: object, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.waits = False

    async def leaves(_: object, context: SimpleNamespace, __: object) -> None:
        # What a proxy was asked, and what was agreed on encryption, came before.
        context.trace_request_ctx.left = True

    told = aiohttp.TraceConfig()
    told.on_connection_queued_start.append(waits)
    told.on_connection_queued_end.append(connects)
    told.on_connection_create_end.append(leaves)
    told.on_connection_reuseconn.append(leaves)
    return told


@contextmanager
def _translated() -> Iterator[None]:
    """Raise what the SDK knows in place of aiohttp's errors."""
    try:
        yield
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise httpx2.UnsupportedProtocol("not an address of HTTP") from error
    except aiohttp.ClientHttpProxyError as error:
        raise httpx2.ProxyError(f"{error.status} {error.message}") from error
    except TimeoutError as error:
        waits = current_passage().waits
        raise (httpx2.PoolTimeout if waits else httpx2.ConnectTimeout)(str(error)) from error
    except (aiohttp.ClientError, OSError) as error:
        raise httpx2.NetworkError(str(error)) from error
