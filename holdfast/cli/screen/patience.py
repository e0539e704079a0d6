"""A wait that is not silent: what is waited for, and for how long by now."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.status import Status

from holdfast.cli.screen.streams import ERR, say

SECOND = 1.0
SELDOM = 5
"""Seconds between two equal lines where each line stays, as in a log."""


@contextmanager
def patience(what: str) -> Iterator[None]:
    """Say what the block waits for: in a terminal at once, in a line that lives and goes; elsewhere
    after a second. Lines that are said meanwhile stand above it.
    """
    lives = ERR.is_terminal and not ERR.is_dumb_terminal
    status = ERR.status(f"{what} …", spinner="line", spinner_style="none") if lives else None
    over = threading.Event()
    telling = threading.Thread(target=_tell, args=(what, status, over), daemon=True)
    with status or nullcontext():
        telling.start()
        try:
            yield
        finally:
            over.set()
            telling.join()


def _tell(what: str, status: Status | None, over: threading.Event) -> None:
    seconds = 0
    while not over.wait(SECOND):
        seconds += 1
        if status:
            status.update(f"{what} … {seconds} s")
        elif seconds % SELDOM == 1:
            say(f"{what} …" if seconds == 1 else f"{what} … {seconds} s", "dim")
