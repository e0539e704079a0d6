"""Carry requests to an endpoint by aiohttp, and tell the passage of each how far it has come.

The SDK's usual transport reads HTTP in Python, which costs a worker twice the processor time for an
answer that comes in ten pieces. The one that the SDK offers for aiohttp does not say whether a
request has left, which decides whether it may have been paid.
"""

from __future__ import annotations

import functools
import select
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from holdfast.activities.claude.passage import current_passage

KEPT_SECONDS = 5.0
"""How long a connection is kept for the next request."""
HEAD_BYTES = 2**16
"""The longest line in the head of an answer."""
HEAD_LINES = 256
"""The most lines in it."""
UNREAD_HEADS = 100
"""Heads of answers that a connection may have unread; more than one is nobody's answer."""


class Transport(httpx2.AsyncBaseTransport):
    """Implements the SDK's transport. Its connections belong to the event loop that first used
    it.
    """

    def __init__(self, connections: int, trusted: ssl.SSLContext, proxy: str = "") -> None:
        self._connections = connections
        self._trusted = trusted
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send, and return the answer as soon as its head has come. Raise httpx2.TransportError."""
        passage = current_passage()
        timeout = request.extensions.get("timeout", {})
        with _translated():
            proxy = _read_proxy(self._proxy)
            passage.towards = (proxy.host if proxy else request.url.host) or ""
            content = await request.aread()
            response = await self._opened().request(
                request.method,
                # Its user and password are a header by now.
                URL(str(request.url.copy_with(userinfo=b"")), encoded=True),
                headers=request.headers,
                data=BytesIO(content) if content else None,
                allow_redirects=False,
                proxy=proxy,
                timeout=aiohttp.ClientTimeout(
                    connect=timeout.get("pool"),
                    sock_connect=timeout.get("connect"),
                    sock_read=timeout.get("read"),
                ),
                trace_request_ctx=passage,
            )
        if response.status < 200:
            response.close()
            raise httpx2.RemoteProtocolError(f"status {response.status} answers nothing")
        headers = httpx2.Headers(list(response.raw_headers))
        # The client above keeps cookies.
        headers.pop("set-cookie", None)
        body = passage.arrive(response.status, headers, _Body(response))
        return httpx2.Response(response.status, headers=headers, stream=body, request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._connections, ssl=self._trusted, keepalive_timeout=KEPT_SECONDS
            )
            made: type[ResponseHandler] = _Connection
            connector._factory = functools.partial(made, loop=connector._loop)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                max_line_size=HEAD_BYTES,
                max_field_size=HEAD_BYTES,
                max_headers=HEAD_LINES,
                trace_configs=[_told_to_passages()],
            )
        return self._session


class _Connection(ResponseHandler):
    """Is not used again once something came that nobody asked for: the end, most often, which a
    request sent meanwhile would take for its own; or a second answer.
    """

    def is_connected(self) -> bool:
        """Asked before a kept connection is used."""
        return super().is_connected() and not self.should_close and not self._has_unread()

    def data_received(self, data: bytes) -> None:
        """Take what came. What sends heads without end is left."""
        super().data_received(data)
        if len(self._buffer) > UNREAD_HEADS:
            self.abort()

    def _has_unread(self) -> bool:
        assert self.transport is not None
        look = select.poll()
        look.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(look.poll(0))


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
    port = url.port or (443 if url.scheme == "https" else 80)
    if proxy_bypass(url.host) or proxy_bypass(f"{url.host}:{port}"):
        return ""
    proxies = getproxies()
    found = (proxies.get(url.scheme) or proxies.get("all") or "").strip()
    return found if "://" in found or not found else f"http://{found}"


def _read_proxy(address: str) -> URL | None:
    if not address:
        return None
    proxy = URL(address)
    if proxy.scheme not in ("http", "https") or not proxy.host:
        # A SOCKS proxy takes a request for noise.
        raise httpx2.UnsupportedProtocol("not the address of an HTTP proxy")
    return proxy


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
    """Raise what the SDK knows in place of aiohttp's errors, whose words repeat addresses with
    their passwords, and what came.
    """
    try:
        yield
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, UnicodeError):
        raise httpx2.UnsupportedProtocol("not an address of HTTP") from None
    except aiohttp.ClientHttpProxyError as error:
        raise httpx2.ProxyError(f"{error.status} {error.message}") from None
    except TimeoutError as error:
        waits = current_passage().waits
        raise (httpx2.PoolTimeout if waits else httpx2.ConnectTimeout)(str(error)) from error
    except aiohttp.ServerDisconnectedError:
        raise httpx2.RemoteProtocolError("the connection ended before an answer") from None
    except aiohttp.ClientPayloadError as error:
        said = f"the answer is not whole: {_why(error)}"
        raise httpx2.RemoteProtocolError(said) from None
    except aiohttp.ClientResponseError as error:
        raise httpx2.RemoteProtocolError(f"what came is not HTTP: {_why(error)}") from None
    except OSError as error:
        raise httpx2.NetworkError(str(error)) from error
    except aiohttp.ClientError as error:
        raise httpx2.NetworkError(type(error).__name__) from error


def _why(error: aiohttp.ClientError) -> str:
    """Return what the parser says, without the bytes that it shows below."""
    cause = error.__cause__ or error
    said = str(getattr(cause, "message", cause)).partition("\n\n")[0].partition(" when ")[0]
    return " ".join(said.split()).rstrip(":")
