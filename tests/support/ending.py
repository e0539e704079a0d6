"""Ending what a test has started and did not come to end."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

MOST_SECONDS = 30
"""In which a test that is ended must end."""


def end_all_of(folder: Path) -> list[int]:
    """End every process whose command names this folder of one test; the pids of those."""
    ended = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        given = process.info["cmdline"] or ()
        if process.pid != os.getpid() and any(_within(each, folder) for each in given):
            with suppress(psutil.Error):
                process.kill()
                ended.append(process.pid)
    return ended


def _within(argument: str, folder: Path) -> bool:
    """True for the folder itself, and for what is below it."""
    return f"{argument.rpartition('=')[2]}/".startswith(f"{folder}/")


def end_hanging(runner: Any) -> None:
    """End the coroutine that anyio's runner still stands in, so that fixtures can be ended there:
    it does so itself for an interrupted test, and not for one that pytest-timeout failed.
    """
    task, runner._runner_task = runner._runner_task, None
    if task is None or task.done():
        return
    task.cancel()
    runner._send_stream.close()
    runner.get_loop().run_until_complete(asyncio.wait({task}, timeout=MOST_SECONDS))
