"""The test command that a deployment allows: run in a tree of its own, without network, as
`scripts/contain.py` says.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.untrusted.process import ProgramStopped, run

CONTAIN = Path(__file__).resolve().parent / "scripts" / "contain.py"
SETTING = "HOLDFAST_TEST_COMMAND"
TEST = "{test}"
"""Stands in the command for the path of the test."""
NAME_LETTERS = 120
SECONDS = 100.0
COMPUTING_SECONDS = 2 * SECONDS
"""Of all its processes together."""
STARTING_SECONDS = 20.0
"""Extra time to lay out the tree on a busy machine, before the command starts."""
MEMORY = 2 * 1024 * 1024 * 1024
DISK = 512 * 1024 * 1024
"""Bytes of memory of all processes, and of all files: the tree, and what the command writes."""
ANSWER_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Ran:
    """How a command ended, with the beginning and the end of what it wrote."""

    code: int
    output: str


class NotContained(Exception):
    """The command did not run, or not to its end: why, as the rest of a sentence."""


@dataclass(frozen=True)
class TestCommand:
    """A command with `{test}` for the path of a test, and folders that it may read."""

    # No test of ours, for pytest.
    __test__ = False

    words: tuple[str, ...]
    folders: tuple[Path, ...] = ()
    as_root: bool = False
    """True if the worker runs as root, which is root in the kernel's eyes inside as well."""

    @classmethod
    def of(
        cls, command: str, folders: tuple[Path, ...], *, as_root: bool = False
    ) -> TestCommand | None:
        """Return the command of a setting; None where it is empty."""
        return cls(tuple(shlex.split(command)), folders, as_root) if command else None

    @property
    def by_pytest(self) -> bool:
        """True if its exit codes are pytest's."""
        return any(Path(each).name in ("pytest", "py.test") for each in self.words)

    @property
    def program(self) -> Path | None:
        """The program that it names; None: this machine has none of that name."""
        found = shutil.which(self.words[0], path=f"/usr/local/bin{os.pathsep}{os.defpath}")
        return Path(found) if found else None

    @property
    def name(self) -> str:
        """The command in a few letters, without the folder of its program; a Python has its
        version.
        """
        first, program = Path(self.words[0]).name, self.program
        if program is not None and first.startswith("python"):
            first = program.resolve().name
        return shlex.join([first, *self.words[1:]])[:NAME_LETTERS].replace(shlex.quote(TEST), TEST)

    def missing(self) -> str:
        """Return what of the command is not on this machine, in a sentence; empty: nothing."""
        if self.program is None:
            return (
                f"{SETTING}: there is no program {self.words[0]!r}; name it by its whole path, or"
                " install it for all users"
            )
        lost = [each for each in self.folders if not each.is_dir()]
        return f"HOLDFAST_TEST_FOLDERS: there is no folder {str(lost[0])!r}" if lost else ""

    async def find_lacking(self) -> str:
        """Return why this machine cannot keep a command apart, as the rest of a sentence; empty:
        it can.
        """
        try:
            await self._contained(["true"], {}, {})
        except NotContained as error:
            return str(error)
        return ""

    async def run(self, files: Mapping[str, Path], test: str, text: str) -> Ran:
        """Run the command for a new test in a tree of these files, by path, each with where it
        lies. Raise NotContained if it cannot be kept apart, or takes too long.
        """
        words = [each.replace(TEST, test) for each in self.words]
        return await self._contained(words, files, {test: text})

    async def _contained(
        self, command: list[str], files: Mapping[str, Path], texts: Mapping[str, str]
    ) -> Ran:
        if sys.platform != "linux":
            raise NotContained("only Linux can run it without network")
        if self.as_root:
            raise NotContained("the worker runs as root")
        visible = [str(each.absolute()) for each in self.folders]
        asked = {
            "command": command,
            "files": [[str(place), path] for path, place in files.items() if path not in texts],
            "texts": dict(texts),
            "visible": [*visible, *map(str, self._of_program())],
            "memory": MEMORY,
            "disk": DISK,
            "seconds": SECONDS,
            "computing": COMPUTING_SECONDS,
        }
        content = await asyncio.to_thread(lambda: json.dumps(asked).encode())
        with tempfile.TemporaryDirectory(prefix="proof-") as folder:
            try:
                finished = await run(
                    (sys.executable, "-I", "-B", str(CONTAIN)),
                    folder=Path(folder),
                    environment={"PATH": os.defpath, "HOME": folder},
                    seconds=SECONDS + STARTING_SECONDS,
                    stdin=content,
                    output_limit=ANSWER_BYTES,
                )
            except ProgramStopped as error:
                took = f"it took longer than {SECONDS:.0f} s" if error.late else f"it {error}"
                raise NotContained(f"the test command was stopped: {took}") from None
        try:
            said = json.loads(finished.stdout)
        except ValueError:
            raise NotContained("the test command was stopped from outside") from None
        if "lacking" in said:
            raise NotContained(
                f"this machine keeps no command from its network ({said['lacking']})"
            )
        if "stopped" in said:
            raise NotContained(said["stopped"])
        return Ran(said["code"], said["output"])

    def _of_program(self) -> Iterator[Path]:
        """Yield what the program needs beside itself: its virtual environment, and the folder that
        its interpreter is installed in. What stands in the system's folders is there anyway.
        """
        step = self.program
        while step is not None:
            prefix = step.parent.parent
            whole = (prefix / "pyvenv.cfg").is_file() or (prefix / "lib").is_dir()
            home = Path.home()
            yield prefix if whole and prefix not in (home, *home.parents) else step
            step = (step.parent / step.readlink()) if step.is_symlink() else None
