"""`trace` prints what a history tells, and nothing that is secret."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from commanded import script
from conftest import Runs
from holdfast.cli.commands.runs import run, trace
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.contracts import Goal
from holdfast.deployment.settings import Settings
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection
from holdfast.replaying.tracing import read_trace

pytestmark = pytest.mark.usefixtures("bare_environment")

HISTORY = Path(__file__).parent.parent / "histories" / "a-planned-run.json"


@pytest.mark.parametrize("form", ["json", "otlp"])
def test_an_exported_run_is_traced_without_a_server(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "--history", str(HISTORY), "--format", form]) == Code.COMPLETE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == (11 if form == "json" else 1)


def test_a_trace_goes_into_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    assert main(["trace", "--history", str(HISTORY), "--out", str(out)]) == Code.COMPLETE
    assert len(out.read_text().splitlines()) == 11
    assert out.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "name either"),
        (["some-run", "--history", "x.json"], "name either"),
        (["--history", "missing.json"], "'missing.json'"),
    ],
)
def test_what_is_no_run_and_no_history_is_refused_in_a_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *arguments]) == Code.REFUSED
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("command", ["trace", "report"])
@pytest.mark.parametrize("path", ["folder", "fifo", "/dev/zero"])
def test_a_history_that_cannot_be_read_is_refused_by_the_option_that_was_typed(
    command: str,
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    os.mkfifo("fifo")
    assert main([command, "--history", path]) == Code.REFUSED
    said = capsys.readouterr().err
    assert said.startswith("--history: ") and path in said and said.count("\n") == 1


def test_a_value_that_cannot_be_read_is_said_with_one_colon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = json.loads(HISTORY.read_text())
    began = history["events"][0]["workflowExecutionStartedEventAttributes"]
    began["input"]["payloads"][0]["data"] = base64.b64encode(b"{").decode()
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(history))
    assert main(["report", "--history", str(broken)]) == Code.REFUSED
    said = capsys.readouterr().err
    assert ": Invalid JSON" in said and ": :" not in said


@pytest.mark.anyio
async def test_a_run_is_traced_by_its_id_and_an_unknown_one_is_refused(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    goal = Goal(text="Say sk-very-secret-9182736 to nobody", use_models=True)
    async with runs.worker(script()):
        options = run.RunOptions("cli-traced", True, None, False)
        await run.run(connection, goal, options)
    capsys.readouterr()
    found = await read_trace(connection.client, "cli-traced", content=True)
    settings = Settings(_env_file=None, anthropic_api_key="sk-very-secret-9182736")
    assert trace.put_trace(found, "json", settings, None, content=True) == Code.COMPLETE
    shown = capsys.readouterr().out
    assert "very-secret" not in shown and "[redacted] to nobody" in shown
    assert {json.loads(line)["session"] for line in shown.splitlines()} == {"cli-traced"}
    with pytest.raises(HoldfastError, match="no run 'nobody'"):
        await trace.of_run(connection, "nobody", content=False)
