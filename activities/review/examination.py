"""Run one analyser over a snapshot: in portions, within the time there is, and past files that make
its tool fail.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
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
FIRST_BYTES = 256 * 1024
"""Content of the first portion, which shows how fast the tool is."""
FILE_BYTES = 2_000
"""What a file costs beside its content, in bytes of content."""
SHARES = 4
"""A portion takes no more than one part in so many of the time that is left, and is made to take a
part of that: where it is killed, little is lost, and others have their turn before its halves.
"""
LEAST_SECONDS = 5.0
SECONDS_PER_RUN = 15.0
SECONDS_PER_FILE = 0.25
LATE = "the time limit was reached"
FAILURES = 60
"""Runs that may fail before the tool itself counts as broken. Finding one bad file in a full
portion takes about twice the portion's binary logarithm.
"""


@dataclass
class Examination:
    """One analyser's go at some files, by absolute path, the most important first; `deadline` is on
    the monotonic clock.
    """

    analyser: Analyser
    deadline: float
    failures: list[str] = field(default_factory=list)
    _pace: float = 0.0
    """Bytes of content a second that the tool gets through; 0: not known yet."""
    _works: bool = False
    """True once it got through a portion."""

    async def look_at(self, paths: Sequence[str]) -> Parsed:
        """Return everything the tool says of the files, suppressed sightings marked. Raise
        LensFailed if it is the tool that does not work, or looked at none in time.
        """
        honoured = await self._in_portions(paths, honour=True)
        lost = len(honoured.not_parsed) + len(honoured.not_reached)
        if paths and self.failures and lost == len(paths):
            raise LensFailed(f"{self.analyser.name}: {self.failures[-1]}")
        if self.analyser.marker is None:
            return honoured
        late = set(honoured.not_reached)
        reached = [path for path in paths if path not in late]
        marked = await anyio.to_thread.run_sync(self._find_marked, reached)
        everything = await self._in_portions(marked, honour=False)
        shown = {_identity(each) for each in honoured.sightings}
        hidden = tuple(
            replace(each, suppressed=True)
            for each in everything.sightings
            if _identity(each) not in shown
        )
        return replace(honoured, sightings=honoured.sightings + hidden)

    async def _in_portions(self, paths: Sequence[str], *, honour: bool) -> Parsed:
        portions = _Portions(await anyio.to_thread.run_sync(_weigh, paths))
        parts: list[Parsed] = []

        async def work() -> None:
            while portion := portions.take(self._most_bytes()):
                parts.append(await self._run(portion, portions, honour))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(PORTIONS_AT_ONCE):
                    group.create_task(work())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        order = {path: place for place, path in enumerate(paths)}
        return await anyio.to_thread.run_sync(_join, parts, order)

    def _most_bytes(self) -> float:
        """Return how much the next portion may hold, to be through in half of its share."""
        left = max(self.deadline - time.monotonic(), 0.0)
        return self._pace * left / SHARES / 2 or FIRST_BYTES

    async def _run(self, paths: list[str], portions: _Portions, honour: bool) -> Parsed:
        """Run the tool once; if it fails, hand back each half, down to the file at fault."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.failures.append(LATE)
            return Parsed(not_reached=tuple(paths), read=0)
        started, weight = time.monotonic(), portions.weight(paths)
        late = False
        try:
            parsed = await self._once(paths, honour, left)
        except ProgramStopped as error:
            late = error.late
            self.failures.append(LATE if late else f"its tool failed: {error}"[:300])
        except (ValueError, KeyError, TypeError) as error:
            self.failures.append(f"its tool failed: {error}"[:300])
        else:
            self._works = True
            self._pace = weight / max(time.monotonic() - started, 0.01)
            return parsed
        if sum(each != LATE for each in self.failures) > FAILURES:
            raise LensFailed(f"{self.analyser.name}: {self.failures[-1]}")
        if late:
            self._pace = weight / (time.monotonic() - started) / 2
        if len(paths) > 1:
            # A tool that has got through others is not slow: a file among these is at fault.
            portions.give_back(paths, next_one=late and not self._works)
            return Parsed(read=0)
        lost = tuple(paths)
        return Parsed(not_reached=lost, read=0) if late else Parsed(not_parsed=lost, read=1)

    async def _once(self, paths: Sequence[str], honour: bool, left: float) -> Parsed:
        analyser = self.analyser
        assert analyser.command is not None and analyser.parse is not None
        command = analyser.command(paths, honour)
        with tempfile.TemporaryDirectory(prefix="lens-") as empty:
            finished = await run(
                command.arguments,
                folder=Path(empty),
                environment={"PATH": os.defpath, "HOME": empty, "TMPDIR": empty},
                seconds=_seconds_of(len(paths), left),
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


def _seconds_of(files: int, left: float) -> float:
    """Return how long a run over some files may take."""
    share = max(left / SHARES, min(left, LEAST_SECONDS))
    return min(share, SECONDS_PER_RUN + SECONDS_PER_FILE * files)


class _Portions:
    """The files that are still to be looked at, in their order."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = weights
        self._left = deque([[*weights]] if weights else [])

    def weight(self, paths: Iterable[str]) -> int:
        return sum(self._weights[path] for path in paths)

    def give_back(self, paths: list[str], *, next_one: bool) -> None:
        """Take each half of a portion that failed, to be looked at next or behind all others."""
        middle = len(paths) // 2
        halves = (paths[:middle], paths[middle:])
        if next_one:
            self._left.extendleft(reversed(halves))
        else:
            self._left.extend(halves)

    def take(self, most: float) -> list[str]:
        """Return the next files, at least one, of about so many bytes together; empty: none are
        left.
        """
        if not self._left:
            return []
        paths = self._left.popleft()
        weight = length = count = 0
        for path in paths[:PORTION_FILES]:
            weight += self._weights[path]
            length += len(os.fsencode(path)) + 1
            if count and (weight > most or length > PORTION_BYTES):
                break
            count += 1
        if count < len(paths):
            self._left.appendleft(paths[count:])
        return paths[:count]


def _weigh(paths: Sequence[str]) -> dict[str, int]:
    return {path: os.stat(path).st_size + FILE_BYTES for path in paths}


def _join(parts: Sequence[Parsed], order: Mapping[str, int]) -> Parsed:
    sightings = [each for part in parts for each in part.sightings]
    sightings.sort(key=lambda each: order.get(each.file, 0))
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
        tuple(each for part in parts for each in part.not_reached),
        tuple(each for part in parts for each in part.not_quotable),
    )
