"""Commands that start runs and look at them, on a real server."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus

from commanded import script
from conftest import Runs
from holdfast.cli.commands.care import export, replay
from holdfast.cli.commands.runs import list as list_command
from holdfast.cli.commands.runs import run, show, start, watch
from holdfast.cli.commands.steering import cancel
from holdfast.cli.main import explain
from holdfast.cli.screen.exits import Code, Exit, exit_of
from holdfast.cli.shared import follow
from holdfast.cli.shared.connection import tell
from holdfast.client.reading import Look, Reader
from holdfast.contracts import Goal, Limits, Report
from holdfast.contracts.view import RunView
from holdfast.deployment.invocation import STARTER, WORKER, to_type
from holdfast.errors import HoldfastError, NoWorker, Refused
from holdfast.intake.connection import Connection, require_worker
from scripted import works

pytestmark = pytest.mark.usefixtures("bare_environment")


GOAL = Goal(text="Compare three engines", use_models=True)


def arguments(run_id: str, **more: object) -> run.RunOptions:
    return run.RunOptions(run_id, **{"as_json": True, "out": None, "stay": False, **more})  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_run_prints_the_report_as_json_and_nothing_else_on_stdout(
    runs: Runs, connection: Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.json"
    async with runs.worker(script()):
        code = await run.run(connection, GOAL, arguments("cli-run", out=out))
    said = capsys.readouterr()
    assert code == Code.COMPLETE
    report = Report.model_validate_json(said.out)
    assert report.answer == "Both [t1] [t2]."
    assert Report.model_validate_json(out.read_text()) == report
    kept = connection.settings.state_dir / "reports" / "cli-run.md"
    assert "Both [t1] [t2]." in kept.read_text()
    lines = [line for line in said.err.splitlines() if not line.startswith("Waiting for a worker")]
    described = await connection.handle("cli-run").describe()
    page = f"http://127.0.0.1:8233/namespaces/default/workflows/cli-run/{described.run_id}"
    assert lines[:2] == ["Run: cli-run", f"Web UI: {page}/user-metadata"], "the board itself"
    assert said.err.count("Web UI: ") == 1, "nothing is told twice"
    assert f"Come back with: {to_type('show', 'cli-run')} (all runs: {STARTER} list)" in lines
    assert lines[-1].startswith("Page: file:"), "what one may click stands last"
    assert str(kept) in said.err
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.anyio
async def test_the_same_id_and_goal_attaches_and_another_goal_is_refused(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script()
    async with runs.worker(model):
        for _ in range(2):
            assert await run.run(connection, GOAL, arguments("cli-same")) == Code.COMPLETE
        assert model.heard.count("plan") == 1
        other = GOAL.model_copy(update={"limits": Limits(subtasks=3)})
        with pytest.raises(Refused, match="'cli-same' is in use") as refusal:
            await start.run(connection, other, "cli-same")
    line, code = explain(refusal.value)
    assert code == Code.REFUSED
    assert line.endswith(f"or look at it with: {to_type('show', 'cli-same')}")
    assert "attached" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.anyio
async def test_a_finding_of_a_run_that_closed_is_the_reports_also_where_its_history_says_less(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a run of an older version today's code may not follow the whole history."""
    held = asyncio.Event()
    async with runs.worker(script(t1=[held, works("one")])):
        await start.run(connection, GOAL, "cli-old")
        await until(connection, "cli-old", "t1", "running")
        early = await Reader(connection, "cli-old").look()
        with pytest.raises(Exit, match="t1 of cli-old has not ended"):
            await show.run_finding(connection, "cli-old", "t1", True)
        held.set()
        await connection.handle("cli-old").result()
        late = await Reader(connection, "cli-old").look()
    shown = replace(late, state=early.state)
    monkeypatch.setattr(Reader, "look", lambda _: later(shown))
    capsys.readouterr()
    assert await show.run_finding(connection, "cli-old", "t1", True) == Code.COMPLETE
    assert json.loads(capsys.readouterr().out)["content"] == "one"
    with pytest.raises(Exit, match="there is no subtask 't9' in cli-old; known: t1, t2"):
        await show.run_finding(connection, "cli-old", "t9", True)
    shown = replace(shown, report=None)
    with pytest.raises(Exit, match=r"t1 had not ended when cli-old closed \(completed\)"):
        await show.run_finding(connection, "cli-old", "t1", True)
    shown = replace(shown, notes=("the history cannot be read: event 33",))
    with pytest.raises(Exit, match="what t1 of cli-old found is not known: the history cannot be"):
        await show.run_finding(connection, "cli-old", "t1", True)


