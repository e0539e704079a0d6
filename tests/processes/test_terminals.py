"""What a run looks like on terminals of several kinds: real ones, each the end of a pair, read as
they are written to.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.screen.looks import ASCII, only_ascii
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import down

pytestmark = pytest.mark.long
CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
READABLE = {"0", "1", "2", "3", "4", "31", "32", "35", "39"}
"""Of the codes of colours and styles, those that light and dark screens can show: no background."""
LIVING = ("K", "A", "B", "G", "h", "l")
"""What a line that lives is moved with."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which the example is reviewed; its server is stopped at the end."""
    folder = tmp_path_factory.mktemp("home")
    yield folder
    down(Settings(_env_file=None, state_dir=folder / "holdfast"))


def starter(*arguments: str) -> list[str]:
    return [sys.executable, str(HOME / "starter.py"), *arguments]


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home)} | more


def on_terminal(command: list[str], width: int, settings: dict[str, str]) -> tuple[int, str]:
    """The exit code of a command on a terminal of this width, and all that the terminal got. Where
    it waits for Enter, it gets that.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=settings, start_new_session=True
    )
    os.close(theirs)
    got, entered = b"", False
    while True:
        try:
            got += os.read(ours, 65_536)
        except OSError:
            break
        if not entered and b"until you press Enter" in got:
            entered = True
            os.write(ours, b"\n")
    os.close(ours)
    return process.wait(60), got.decode("utf-8").replace("\r\n", "\n")


def shown(text: str) -> str:
    return CONTROL.sub("", text)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_review_is_readable_on_light_and_dark_screens_of_any_width(
    home: Path, width: int
) -> None:
    settings = environment(home, TERM="xterm-256color", LANG="C.UTF-8")
    code, got = on_terminal(starter("demo"), width, settings)
    assert code == 0
    for codes, kind in CONTROL.findall(got):
        assert kind in ("m", *LIVING)
        if kind == "m":
            assert set(codes.split(";")) <= READABLE | {""}, f"{codes}: not on every screen"
    words = " ".join(shown(got).split())
    for part in ("B602", "F821", "critical", "Come back with:", "user-metadata"):
        assert part in words
    # What is meant to be copied is one line, however narrow; all else keeps within the screen.
    rows = [
        line for line in shown(got).splitlines() if line.startswith(("✓", " •", "In what", "4 rem"))
    ]
    assert len(rows) > 8 and max(map(len, rows)) <= width
    assert any(line.startswith("✓  security") and "complete" in line for line in rows)


def test_a_terminal_that_can_do_nothing_gets_lines_of_its_own_width(home: Path) -> None:
    settings = environment(home, TERM="dumb", LC_ALL="C")
    code, got = on_terminal(starter("demo"), 50, settings)
    assert code == 0
    assert "\x1b" not in got and got.isascii()
    assert "+ security Find security holes (security): complete" in got
    assert "\\x" not in got and "\\u" not in got, "our own signs have others in their place"
    texts = [line for line in got.splitlines() if line.startswith((" *", "   ", "In what"))]
    reported = [line for line in texts if not re.match(r" +\d+(\.\d+)? (ms|s|min)", line)]
    assert reported and max(map(len, reported)) <= 50


def test_no_colour_is_shown_where_none_is_wanted(home: Path) -> None:
    settings = environment(home, TERM="xterm-256color", LANG="C.UTF-8", NO_COLOR="1")
    code, got = on_terminal(starter("demo"), 80, settings)
    colours = {
        each for codes, kind in CONTROL.findall(got) if kind == "m" for each in codes.split(";")
    }
    assert code == 0 and colours <= {"", "0", "1", "2", "3", "4"}


def test_a_pipe_gets_no_control_sequence_and_json_stays_json_without_utf_8(home: Path) -> None:
    settings = environment(home, TERM="xterm-256color", LC_ALL="C")
    for command in (starter("list"), starter("list", "--json"), starter("--help")):
        done = subprocess.run(command, env=settings, capture_output=True, check=True)
        assert b"\x1b" not in done.stdout + done.stderr
        assert (done.stdout + done.stderr).isascii()
    # The server's list may be some seconds late.
    for _ in range(20):
        listed = subprocess.run(
            starter("list", "--json"), env=settings, capture_output=True, check=True
        )
        if json.loads(listed.stdout):
            break
    else:
        raise AssertionError("the runs of the tests before are never listed")


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"LC_ALL": "C"}, True),
        ({"LC_ALL": "POSIX", "LANG": "en_GB.UTF-8"}, True),
        ({"LC_CTYPE": "C"}, True),
        ({"LANG": "C"}, True),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, False),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, False),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "utf-8"}, False),
        ({}, False),
    ],
)
def test_ascii_alone_is_for_those_who_chose_it(given: dict[str, str], plain: bool) -> None:
    assert only_ascii(given) is plain
    assert all(value.isascii() for value in ASCII.values())
