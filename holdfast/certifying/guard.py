"""Ends server and worker of a certificate, and removes its folder, once the certifier is gone
however that was ended: its end of a pipe is closed by the kernel.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PREFIX = "holdfast-certify-"
"""Begins the name of the folder of a certificate."""
STATE = "state"
"""The state directory in it."""
DONE = b"."
GUARD = (sys.executable, "-P", "-m", "holdfast.certifying.guard")


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Have a process of its own clear the folder away, should this one not live to do so."""
    silent = subprocess.DEVNULL
    # In a session of its own, which no Ctrl-C and no end of a terminal reaches.
    guard = subprocess.Popen(
        [*GUARD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=silent,
        stderr=silent,
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.communicate(DONE)


def watch(pipe: BinaryIO, folder: Path) -> None:
    """Return when the certifier says that it is done; clear away when it is gone without a word."""
    if pipe.read(1) != DONE:
        _clear(folder)


def _clear(folder: Path) -> None:
    # Only now: it is a second of computing, and hardly ever needed.
    from holdfast.deployment.settings import Settings
    from holdfast.embedded import down

    try:
        down(Settings(state_dir=folder / STATE))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    given = Path(sys.argv[1])
    if given.name.startswith(PREFIX):
        watch(sys.stdin.buffer, given)
