"""A deployment's own limits of one tier: how many calls leave in a time, how many are in flight.

All worker processes of a state directory keep them together, through files and locks there; workers
with another state directory have limits of their own. Calls leave evenly: no time without calls is
made up for.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.deployment.pacing import Pace, paces
from holdfast.embedded import private

LOOK_SECONDS = 0.02
"""Pause between two looks whether a place is free, or a lock."""


@dataclass(frozen=True)
class OwnLimit:
    """The limits of one tier. Times are Unix seconds."""

    tier: str
    pace: Pace
    folder: Path
    clock: Callable[[], float] = time.time

    @property
    def interval(self) -> float:
        """Seconds between two calls of all processes; 0: any."""
        return 1 / self.pace.per_second if self.pace.per_second else 0.0

    def enter(self) -> Place | float:
        """Let a call leave: return its place, to be left when it ends; else the seconds after which
        it is worth another look. Raise OSError or EmbeddedError if the folder cannot be used.
        """
        private.make_folder(self.folder)
        place = self._take_place()
        if place is None:
            return LOOK_SECONDS
        try:
            wait = self._take_turn()
        except BaseException:
            place.leave()
            raise
        if wait:
            place.leave()
        return wait or place

    def explain(self) -> str:
        return f"{self.tier} held to this deployment's own limit, {self.pace}"

    def _take_place(self) -> Place | None:
        """Return a place among the calls in flight, held by a lock that ends with its process."""
        if not self.pace.in_flight:
            return Place()
        for number in range(self.pace.in_flight):
            handle = private.open_file(self.folder / f"{self.tier}.{number}")
            if _locked(handle):
                return Place(handle)
            os.close(handle)
        return None

    def _take_turn(self) -> float:
        """Return 0 and let the next call wait for its turn; else the seconds to wait."""
        if not self.interval:
            return 0.0
        with self._next_turn() as handle:
            if handle is None:
                return LOOK_SECONDS
            now, free = self.clock(), _number(os.pread(handle, 64, 0))
            # Further away than any call puts it: the clock was set back.
            if now < free <= now + self.interval:
                return free - now
            os.pwrite(handle, f"{now + self.interval:064.6f}".encode(), 0)
            return 0.0

    @contextmanager
    def _next_turn(self) -> Iterator[int | None]:
        """Hold the file with the moment of the next turn; None: another process holds it."""
        handle = private.open_file(self.folder / f"{self.tier}.next")
        try:
            yield handle if _locked(handle) else None
        finally:
            # Closing ends the lock.
            os.close(handle)


@dataclass
class Place:
    """A place among the calls in flight."""

    handle: int = -1
    """The file whose lock it is; -1: any number may be in flight."""

    def leave(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _number(content: bytes) -> float:
    """Return the moment that a file holds; 0 if it holds none."""
    try:
        return float(content)
    except ValueError:
        return 0.0


def own_limits(rate: str, in_flight: str, folder: Path) -> tuple[OwnLimit, ...]:
    """Return the limits of two settings, kept by files in a folder."""
    return tuple(OwnLimit(tier, each, folder) for tier, each in paces(rate, in_flight).items())
