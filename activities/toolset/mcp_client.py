"""Hold one conversation with one MCP server: list its tools, or call one of them.

Reads what is asked as JSON from its standard input and prints the answer as JSON. Runs isolated, as
a program of its own, so it imports nothing of this project: whoever started it ends it with its
whole group, and the server is in that group, with all that it started.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, jsonrpc_message_adapter

MESSAGE_BYTES = 8 * 1024 * 1024
"""The longest message of a server."""
ALL_BYTES = 32 * 1024 * 1024
"""Bytes of all that it says in one conversation."""
TEXT_LETTERS = 2_000_000
MOST_TOOLS = 200
LEAVING_SECONDS = 0.5
"""Time for a server to end by itself, once its input is closed."""
LOOK_SECONDS = 0.25
"""Between two looks at whether the server computes."""
COMPUTING = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
"""At work, or waiting for its turn on a busy machine."""
# Read by its path: whoever runs isolated finds no module beside itself.
_arguments = runpy.run_path(str(Path(__file__).with_name("mcp_arguments.py")))
schema_flaw, unfit = _arguments["flaw"], _arguments["unfit"]
FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


class TooMuch(Exception):
    """The server said more than is read."""


async def converse(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what the server answers, as `tools` or as `text`, `data` and `is_error`; or the
    `error`, its `kind`, and whether the call of the tool had `begun`.
    """
    server, most = over_http(asked) if asked["url"] else over_pipes(asked), asked["most"]
    patience = QuietTime(asked["seconds"], most)
    begun = False
    try:
        async with (
            patience.lasting(),
            Client(server, read_timeout_seconds=most, cache=None) as client,
        ):
            known = await tools_of(client)
            if not asked["tool"]:
                return {"tools": [{**each, "flaw": schema_flaw(each["schema"])} for each in known]}
            tool = next((each for each in known if each["wire"] == asked["tool"]), None)
            if tool is None:
                return {"error": "has no tool of this name (any more)"}
            # A name that is written wrongly would let through what a person is to see.
            if lost := sorted({*asked["asking"]} - {each["wire"] for each in known}):
                return {"error": f"does not offer {', '.join(lost)}, which its approval names"}
            if wrong := unfit(tool["schema"], asked["arguments"]):
                return {"unfit": wrong}
            begun = True
            return render_result(await client.call_tool(tool["name"], asked["arguments"]))
    except BaseException as error:
        # Its library wraps what happened in groups, and cancels the task when a connection ends.
        error = find_first(error)
        return {"error": explain(error, patience.said), "kind": classify(error), "begun": begun}


class QuietTime:
    """Bounds how long a server may say nothing. Seconds in which a server that is a program
    computes do not count, so that a busy machine makes none too late; `most` bounds them all.
    """

    def __init__(self, seconds: float, most: float) -> None:
        self.seconds, self.most, self.quiet = seconds, most, 0.0

    @property
    def said(self) -> float:
        """The seconds that were too few."""
        return self.seconds if self.quiet >= self.seconds else self.most

    @asynccontextmanager
    async def lasting(self) -> AsyncIterator[None]:
        """Raise TimeoutError once the server has been quiet for too long, or has had all the
        time.
        """
        async with asyncio.timeout(self.most) as limit:
            watch = asyncio.create_task(self._watch(limit))
            try:
                yield
            finally:
                watch.cancel()

    async def _watch(self, limit: asyncio.Timeout) -> None:
        before = 0.0
        while self.quiet < self.seconds:
            # Looks are counted, not the clock: on a busy machine we are late, too.
            await asyncio.sleep(LOOK_SECONDS)
            spent, computes = measure_computing()
            if not computes and spent == before:
                self.quiet += LOOK_SECONDS
            before = spent
        limit.reschedule(asyncio.get_running_loop().time())


def measure_computing() -> tuple[float, bool]:
    """Return the processor seconds that the programs below this one have used, and whether one of
    them is at work just now.
    """
    spent, computes = 0.0, False
    for each in psutil.Process().children(recursive=True):
        # One that ends in this moment is no longer at work.
        with suppress(psutil.Error):
            spent += sum(each.cpu_times()[:4])
            computes = computes or each.status() in COMPUTING
    return spent, computes


async def tools_of(client: Client) -> list[dict[str, Any]]:
    """Return the first tools that the server offers, each with the name that endpoints take."""
    found: list[dict[str, Any]] = []
    cursor = None
    while len(found) < MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        found += [
            {
                "name": each.name,
                "wire": FORBIDDEN.sub("_", each.name),
                "description": each.description or each.title or "",
                "schema": each.input_schema,
            }
            for each in page.tools
        ]
        cursor = page.next_cursor
        if not cursor or not page.tools:
            break
    return found[:MOST_TOOLS]


