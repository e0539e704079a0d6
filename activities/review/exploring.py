"""Run an analyser over both trees of a change, in a process of its own with a time limit."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import anyio.to_thread

from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.review.analysing.lens import Analyser, Parsed
from holdfast.activities.review.examination import OUTPUT_BYTES
from holdfast.contracts.errors import LensFailed
from holdfast.untrusted.process import ProgramStopped, run

SECONDS = 60.0
"""What it may take, if the subtask has as much left."""
SHARE = 0.8
"""Part of that after which the program ends by itself and tells what it has."""


async def explore(analyser: Analyser, snapshot: Snapshot, deadline: float) -> Parsed:
    """Return what the analyser says of a change; nothing is read if there is no base. Raise
    LensFailed if its program does not work, or took too long.
    """
    assert analyser.explore is not None and analyser.parse is not None
    if analyser.lacking:
        raise LensFailed(f"{analyser.name}: {analyser.lacking}")
    if not snapshot.manifest.base:
        return Parsed(read=0)
    seconds = min(max(deadline - time.monotonic(), 1.0), SECONDS)
    command = await anyio.to_thread.run_sync(analyser.explore, snapshot, SHARE * seconds)
    with tempfile.TemporaryDirectory(prefix="lens-") as empty:
        try:
            finished = await run(
                command.arguments,
                folder=Path(empty),
                environment={"PATH": os.defpath, "HOME": empty, "TMPDIR": empty},
                seconds=seconds,
                stdin=command.stdin,
                output_limit=OUTPUT_BYTES,
            )
        except ProgramStopped as error:
            raise LensFailed(f"{analyser.name}: its program {error}") from None
    if finished.code:
        said = finished.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise LensFailed(f"{analyser.name}: exit code {finished.code} {said[-1]}"[:300])
    try:
        return await anyio.to_thread.run_sync(analyser.parse, finished.stdout)
    except (ValueError, KeyError, TypeError) as error:
        raise LensFailed(f"{analyser.name}: its program failed: {error}"[:300]) from None
