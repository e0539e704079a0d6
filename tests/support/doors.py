"""The door over HTTP, on a port of this machine, and those who stand at it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx2

from holdfast.doors.http.serving import Listening, bind, guarded, make_server
from holdfast.doors.tokens import Scopes, Tokens
from holdfast.intake.connection import Connection

Json = dict[str, Any]
EVERYTHING = Scopes(decide=True, dollars=Decimal(10))


@dataclass
class Caller:
    """A program with a token."""

    client: httpx2.AsyncClient
    told: list[Mapping[str, str]] = field(default_factory=list)
    """The events of all its streams, as they came."""

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(path, headers=_named(headers))

    async def post(self, path: str, body: object = None, **headers: str) -> httpx2.Response:
        content = b"" if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} | _named(headers)
        return await self.client.post(path, content=content, headers=kind)

    async def streamed(self, path: str, body: object) -> list[Json]:
        """Post, and return the data of all events that come back."""
        content, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
        async with self.client.stream("POST", path, content=content, headers=kind) as answer:
            assert answer.status_code == 200, await answer.aread()
            lines = [line async for line in answer.aiter_lines()]
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    async def events(
        self, path: str, after: str = "", most: int | None = None, until: str = ""
    ) -> list[Mapping[str, str]]:
        """Return the events of a stream, until it ends or is cut: after so many, or the first that
        has `until` in it.
        """
        found: list[Mapping[str, str]] = []
        headers = {"Last-Event-ID": after} if after else {}
        async with self.client.stream("GET", path, headers=headers) as answer:
            if answer.status_code == 204:
                return []
            assert answer.status_code == 200, await answer.aread()
            fields: dict[str, str] = {}
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if line and name:
                    fields[name] = value
                elif "data" in fields:
                    found.append(fields)
                    self.told.append(fields)
                    if len(found) == most or (until and until in fields["data"]):
                        break
                    fields = {}
        return found


@dataclass
class Door:
    """A served door."""

    address: str
    tokens: Tokens
    own: str = ""
    clients: list[httpx2.AsyncClient] = field(default_factory=list)

    def caller(self, name: str = "ci", scopes: Scopes = EVERYTHING, **more: Any) -> Caller:
        return self.bearing(self.tokens.add(name, scopes), **more)

    def bearing(self, secret: str, **more: Any) -> Caller:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        client = httpx2.AsyncClient(
            base_url=self.address, headers=headers | more.pop("headers", {}), timeout=60, **more
        )
        self.clients.append(client)
        return Caller(client)


@asynccontextmanager
async def served(connection: Connection, **listening: Any) -> AsyncIterator[Door]:
    """Serve a door on a free port for as long as the block lasts."""
    tokens = Tokens(connection.settings)
    where = Listening(**{"rate": 10_000.0, **listening})
    app, own = guarded(connection, where, tokens)
    bound = bind(where)
    server = make_server(app, where)
    door = Door(where.address(bound), tokens, own)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.01)
        yield door
    finally:
        for client in door.clients:
            await client.aclose()
        server.should_exit = True
        server.force_exit = True
        await serving


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
