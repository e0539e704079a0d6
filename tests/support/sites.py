"""Web servers of a test, on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """A server; what it was asked for stands in `asked`, with its query and headers."""

    url: str = ""
    asked: list[web.BaseRequest] = field(default_factory=list)

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.asked]


@asynccontextmanager
async def site(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[Site]:
    """A server that answers by `handler` on a free port."""
    made = Site()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        made.asked.append(request)
        return await handler(request)

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, 0).start()
    made.url = f"http://{host}:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()
