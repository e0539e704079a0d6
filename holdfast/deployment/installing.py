"""Makes the folder of packages that everything runs in, and says all the while what takes the time.

    python3 -I holdfast/deployment/installing.py .venv requirements.lock

It runs before anything is installed, so it knows Python's own library alone. In a terminal one line
lives; elsewhere each step is a line, and a long one says every few seconds where it is.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

MEGABYTES = {"demo.lock": (111, 430), "requirements.lock": (214, 865)}
"""Megabytes to download and on disk, as measured on Linux with Python 3.11."""
QUIET_SECONDS = 5.0
"""How long a step says nothing where every word stays: in a log, through a pipe."""
FRAME_SECONDS = 0.2
LAST_WORDS = 12
"""Lines of a step that failed which are shown."""
_SIZE = re.compile(r"\(([\d.]+) (kB|MB|GB|bytes)\)")
_MEGABYTES = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
_NAME = re.compile(
    r"^(?:Collecting |Requirement already satisfied: |Processing .*/)"
    r"([A-Za-z0-9._]+(?:-[A-Za-z._]+)*)"
)


class Screen:
    """Shows progress: one line that is redrawn on a terminal, lines that stay elsewhere."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.lives = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.said = time.monotonic()

    def step(self, text: str) -> None:
        """Print a line that stays."""
        self._write(f"\r\x1b[K{text}\n" if self.lives else f"{text}\n")

    def now(self, text: str) -> None:
        """Show progress until the next line; does nothing where a line cannot be redrawn."""
        if self.lives:
            width = max(os.get_terminal_size(self.out.fileno()).columns, 20)
            self._write(f"\r\x1b[K{text[: width - 1]}")
        elif time.monotonic() - self.said >= QUIET_SECONDS:
            self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()
        self.said = time.monotonic()


class Installation:
    """Counts what pip has reported so far."""

    def __init__(self, packages: int, site: Callable[[], int]) -> None:
        self.packages = packages
        self.site = site
        self.fetched = 0
        self.megabytes = 0.0
        self.at = ""
        self.unpacking = 0.0
        """When the last package was fetched; 0: it is not."""

    def hear(self, line: str) -> None:
        """Take in a line of pip's output."""
        if line.startswith("Ignoring "):
            self.packages -= 1
        elif name := _NAME.match(line):
            self.fetched += 1
            self.at = name[1]
        elif line.lstrip().startswith("Downloading") and (size := _SIZE.search(line)):
            megabytes = float(size[1]) * _MEGABYTES[size[2]]
            self.megabytes += megabytes
            self.at += f", {megabytes:.0f} MB" * (megabytes >= 1)
        elif line.startswith("Installing collected packages"):
            self.unpacking = time.monotonic()

    def told(self, seconds: float) -> str:
        """How far it is, in a line."""
        if self.unpacking:
            many = min(self.site(), self.packages)
            return f"  {seconds:3.0f} s  unpacking: {many} of {self.packages} packages"
        much = f", {self.megabytes:.0f} MB downloaded" if self.megabytes >= 1 else ""
        at = f": {self.at}" if self.at else ""
        return f"  {seconds:3.0f} s  fetching: {self.fetched} of {self.packages} packages{much}{at}"


def run(
    command: Sequence[str],
    screen: Screen,
    hear: Callable[[str], None],
    told: Callable[[float], str],
) -> None:
    """Run one step to its end, showing its progress. SystemExit with its last words if it fails."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    began, last = time.monotonic(), [""] * LAST_WORDS
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        threading.Thread(target=_read, args=(process, lines), daemon=True).start()
        line: str | None = ""
        while line is not None:
            try:
                line = lines.get(timeout=FRAME_SECONDS)
                hear(line or "")
                last = [*last[1:], line or ""]
            except queue.Empty:
                screen.now(told(time.monotonic() - began))
    if process.returncode:
        words = "\n".join(f"  {each}" for each in last if each.strip())
        raise SystemExit(f"{Path(command[0]).name} {' '.join(command[1:4])} failed:\n{words}")


def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    assert process.stdout
    for line in process.stdout:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def refuse_full_disk(folder: Path, megabytes: int) -> None:
    """Raise SystemExit if there is less room for the environment than it takes: pip would find out
    after minutes, and leave half of it.
    """
    free = shutil.disk_usage(folder.absolute().parent).free / 1e6
    if free < megabytes:
        raise SystemExit(
            f"{folder} takes {megabytes} MB, and {free:.0f} MB are free on its disk: make room and"
            " run the same command again"
        )


def install(folder: Path, lock: Path, screen: Screen) -> None:
    """Create the environment if it is missing and install what the lock names."""
    named = re.findall(r"^[A-Za-z0-9._-]+==.*", lock.read_text(encoding="utf-8"), re.M)
    packages = len(named)
    # Only pip knows which of them are for other platforms, and says so while it works.
    most = "up to " if any(";" in each for each in named) else ""
    began = time.monotonic()
    fetched, kept = MEGABYTES.get(lock.name, (0, 0))
    if not folder.exists():
        refuse_full_disk(folder, kept)
    much = f"about {fetched} MB to download unless pip has them, {kept} MB on disk, "
    screen.step(
        f"Installing {most}{packages} packages into {folder}, once:"
        f" {much * bool(kept)}a minute or two."
    )
    if not (folder / "bin" / "python").exists():
        make = (sys.executable, "-m", "venv", str(folder))
        run(make, screen, lambda _: None, lambda seconds: f"  {seconds:3.0f} s  making {folder}")
        screen.step(f"  {time.monotonic() - began:3.0f} s  made {folder}")
    python = folder / "bin" / "python"
    pip = (str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    options = ("--progress-bar", "off", "--require-hashes", "--requirement", str(lock))
    going = Installation(packages, lambda: len([*folder.glob("lib/*/site-packages/*.dist-info")]))
    started = time.monotonic()
    run((*pip, *options), screen, going.hear, lambda _: going.told(time.monotonic() - began))
    done = time.monotonic()
    fetching = (going.unpacking or done) - started
    screen.step(
        f"Installed {going.packages} packages in {done - began:.0f} s: {fetching:.0f} s to fetch"
        f" them ({going.megabytes:.0f} MB downloaded), {done - started - fetching:.0f} s to unpack."
    )


def main(arguments: Sequence[str]) -> int:
    """Return the exit code."""
    folder, lock = map(Path, arguments)
    try:
        install(folder, lock, Screen(sys.stderr))
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; the same command goes on with what was fetched.\n")
        return 130
    except OSError as error:
        sys.stderr.write(f"{error.filename or folder}: {error.strerror or error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
