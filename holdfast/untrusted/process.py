"""Running a program over untrusted material: bounded in time, memory and output; killed whole."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

OUTPUT_LIMIT = 64 * 1024 * 1024
MEMORY_LIMIT = 2 * 1024 * 1024 * 1024
"""Bytes that each process of a program may have of its own; what it maps of files counts for none.
A repository of some kilobytes can make git ask for all that a machine has.
"""
CHUNK = 256 * 1024
DISCARD_SECONDS = 5.0


class ProgramStopped(Exception):
    """The program was killed: it was too slow, or wrote too much."""

    def __init__(self, why: str, *, late: bool = False) -> None:
        super().__init__(why)
        self.late = late


@dataclass(frozen=True)
class Finished:
    """How a program ended by itself."""

    code: int
    stdout: bytes
    stderr: bytes
    cut: bool = False
    """True if it wrote more than the limit and was killed; `stdout` is then the beginning."""


async def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    output_limit: int = OUTPUT_LIMIT,
    take_beginning: bool = False,
) -> Finished:
    """Run a program to its end in a process group of its own, which is dead when this returns,
    raises or is cancelled.

    ProgramStopped after `seconds` or beyond `output_limit` bytes of output, unless
    `take_beginning`. On Linux it gets no more memory than MEMORY_LIMIT.
    """
    process = await _start(command, folder, environment)
    try:
        async with asyncio.timeout(seconds):
            (stdout, out_cut), (stderr, said_cut), code = await _spoken(
                process, stdin, output_limit
            )
    except TimeoutError:
        raise ProgramStopped(f"took longer than {seconds:.0f} s", late=True) from None
    finally:
        _kill(process.pid)
        await asyncio.gather(process.wait(), _discard(process.stdout), _discard(process.stderr))
    cut = out_cut or said_cut
    if cut and not take_beginning:
        raise ProgramStopped(f"wrote more than {output_limit >> 20} MiB")
    return Finished(code, stdout, stderr, cut)


@asynccontextmanager
async def running(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: bytes
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield a program as `run` runs it, for whoever reads its output while it goes on; it is dead
    afterwards. `stdin` is short.
    """
    process = await _start(command, folder, environment, stderr=asyncio.subprocess.DEVNULL)
    try:
        await _feed(process.stdin, stdin)
        yield process
    finally:
        _kill(process.pid)
        await asyncio.gather(process.wait(), _discard(process.stdout))


async def _start(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stderr: int = asyncio.subprocess.PIPE,
) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
    _bound(process.pid)
    return process


def _bound(pid: int) -> None:
    """Limit the memory of a program just started. Doing it before would run our code between fork
    and exec, among a worker's threads.
    """
    # Only Linux sets the limits of another process.
    if sys.platform == "linux":
        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


async def _spoken(
    process: asyncio.subprocess.Process, stdin: bytes, limit: int
) -> tuple[tuple[bytes, bool], tuple[bytes, bool], int]:
    """Return both outputs of a program, each with whether it was too long, and the exit code."""
    _, out, said, code = await asyncio.gather(
        _feed(process.stdin, stdin),
        _drain(process.stdout, limit, process.pid),
        _drain(process.stderr, limit, process.pid),
        process.wait(),
    )
    return out, said, code


async def _feed(stream: asyncio.StreamWriter | None, content: bytes) -> None:
    assert stream is not None
    # A program that ends without reading everything says so by its exit code.
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(content)
        await stream.drain()
        # Not waited for: a time limit meanwhile would cancel the pipe's own future, which asyncio
        # cannot take when the pipe then ends.
        stream.close()


async def _discard(stream: asyncio.StreamReader | None) -> None:
    """Read what a dead program left in its pipe, which closes our end."""
    assert stream is not None
    with suppress(TimeoutError):
        # Bounded, in case a grandchild left the group and holds the other end.
        async with asyncio.timeout(DISCARD_SECONDS):
            while await stream.read(CHUNK):
                pass


async def _drain(stream: asyncio.StreamReader | None, limit: int, group: int) -> tuple[bytes, bool]:
    """Return what the program writes up to the limit, and whether there was more: then it is
    killed.
    """
    assert stream is not None
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(CHUNK):
        size += len(part)
        if size > limit:
            _kill(group)
        else:
            parts.append(part)
    return b"".join(parts), size > limit
