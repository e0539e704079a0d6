"""The command line: what it refuses, what it says, which code it ends with."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commanded import refused, script
from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.cli.checks.diagnosis import Checkup
from holdfast.cli.commands.care import doctor
from holdfast.cli.main import explain, main, program
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.shared.starting import endpoint_known
from holdfast.deployment.invocation import PROGRAM, STARTER, WORKER, to_type
from holdfast.deployment.settings import FILE_BYTES, OTHERS, Settings
from holdfast.errors import EmbeddedError, IdTaken, NoWorker, Refused
from holdfast.intake.connection import Connection
from holdfast.intake.goals import Wish, goal_of
from holdfast.intake.launch import check_id, new_id
from holdfast.serving import worker
from holdfast.temporal.own_server import web_ui_of
from parameters import rest_long
from scripted import plan_file, subtask

pytestmark = pytest.mark.usefixtures("bare_environment")


# ---------------------------------------------------------------- refused before anything starts


@pytest.mark.parametrize(
    ("command", "fragments"),
    [
        ("run", ["the goal is empty", "--playbook"]),
        ("start '  '", ["the goal is empty"]),
        ("run '\u202e \u200b'", ["the goal is empty"]),
        ("run goal --playbook ''", ["--playbook is empty", "leave"]),
        ("start goal --playbook=", ["--playbook is empty"]),
        ("run --playbook nope", ["unknown playbook 'nope'", "known:"]),
        ("run goal --input report", ["'report'", "name=PATH"]),
        ("run goal --input report=missing.txt", ["'missing.txt'", "report=text:"]),
        ("run goal --input a=text:x --input a=text:y", ["--input a", "once"]),
        ("run goal --limits subtasks=99", ["subtasks=99", "30"]),
        ("run goal --limits dollars=nan", ["dollars=nan", "finite"]),
        ("run goal --limits dollars=1e-9", ["dollars=0.000001", "no call", "dollars=0.50"]),
        ("run goal --limits dollars=0", ["dollars=0", "no call", "dollars=0.50"]),
        ("run goal --limits dollars=-0", ["dollars=0", "no call"]),
        ("run goal --limits dollars=2,model_calls=0", ["model_calls=0", "no call"]),
        ("run goal --limits dollars=٣", ["dollars=", "digits 0 to 9"]),
        ("run goal --approval ٣", ["--approval", "digits 0 to 9"]),
        ("run goal --fail-on critical", ["not a review", "leave out --fail-on"]),
        ("run goal --sarif a.sarif", ["not a review", "leave out --fail-on"]),
        ("run goal --limits patience=3", ["unknown limit 'patience'", "deadline_seconds"]),
        ("run goal --limits subtasks", ["'subtasks'", "name=value"]),
        ("run goal --plan missing.json", ["--plan", "'missing.json'"]),
        ("run goal --approval soon", ["--approval 'soon'", "always"]),
        ("run goal --approval nan", ["--approval 'nan'"]),
        ("run goal --approval -1", ["--approval '-1'", "0 or more"]),
        ("start goal --approval=-0.01", ["--approval '-0.01'", "0 or more"]),
        ("run goal --yes --approval always", ["--yes", "--approval"]),
        ("start goal --yes --approval always", ["--yes", "--approval"]),
        ("run goal --dry-run --id x", ["--dry-run", "leave out --id"]),
        ("fork x --dry-run --id y", ["--dry-run", "leave out --id"]),
        ("approve x 0", ["approve --help"]),
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
        ("export x --out a --cassette b", ["--out", "--cassette", "one of them"]),
        ("export x --inputs", ["--inputs", "--cassette"]),
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


def test_whoever_typed_a_command_wrongly_is_told_what_to_type_as_it_works_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, "approve ask1 abc")
    assert said.strip().endswith(f"; see: {STARTER} approve --help")


def test_a_free_form_goal_without_an_endpoint_is_refused_in_three_lines(
    bare_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refused(capsys, "run 'Compare three engines'").splitlines()
    assert len(lines) == 3
    assert "no endpoint" in lines[0]
    assert "ANTHROPIC_API_KEY" in lines[1] and "ANTHROPIC_BASE_URL" in lines[1]
    assert f"{STARTER} demo, or" in lines[2] and "--playbook code-review" in lines[2]
    assert not bare_environment.exists()


def test_every_mistake_of_a_plan_is_listed_with_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = subtask("a", "b", role="nobody")
    second = subtask("b", "a", instruction="Analyse the data", inputs=["report"])
    Path("plan.json").write_text(
        json.dumps(plan_file(first | {"tier": None}, second | {"tier": None}))
    )
    said = refused(capsys, "run goal --plan plan.json")
    assert "subtasks[0] 'a': unknown role 'nobody'" in said
    assert "subtasks[1] 'b': instruction" in said
    assert "unknown input 'report'" in said
    assert "cycle: a -> b -> a" in said


def test_of_a_plan_with_thousands_of_mistakes_some_are_listed_and_all_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flood = plan_file(subtask("a", tier=None)) | {f"field-{number}": 1 for number in range(3000)}
    Path("plan.json").write_text(json.dumps(flood))
    lines = refused(capsys, "run goal --plan plan.json").splitlines()
    assert "3000 mistakes" in lines[0] and lines[-1] == "  … and 2900 more"
    assert "there is no such field" in lines[1] and len(lines) == 102
    Path("plan.json").write_text(json.dumps({"goal": "g", "subtasks": [{"id": "a"}] * 3000}))
    said = refused(capsys, "run goal --plan plan.json")
    assert said == "--plan plan.json: subtasks: 3000 are planned, the limit is 1000"


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["plan.json", "plan.yaml"])
async def test_a_plan_from_a_file_brings_its_goal_unless_one_is_typed(name: str) -> None:
    first = subtask("a", tier=None, instruction="Say in a sentence what Temporal is")
    # JSON is YAML, too.
    Path(name).write_text(json.dumps(plan_file(first) | {"goal": " Explain Temporal "}))
    settings = Settings(_env_file=None, anthropic_base_url="http://127.0.0.1:1")
    catalogue = Catalogue.load()
    asked = Wish(plan=Path(name))
    assert (await goal_of(asked, catalogue, settings, embedded=True)).text == "Explain Temporal"
    asked = Wish("In other words", plan=Path(name))
    assert (await goal_of(asked, catalogue, settings, embedded=True)).text == "In other words"


def test_a_price_file_that_no_worker_could_read_is_refused_before_anything_starts(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HOLDFAST_PRICE_FILE", "absent.yaml")
    # Below the caller's folder, which a worker is told whole; not below that of the program.
    absent = str(Path("absent.yaml").absolute())
    assert refused(capsys, "run goal").startswith(f"price file {absent!r} cannot be read")
    assert not bare_environment.exists()


def test_a_plan_without_a_goal_is_refused_when_none_is_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("plan.json").write_text(json.dumps(plan_file(subtask("a", tier=None)) | {"goal": " "}))
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


@pytest.mark.long
def test_a_file_that_is_no_history_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.json").write_text('{"events": 3}')
    assert "not a history" in refused(capsys, "replay other.json")


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


def leave(path: Path, content: bytes | None) -> None:
    """A file with this content; None: a FIFO, which keeps whoever opens it waiting."""
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)


@pytest.mark.parametrize("command", ["list", "doctor", "up", "run Compare"])
@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (None, "not a regular file"),
        (b"HOLDFAST_LOG_LEVEL=\xff\n", "no UTF-8 text"),
        (b"#\nHOLDFAST_WEB_UI=a\0b\n", "holds a NUL in line 2; take it out"),
        (b"#" * (FILE_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_a_file_of_settings_that_is_no_text_is_refused_without_waiting_for_it(
    command: str,
    content: bytes | None,
    fragment: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = tmp_path / ".env"
    leave(environment, content)
    monkeypatch.setitem(Settings.model_config, "env_file", environment)
    said = refused(capsys, command)
    assert fragment in said and str(environment) in said
    assert len(said.splitlines()) == 1
    assert worker.main([]) == Code.REFUSED, "a worker says the same"
    assert capsys.readouterr().err.rstrip("\n") == said


def test_bad_settings_name_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_IDLE_SECONDS", "soon")
    said = refused(capsys, "list")
    assert "HOLDFAST_IDLE_SECONDS" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["HOLDFAST_STATE_DIR", "HOLDFAST_PRICE_FILE"])
@pytest.mark.parametrize("place", ["Loop", "Loop/below", "~nobody-of-this-name/x"])
def test_a_place_to_which_nothing_leads_is_refused_by_its_setting(
    name: str, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("Loop").symlink_to("Loop")
    path = place if place.startswith("~") else str(Path(place).absolute())
    monkeypatch.setenv(name, path)
    said = refused(capsys, "list")
    assert f"{name}: {path!r} leads nowhere" in said
    assert len(said.splitlines()) == 1


# ---------------------------------------------------------------- servers that are not there


def test_an_unreachable_server_is_exit_code_five_with_its_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("STORE_URL", "file:///tmp/store")
    said = refused(capsys, "list", Code.UNREACHABLE)
    *waited, said = said.splitlines()
    assert "127.0.0.1:1" in said and "not reachable" in said
    assert len(waited) <= 1, "but for the word that it is waited for"


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


@pytest.mark.parametrize("command", rest_long(["list", "doctor", "run goal", "show some-id"]))
@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (None, "TEMPORAL_CONFIG_FILE: '{}' is no file to read: not a regular file"),
        (b"#" * (FILE_BYTES + 1), "TEMPORAL_CONFIG_FILE: '{}' is larger than 1 MiB"),
        (b"a = [\n\nb", "TOML parse error at line 3"),
    ],
)
def test_a_profile_that_is_no_file_of_temporals_is_refused_without_waiting_for_it(
    command: str,
    content: bytes | None,
    fragment: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    profile = tmp_path / "temporal.toml"
    leave(profile, content)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(profile))
    monkeypatch.setenv("STORE_URL", "file:///tmp/store")
    if command == "doctor":
        assert main([command]) == Code.FAILED, "it says all that is in the way"
        shown = "".join(capsys.readouterr().out.split())
        assert "".join(fragment.format(profile).split()) in shown
    else:
        said = refused(capsys, command)
        assert fragment.format(profile) in said and len(said.splitlines()) == 1
    assert worker.main([]) == Code.REFUSED, "a worker says the same"
    assert fragment.format(profile) in capsys.readouterr().err


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
        (Exit("no worker", Code.UNREACHABLE), "no worker", Code.UNREACHABLE),
        (Refused("an empty goal"), "an empty goal", Code.REFUSED),
        (NoWorker("nobody polls"), f"start one with: {WORKER}", Code.UNREACHABLE),
        (IdTaken("in use", "a-1"), to_type("show", "a-1"), Code.REFUSED),
        (EmbeddedError("a", "b", "c"), "a: b; c", Code.UNREACHABLE),
        (
            OSError(28, "No space left on device", "/x"),
            "device; free some space there",
            Code.FAILED,
        ),
        (OSError(13, "Permission denied", "/x"), "/x: Permission denied", Code.FAILED),
        (KeyError("x"), "HOLDFAST_DEBUG=1", Code.FAILED),
    ],
)
def test_every_error_becomes_a_line_and_a_code(error: Exception, fragment: str, code: Code) -> None:
    message, ended = explain(error)
    assert fragment in message
    assert ended == code
    assert "\n" not in message


def test_every_command_is_there_and_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(each.name) for each in program().registered_commands]
    assert len(names) == len(set(names)) > 20
    for name in names:
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert f"{PROGRAM} {name}" in shown
        about = shown.split("Usage:")[1].splitlines()[2].strip()
        assert about[:1].isupper() and len(about.split()) > 4


def test_a_random_id_says_what_and_when_and_nothing_of_the_goal() -> None:
    kind, month_day, suffix = new_id("goal").split("-")
    assert (kind, len(month_day), len(suffix)) == ("goal", 4, 5)
    review = new_id("code-review")
    assert review.startswith("code-review-")
    assert check_id(review) == review


# ---------------------------------------------------------------- doctor and the program itself


@pytest.mark.anyio
async def test_doctor_masks_secrets_names_origins_and_starts_nothing(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdefghij")
    address = "http://user:hunter2@127.0.0.1:1"  # pragma: allowlist secret
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    assert await doctor.run(Settings(), True, whole=True) == Code.FAILED
    shown = " ".join(capsys.readouterr().out.split())
    assert "0123456789" not in shown and "hunter2" not in shown
    assert "ANTHROPIC_API_KEY …ghij (27 characters) (environment)" in shown
    assert "HOLDFAST_IDLE_SECONDS 60 (default)" in shown
    assert "HOLDFAST_PROJECT - (default)" in shown
    assert "not reachable" in shown and "1 thing in the way" in shown
    assert not bare_environment.exists()


@pytest.mark.anyio
@pytest.mark.usefixtures("bare_environment")
async def test_doctor_says_what_it_knows_while_it_still_waits_for_an_endpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    async def silent(_: Settings) -> list[Checkup]:
        asked.append(capsys.readouterr().out)
        return [Checkup("models", "endpoint", "bad", "said nothing")]

    monkeypatch.setattr(doctor, "check_models", silent)
    await doctor.run(Settings(), True)
    known, later = asked[0].splitlines(), capsys.readouterr().out.splitlines()
    assert "version" in known[0] and any("embedded" in line for line in known)
    assert "said nothing" in later[0] and "in the way" in later[-1]
    names = [line.index(each) for line, each in ((known[0], "version"), (later[0], "endpoint"))]
    assert names[0] == names[1], "the columns stand where they stood"


@pytest.mark.anyio
async def test_doctor_lists_who_polls_which_queue_of_a_server(
    runs: Runs, connection: Connection
) -> None:
    client, target = connection.client, connection.target
    async with runs.worker(script(), tools_at_once=True), asyncio.timeout(30):
        marks = ["note"]
        while {"note", "bad"} & set(marks):
            marks = [each.mark for each in await doctor.check_pollers(client, target)]
    assert marks == ["ok"] * 3, "the queue of runs, that of tools, and that models are asked"


def test_without_its_packages_the_program_says_what_to_do() -> None:
    starter = Path(__file__).parents[2] / "starter.py"
    ended = subprocess.run(
        [sys.executable, "-E", "-S", starter, "list"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "make setup" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_where_the_models_are_is_said_without_the_password_in_the_address() -> None:
    settings = Settings(anthropic_base_url="https://me:secret@gateway.example/v1")
    assert endpoint_known(settings, embedded=True) == "https://gateway.example/v1"
    assert endpoint_known(settings, embedded=False) == "the worker's endpoint"
