"""Read strangers' bytes in a process of its own, within bounds that no library can forget."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from weakref import WeakKeyDictionary

from holdfast.activities.toolset.tool import ToolError
from holdfast.untrusted.process import CHUNK, ProgramStopped, run, running

logger = logging.getLogger(__name__)

SCRIPTS = Path(__file__).resolve().parent.parent / "tools" / "scripts"
BOUNDED = Path(__file__).resolve().parent / "bounded.py"
MEMORY = 1024 * 1024 * 1024
"""Bytes of addresses that a child may have, its libraries included."""
OUTPUT = 32 * 1024 * 1024
"""Bytes that a child may answer."""
AT_ONCE = max(4, os.cpu_count() or 1)
"""Children of one worker: one that makes an index does not keep all others waiting, and what comes
beyond them waits within its own time.
"""
NO_MEMORY, FAILED = 3, 4
"""Exit codes of `bounded.py`."""

_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class ChildFailed(ToolError):
    """The child was stopped, as it took too long (`late`) or wrote too much, broke down or failed:
    why, in a few words.
    """

    def __init__(self, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


async def in_child(
    script: str | Path,
    request: bytes,
    *,
    seconds: float,
    memory: int = MEMORY,
    writes: int = 0,
) -> bytes:
    """Run `main(request: bytes) -> bytes` of a script in `activities/tools/scripts/`, and return
    its answer.

    It runs isolated, so it imports nothing of this project; it may write files of at most `writes`
    bytes each. When this returns, raises or is cancelled, no process of it is left. Raise
    ChildFailed if it takes longer or needs more memory than it may, breaks down, or raises
    anything.
    """
    command = _command(script, seconds, memory, writes)
    async with _place():
        with _folder(writes) as empty:
            try:
                finished = await run(
                    command,
                    folder=Path(empty or os.sep),
                    environment=_environment(empty),
                    seconds=seconds,
                    stdin=request,
                    output_limit=OUTPUT,
                )
            except ProgramStopped as error:
                raise ChildFailed(str(error), late=error.late) from None
    if finished.code:
        raise _failure(finished.code, finished.stdout.partition(b"\0")[2], memory)
    return finished.stdout


async def lines_of_child(
    script: str | Path, request: bytes, *, seconds: float, memory: int = MEMORY
) -> AsyncGenerator[bytes]:
    """Run `main` of a script as `in_child` does, and yield what it answers while it goes on, some
    whole lines at a time: it is never held whole, and a slow reader makes the child wait. Close it
    (`contextlib.aclosing`) so that no process is left.
    """
    until = time.monotonic() + seconds
    rest = b""
    async with _place():
        command = _command(script, seconds, memory, 0)
        async with running(command, Path(os.sep), _environment(""), request) as process:
            assert process.stdout is not None
            try:
                while part := await _read(process.stdout, until):
                    rest += part
                    if b"\0" in part:
                        continue
                    whole, end, more = rest.rpartition(b"\n")
                    if end:
                        rest = more
                        yield whole
                code = await process.wait()
            except TimeoutError:
                raise ChildFailed(f"took longer than {seconds:.0f} s", late=True) from None
    if code:
        raise _failure(code, rest.partition(b"\0")[2], memory)
    if rest:
        yield rest


async def _read(stream: asyncio.StreamReader, until: float) -> bytes:
    # A bound around the whole would be one around whoever reads the lines, too.
    async with asyncio.timeout(max(until - time.monotonic(), 0)):
        return await stream.read(CHUNK)


def _command(script: str | Path, seconds: float, memory: int, writes: int) -> tuple[str, ...]:
    # Computing is bounded for a child whose worker was killed; two threads of it may compute.
    bounds = {"memory": memory, "seconds": 2 * round(seconds + 1), "writes": writes}
    options = ("-I", "-B", "-X", "utf8")
    return (
        sys.executable, *options, str(BOUNDED), str(SCRIPTS / script), json.dumps(bounds)
    )  # fmt: skip


def _environment(empty: str) -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": empty or os.devnull, "TMPDIR": empty or os.devnull}


def _failure(code: int, said: bytes, memory: int) -> ChildFailed:
    """Return how a child failed, by its exit code and what it said of an error."""
    if code == NO_MEMORY:
        return ChildFailed(f"needed more than {memory >> 20} MiB of memory")
    if code == FAILED:
        kind, _, more = said.decode("utf-8", "replace").partition("\n")
        logger.info("a child failed: %s", more[-2_000:])
        return ChildFailed(f"could not be read ({kind[:100]})")
    if code == -signal.SIGXCPU:
        return ChildFailed("needed too much computing")
    return ChildFailed(f"made its reader break down (exit code {code})")


@asynccontextmanager
async def _place() -> AsyncIterator[None]:
    places = _places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
    async with places:
        yield


def _folder(writes: int) -> AbstractContextManager[str]:
    """Return an empty folder for a child that may write; none for others, since a worker that is
    killed would leave it behind.
    """
    return tempfile.TemporaryDirectory(prefix="tool-") if writes else nullcontext("")
