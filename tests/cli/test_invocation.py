"""What a person is told to type is what works where he is: however the program was called."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.cli.shared import completion
from holdfast.contracts import Limits
from holdfast.deployment import extras, invocation
from holdfast.deployment.invocation import as_called, starter
from holdfast.deployment.settings import HOME, NAME
from parameters import rest_long
from shipped import shipped_catalogue


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command as an installation leaves it, found by the shell."""
    command = tmp_path / "bin" / NAME
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o700)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    return command


def test_an_installed_command_is_called_by_its_name_where_the_shell_finds_it(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert starter(str(installed)) == NAME
    monkeypatch.setenv("PATH", os.defpath)
    assert starter(str(installed)) == str(installed), "the shell does not find it"
    monkeypatch.chdir(installed.parents[1])
    assert starter(str(installed)) == f"bin/{NAME}"


def test_the_shells_own_command_of_that_name_is_not_taken_for_this_one(
    installed: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / NAME
    other.parent.mkdir()
    shutil.copy2(installed, other)
    assert starter(str(other)) == str(other)


def test_a_file_and_a_module_are_called_by_their_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HOME)
    path = Path(sys.executable)
    python = shlex.quote(str(path.relative_to(HOME) if path.is_relative_to(HOME) else path))
    assert starter("starter.py") == f"{python} starter.py"
    assert starter("/x/holdfast/__main__.py", "holdfast.__main__") == f"{python} -m holdfast"
    assert starter("/x/pytest/__main__.py", "pytest.__main__") == f"{python} starter.py"


def test_in_the_root_folder_paths_keep_their_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert invocation.called("starter.py") == shlex.join((sys.executable, str(HOME / "starter.py")))


def test_a_text_that_names_a_command_names_it_as_it_is_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(invocation, "STARTER", NAME)
    assert as_called("to have it written: starter.py fork a-1") == (
        "to have it written: holdfast fork a-1"
    )
    assert as_called("see bin/starter.py run, or starter.py.") == (
        "see bin/starter.py run, or starter.py."
    )
    monkeypatch.setattr(invocation, "STARTER", ".venv/bin/python starter.py")
    told = "stop it with: .venv/bin/python starter.py down"
    assert as_called(told) == told, "what is right already stays"


def test_a_worker_is_started_by_its_file_or_by_the_module_of_an_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = "no worker asks task queue 'q' for work; start one: worker.py"
    assert as_called(told).endswith(f"; start one: {invocation.called('worker.py')}")
    monkeypatch.setattr(extras, "INSTALLED", True)
    assert invocation.worker().endswith(" -m holdfast.serving")
    assert importlib.util.find_spec("holdfast.serving.__main__")


@pytest.mark.parametrize(
    ("options", "variables"),
    rest_long([(("--project", "{0}/../{0}"), {}), ((), {"HOLDFAST_PROJECT": "{0}/../{0}"})]),
)
def test_a_command_that_was_told_a_project_finds_it_from_any_folder(
    options: tuple[str, ...], variables: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "holdfast.toml").write_text("")
    named = [each.format(tmp_path.name) for each in options]
    environment = {name: each.format(tmp_path.name) for name, each in variables.items()}
    place = {"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        (sys.executable, HOME / "starter.py", *named, "watch"),
        cwd=tmp_path.parent,
        env=place | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f" --project {shlex.quote(str(tmp_path))} watch --help" in done.stderr


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_said_and_nothing_else(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([option]) == Code.COMPLETE
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{NAME} {__version__}\n", "")


# ---------------------------------------------------------------- what a shell completes


def completed(line: str, home: Path) -> set[str]:
    """What bash gets for a line, from a process without a server, and without a state directory."""
    words = shlex.split(line)
    at = len(words) if line.endswith(" ") else len(words) - 1
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(at), completion.VARIABLE: "complete_bash"}
    bare = {"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, HOME / "starter.py"],
        env=bare | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "" and not [*home.iterdir()], "nothing is started or said"
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("holdfast run --playbook ", {*shipped_catalogue().playbooks}),
        ("holdfast run --limits ", {f"{name}=" for name in Limits.model_fields}),
        ("holdfast raise x --limits ", {"dollars=", "model_calls=", "tokens="}),
        ("holdfast fork x t1 --role wr", {"writer"}),
        ("holdfast run --approval a", {"always", "auto"}),
    ],
)
@pytest.mark.long
def test_a_shell_completes_values_without_a_server(
    line: str, offered: set[str], tmp_path: Path
) -> None:
    assert completed(line, tmp_path) == offered


@pytest.mark.long
def test_in_bash_a_limit_is_completed_up_to_its_sign_and_no_space_follows(tmp_path: Path) -> None:
    """By bash itself: the script is read, and asked as the shell asks it."""
    script = subprocess.run(
        [sys.executable, HOME / "starter.py", "completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    )
    asks = """
compopt() { echo "compopt $1 $2"; }
COMP_WORDS=(holdfast run --limits dol); COMP_CWORD=3
_holdfast
echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script.stdout + asks],
        env={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "compopt -o nospace\ndollars=\n"
