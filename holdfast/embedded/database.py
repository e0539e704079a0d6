"""Check from outside that the server's database can be one."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

HEADER = b"SQLite format 3\0"
LOOK_SECONDS = 2.0
_TABLES = "SELECT count(*) FROM sqlite_master WHERE name = 'namespaces'"
_STEPS = 10_000
"""SQLite's machine makes this many steps between two looks at the clock: some milliseconds."""


def find_trouble(path: Path, seconds: float = LOOK_SECONDS) -> str:
    """Return why no server can use this file; empty if nothing wrong was found within `seconds`.
    Only reads: a running server goes on writing.
    """
    try:
        with path.open("rb") as file:
            header = file.read(len(HEADER))
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not header:
        return "is empty"
    if header != HEADER:
        return "is no SQLite database"
    return _inside(path, time.monotonic() + seconds)


def _inside(path: Path, until: float) -> str:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)) as database:
            database.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            # A server that was started on an empty file has left one without tables.
            if not database.execute(_TABLES).fetchone()[0]:
                return "is empty"
            (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError:
        # Interrupted, or in use: nothing is known against it.
        return ""
    except sqlite3.DatabaseError as error:
        return f"is damaged: {error}"
    return "" if answer == "ok" else f"is damaged: {' '.join(str(answer).split())[:120]}"
