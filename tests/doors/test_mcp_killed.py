"""A host and its door killed in the middle of a run: another host finds the run, its questions and
its answer, at a door of its own. Real processes over stdio and over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import down
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from hosting import data, text

pytestmark = [pytest.mark.anyio, pytest.mark.long]
GOAL = {"goal": "Which of the two rates is higher, and by how much?", "dollars": 1}


@pytest.fixture
async def environment(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """A deployment of its own, whose models take a moment for each answer."""
    state = tmp_path / "state"
    async with Simulator(Script(latency=(0.5, 0.5))) as simulator:
        yield os.environ | {
            "HOLDFAST_STATE_DIR": str(state),
            "HOLDFAST_IDLE_SECONDS": "60",
            "ANTHROPIC_BASE_URL": simulator.url,
            "ANTHROPIC_API_KEY": "scripted-key",
        }
        await asyncio.to_thread(down, Settings(_env_file=None, state_dir=state))


def door(environment: dict[str, str], folder: Path, *options: str) -> StdioServerParameters:
    arguments = [str(HOME / "starter.py"), "mcp", "--embedded", "--may-spend", "1", *options]
    return StdioServerParameters(
        command=sys.executable, args=arguments, env=environment, cwd=folder
    )


def door_processes() -> list[psutil.Process]:
    return [
        each
        for each in psutil.Process().children(recursive=True)
        if each.cmdline()[-1:] == ["--may-decide"]
    ]


async def finished(host: Client, run_id: str) -> Any:
    while True:
        looked = await host.call_tool("look", {"id": run_id})
        if data(looked)["status"] not in ("working", "input_required"):
            return looked


async def test_another_host_goes_on_with_the_run_of_a_host_that_was_killed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    begun = {**GOAL, "approval": "always", "id": "left-behind"}
    with pytest.raises(Exception):  # noqa: B017
        async with Client(door(environment, tmp_path, "--may-decide")) as host:
            assert data(await host.call_tool("run", begun))["status"] == "working"
            (process,) = door_processes()
            process.send_signal(signal.SIGKILL)
            await host.call_tool("look", {"id": "left-behind"})
    async with Client(door(environment, tmp_path, "--may-decide")) as other:
        (found,) = data(await other.call_tool("look"))["runs"]
        assert found["id"] == "left-behind"
        assert data(await other.call_tool("run", begun))["id"] == "left-behind"
        while data(await other.call_tool("look", {"id": "left-behind"}))["status"] == "working":
            pass
        await other.call_tool("decide", {"id": "left-behind", "decision": "approve"})
        assert data(await other.call_tool("look", {"id": "left-behind", "wait_seconds": 0}))
    async with Client(door(environment, tmp_path)) as third:
        ended = await finished(third, "left-behind")
        assert data(ended)["outcome"] == "complete" and "(scripted) Answer" in text(ended)
        assert len(data(await third.call_tool("look"))["runs"]) == 1


async def test_the_command_listens_on_loopback_alone_and_prints_what_a_host_needs(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    starter = [sys.executable, str(HOME / "starter.py")]
    command = [*starter, "mcp", "--http", "--port", str(port)]

    async def run(*arguments: str) -> tuple[str, str]:
        process = await asyncio.create_subprocess_exec(
            *arguments, stdout=-1, stderr=-1, env=environment, cwd=tmp_path
        )
        out, said = await process.communicate()
        return out.decode(), said.decode()

    assert "there is no token yet; make one of: " in (await run(*command))[1]
    token = (await run(*starter, "token", "new", "laptop"))[0].strip()
    out, said = await run(*command, "--print-config")
    entry = json.loads(out)["mcpServers"]["holdfast"]
    assert entry["headers"]["Authorization"] == "Bearer ${MCP_HOLDFAST_TOKEN}"
    assert "MCP_HOLDFAST_TOKEN" in said and token not in out + said
    serving = await asyncio.create_subprocess_exec(
        *command, "--embedded", stdout=-1, stderr=-1, env=environment, cwd=tmp_path
    )
    try:
        assert serving.stderr
        first = await serving.stderr.readline()
        assert first.decode() == f"MCP at {entry['url']}\n"
        bearer = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=bearer) as http:
            transport = streamable_http_client(entry["url"], http_client=http)
            async with Client(transport) as host:
                assert len((await host.list_tools()).tools) == 6
                assert data(await host.call_tool("look"))["runs"] == []
        listening = psutil.Process(serving.pid).net_connections("tcp")
        assert {each.laddr.ip for each in listening if each.status == "LISTEN"} == {"127.0.0.1"}
        taken = f"--port {port}: Address already in use; name another port\n"
        assert await run(*command) == ("", taken)
    finally:
        serving.terminate()
        _, left = await serving.communicate()
    assert token not in left.decode()
