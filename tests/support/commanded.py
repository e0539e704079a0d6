"""What tests of the command line type, and what their models answer."""

from __future__ import annotations

import shlex

import pytest

from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from scripted import ScriptedModel, plans, subtask, synthesizes, works


def refused(capsys: pytest.CaptureFixture[str], command: str, code: Code = Code.REFUSED) -> str:
    """Run a command that must be refused before anything starts; what it said on stderr."""
    assert main(shlex.split(command)) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err.rstrip("\n")


def script(**lines: object) -> ScriptedModel:
    answers = {
        "plan": [plans(subtask("t1"), subtask("t2"))],
        "t1": [works("one")],
        "t2": [works("two")],
        "synthesize": [synthesizes("Both [t1] [t2].")],
    }
    return ScriptedModel(answers | lines)  # type: ignore[arg-type]
