"""Run one analyser over a snapshot: in portions, within the time there is, and past files that make
its tool fail.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio.to_thread

from holdfast.activities.review.analysing.lens import Analyser, Parsed, Sighting
from holdfast.activities.review.analysing.sharing import fair_share
from holdfast.contracts.errors import LensFailed
from holdfast.untrusted.process import ProgramStopped, run

PORTION_FILES = 400
PORTION_BYTES = 400_000
"""Bytes of the arguments of one command; the kernel's limit for all of them is commonly 2 MiB."""
PORTIONS_AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
"""Commands that one lens runs at once; the other lenses run beside it."""
OUTPUT_BYTES = 16 * 1024 * 1024
"""Bytes read of a script, which cuts what its tool says."""
MOST_SIGHTINGS = 50_000
"""Sightings that one lens keeps, from all its portions together."""
SECONDS_PER_RUN = 15.0
SECONDS_PER_FILE = 0.25
FAILURES = 60
"""Runs that may fail before the tool itself counts as broken. Finding one bad file in a full
portion takes about twice the portion's binary logarithm.
"""


@dataclass
class Examination:
    """One analyser's go at some files, by absolute path; `deadline` is on the monotonic clock."""

    analyser: Analyser
    deadline: float
    failures: list[str] = field(default_factory=list)

    async def look_at(self, paths: Sequence[str]) -> Parsed:
        """Return everything the tool says of the files, suppressed sightings marked. Raise
        LensFailed if it is the tool that does not work.
        """
        honoured = await self._in_portions(paths, honour=True)
        if paths and len(self.failures) and len(honoured.not_parsed) == len(paths):
            raise LensFailed(f"{self.analyser.name}: {self.failures[-1]}")
        if self.analyser.marker is None:
            return honoured
        marked = await anyio.to_thread.run_sync(self._find_marked, paths)
        everything = await self._in_portions(marked, honour=False)
        shown = {_identity(each) for each in honoured.sightings}
        hidden = tuple(
            replace(each, suppressed=True)
            for each in everything.sightings
            if _identity(each) not in shown
        )
        return replace(honoured, sightings=honoured.sightings + hidden)

    async def _in_portions(self, paths: Sequence[str], *, honour: bool) -> Parsed:
        slots = asyncio.Semaphore(PORTIONS_AT_ONCE)

        async def look(portion: Sequence[str]) -> Parsed:
            async with slots:
                return await self._run(portion, honour)

        try:
            async with asyncio.TaskGroup() as group:
                runs = [group.create_task(look(portion)) for portion in _split(paths)]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return await anyio.to_thread.run_sync(_join, [run.result() for run in runs])

    async def _run(self, paths: Sequence[str], honour: bool) -> Parsed:
        """Run the tool once; if it fails, over each half, down to the file that is at fault."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.failures.append("the time limit was reached")
            return Parsed(not_parsed=tuple(paths), read=len(paths))
        try:
            return await self._once(paths, honour, left)
        except (ProgramStopped, ValueError, KeyError, TypeError) as error:
            self.failures.append(f"its tool failed: {error}"[:300])
        if len(self.failures) > FAILURES:
            raise LensFailed(f"{self.analyser.name}: {self.failures[-1]}")
        if len(paths) == 1:
            return Parsed(not_parsed=tuple(paths), read=1)
        middle = len(paths) // 2
        halves = [await self._run(half, honour) for half in (paths[:middle], paths[middle:])]
        return _join(halves)

    async def _once(self, paths: Sequence[str], honour: bool, left: float) -> Parsed:
        analyser = self.analyser
        assert analyser.command is not None and analyser.parse is not None
        command = analyser.command(paths, honour)
        with tempfile.TemporaryDirectory(prefix="lens-") as empty:
            finished = await run(
                command.arguments,
                folder=Path(empty),
                environment={"PATH": os.defpath, "HOME": empty, "TMPDIR": empty},
                seconds=min(left, SECONDS_PER_RUN + SECONDS_PER_FILE * len(paths)),
                stdin=command.stdin,
                output_limit=OUTPUT_BYTES,
            )
        if finished.code:
            said = finished.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
            raise ValueError(f"exit code {finished.code} {said[-1]}")
        parsed = await anyio.to_thread.run_sync(analyser.parse, finished.stdout)
        read = len(paths) if parsed.read is None else parsed.read
        return replace(parsed, read=read)

    def _find_marked(self, paths: Sequence[str]) -> list[str]:
        marker = self.analyser.marker
        assert marker is not None
        return [path for path in paths if marker.search(Path(path).read_bytes())]


def _identity(sighting: Sighting) -> tuple[str, int, str, str]:
    return sighting.file, sighting.line, sighting.rule, sighting.message


def _split(paths: Sequence[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(path)) + 1
        if portion and (len(portion) == PORTION_FILES or size + length > PORTION_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(path)
        size += length
    if portion:
        yield portion


def _join(parts: Sequence[Parsed]) -> Parsed:
    sightings = [each for part in parts for each in part.sightings]
    kept = fair_share(sightings, MOST_SIGHTINGS, lambda each: each.file)
    left = Counter((each.file, each.grade) for each in sightings)
    left.subtract((each.file, each.grade) for each in kept)
    more = tuple((file, grade, count) for (file, grade), count in left.items() if count > 0)
    return Parsed(
        tuple(kept),
        tuple(each for part in parts for each in part.not_parsed),
        sum(part.read or 0 for part in parts),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        (*(each for part in parts for each in part.beyond), *more),
        tuple(dict.fromkeys(value for part in parts for value in part.withheld)),
        all(part.whole for part in parts),
    )
