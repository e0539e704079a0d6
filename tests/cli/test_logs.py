"""`logs` shows what all processes of a worker wrote of a run, in order, and nothing of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.commands.runs.logs import format_line
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.client.connecting import own_target
from holdfast.temporal.connection import Target


@pytest.fixture(autouse=True)
def no_server(bare_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("holdfast.client.connecting.probe_local", lambda _: False)
    logs = bare_environment / "logs"
    logs.mkdir(parents=True)
    return logs


def line(second: int, what: str, run: str = "r1", **fields: Any) -> str:
    at = f"2026-11-22T10:00:{second:02}.000000Z"
    common = {"event": what, "timestamp": at, "workflow_id": run, "level": "info"}
    return json.dumps({**common, **fields}) + "\n"


def put(logs: Path) -> None:
    (logs / "worker.jsonl.1").write_text(line(1, "plan", story="plan", verdict="accepted"))
    (logs / "worker.jsonl").write_text(
        line(2, "dispatch", story="dispatch", call="work-t1-1", subtask="t1", attempt=1)
        + line(3, "dispatch", "r10", story="dispatch", call="of-another-run")
        + line(6, "closed", story="closed", why="\x1b[31mred")
        + '{"event": "half a line of r1'
    )
    (logs / "worker-2.jsonl").write_text(
        line(4, "result", "r1.t1.1", story="result", call="turn-1", tools=["read_file", "sum"])
        + line(5, "a library says so")
    )


def test_the_story_of_all_processes_comes_in_order_and_without_other_runs(
    no_server: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(no_server)
    assert main(["logs", "r1"]) == Code.COMPLETE
    shown = capsys.readouterr().out.splitlines()
    assert [each.split()[1] for each in shown] == ["plan", "dispatch", "result", "closed"]
    assert "[t1.1] turn-1 tools=read_file,sum" in shown[2]
    assert shown[1].endswith("dispatch   t1 work-t1-1")
    assert "\x1b" not in "".join(shown) and "another" not in "".join(shown)


def test_with_all_comes_what_libraries_said_and_as_json_each_line_as_it_stands(
    no_server: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(no_server)
    assert main(["logs", "r1", "--all", "--json"]) == Code.COMPLETE
    found = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in found][-2:] == ["a library says so", "closed"]


def test_a_run_without_lines_is_said_with_what_else_there_is(
    no_server: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(no_server)
    assert main(["logs", "r2"]) == Code.REFUSED
    said = " ".join(capsys.readouterr().err.split())
    assert "no line of r2" in said and "`trace r2` reads the history" in said


def test_with_a_server_of_ones_own_it_says_where_its_workers_write(
    no_server: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(no_server)
    own = Target("localhost:7233", store_url="file:///srv/store", embedded=False)
    monkeypatch.setattr(f"holdfast.cli.commands.runs.logs.{own_target.__name__}", lambda *_: own)
    assert main(["logs", "r1"]) == Code.REFUSED
    assert "workflow_id r1" in capsys.readouterr().err
    assert main(["logs", "r1", "--embedded"]) == Code.COMPLETE


def test_a_line_says_first_whose_it_is_what_came_of_it_and_the_price_and_why_at_its_end() -> None:
    told = json.loads(
        line(
            3,
            "result",
            story="result",
            call="work-t1-1",
            subtask="t1",
            dollars="0.001674",
            verdict="failed_checks",
            why="no year",
            tier="haiku",
        )
    )
    assert format_line(told, "r1").partition("  ")[2] == (
        "result     t1 work-t1-1 failed_checks $0.0017 tier=haiku: no year"
    )
    lost = {**told, "dollars": "unknown", "why": "", "reserved": "0.11312"}
    assert format_line(lost, "r1").endswith(
        "failed_checks price unknown tier=haiku reserved=$0.1132"
    )
