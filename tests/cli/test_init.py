"""`init` and `--project`: what they make and say, and what commands say of files of one's own."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from commanded import refused
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.toolset import shelf
from holdfast.activities.toolset.servers import read_servers
from holdfast.activities.wiring import build
from holdfast.cli.commands.care import doctor, init
from holdfast.cli.main import main, with_project
from holdfast.cli.screen.exits import Code, Exit
from holdfast.deployment import project
from holdfast.deployment.invocation import taken_out
from holdfast.deployment.settings import HOME, Settings
from holdfast.serving import worker
from holdfast.temporal.connection import Target
from shipped import shipped_catalogue


@pytest.fixture(autouse=True)
def alone(bare_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No project yet, and nothing that a command names stays named."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    # Set first, so that it is taken away in the end although `--project` sets it.
    monkeypatch.setenv("HOLDFAST_PROJECT", "")
    monkeypatch.delenv("HOLDFAST_PROJECT")


def made(capsys: pytest.CaptureFixture[str], command: str) -> str:
    """What a command that must succeed said on stderr, on one line."""
    assert main(shlex.split(command)) == Code.COMPLETE
    return " ".join(capsys.readouterr().err.split())


def test_init_makes_a_project_that_works_as_it_is_and_says_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = made(capsys, "init mine")
    folder = tmp_path / "mine"
    assert "holdfast.toml, tools/count_words.py, evals/example/suite.yaml, " in said
    assert f" mcp --print-config --project {folder}; " in said and " mcp --skill " in said
    assert said.endswith(f"doctor --project {folder}")
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {*project.FOLDERS, "evals"}
    assert read_servers(folder / ".mcp.json", os.environ) == {}
    assert ".env" in (folder / ".gitignore").read_text().splitlines()
    assert [*shelf.own_tools(folder)[0]] == ["count_words"]
    monkeypatch.chdir(folder)
    assert (Settings().project, Settings().task_queue) == (folder, "holdfast-mine")
    assert made(capsys, "init").endswith(" doctor")


def test_init_overwrites_nothing_and_makes_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys, "init mine --like contract-review")
    own = tmp_path / "mine" / "playbooks" / "contract-review" / "playbook.yaml"
    for path in (own, tmp_path / "mine" / "holdfast.toml"):
        path.write_text("# mine\n")
    (tmp_path / "mine" / ".mcp.json").unlink()
    said = made(capsys, "init mine --like contract-review")
    assert "Made: .mcp.json, beside" in said
    assert "Kept as they were: holdfast.toml, tools/count_words.py" in said
    assert "playbooks/contract-review/" in said.partition("Kept")[2]
    assert own.read_text() == (tmp_path / "mine" / "holdfast.toml").read_text() == "# mine\n"


def test_init_in_a_strangers_folder_says_what_it_found_and_that_python_in_it_will_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    for name in ("tools/theirs.py", "roles/theirs.md", "tools/data.txt"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("")
    monkeypatch.chdir(clone)
    said = made(capsys, "init .")
    assert "already, and is used from now on: tools/theirs.py, roles/theirs.md Commands" in said
    assert "run those Python files" in said
    assert "already" not in made(capsys, "init"), "by then it is your own"


def test_init_like_a_playbook_copies_it_with_its_roles_to_be_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys, "init mine --like code-review")
    own, shipped = Catalogue.of(tmp_path / "mine"), shipped_catalogue()
    assert own.sources == {"code-review": "from your project"}
    assert own.own_roles("code-review") == shipped.own_roles("code-review")
    assert not own.unusable_roles and not own.unusable_playbooks


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("init --like contract-reviw", "did you mean 'contract-review'?"),
        ("init file", "'file' is not a folder"),
        ("init half", "half/roles' is not a folder and cannot be made one: File exists"),
        ("init /", "'/' would make every folder of this machine part of it; name one"),
        ("init odd", "odd/holdfast.toml' is not a regular file; move it away"),
        ("list --project absent", "'absent' is no project, as it holds no holdfast.toml"),
        ("list --project", "--project needs a folder"),
        ("--project= list", "--project needs a folder"),
        ("list --project half --project=half", "is given twice"),
        ("init ''", "'' names no folder"),
    ],
)
def test_what_init_and_project_cannot_take_is_refused_in_a_line_and_nothing_is_made(
    command: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half").mkdir()
    (tmp_path / "odd" / "holdfast.toml").mkdir(parents=True)
    for name in ("file", "half/roles"):
        (tmp_path / name).write_text("")
    before = {*tmp_path.rglob("*")}
    line = refused(capsys, command)
    assert said in line and len(line.splitlines()) == 1
    assert {*tmp_path.rglob("*")} == before


def test_the_file_that_init_writes_has_every_setting_but_secrets_and_each_line_can_be_taken(
    tmp_path: Path,
) -> None:
    text = init.settings_file("a b/ü")
    assert tomllib.loads(text) == {"task_queue": "holdfast-a-b-ü"}
    lines = [line.removeprefix("# ") for line in text.splitlines() if " = " in line]
    known = {name for name, field in Settings.model_fields.items() if not project.is_secret(field)}
    assert {line.partition(" ")[0] for line in lines} == known - {"project", "projects"}
    (tmp_path / "holdfast.toml").write_text("\n".join(lines))
    assert {*project.read_values(tmp_path, Settings.model_fields)} <= known
    assert {"most_dollars_run", "workers", "endpoint_web"} <= {*tomllib.loads("\n".join(lines))}


def test_the_project_may_be_named_before_or_behind_a_command_and_is_then_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "holdfast.toml").write_text("")
    monkeypatch.chdir(folder)
    for given in (["--project", ".", "list"], ["list", "--project=."]):
        assert with_project(given) == ["list"]
        assert os.environ.pop("HOLDFAST_PROJECT") == str(folder)
    assert Settings().project == folder
    goal = ["run", "--", "--project", "."]
    assert taken_out(goal) == (None, goal), "behind -- it is what somebody wants"


@pytest.mark.parametrize("other", ["elsewhere/mine", "renamed"])
def test_a_project_that_was_moved_or_renamed_says_where_its_runs_are_and_how_to_stop_its_server(
    other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_STATE_DIR")
    made(capsys, "init mine")
    assert "is gone" not in made(capsys, "down --project mine")
    (project.state_of(tmp_path / "mine") / "temporal.db").touch()
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / "mine").rename(tmp_path / other)
    said = made(capsys, f"down --project {other}")
    assert f"{tmp_path / 'mine'} is gone, and its runs are kept for that place" in said
    assert f"HOLDFAST_STATE_DIR={project.state_of(tmp_path / 'mine')} " in said
    (told,) = [each for each in doctor.list_folders(Settings()) if each.name == "moved"]
    assert told.detail in said


def test_doctor_tells_a_project_that_was_typed_from_one_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(capsys, "init mine")

    def origin(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["starter.py", *arguments])
        with_project(arguments)
        found = {each.name: each.detail for each in doctor.list_settings(Settings())}
        return found["HOLDFAST_PROJECT"]

    place = tmp_path / "mine"
    assert origin("doctor", "--project", "mine") == f"{place}  (--project)"
    assert origin("doctor") == f"{place}  (environment)", "named there, and not typed"


def test_a_broken_file_of_settings_stops_commands_and_workers_with_the_same_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(capsys, "init mine")
    (tmp_path / "mine" / "holdfast.toml").write_text("modl_haiku = 1")
    monkeypatch.chdir(tmp_path / "mine")
    lines = {refused(capsys, each) for each in ("list", "doctor", "up", "run goal", "clean")}
    assert worker.main([]) == Code.REFUSED
    monkeypatch.chdir(tmp_path)
    lines.add(capsys.readouterr().err.rstrip("\n"))
    assert worker.main(["--project", "mine"]) == Code.REFUSED
    lines.add(capsys.readouterr().err.rstrip("\n"))
    (line,) = lines
    assert "mine/holdfast.toml: nothing reads modl_haiku" in line and "\n" not in line


def test_a_tool_that_cannot_be_imported_stops_runs_and_workers_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(capsys, "init mine")
    (tmp_path / "mine" / "tools" / "bad.py").write_text("raise RuntimeError('no')")
    monkeypatch.chdir(tmp_path / "mine")
    for command in ("run goal", "start goal", "up"):
        line = refused(capsys, command)
        assert "tools/bad.py:1: RuntimeError: no; mend it" in line and "\n" not in line
    store = (tmp_path / "store").as_uri()
    target = Target(address="127.0.0.1:1", task_queue="q", store_url=store, ui_url="")
    # A worker says a ValueError in a line, and ends.
    with pytest.raises(ValueError, match=r"tools/bad\.py:1: RuntimeError: no"):
        build(Settings(), target)


@pytest.mark.anyio
async def test_doctor_says_what_is_yours_and_a_file_of_yours_that_cannot_be_used_is_in_the_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(capsys, "init mine --like contract-review")
    monkeypatch.chdir(tmp_path / "mine")
    assert await doctor.run(Settings(), True, whole=True) == Code.COMPLETE
    said = " ".join(capsys.readouterr().out.split())
    assert f"folder {tmp_path / 'mine'}" in said
    replaces = "from your project, in place of the shipped one"
    assert f"playbook contract-review {replaces} role clause-reader {replaces}" in said
    assert "count_words from your project; no role has it" in said
    assert "HOLDFAST_TASK_QUEUE holdfast-mine (holdfast.toml)" in said
    Path("roles/broken.md").write_text("---\nname: broken\n---\nText.\n")
    text = Path("tools/count_words.py").read_text()
    Path("tools/calculate.py").write_text(text.replace("count_words", "calculate"))
    assert await doctor.run(Settings(), True) == Code.FAILED
    said = " ".join(capsys.readouterr().out.split())
    assert "count_words from your project; no role has it" in said, "also without --all"
    assert f"calculate {replaces}; " in said
    assert "✗ role broken broken.md: front matter: description:" in said
    assert "(from your project)" in said


def test_a_run_that_needs_a_broken_role_is_refused_with_its_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(capsys, "init mine")
    monkeypatch.chdir(tmp_path / "mine")
    Path("roles/broken.md").write_text("no front matter")
    part = {
        "id": "a",
        "title": "A",
        "instruction": "Say what this is in one line",
        "role": "broken",
    }
    Path("plan.json").write_text(json.dumps({"goal": "g", "subtasks": [part]}))
    line = refused(capsys, "run --plan plan.json")
    assert "broken.md: must begin with front matter" in line and "Traceback" not in line


def test_a_folder_is_needed_behind_the_option() -> None:
    with pytest.raises(Exit, match="--project needs a folder"):
        with_project(["list", "--project"])


def test_the_example_project_works_as_it_ships() -> None:
    own = Catalogue.of(HOME / "examples" / "project")
    assert own.sources == {"style-review": "from your project"}
    assert own.roles["style-editor"].card.tools == ("long_sentences", "read_file", "read_result")
    assert not [each for each in (*own.unusable_roles, *own.unusable_playbooks) if each.source]
