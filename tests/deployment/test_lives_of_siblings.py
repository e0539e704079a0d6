"""What the first process of a worker does about the others: those that die, and when it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

import pytest

from holdfast.deployment import siblings
from holdfast.deployment.settings import Settings
from holdfast.serving import worker

pytestmark = pytest.mark.anyio
FINISHES = """
import pathlib, signal, sys, time
def told(*_):
    time.sleep(1)
    pathlib.Path(sys.argv[1] + ".done").touch()
    sys.exit()
signal.signal(signal.SIGTERM, told)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(siblings, "PAUSE_SECONDS", 0.0)
    caplog.set_level(logging.INFO)


async def said(caplog: pytest.LogCaptureFixture, words: str, times: int = 1) -> None:
    for _ in range(1_000):
        if caplog.text.count(words) >= times:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{words!r} was never said {times} times")


async def test_one_that_ends_at_its_start_is_given_up_after_five_times(
    hurried: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-ISc", "raise SystemExit(3)"])
    ours = siblings.Siblings(1)
    await said(caplog, "not started again")
    await ours.drain()
    assert caplog.text.count("process 2 is pid") == siblings.MOST_FAILED
    assert caplog.text.count("ended with 3") == siblings.MOST_FAILED
    assert [each.levelname for each in caplog.records].count("ERROR") == 1


async def test_one_that_lived_for_long_is_no_failed_start(
    hurried: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(siblings, "STEADY_SECONDS", 0.0)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-ISc", "raise SystemExit(3)"])
    ours = siblings.Siblings(1)
    await said(caplog, "ended with 3", siblings.MOST_FAILED + 1)
    await ours.drain()
    assert "not started again" not in caplog.text


async def test_a_machine_that_has_no_process_left_is_said(
    hurried: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    ours = siblings.Siblings(1)
    await said(caplog, "not started again")
    await ours.drain()
    assert caplog.text.count("could not be started (No such file or directory)") == 5


async def test_a_worker_that_drains_waits_for_what_the_others_have_in_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    monkeypatch.setattr(sys, "orig_argv", ["python", "-ISc", FINISHES, str(begun)])
    ours = siblings.Siblings(1)
    for _ in range(1_000):
        if begun.exists():
            break
        await asyncio.sleep(0.02)
    await worker.drain([], ours)
    assert (tmp_path / "begun.done").exists()


@pytest.mark.parametrize(("cores", "processes"), [(None, 1), (1, 1), (2, 1), (8, 4), (500, 64)])
async def test_a_worker_is_half_as_many_processes_as_there_are_cores(
    cores: int | None, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_WORKERS")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert Settings(_env_file=None).workers == processes