async def later(look: Look) -> Look:
    return look


@pytest.mark.anyio
async def test_what_a_run_was_paid_for_is_told_in_a_line_at_length_in_tables_and_as_json(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker(script()):
        await run.run(connection, GOAL, arguments("cli-divided", as_json=False))
        short = capsys.readouterr().out
        await show.run(connection, "cli-divided", False, None, whole=True)
        whole = capsys.readouterr().out
        await show.run(connection, "cli-divided", True, None)
        report = Report.model_validate_json(capsys.readouterr().out)
    line = next(each for each in short.splitlines() if each.startswith("By part: "))
    assert "planning " in line and "work " in line and "By tier: sonnet 100%." in line
    assert "By kind of call" not in short and line in whole
    sums = rf"together +{report.model_calls} +[\d,]+ +\${report.dollars} +100%"
    assert re.search(rf"By kind of call\n.*{sums}", whole, re.DOTALL)
    assert {each.kind for each in report.shares} == {"plan", "work", "synthesize", "critique"}
    assert sum(each.dollars or 0 for each in report.shares) == report.dollars


@pytest.mark.anyio
async def test_a_cancelled_run_settles_and_show_has_its_report(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    held = asyncio.Event()
    model = script(t2=[held, works("two")])
    async with runs.worker(model):
        await start.run(connection, GOAL, "cli-cancel")
        assert capsys.readouterr().out == "cli-cancel\n"
        await until(connection, "cli-cancel", "t1", "complete")
        assert await show.run(connection, "cli-cancel", True, None) == Code.COMPLETE
        assert RunView.model_validate_json(capsys.readouterr().out).phase == "working"
        assert await cancel.run(connection, "cli-cancel") == Code.COMPLETE
        capsys.readouterr()
        assert await show.run(connection, "cli-cancel", True, None) == Code.CANCELLED
        report = Report.model_validate_json(capsys.readouterr().out)
        assert await watch.run(connection, "cli-cancel", True, None) == Code.CANCELLED
    assert report.status == "cancelled"
    assert [finding.status for finding in report.findings] == ["complete", "cancelled"]
    closed = await connection.handle("cli-cancel").describe()
    assert closed.status is WorkflowExecutionStatus.CANCELED


async def until(connection: Connection, run_id: str, row: str, status: str) -> None:
    """Return once a subtask of a run has this status."""
    while True:
        look = await follow.look_at(connection, run_id)
        rows = look.view.rows if look.view else ()
        if any((each.id, each.status) == (row, status) for each in rows):
            return


@pytest.mark.anyio
async def test_a_run_that_the_worker_refuses_is_refused_input(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker(None):
        unplanned = GOAL.model_copy(update={"use_models": False, "plan": None})
        code = await run.run(connection, unplanned, arguments("cli-refused"))
    said = capsys.readouterr()
    assert code == Code.REFUSED
    assert "without a model a run needs a ready plan" in said.err
    assert said.out == ""


@pytest.mark.anyio
async def test_a_run_that_is_refused_for_its_cap_is_listed_as_that(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = GOAL.limits.model_copy(update={"dollars": Decimal("0.0001")})
    async with runs.worker(script()):
        poor = GOAL.model_copy(update={"limits": limits})
        code = await run.run(connection, poor, arguments("cli-poor"))
    assert code == Code.REFUSED
    mine: dict[str, object] = {}
    while mine.get("status") != "failed":
        capsys.readouterr()
        await list_command.run(connection, 100, True)
        listed = json.loads(capsys.readouterr().out)
        mine = next((each for each in listed if each["id"] == "cli-poor"), {})
    assert mine["why"] == "cap too small"


@pytest.mark.long
@pytest.mark.anyio
async def test_list_shows_a_run_with_its_goal_and_export_gives_what_replay_takes(
    runs: Runs, connection: Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker(script()):
        await run.run(connection, GOAL, arguments("cli-list"))
        capsys.readouterr()
        history = tmp_path / "history.json"
        assert await export.run(connection, "cli-list", history) == Code.COMPLETE
    listed: list[dict[str, object]] = []
    while not any(each["id"] == "cli-list" for each in listed):
        capsys.readouterr()
        await list_command.run(connection, 100, True)
        listed = json.loads(capsys.readouterr().out)
    (mine,) = (each for each in listed if each["id"] == "cli-list")
    assert mine["goal"] == "Compare three engines"
    assert mine["status"] in ("complete", "completed")
    assert await replay.run([history]) == Code.COMPLETE
    history.write_text(history.read_text().replace('"work-t1-1"', '"work-t9-1"'))
    assert await replay.run([history]) == Code.FAILED
    assert "work-t9-1" in capsys.readouterr().err


@pytest.mark.anyio
async def test_an_unknown_run_is_refused_by_every_command_that_takes_an_id(
    connection: Connection,
) -> None:
    for asked in (
        show.run(connection, "nobody", False, None),
        watch.run(connection, "nobody", False, None),
        cancel.run(connection, "nobody"),
        export.run(connection, "nobody", None),
    ):
        with pytest.raises(HoldfastError, match="no run 'nobody'") as refusal:
            await asked
        assert exit_of(refusal.value).code == Code.REFUSED


@pytest.mark.long
@pytest.mark.anyio
async def test_a_watcher_waits_for_the_first_worker_and_through_the_death_of_another(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async def said(words: str) -> None:
        heard = ""
        while words not in heard:
            assert not watching.done()
            await asyncio.sleep(0.05)
            heard += capsys.readouterr().err

    handle = await runs.start(GOAL)
    watching = asyncio.create_task(watch.run(connection, handle.id, True, None))
    try:
        await said("! no worker asks task queue")
        async with runs.worker(script(t2=[asyncio.Event()])):
            await said("✓ t1")
        async with runs.worker(script()):
            assert await watching == Code.COMPLETE
    finally:
        watching.cancel()
    assert Report.model_validate_json(capsys.readouterr().out).status == "complete"


@pytest.mark.anyio
async def test_nothing_starts_on_a_queue_that_nobody_polls(connection: Connection) -> None:
    with pytest.raises(NoWorker, match="no worker polls task queue") as refusal:
        await require_worker(connection, tell, models=False, wait=0.0)
    said, code = explain(refusal.value)
    assert code == Code.UNREACHABLE
    assert said.endswith(f"nothing was started; start one with: {WORKER}")


@pytest.mark.anyio
async def test_a_start_says_that_nobody_asks_models_and_only_if_the_run_does(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker():
        await require_worker(connection, tell, models=False)
        assert "models" not in capsys.readouterr().err
        await require_worker(connection, tell, models=True)
    said = " ".join(capsys.readouterr().err.split())
    assert "Nobody asks the models" in said and "ANTHROPIC_API_KEY" in said
    async with runs.worker(script()):
        await require_worker(connection, tell, models=True)
    assert "models" not in capsys.readouterr().err


@pytest.mark.anyio
async def test_an_interrupted_watcher_leaves_the_run_and_says_how_to_come_back(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    held = asyncio.Event()
    async with runs.worker(script(t1=[held, works("one")])):
        await start.run(connection, GOAL, "cli-left")
        watching = asyncio.create_task(watch.run(connection, "cli-left", True, None))
        await until(connection, "cli-left", "t2", "complete")
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        assert "python starter.py watch cli-left" in capsys.readouterr().err
        held.set()
        assert await watch.run(connection, "cli-left", True, None) == Code.COMPLETE
