"""Nothing that takes long is silent: what is waited for is said, and for how long by now."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from holdfast.cli.screen import patience as module
from holdfast.cli.screen import streams
from holdfast.cli.screen.patience import patience

WORDS = "Stopping the server"


class Timed(io.StringIO):
    """What was written, and the longest time in which nothing was."""

    def __init__(self) -> None:
        super().__init__()
        self.last = time.monotonic()
        self.silent = 0.0

    def write(self, text: str) -> int:
        now = time.monotonic()
        self.silent, self.last = max(self.silent, now - self.last), now
        return super().write(text)


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of a tenth."""
    monkeypatch.setattr(module, "SECOND", 0.1)


def screen(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> Timed:
    written = Timed()
    shown = Console(file=written, force_terminal=terminal, width=80, _environ={"TERM": "xterm"})
    monkeypatch.setattr(module, "ERR", shown)
    monkeypatch.setattr(streams, "ERR", shown)
    return written


@pytest.mark.usefixtures("brisk")
def test_in_a_terminal_a_wait_is_said_at_once_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = screen(monkeypatch, terminal=True)
    with patience(WORDS):
        time.sleep(0.6)
    frames = written.getvalue()
    assert -1 < frames.find(f"{WORDS} …") < frames.find(f"{WORDS} … 3 s")
    assert written.silent < 0.5, "on the busiest machine"


@pytest.mark.usefixtures("brisk")
def test_through_a_pipe_a_wait_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    written = screen(monkeypatch, terminal=False)
    with patience(WORDS):
        time.sleep(0.75)
    assert written.getvalue().splitlines() == [f"{WORDS} …", f"{WORDS} … 6 s"]


def test_a_wait_that_is_short_is_no_line_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    written = screen(monkeypatch, terminal=False)
    with patience(WORDS):
        pass
    assert written.getvalue() == ""
