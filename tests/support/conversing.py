"""Conversations with MCP servers, within the process of a test. The client is a program of its own,
and loads in a second what a tester has loaded once; the servers stay programs.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from typing import Any
from unittest import mock

from holdfast.activities.toolset import mcp, mcp_client
from holdfast.untrusted import process


async def run(command: Any, **options: Any) -> process.Finished:
    """Run a program as it is run for a tool, but the client here."""
    if command[-1] != str(mcp.CLIENT):
        return await process.run(command, **options)
    # Whoever checks arguments bounds their time with the one alarm that a process has.
    alarm = signal.getitimer(signal.ITIMER_REAL)
    try:
        answer = await mcp_client.converse(json.loads(options["stdin"]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, *alarm)
    return process.Finished(0, json.dumps(answer).encode(), b"")


@contextlib.contextmanager
def conversing_here() -> Iterator[None]:
    """Let servers be asked without a client of their own."""
    with mock.patch.object(mcp, "run", run):
        yield
