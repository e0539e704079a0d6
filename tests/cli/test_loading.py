"""A command loads what it needs, and no more: people wait for it, and for each press of Tab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.main import PANELS, program
from holdfast.cli.shared import completion
from holdfast.deployment.settings import HOME
from parameters import rest_long

HEAVY = ("anthropic", "aiohttp", "duckdb", "mcp", "pint", "openpyxl", "bandit", "detect_secrets")
LOADED = """
import json, sys
from holdfast.cli.main import main
main(sys.argv[1:])
print("loaded", json.dumps([*sys.modules]))
"""


def loaded(*arguments: str, **asked: str) -> list[str]:
    """The modules of a process that has run this command against a server that is not there."""
    environment = os.environ | {"TEMPORAL_ADDRESS": "127.0.0.1:1"} | asked
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        cwd=HOME,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    modules: list[str] = json.loads(done.stdout.rpartition("loaded ")[2])
    return modules


@pytest.mark.parametrize("command", rest_long([(("approve", "a"),), (("list",),)]))
def test_a_command_loads_neither_models_nor_readers_nor_the_other_commands(
    command: tuple[str, ...],
) -> None:
    modules = {*loaded(*command)}
    assert not modules & {*HEAVY}
    own = {each for each in modules if each.startswith("holdfast.cli.commands.")}
    assert "holdfast.cli.commands.runs.demo" not in own and len(own) < 10


@pytest.mark.long
def test_a_shell_that_completes_an_id_loads_one_command() -> None:
    line = "holdfast\nshow\na"
    asked = {completion.VARIABLE: "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "2"}
    modules = {*loaded(**asked)}
    assert "holdfast.cli.commands.runs.show" in modules
    assert "holdfast.cli.commands.runs.demo" not in modules and not modules & {*HEAVY}


def test_the_version_loads_nothing_of_the_program() -> None:
    code = "import sys; from holdfast.__main__ import start; start(); print([*sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], cwd=HOME, capture_output=True, text=True
    )
    version, _, modules = done.stdout.partition("\n")
    assert version.startswith("holdfast ") and "typer" not in modules and "pydantic" not in modules


def test_each_command_alone_is_the_one_that_stands_among_all() -> None:
    among = {str(each.name): each for each in program().registered_commands}
    assert {name for names in PANELS.values() for name in names} <= {*among}
    for name, each in among.items():
        (alone,) = program(name).registered_commands
        assert (alone.name, alone.rich_help_panel) == (name, each.rich_help_panel)
        assert Path(alone.callback.__code__.co_filename) == Path(  # type: ignore[union-attr]
            each.callback.__code__.co_filename  # type: ignore[union-attr]
        )
