"""Read strangers' bytes in a process of its own, within bounds that no library can forget."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from weakref import WeakKeyDictionary

from holdfast.activities.toolset.tool import ToolError
from holdfast.untrusted.process import Finished, ProgramStopped, run

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
    """The child was stopped, broke down or failed: why, in a few words."""


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
    # Computing is bounded for a child whose worker was killed; two threads of it may compute.
    bounds = {"memory": memory, "seconds": 2 * round(seconds + 1), "writes": writes}
    command = (
        sys.executable,
        "-I",
        "-B",
        "-X",
        "utf8",
        str(BOUNDED),
        str(SCRIPTS / script),
        json.dumps(bounds),
    )
    async with _place():
        with _folder(writes) as empty:
            try:
                finished = await run(
                    command,
                    folder=Path(empty or os.sep),
                    environment={
                        "PATH": os.defpath,
                        "HOME": empty or os.devnull,
                        "TMPDIR": empty or os.devnull,
                    },
                    seconds=seconds,
                    stdin=request,
                    output_limit=OUTPUT,
                )
            except ProgramStopped as error:
                raise ChildFailed(str(error)) from None
    return _answer(finished, memory)


def _answer(finished: Finished, memory: int) -> bytes:
    if finished.code == 0:
        return finished.stdout
    if finished.code == NO_MEMORY:
        raise ChildFailed(f"needed more than {memory >> 20} MiB of memory")
    said = finished.stdout.decode("utf-8", "replace")
    if finished.code == FAILED:
        kind, _, more = said.partition("\n")
        logger.info("a child failed: %s", more[-2_000:])
        raise ChildFailed(f"could not be read ({kind[:100]})")
    if finished.code == -signal.SIGXCPU:
        raise ChildFailed("needed too much computing")
    raise ChildFailed(f"made its reader break down (exit code {finished.code})")


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
