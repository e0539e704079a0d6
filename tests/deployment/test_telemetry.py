"""Logs are JSON lines with the run they belong to, and without secrets. In a process of its own,
because logging is configured for a whole process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
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


def test_a_file_is_bounded_and_each_line_of_it_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "worker.jsonl"
    made = logged_by(
        f"""
        from holdfast.telemetry import logs as telemetry
        telemetry.LOG_BYTES = 2_000
        telemetry.configure_logging(Path({str(file)!r}), "info", [])
        made = []
        handler = logging.getLogger().handlers[0]
        whole = handler.formatter.format
        handler.formatter.format = lambda record: made.append(1) or whole(record)
        for number in range(100):
            logging.getLogger("library").info("line %d", number)
            handler.flush()
        print(len(made))
        """
    )
    assert made == "100\n"
    kept = sorted(tmp_path.iterdir())
    assert [each.name for each in kept] == ["worker.jsonl", "worker.jsonl.1", "worker.jsonl.2"]
    assert all(each.stat().st_size < 2_300 for each in kept)
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)


def test_a_warning_is_in_the_file_with_all_before_it_however_the_process_ends(
    tmp_path: Path,
) -> None:
    file = tmp_path / "worker.jsonl"
    logged_by(
        f"""
        import os
        from holdfast.telemetry import logs as telemetry
        telemetry.configure_logging(Path({str(file)!r}), "info", [])
        logging.info("before")
        logging.warning("mind")
        os._exit(0)
        """
    )
    said = [json.loads(line)["event"] for line in file.read_text().splitlines()]
    assert said == ["before", "mind"]


def test_a_failure_of_ours_is_a_line_and_any_other_its_traceback(tmp_path: Path) -> None:
    file = tmp_path / "worker.jsonl"
    logged_by(
        f"""
        from holdfast.telemetry import logs as telemetry
        from holdfast.contracts.errors import NotBilled
        telemetry.configure_logging(Path({str(file)!r}), "info", [])
        for error in (NotBilled("refused"), ValueError("odd")):
            try:
                raise error
            except Exception:
                logging.exception("it failed")
        """
    )
    ours, other = [json.loads(line)["exception"] for line in file.read_text().splitlines()]
    assert ours == "NotBilled: refused"
    assert other.startswith("Traceback") and "ValueError: odd" in other


def test_what_is_said_is_in_the_file_a_moment_later(tmp_path: Path) -> None:
    file = tmp_path / "worker.jsonl"
    logged_by(
        f"""
        import os, time
        from holdfast.telemetry import logs as telemetry
        file = Path({str(file)!r})
        telemetry.configure_logging(file, "info", [])
        logging.info("first")
        while "first" not in file.read_text():
            time.sleep(0.01)
        logging.info("second")
        while "second" not in file.read_text():
            time.sleep(0.01)
        os._exit(0)
        """
    )


def logged_by(code: str) -> str:
    whole = "import logging\nfrom pathlib import Path\n" + dedent(code)
    script = [sys.executable, "-c", whole]
    return subprocess.run(script, cwd=HOME, capture_output=True, text=True, check=True).stdout
