"""Logs are JSON lines with the run they belong to, and without secrets. In a process of its own,
because logging is configured for a whole process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.deployment.settings import HOME

# One process says what most of them look at.

SCRIPT = """
import asyncio, logging, sys
from pathlib import Path
import structlog
from temporalio import activity
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput
from holdfast.telemetry.logs import LogContext, configure_logging

path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
configure_logging(path, "info", ["sk-very-secret", ""])
logging.getLogger("library").info("header %s", "Bearer sk-very-secret")
logging.getLogger("library").debug("below the level")
structlog.get_logger("ours").info("said", number=1)
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("it broke")

class Runs(ActivityInboundInterceptor):
    def __init__(self): pass
    async def execute_activity(self, input):
        activity.logger.info("through the SDK")
        structlog.get_logger().info("through structlog")
        logging.getLogger("aiohttp").info("through a library")
        logging.getLogger("httpx").info("HTTP Request: POST http://u:hunter2@h/?token=t")

@activity.defn
async def work():
    await LogContext().intercept_activity(Runs()).execute_activity(None)

asyncio.run(ActivityEnvironment().run(work))
logging.getLogger("library").info("afterwards")
"""


def logged(*arguments: str) -> str:
    script = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(script, cwd=HOME, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged().splitlines()]


def line(lines: list[dict[str, Any]], event: str) -> dict[str, Any]:
    [found] = [each for each in lines if each["event"] == event]
    return found


def test_every_line_says_when_who_and_how_grave(lines: list[dict[str, Any]]) -> None:
    for each in lines:
        assert {"event", "level", "logger", "timestamp"} <= each.keys()
    assert line(lines, "said")["number"] == 1
    assert "below the level" not in {each["event"] for each in lines}


def test_an_exception_is_a_field_not_more_lines(lines: list[dict[str, Any]]) -> None:
    assert "ZeroDivisionError" in line(lines, "it broke")["exception"]


@pytest.mark.parametrize("how", ["the SDK", "structlog", "a library"])
def test_a_line_of_an_activity_names_its_run(lines: list[dict[str, Any]], how: str) -> None:
    said = line(lines, f"through {how}")
    assert said["workflow_id"] == "test"
    assert said["run_id"] == "test-run"
    assert said["activity_id"] == "test"
    assert said["attempt"] == 1
    assert "workflow_id" not in line(lines, "afterwards")


def test_a_secret_is_blotted_out(lines: list[dict[str, Any]]) -> None:
    assert line(lines, "header Bearer [redacted]")


def test_the_file_is_private(tmp_path: Path) -> None:
    file = tmp_path / "worker.jsonl"
    assert logged(str(file)) == ""
    assert file.stat().st_mode & 0o077 == 0
    assert len(file.read_text().splitlines()) == 7


FILES = """
import logging, os, sys, time
from pathlib import Path
from holdfast.contracts.errors import NotBilled
from holdfast.errors import MissingKey
from holdfast.telemetry import logs as telemetry

folder = Path(sys.argv[1])

def file(name):
    (folder / name).mkdir()
    telemetry.configure_logging(folder / name / "worker.jsonl", "info", [])
    return folder / name / "worker.jsonl"

file("failures")
for error in (NotBilled("refused"), MissingKey("key one"), ValueError("odd")):
    try:
        raise error
    except Exception:
        logging.exception("it failed")

whole, telemetry.LOG_BYTES = telemetry.LOG_BYTES, 2_000
file("bounded")
made = []
handler = logging.getLogger().handlers[0]
format = handler.formatter.format
handler.formatter.format = lambda record: made.append(1) or format(record)
for number in range(100):
    logging.getLogger("library").info("line %d", number)
    handler.flush()
telemetry.LOG_BYTES = whole

later = file("later")
for each in ("first", "second"):
    logging.info(each)
    while each not in later.read_text():
        time.sleep(0.01)

print(len(made), flush=True)
file("warned")
logging.info("before")
logging.warning("mind")
os._exit(0)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the files that one process wrote, which then ended without a word."""
    folder = tmp_path_factory.mktemp("logs")
    script = [sys.executable, "-c", FILES, str(folder)]
    done = subprocess.run(script, cwd=HOME, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr
    return folder


def in_file(folder: Path, field: str) -> list[str]:
    lines = (folder / "worker.jsonl").read_text().splitlines()
    return [json.loads(each)[field] for each in lines]


def test_a_file_is_bounded_and_each_line_of_it_is_made_once(written: Path) -> None:
    kept = sorted((written / "bounded").iterdir())
    assert [each.name for each in kept] == ["worker.jsonl", "worker.jsonl.1", "worker.jsonl.2"]
    assert all(each.stat().st_size < 2_300 for each in kept)
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)


def test_a_warning_is_in_the_file_with_all_before_it_however_the_process_ends(
    written: Path,
) -> None:
    assert in_file(written / "warned", "event") == ["before", "mind"]


def test_a_failure_of_ours_is_a_line_and_any_other_its_traceback(written: Path) -> None:
    ours, key, other = in_file(written / "failures", "exception")
    assert (ours, key) == ("NotBilled: refused", "key one")
    assert other.startswith("Traceback") and "ValueError: odd" in other


def test_what_is_said_is_in_the_file_a_moment_later(written: Path) -> None:
    assert in_file(written / "later", "event") == ["first", "second"]
