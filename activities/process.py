"""Running a program over untrusted material: bounded in time and output, killed with all its
children.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

OUTPUT_LIMIT = 64 * 1024 * 1024
CHUNK = 256 * 1024


class ProgramStopped(Exception):
    """The program was killed: too slow, or it said too much."""


@dataclass(frozen=True)
class Finished:
    """How a program ended by itself."""

    code: int
    stdout: bytes
    stderr: bytes


async def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    output_limit: int = OUTPUT_LIMIT,
) -> Finished:
    """Run to the end, in a process group of its own that is dead when this returns, raises or is
    cancelled. ProgramStopped after `seconds` or beyond `output_limit` bytes of output.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            _, stdout, stderr, code = await asyncio.gather(
                _feed(process.stdin, stdin),
                _drain(process.stdout, output_limit),
                _drain(process.stderr, output_limit),
                process.wait(),
            )
    except TimeoutError:
        raise ProgramStopped(f"took longer than {seconds:.0f} s") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return Finished(code, stdout, stderr)


async def _feed(stream: asyncio.StreamWriter | None, content: bytes) -> None:
    assert stream is not None
    # A program that ends without reading everything says so by its exit code.
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(content)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _drain(stream: asyncio.StreamReader | None, limit: int) -> bytes:
    assert stream is not None
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(CHUNK):
        size += len(part)
        if size > limit:
            raise ProgramStopped(f"wrote more than {limit // (1024 * 1024)} MiB")
        parts.append(part)
    return b"".join(parts)
