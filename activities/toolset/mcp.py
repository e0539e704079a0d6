"""The tools of MCP servers, as tools like any other: `mcp__SERVER__TOOL`.

Each listing and each call is a conversation of its own in a child process: what a server says, how
long it says nothing, and what it leaves behind when it dies is bounded there, and no session
outlives a call. No claim of a server about its tools is believed: each may have effects, and none
can be run twice for nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

from pydantic import JsonValue

from holdfast.activities.toolset.servers import Server
from holdfast.activities.toolset.tool import NAME, Here, Result, Tool, ToolError, describe_misfits
from holdfast.calls.envelopes import defang
from holdfast.text import for_terminal, one_line
from holdfast.untrusted.process import Finished, ProgramStopped, run

logger = logging.getLogger(__name__)

CLIENT = Path(__file__).resolve().parent / "mcp_client.py"
PREFIX, PART = "mcp", "__"
SECONDS = 60.0
"""Time limit of a server's answer, with its start, without its computing time."""
LISTING_SECONDS = 8.0
"""The same for a server to list its tools: a run that is prepared waits for it."""
MOST_SECONDS, MOST_LISTING_SECONDS = 120.0, 60.0
"""The limits of both, however long a server computes."""
CLIENT_SECONDS = 20.0
"""Extra time for the client to start and to end: its imports alone take a second."""
OUTPUT = 16 * 1024 * 1024
AT_ONCE = 8
"""Calls of one worker; most of each is waiting."""
LISTED_AT_ONCE = 2 * (os.cpu_count() or 2)
"""Servers of one worker that are asked for their tools at once. Starting one takes a core for a
second or two: more of them side by side would make each too late.
"""
DESCRIPTION_LETTERS = 2_000
COMPLAINT_LETTERS = 500
SENTENCES = ("description", "title", "$comment")
"""Parts of a schema that are words for a reader; all else must stay as its server wrote it."""
UNKNOWN = "; whether the tool did what it was called for is not known"
INHERITED = (
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""Variables of the worker's environment that a server is given; none of them is a key of ours."""

Failure = Literal["", "late", "gone"]
"""`late` if the server may answer yet, `gone` if there is nothing to ask."""
_Places = WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
_calling, _listing = _Places(), _Places()


class ServerFailed(ToolError):
    """A server does not start, answer, or speak as it should. The message, for a model, names the
    server; `told` is for its operator, with the command and what the server complained of.
    """

    def __init__(
        self,
        server: Server,
        why: str,
        complaint: str = "",
        *,
        kind: Failure = "",
        unsure: bool = False,
    ) -> None:
        why += UNKNOWN * unsure
        super().__init__(f"the MCP server {server.name} {why}", unsure=unsure)
        self.kind = kind
        self.complaint = complaint
        last = f"; it said: {complaint}" if complaint else ""
        self.told = one_line(f"the MCP server {server.name} ({server.written}) {why}{last}")


Listed = Mapping[str, Any]
"""A tool as the client lists it: `name`, `wire`, `description`, `schema`, `flaw`."""


@dataclass(frozen=True)
class Offered:
    """Tools of a server, and those that cannot be offered, each with the reason."""

    tools: tuple[Tool, ...]
    notes: tuple[str, ...] = ()
    flaws: Mapping[str, str] = field(default_factory=dict)
    """Faults of the tools that are left out, by name."""
    listed: Sequence[Listed] = ()
    """The list itself, as the client handed it on."""


async def list_tools(server: Server) -> Offered:
    """Ask a server for its tools. Raise ServerFailed if it does not list them."""
    answer = await _converse(server, "", {})
    return make_offer(server, answer["tools"])


def make_offer(server: Server, listed: Sequence[Listed]) -> Offered:
    """Return what a server offers by the list of its tools."""
    tools: dict[str, Tool] = {}
    flaws: dict[str, str] = {}
    notes = []
    for each in listed:
        name = PART.join((PREFIX, server.name, each["wire"]))
        schema = _defuse_schema(each["schema"])
        if flaw := _find_flaw(name, each, schema, tools):
            flaws[name] = one_line(flaw)
            notes.append(one_line(f"{server.name}: its tool {each['name'][:100]!r} {flaw}"))
            continue
        said = _defuse(each["description"][:DESCRIPTION_LETTERS])
        description = f"A tool of the MCP server {server.name}, which describes it so: {said}"
        tools[name] = make_tool(server, name, description, schema)
    return Offered(tuple(tools.values()), tuple(dict.fromkeys(notes)), flaws, listed)


def _defuse_schema(schema: Any) -> Any:
    """Return a schema whose sentences can write no mark of a prompt; names and values stay as they
    are.
    """
    if isinstance(schema, list):
        return [_defuse_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _defuse(value)
        if key in SENTENCES and isinstance(value, str)
        else _defuse_schema(value)
        for key, value in schema.items()
    }


def _defuse(said: str) -> str:
    return defang(for_terminal(said))


def _find_flaw(
    name: str, told: Mapping[str, Any], schema: object, others: Mapping[str, Tool]
) -> str:
    """Return why a tool is left out, as its server describes it; empty: it is not."""
    if not NAME.fullmatch(name):
        return "has a name that is too long: with its server's it may have 64 letters"
    if name in others:
        return "has the same name as another one, but for signs that no name may have"
    written = json.dumps(schema, ensure_ascii=False)
    if not told["flaw"] and defang(written) != written:
        return "has a mark of our prompts among the names or values of its arguments"
    return str(told["flaw"])


def find_server(name: str, servers: Mapping[str, Server]) -> Server | None:
    """Return the server of a tool by the tool's name; None if there is none."""
    prefix, _, rest = name.partition(PART)
    return servers.get(rest.partition(PART)[0]) if prefix == PREFIX else None


def make_tool(
    server: Server,
    name: str,
    description: str = "",
    schema: dict[str, JsonValue] | None = None,
) -> Tool:
    """Return a tool of a server by its whole name. To be run it needs neither description nor
    schema: the client checks the arguments by the schema that the server lists.
    """

    async def ask(_: Here, /, **arguments: JsonValue) -> Result:
        tool = name.split(PART, 2)[2]
        answer = await _converse(server, tool, arguments)
        if "unfit" in answer:
            raise ToolError(describe_misfits(f"arguments{each}" for each in answer["unfit"]))
        return Result(answer["text"] or "It answered nothing.", answer["is_error"], answer["data"])

    return Tool(
        name=name,
        description=description,
        schema=schema or {},
        function=ask,
        effects=True,
        idempotent=False,
        volatile=True,
        seconds=MOST_SECONDS + 2 * CLIENT_SECONDS,
        approval=server.asks(name.split(PART, 2)[2]),
        needs=(),
    )


async def _converse(
    server: Server, tool: str, arguments: Mapping[str, JsonValue]
) -> dict[str, Any]:
    """Return what the client answers. Raise ServerFailed if that is an error."""
    if server.flaw:
        raise ServerFailed(server, f"cannot be used: {server.flaw}", kind="gone")
    seconds = SECONDS if tool else LISTING_SECONDS
    most = max(seconds, MOST_SECONDS if tool else MOST_LISTING_SECONDS)
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    asked = {
        "command": server.command,
        "environment": inherited | dict(server.environment),
        "url": server.url,
        "headers": dict(server.headers),
        "tool": tool,
        "asking": () if isinstance(server.approval, bool) else server.approval,
        "arguments": dict(arguments),
        "seconds": seconds,
        "most": most,
    }
    try:
        async with _place(_calling if tool else _listing, AT_ONCE if tool else LISTED_AT_ONCE):
            finished = await run(
                (sys.executable, "-I", "-B", "-X", "utf8", str(CLIENT)),
                folder=server.folder,
                environment=inherited,
                seconds=most + CLIENT_SECONDS,
                stdin=json.dumps(asked).encode(),
                output_limit=OUTPUT,
            )
    except ProgramStopped as error:
        # On a busy machine the client is ended before it counts its own seconds.
        late = f"did not answer within {most:g} s" if error.late else f"was ended: it {error}"
        kind: Failure = "late" if error.late else ""
        raise ServerFailed(server, late, kind=kind, unsure=bool(tool)) from None
    return _answer(server, finished)


def _answer(server: Server, finished: Finished) -> dict[str, Any]:
    complaint = _end(finished.stderr.decode("utf-8", "replace").strip())
    try:
        answer = json.loads(finished.stdout)
    except (ValueError, RecursionError):
        # The client itself: it had no memory left, or the server made its library break down.
        raise ServerFailed(server, "made its client break down", complaint) from None
    if "error" in answer:
        begun = bool(answer.get("begun"))
        kind = answer.get("kind", "")
        raise ServerFailed(server, one_line(answer["error"]), complaint, kind=kind, unsure=begun)
    assert isinstance(answer, dict)
    return answer


def _end(said: str) -> str:
    """Return the last of what a server complained of, from the beginning of a word."""
    end = said[-COMPLAINT_LETTERS:]
    return said if end == said else f"… {end.partition(' ')[2] or end}"


@asynccontextmanager
async def _place(places: _Places, most: int) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    async with places.setdefault(loop, asyncio.Semaphore(most)):
        yield
