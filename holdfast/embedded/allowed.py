"""What Goals may name: what the settings say, and what the user's starters have allowed since, in
the file `roots` of the state directory.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.deployment.settings import Settings
from holdfast.embedded import private
from holdfast.embedded.state import StateDir
from holdfast.embedded.trouble import explained
from holdfast.untrusted.roots import Root, Roots, roots_at

ROOTS_BYTES = 4 * 1024 * 1024
log = logging.getLogger(__name__)


def register_root(settings: Settings, path: Path) -> None:
    """Allow Goals of this user to name the file or folder at `path` and what is below it. Does
    nothing if nothing is there.
    """
    state = StateDir.of(settings)
    try:
        root = Root.of(path)
    except (OSError, RuntimeError, ValueError):
        return
    if root in read_registered(settings):
        return
    line = json.dumps({"path": str(root.path), "device": root.device, "inode": root.inode})
    with explained(state.path):
        state.create()
        handle = private.open_file(state.roots, os.O_WRONLY | os.O_APPEND)
        try:
            # One short append: two starters at once cannot mix their lines. What a starter that was
            # killed has left of a line ends here.
            os.write(handle, f"\n{line}\n".encode())
        finally:
            os.close(handle)


def allowed_roots(settings: Settings, *, embedded: bool) -> Callable[[], Roots]:
    """Return a function that reads what Goals may name: the roots of the settings and, for an
    embedded server, those that starters have registered so far.
    """
    fixed, missing = roots_at(settings.allowed_roots)
    for path in missing:
        log.warning("HOLDFAST_ALLOWED_ROOTS: there is no %s; it is read at the next start", path)
    return lambda: (*fixed, *(read_registered(settings) if embedded else ()))


def read_registered(settings: Settings) -> Roots:
    """Return the registered roots, the last entry of each path. Read it each time: starters add
    roots while a worker runs. Unreadable lines allow nothing.
    """
    return _read(settings)[0]


def count_unreadable(settings: Settings) -> int:
    """Return the number of lines that cannot be read and so allow nothing."""
    return _read(settings)[1]


def _read(settings: Settings) -> tuple[Roots, int]:
    try:
        text = private.read(StateDir.of(settings).roots, ROOTS_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return (), 0
    except OSError:
        return (), 1
    found: dict[Path, Root] = {}
    wrong = 0
    for line in filter(None, text.split(b"\n")):
        root = _root(line)
        if root is None:
            wrong += 1
        else:
            found[root.path] = root
    return tuple(found.values()), wrong


def _root(line: bytes) -> Root | None:
    try:
        row: Any = json.loads(line)
        path, device, inode = Path(row["path"]), row["device"], row["inode"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    whole = type(device) is int and type(inode) is int and path.is_absolute()
    return Root(path, device, inode) if whole else None
