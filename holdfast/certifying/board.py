"""How a worker under test and whoever strikes it meet: a folder of the state directory.

moments.jsonl   what the worker did, one line each, in order
strike          the moment at which the worker stops until this file is gone
struck          it has got there
effects         present: tools with effects run for real
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Moment = Literal["begins", "sent", "kept", "ends", "called", "done", "outside"]
"""An activity begins; its request is about to leave; its answer is on disk; it has ended, and the
server does not know. A tool is called, is done, did something outside.
"""
FOLDER = "certify"
LOOK_SECONDS = 0.01
HOLD_SECONDS = 20.0
"""A worker that nobody strikes goes on after this time."""


@dataclass(frozen=True)
class Place:
    """A moment of a run, by names that are the same in each run of the same goal."""

    moment: Moment
    step: str
    """Id of the activity."""
    kind: str
    """Type of the activity."""
    part: str = ""
    """Which of its workflows, by what its id has behind the run's; empty: the run itself."""


@dataclass(frozen=True)
class Noted:
    """A line of the board."""

    run: str
    place: Place
    tool: str = ""
    key: str = ""
    """The key of the very call: the same when it is carried out again."""
    about: str = ""
    """Digest of a call's arguments; of `outside`, what was done."""


@dataclass(frozen=True)
class Board:
    """The folder, for both sides."""

    folder: Path

    @classmethod
    def of(cls, state_dir: Path) -> Board:
        folder = state_dir.resolve() / FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    @property
    def effects(self) -> Path:
        return self.folder / "effects"

    @property
    def struck(self) -> bool:
        return (self.folder / "struck").exists()

    @property
    def written(self) -> float:
        """When something was noted last, in seconds since the epoch; now if nothing was yet."""
        path = self.folder / "moments.jsonl"
        return path.stat().st_mtime if path.exists() else time.time()

    # ------------------------------------------------------------ whoever strikes

    def arm(self, run: str, place: Place, *, holds: bool = True) -> None:
        """Have the worker stop at this moment of the run; without `holds` only say so."""
        self.disarm()
        made = self.folder / "strike.new"
        made.write_text(json.dumps({"run": run, "place": asdict(place), "holds": holds}))
        made.replace(self.folder / "strike")

    def disarm(self) -> None:
        """Let the worker go on."""
        for name in ("strike", "struck"):
            (self.folder / name).unlink(missing_ok=True)

    def read(self, run: str) -> list[Noted]:
        """Return what was noted of a run, in order."""
        return [each for each in self._lines() if each.run == run]

    def _lines(self) -> Iterator[Noted]:
        path = self.folder / "moments.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            found = json.loads(line)
            yield Noted(**found | {"place": Place(**found["place"])})

    # ------------------------------------------------------------ the worker

    async def note(self, noted: Noted) -> None:
        """Write it down, and stop there if that was asked for."""
        self.write(noted)
        if self._wanted(noted):
            await self._hold()

    async def _hold(self) -> None:
        until = time.monotonic() + HOLD_SECONDS
        while (self.folder / "strike").exists():
            if time.monotonic() > until:
                return
            await asyncio.sleep(LOOK_SECONDS)

    def write(self, noted: Noted) -> None:
        line = json.dumps(asdict(noted)) + "\n"
        # One append is whole or absent, whatever happens to this process.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self.folder / "moments.jsonl", flags, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)

    def _wanted(self, noted: Noted) -> bool:
        try:
            wanted = json.loads((self.folder / "strike").read_text())
        except (OSError, ValueError):
            return False
        if self.struck or wanted["run"] != noted.run or wanted["place"] != asdict(noted.place):
            return False
        (self.folder / "struck").touch()
        return bool(wanted["holds"])
