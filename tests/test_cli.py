"""The command line: what it refuses, what it says, which code it ends with; and its commands on a
real server.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus

from activities.catalogue import Catalogue, PlaybookFile, Role
from activities.preparation import INPUT_BYTES
from cli import follow
from cli.commands import cancel, doctor, export, replay, run, show, start, watch
from cli.commands import list as list_command
from cli.connection import Connection, require_worker, web_ui_of
from cli.diagnosis import Check
from cli.exits import Code, Stop
from cli.goal import Asked, goal_of
from cli.launch import check_id, new_id
from cli.main import PROGRAM, app, main, told
from conftest import Runs
from deployment.embedded import EmbeddedError
from deployment.settings import HOME, OTHERS, Settings
from deployment.temporal import Target
from orchestrator.contracts import Goal, Limits, Report, RoleCard
from orchestrator.view import RunView
from scripted import ScriptedModel, plans, subtask, synthesizes, works

COMMANDS = (
    "run", "start", "watch", "show", "list", "fork", "inbox",
    "approve", "reject", "answer", "retry", "skip", "supply", "pause", "resume", "edit", "raise",
    "cancel", "reset", "up", "down", "doctor", "clean", "export", "replay", "completion",
)  # fmt: skip


@pytest.fixture(autouse=True)
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No key, no server, no .env; and the state directory, which no refusal may create."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "STORE_URL", "HOLDFAST_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(Settings.model_config, "env_file", None)
    state = tmp_path / "state"
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(state))
    monkeypatch.chdir(tmp_path)
    yield state


def refused(capsys: pytest.CaptureFixture[str], command: str, code: Code = Code.REFUSED) -> str:
    """Run a command that must be refused before anything starts; what it said on stderr."""
    assert main(shlex.split(command)) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err.rstrip("\n")


# ---------------------------------------------------------------- refused before anything starts


@pytest.mark.parametrize(
    ("command", "fragments"),
    [
        ("run", ["the goal is empty", "--playbook"]),
        ("start '  '", ["the goal is empty"]),
        ("run --playbook nope", ["unknown playbook 'nope'", "known:"]),
        ("run goal --input report", ["'report'", "name=PATH"]),
        ("run goal --input report=missing.txt", ["'missing.txt'", "report=text:"]),
        ("run goal --input code=.", ["--input code", "not a Git repository"]),
        ("run goal --input a=text:x --input a=text:y", ["--input a", "once"]),
        ("run goal --limits subtasks=99", ["subtasks=99", "30"]),
        ("run goal --limits dollars=nan", ["dollars=nan", "finite"]),
        ("run goal --limits patience=3", ["unknown limit 'patience'", "deadline_seconds"]),
        ("run goal --limits subtasks", ["'subtasks'", "name=value"]),
        ("run goal --plan missing.json", ["--plan", "'missing.json'"]),
        ("run goal --approval soon", ["--approval 'soon'", "always"]),
        ("run goal --approval nan", ["--approval 'nan'"]),
        ("run goal --yes --approval always", ["--yes", "--approval"]),
        ("run goal --dry-run --id x", ["--dry-run", "leave out --id"]),
        ("supply x t1", ["TEXT", "--file"]),
        ("supply x t1 words --file notes.md", ["either", "--file"]),
        ("supply x t1 --file missing.md", ["'missing.md'"]),
        ("retry x t1 --tier gold", ["--tier", "haiku"]),
        ("raise x --limits subtasks=9", ["subtasks", "dollars"]),
        ("fork x --tier haiku", ["--tier", "name it"]),
        ("fork x t1 --tier huge", ["--tier", "opus"]),
        ("completion tcsh", ["bash"]),
        ("run goal --id 'two words'", ["--id 'two words'", "letters"]),
        ("run goal --out missing/report.md", ["--out", "missing", "create it"]),
        ("run goal --out .", ["--out", "folder"]),
        ("run goal --frob", ["--frob", "run --help"]),
        ("frob", ["'frob'", "--help"]),
        ("show", ["ID", "show --help"]),
        ("replay missing.json", ["'missing.json'", "export"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    command: str,
    fragments: list[str],
    bare_environment: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, command)
    assert len(said.splitlines()) == 1
    for fragment in fragments:
        assert fragment in said
    assert not bare_environment.exists()


def test_a_free_form_goal_without_an_endpoint_is_refused_in_three_lines(
    bare_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refused(capsys, "run 'Compare three engines'").splitlines()
    assert len(lines) == 3
    assert "no endpoint" in lines[0]
    assert "ANTHROPIC_API_KEY" in lines[1] and "ANTHROPIC_BASE_URL" in lines[1]
    assert "make demo" in lines[2] and "--playbook code-review" in lines[2]
    assert not bare_environment.exists()


def test_every_mistake_of_a_plan_is_listed_with_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = subtask("a", "b", role="nobody")
    second = subtask("b", "a", instruction="Analyse the data", inputs=["report"])
    Path("plan.json").write_text(json.dumps(plans(first | {"tier": None}, second | {"tier": None})))
    said = refused(capsys, "run goal --plan plan.json")
    assert "subtasks[0] 'a': unknown role 'nobody'" in said
    assert "subtasks[1] 'b': instruction" in said
    assert "unknown input 'report'" in said
    assert "cycle: a -> b -> a" in said


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["plan.json", "plan.yaml"])
async def test_a_plan_from_a_file_brings_its_goal_unless_one_is_typed(name: str) -> None:
    first = subtask("a", tier=None, instruction="Say in a sentence what Temporal is")
    # JSON is YAML, too.
    Path(name).write_text(json.dumps(plans(first) | {"goal": " Explain Temporal "}))
    settings = Settings(_env_file=None, anthropic_base_url="http://127.0.0.1:1")
    catalogue = Catalogue.load()
    asked = Asked(plan=Path(name))
    assert (await goal_of(asked, catalogue, settings, embedded=True)).text == "Explain Temporal"
    asked = Asked("In other words", plan=Path(name))
    assert (await goal_of(asked, catalogue, settings, embedded=True)).text == "In other words"


def test_a_price_file_that_no_worker_could_read_is_refused_before_anything_starts(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HOLDFAST_PRICE_FILE", "absent.yaml")
    # Below the project's folder, which is the worker's, too; not below the caller's.
    absent = str(HOME / "absent.yaml")
    assert f"HOLDFAST_PRICE_FILE: price file {absent!r}" in refused(capsys, "run goal")
    assert not bare_environment.exists()


def test_a_plan_without_a_goal_is_refused_when_none_is_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("plan.json").write_text(json.dumps(plans(subtask("a", tier=None)) | {"goal": " "}))
    assert "the goal is empty" in refused(capsys, "run --plan plan.json")


def test_a_plan_of_the_wrong_shape_is_refused_with_every_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("plan.json").write_text('{"goal": 1, "subtasks": [{"id": "a"}]}')
    said = refused(capsys, "run goal --plan plan.json")
    assert "goal: input should be a valid string" in said
    assert "subtasks[0].instruction: field required" in said
    Path("plan.json").write_text("{")
    assert "line 1 column 2" in refused(capsys, "run goal --plan plan.json")


def test_a_file_that_is_no_history_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.json").write_text('{"events": 3}')
    assert "no history" in refused(capsys, "replay other.json")


@pytest.mark.parametrize("command", ["list", "doctor", "up", "run Compare"])
def test_a_variable_that_nothing_reads_is_refused_with_the_nearest_that_is_read(
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOLDFAST_MOST_DOLARS_RUN", "1")
    line = "nothing reads HOLDFAST_MOST_DOLARS_RUN (the nearest is HOLDFAST_MOST_DOLLARS_RUN)"
    assert line in refused(capsys, command)
    monkeypatch.setenv("HOLDFAST_MOST_DOLARS_RUN", "")
    environment = tmp_path / ".env"
    environment.write_text("HOLDFAST_ANTHROPIC_API_KEY=k\nANOTHER=1\n")
    monkeypatch.setitem(Settings.model_config, "env_file", environment)
    said = refused(capsys, command)
    assert "nothing reads HOLDFAST_ANTHROPIC_API_KEY (the nearest is ANTHROPIC_API_KEY)" in said
    assert len(said.splitlines()) == 1
    with pytest.raises(ValueError, match="nothing reads HOLDFAST_ANTHROPIC_API_KEY"):
        Settings(state_dir=tmp_path)
    environment.write_text("ANOTHER=1\n")
    for other in OTHERS:
        monkeypatch.setenv(other, "1")
    assert Settings().most_dollars_run is None


def test_bad_settings_name_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_IDLE_SECONDS", "soon")
    said = refused(capsys, "list")
    assert "HOLDFAST_IDLE_SECONDS" in said
    assert len(said.splitlines()) == 1


# ---------------------------------------------------------------- servers that are not there


def test_an_unreachable_server_is_exit_code_five_with_its_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("STORE_URL", "file:///tmp/store")
    said = refused(capsys, "list", Code.UNREACHABLE)
    assert "127.0.0.1:1" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("command", ["list", "run goal", "start goal", "show some-id"])
def test_a_server_of_ones_own_without_a_store_is_refused(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    said = refused(capsys, command)
    assert "STORE_URL" in said
    assert len(said.splitlines()) == 1


def test_a_store_that_is_no_file_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("STORE_URL", "ftp://store")
    assert "ftp://store" in refused(capsys, "list")


@pytest.mark.parametrize(
    ("address", "web_ui"),
    [
        ("localhost:7233", "http://localhost:8233"),
        ("team.a1b2c.tmprl.cloud:7233", "https://cloud.temporal.io"),
        ("temporal.internal:7233", ""),
    ],
)
def test_the_web_ui_of_a_known_kind_of_server_is_known(address: str, web_ui: str) -> None:
    assert web_ui_of(address) == web_ui


# ---------------------------------------------------------------- no traceback, good help


@pytest.mark.parametrize(
    ("error", "fragment", "code"),
    [
        (Stop("no worker", Code.UNREACHABLE), "no worker", Code.UNREACHABLE),
        (EmbeddedError("a", "b", "c"), "a: b; c", Code.UNREACHABLE),
        (OSError(28, "No space left on device", "/x"), "/x: No space left", Code.FAILED),
        (KeyError("x"), "HOLDFAST_DEBUG=1", Code.FAILED),
    ],
)
def test_every_error_becomes_a_line_and_a_code(error: Exception, fragment: str, code: Code) -> None:
    message, ended = told(error)
    assert fragment in message
    assert ended == code
    assert "\n" not in message


def test_every_command_is_there_and_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert [each.name for each in app.registered_commands] == list(COMMANDS)
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert f"{PROGRAM} {name}" in shown
        about = shown.split("Usage:")[1].splitlines()[2].strip()
        assert about[:1].isupper() and len(about.split()) > 4


def test_a_random_id_says_what_and_when_and_nothing_of_the_goal() -> None:
    kind, month_day, suffix = new_id(Goal(text="a secret plan")).split("-")
    assert (kind, len(month_day), len(suffix)) == ("goal", 4, 5)
    review = new_id(Goal(text="x", playbook="code-review"))
    assert review.startswith("code-review-")
    assert check_id(review) == review


# ---------------------------------------------------------------- on a real server


GOAL = Goal(text="Compare three engines", use_models=True)


def script(**lines: object) -> ScriptedModel:
    answers = {
        "plan": [plans(subtask("t1"), subtask("t2"))],
        "t1": [works("one")],
        "t2": [works("two")],
        "synthesize": [synthesizes("Both [t1] [t2].")],
    }
    return ScriptedModel(answers | lines)  # type: ignore[arg-type]


@pytest.fixture
def connection(runs: Runs, bare_environment: Path) -> Connection:
    """The command line's view of the test server; its store is the worker's."""
    target = Target(
        address="the test server",
        task_queue=runs.queue,
        store_url=(runs.folder / "store").as_uri(),
        ui_url="http://127.0.0.1:8233",
        embedded=False,
    )
    return Connection(Settings(state_dir=bare_environment), target, runs.client)


def arguments(run_id: str, **more: object) -> run.Arguments:
    return run.Arguments(run_id, **{"as_json": True, "out": None, "stay": False, **more})  # type: ignore[arg-type]


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
    assert lines[:2] == [
        "Run: cli-run",
        "Web UI: http://127.0.0.1:8233/namespaces/default/workflows/cli-run",
    ]
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
        with pytest.raises(Stop, match="'cli-same' is in use") as refusal:
            await start.run(connection, other, "cli-same")
    assert refusal.value.code == Code.REFUSED
    assert "attached" in capsys.readouterr().err


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
        with pytest.raises(Stop, match="no run 'nobody'") as refusal:
            await asked
        assert refusal.value.code == Code.REFUSED


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
    with pytest.raises(Stop, match="no worker polls task queue") as refusal:
        await require_worker(connection, wait=0.0)
    assert refusal.value.code == Code.UNREACHABLE


@pytest.mark.anyio
async def test_a_start_says_which_tiers_nobody_serves_and_only_if_models_are_asked(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker():
        await require_worker(connection)
        assert "tier" not in capsys.readouterr().err
        await require_worker(connection, ["haiku", "opus"])
    said = " ".join(capsys.readouterr().err.split())
    assert "Nobody serves the haiku and opus tiers" in said and "ANTHROPIC_API_KEY" in said
    async with runs.worker(script()):
        await require_worker(connection, ["haiku", "opus"])
    assert "tier" not in capsys.readouterr().err


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


# ---------------------------------------------------------------- from options to a Goal


REVIEW = Catalogue(
    {"lens": Role(RoleCard(name="lens", description="Looks", tier="none"), "", "review")},
    {
        "review": PlaybookFile.model_validate(
            {
                "name": "review",
                "description": "Review the code of a repository",
                "inputs": {
                    "repo": {"kind": "repository", "required": True},
                    "base": {"kind": "text", "description": "a revision"},
                },
                "plan": plans(subtask("bugs", role="lens", inputs=["repo"]) | {"tier": None}),
            }
        )
    },
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder))
    for more in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *more], check=True)
    return folder


def asked(*inputs: str, **more: object) -> Goal:
    wish = Asked(playbook="review", inputs=inputs, **more)  # type: ignore[arg-type]
    return asyncio.run(goal_of(wish, REVIEW, Settings(), embedded=True))


def test_a_playbook_needs_no_words_and_no_model_and_declares_its_inputs(repository: Path) -> None:
    goal = asked("repo=code", "base=HEAD")
    assert goal.text == "the goal"
    assert goal.use_models is False
    assert [(each.name, each.kind, each.value) for each in goal.inputs] == [
        ("repo", "repository", str(repository)),
        ("base", "text", "HEAD"),
    ]


@pytest.mark.parametrize(
    ("inputs", "fragments"),
    [
        ((), ["'repo' is missing", "--input repo=PATH"]),
        (("repo=code", "base=v9"), ["--input repo", "'v9'"]),
        (("repo=code", "bse=HEAD"), ["--input bse", "base, repo"]),
        (("repo=code/a.py",), ["--input repo", "a folder is needed"]),
        (("repo=.",), ["--input repo", "not a Git repository"]),
        (("repo=text:x",), ["--input repo", "'text:x'"]),
    ],
)
@pytest.mark.usefixtures("repository")
def test_an_input_that_does_not_fit_its_playbook_is_refused(
    inputs: tuple[str, ...], fragments: list[str]
) -> None:
    with pytest.raises(Stop) as refusal:
        asked(*inputs)
    for fragment in fragments:
        assert fragment in str(refusal.value)


@pytest.mark.usefixtures("repository")
def test_a_playbook_asks_models_only_when_told_to_and_only_with_an_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Stop, match="leave out --models"):
        asked("repo=code", models=True)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    assert asked("repo=code", models=True).use_models is True


def test_files_text_and_limits_of_a_free_form_goal_are_taken_as_given(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Ship on Friday")
    wish = Asked(
        text="Summarise",
        inputs=("notes=notes.md", "tone=text:dry = short"),
        limits=("dollars=0.25", "deadline_seconds=60"),
    )
    goal = asyncio.run(goal_of(wish, Catalogue(), Settings(), embedded=False))
    assert [(each.kind, each.value) for each in goal.inputs] == [
        ("file", str(tmp_path / "notes.md")),
        ("text", "dry = short"),
    ]
    assert goal.limits == Limits(dollars="0.25", deadline_seconds=60)
    assert goal.use_models is True


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (INPUT_BYTES + 1)])
def test_a_file_that_no_run_could_read_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(content)
    wish = Asked(text="Summarise", inputs=("notes=data",))
    with pytest.raises(Stop, match="--input notes"):
        asyncio.run(goal_of(wish, Catalogue(), Settings(), embedded=False))


@pytest.mark.anyio
async def test_an_exported_history_is_harmless_to_look_at_in_a_file_too(
    connection: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = {"said": "\x9b31m \x7f \u202egnp.exe é"}

    async def whole(*_: object) -> str:
        return json.dumps(document, ensure_ascii=False)

    monkeypatch.setattr(export, "export", whole)
    await export.run(connection, "r", None)
    await export.run(connection, "r", tmp_path / "r.json")
    for text in (capsys.readouterr().out, (tmp_path / "r.json").read_text()):
        assert not set(text) & {"\x9b", "\x7f", "\u202e"} and "é" in text
        assert json.loads(text) == document


# ---------------------------------------------------------------- doctor and the program itself


@pytest.mark.anyio
async def test_doctor_masks_secrets_names_origins_and_starts_nothing(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdefghij")
    address = "http://user:hunter2@127.0.0.1:1"  # pragma: allowlist secret
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    assert await doctor.run(Settings(), True) == Code.FAILED
    shown = " ".join(capsys.readouterr().out.split())
    assert "0123456789" not in shown and "hunter2" not in shown
    assert "ANTHROPIC_API_KEY …ghij (27 characters) (environment)" in shown
    assert "HOLDFAST_IDLE_SECONDS 60 (default)" in shown
    assert "not reachable" in shown and "1 thing in the way" in shown
    assert not bare_environment.exists()


@pytest.mark.anyio
@pytest.mark.usefixtures("bare_environment")
async def test_doctor_says_what_it_knows_while_it_still_waits_for_an_endpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    async def silent(_: Settings) -> list[Check]:
        asked.append(capsys.readouterr().out)
        return [Check("models", "endpoint", "bad", "said nothing")]

    monkeypatch.setattr(doctor, "models", silent)
    await doctor.run(Settings(), True)
    known, later = asked[0].splitlines(), capsys.readouterr().out.splitlines()
    assert "version" in known[0] and "embedded" in known[-1]
    assert "said nothing" in later[0] and "in the way" in later[-1]
    names = [line.index(each) for line, each in ((known[0], "version"), (later[0], "endpoint"))]
    assert names[0] == names[1], "the columns stand where they stood"


@pytest.mark.anyio
async def test_doctor_lists_who_polls_which_queue_of_a_server(
    runs: Runs, connection: Connection
) -> None:
    client, target = connection.client, connection.target
    async with runs.worker(script()), asyncio.timeout(30):
        marks = ["note"]
        while {"note", "bad"} & set(marks):
            marks = [each.mark for each in await doctor.polled(client, target)]
    assert marks == ["ok"] * 5, "the queue of runs, one for each tier, and what is served"


def test_without_its_packages_the_program_says_what_to_do() -> None:
    starter = Path(__file__).parent.parent / "starter.py"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", starter, "list"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "make setup" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
