"""Hosts of coding agents, played by the official client of MCP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Literal

from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Implementation, Request, RequestParams, Result
from pydantic import ConfigDict

from holdfast.doors.mcp.leash import Leash
from holdfast.doors.mcp.opening import Opening
from holdfast.doors.mcp.serving import server_of
from holdfast.doors.mcp.tasks import IDENTIFIER
from holdfast.intake.connection import Connection

# Tests share a server, and with it a day.
SPENDS = Leash(Decimal(2), Decimal(1_000))
DECIDES = Leash(Decimal(2), Decimal(1_000), may_decide=True)
Speak = Callable[..., Client]


class Anything(Result):
    """A result as it came."""

    model_config = ConfigDict(extra="allow")

    def plain(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, mode="json", exclude_none=True)


class TaskMade(Anything):
    result_type: Literal["task"] = "task"


class AnyParams(RequestParams):
    model_config = ConfigDict(extra="allow")


class AnyRequest(Request[AnyParams, str]):
    method: str


class SpeaksTasks(ClientExtension):
    """A host that takes tasks, and polls them itself."""

    identifier = IDENTIFIER

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=TaskMade, resolve=self._never),)

    async def _never(self, made: TaskMade, context: ClaimContext) -> CallToolResult:
        raise AssertionError("these tests poll by themselves")


def opened(connection: Connection, leash: Leash = SPENDS, **client: Any) -> Client:
    """A host in this process, at a door over an open connection."""

    @asynccontextmanager
    async def opener() -> Any:
        yield connection

    client.setdefault("client_info", Implementation(name="Test Host!", version="1"))
    return Client(server_of(Opening(connection.settings, opener), leash), **client)


def data(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.structured_content
    return found


def text(result: Any) -> str:
    return "\n".join(each.text for each in result.content)


async def ask(host: Client, method: str, **params: Any) -> dict[str, Any]:
    """Send a request by its method; its result as it came."""
    request = AnyRequest(method=method, params=AnyParams.model_validate(params))
    return (await host.session.send_request(request, Anything)).plain()


async def as_task(host: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool of a door of 2026-07-28 that answers with a task."""
    made = await host.session.call_tool(name, arguments, allow_claimed=True)
    assert isinstance(made, TaskMade)
    return made.plain()
