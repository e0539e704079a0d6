"""Ending what a test has started and did not come to end."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil


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
