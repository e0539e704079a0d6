"""The other processes of a worker. One interpreter computes on one core, so a worker is several
processes: each the same program with the same arguments and `--sibling`, started by the first one.

They ask the same queues as it does, and have none of its other duties. None outlives it for long:
each reads a pipe whose other end only the first holds, and the kernel closes that with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import psutil

OPTION = "--sibling"
PAUSE_SECONDS = 1.0
"""Pause before a process that ended is started again."""
STEADY_SECONDS = 60.0
"""A process that lived this long did not fail at its start."""
MOST_FAILED = 5
"""This many short lives in a row are no accident: the others go on without it."""
ORPHAN_SECONDS = 30.0
"""How long one finishes what it has when the first process was killed: longer than most calls; and
what starts in its stead is meant to have the machine.
"""
log = logging.getLogger("worker")


class Siblings:
    """The other processes of this worker, restarted when they die."""

    def __init__(self, count: int) -> None:
        """Start this many processes at once. Needs a running event loop."""
        self._ending = asyncio.Event()
        self._alive: dict[int, Process] = {}
        # The first process is number 1.
        self._kept = [asyncio.create_task(self._keep(number + 2)) for number in range(count)]

    async def drain(self) -> None:
        """Let each finish its work; return when all have ended."""
        self._ending.set()
        for process in self._alive.values():
            with suppress(ProcessLookupError):
                process.terminate()
        await asyncio.gather(*self._kept)

    async def kill(self) -> None:
        """Kill all at once."""
        self._ending.set()
        for process in self._alive.values():
            with suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*self._kept)

    async def _keep(self, number: int) -> None:
        failed = 0
        while not self._ending.is_set():
            began = time.monotonic()
            how = await self._lived(number)
            if self._ending.is_set():
                return
            failed = 1 if time.monotonic() - began > STEADY_SECONDS else failed + 1
            if failed == MOST_FAILED:
                log.error("process %d %s: not started again after %d times", number, how, failed)
                return
            log.warning("process %d %s: it is started again", number, how)
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_SECONDS):
                    await self._ending.wait()

    async def _lived(self, number: int) -> str:
        """Run one process to its end and return how it ended."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *sys.orig_argv[1:],
                OPTION,
                f"{os.getpid()}.{number}",
                stdin=PIPE,
                # Ctrl-C is for the first one, which then tells them.
                process_group=0,
            )
        except OSError as error:
            return f"could not be started ({error.strerror})"
        log.info("process %d is pid %d", number, process.pid)
        self._alive[number] = process
        if self._ending.is_set():
            # It was just started, and has nothing in hand.
            process.kill()
        code = await process.wait()
        del self._alive[number]
        return f"(pid {process.pid}) ended with {code}"


def number_of(given: str) -> int:
    """Return the number of a sibling (from 2) by the value that it was started with."""
    return int(given.rpartition(".")[2])


class Parent(threading.Thread):
    """Waits, in a sibling, for the end of the first process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.tell: Callable[[], object] | None = None
        """Says so to whoever can drain; None: nothing was taken yet."""
        self._pipe = os.dup(0)
        # What this process starts may read its standard input, and is to find an end there.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)

    def run(self) -> None:
        os.read(self._pipe, 1)
        if self.tell is not None:
            with suppress(RuntimeError):
                self.tell()
            time.sleep(ORPHAN_SECONDS)
        os._exit(0)


@cache
def watch_parent() -> Parent:
    """End this sibling at once when the first process is gone, until there is something to drain.

    Call it before anything slow: on a busy machine the imports alone can take longer than a sibling
    may outlive the first process.
    """
    parent = Parent()
    parent.start()
    return parent


def end_with_parent(told: Callable[[], None]) -> None:
    """Call `told` on this event loop when the first process is gone, and end this sibling soon
    after in any case.
    """
    loop = asyncio.get_running_loop()
    watch_parent().tell = partial(loop.call_soon_threadsafe, told)


def siblings_of(state_dir: Path, parent: int | None = None) -> Iterator[psutil.Process]:
    """Yield the processes that work for a state directory, of one first process or of any, alive or
    not.

    A process counts only if it is in the session that its first process leads: a claim in its
    environment is not enough.
    """
    for process in psutil.process_iter(["cmdline", "status"]):
        command: list[str] = process.info["cmdline"] or []
        *_, place, option, first = ["", "", "", *command]
        if (place, option) != (str(state_dir), OPTION):
            continue
        with suppress(OSError):
            session = os.getsid(process.pid)
            ours = first.partition(".")[0] == str(session) and parent in (None, session)
            if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
                yield process