def render_result(result: Any) -> dict[str, Any]:
    """Return a result as text, with what was returned as data."""
    text = "\n".join(map(render_block, result.content))
    if len(text) > TEXT_LETTERS:
        text = f"{text[:TEXT_LETTERS]}… [{len(text):,} letters in all, the rest was not kept]"
    data = result.structured_content
    if data is not None and len(json.dumps(data)) > TEXT_LETTERS:
        data = None
    return {"text": text, "data": data, "is_error": bool(result.is_error)}


def render_block(content: Any) -> str:
    """Return a part of a result as text; what is not text is named with its size."""
    match content.type:
        case "text":
            return str(content.text)
        case "resource" if hasattr(content.resource, "text"):
            return f"[{content.resource.uri}]\n{content.resource.text}"
        case "resource_link":
            return f"[{content.name}: {content.uri}]"
    data = getattr(content, "data", "") or getattr(getattr(content, "resource", None), "blob", "")
    size = len(data) * 3 // 4
    return f"[{content.type}, {size:,} byte{'s' * (size != 1)}, not shown]"


def find_first(error: BaseException) -> BaseException:
    """Return the first thing that went wrong."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def classify(error: BaseException) -> str:
    """Return `late` if another go may be answered, `gone` if nobody is there; else empty."""
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        return "gone"
    late = (TimeoutError, httpx2.TimeoutException, httpx2.TransportError)
    timed_out = isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT
    return "late" if timed_out or isinstance(error, late) else ""


def explain(error: BaseException, seconds: float) -> str:
    """Return what went wrong, in a line."""
    match error:
        case TooMuch():
            return f"said more than {MESSAGE_BYTES >> 20} MiB at once"
        case FileNotFoundError() | PermissionError() | NotADirectoryError():
            return f"cannot be started ({error.strerror})"
        case TimeoutError() | httpx2.TimeoutException():
            return f"did not answer within {seconds:g} s"
        case httpx2.TransportError():
            return "cannot be reached"
        case MCPError() if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            return "broke the conversation off, or answers no more"
        case MCPError():
            return f"refused: {' '.join(str(error).split())[:500]}"
        case httpx2.HTTPStatusError():
            return f"answered with status {error.response.status_code}"
        case asyncio.CancelledError():
            return "ended in the middle of the conversation"
    return f"does not speak MCP as it should ({type(error).__name__})"


# ---------------------------------------------------------------- servers that are programs


@asynccontextmanager
async def over_pipes(asked: dict[str, Any]) -> AsyncIterator[Any]:
    """Start a server as a child in this very group; its complaints go where ours go."""
    process = await asyncio.create_subprocess_exec(
        *asked["command"],
        env=asked["environment"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=MESSAGE_BYTES,
    )
    heard, hear = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    say, said = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(listen, process, heard)
        group.start_soon(speak, process, said)
        try:
            yield hear, say
        finally:
            assert process.stdin
            process.stdin.close()
            with anyio.move_on_after(LEAVING_SECONDS, shield=True):
                await process.wait()
            group.cancel_scope.cancel()


async def listen(process: asyncio.subprocess.Process, heard: Any) -> None:
    """Hand on each message; what is not one is noise. Raise TooMuch for a line without end."""
    assert process.stdout
    size = 0
    async with heard:
        while line := await one_line(process.stdout):
            size += len(line)
            if size > ALL_BYTES:
                raise TooMuch
            with suppress(ValueError):
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                await heard.send(SessionMessage(message))


async def one_line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError as error:
        raise TooMuch from error


async def speak(process: asyncio.subprocess.Process, said: Any) -> None:
    assert process.stdin
    async with said:
        async for each in said:
            line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            # A server that is gone is noticed by what it no longer says.
            with suppress(OSError):
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()


# ---------------------------------------------------------------- servers that are addresses


class Counted(httpx2.AsyncByteStream):
    """A body that raises TooMuch if it is too long."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._body:
            size += len(part)
            if size > MESSAGE_BYTES:
                raise TooMuch
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


class Bounded(httpx2.AsyncHTTPTransport):
    """Counts the bytes of each answer, and takes none that is compressed: it would grow behind
    that.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise TooMuch
        response.stream = Counted(response.stream)
        return response


@asynccontextmanager
async def over_http(asked: dict[str, Any]) -> AsyncIterator[Any]:
    headers = {**asked["headers"], "Accept-Encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=Bounded(), headers=headers, timeout=asked["most"]) as client,
        streamable_http_client(
            asked["url"], http_client=client, max_sse_event_size=MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


def main() -> None:
    """Answer, and end at once with all that the server started: nobody waits for its farewell."""
    answer = asyncio.run(converse(json.load(sys.stdin)))
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
