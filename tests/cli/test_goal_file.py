"""`--goal FILE`: all that is asked, as the doors for programs take it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.shared.asked import read_asked
from holdfast.contracts import Approval
from holdfast.deployment.settings import HOME, Settings
from holdfast.errors import Refused
from holdfast.intake.goals import Wish

ALWAYS = Approval(when="always")


@pytest.fixture
def settings(bare_environment: Path) -> Settings:
    return Settings(state_dir=bare_environment)


def written(folder: Path, given: object) -> Path:
    file = folder / "goal.json"
    file.write_text(given if isinstance(given, str) else json.dumps(given))
    return file


def test_a_file_says_all_that_is_asked(tmp_path: Path, settings: Settings) -> None:
    rows = [{"day": 1, "rate": 2.5}]
    given = {
        "goal": "Which rates changed?",
        "inputs": {"a": "text:It rose.", "b": {"text": "It fell."}, "c": {"rows": rows}},
        "dollars": "1.50",
        "limits": {"subtasks": 3},
        "approval": "always",
        "answer": {"kind": "table", "columns": ["day", "rate"]},
        "roles": ["analyst"],
        "id": "rates",
    }
    file = written(tmp_path, given)
    wish, run_id = read_asked(file, Wish(), "", settings, decided=False)
    assert (wish.text, run_id, wish.approval, wish.roles) == (
        "Which rates changed?", "rates", ALWAYS, ("analyst",),
    )  # fmt: skip
    assert wish.limits == ("subtasks=3", "dollars=1.50")
    assert (wish.form.kind, wish.form.columns) == ("table", "day,rate")
    first, second, third = wish.inputs
    assert (first, second) == ("a=text:It rose.", "b=text:It fell.")
    assert json.loads(Path(third.removeprefix("c=")).read_text()) == rows


def test_what_is_typed_of_approval_comes_before_a_file_s(
    tmp_path: Path, settings: Settings
) -> None:
    file = written(tmp_path, {"goal": "G", "approval": "always", "id": "a"})
    wish, run_id = read_asked(file, Wish(), "b", settings, decided=True)
    assert (wish.approval, run_id) == (Approval(), "b")
    file = written(tmp_path, {"goal": "G"})
    wish, _ = read_asked(file, Wish(approval=ALWAYS), "", settings, decided=False)
    assert wish.approval == ALWAYS


def test_a_goal_is_said_in_one_place(tmp_path: Path, settings: Settings) -> None:
    file = written(tmp_path, {"goal": "G"})
    with pytest.raises(Exit, match="it says all that is asked"):
        read_asked(file, Wish(text="Another"), "", settings, decided=False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"goal": "G", "dolars": 1}, "dolars: there is no such field"),
        ({"goal": "G", "dollars": "NaN"}, "dollars: "),
        ('{"goal": "G", "dollars": NaN}', "NaN"),
        ({"goal": 5}, "goal: "),
        ([], "all of it: "),
        ("[" * 10_000, "nested more than 60 levels deep"),
        ('{"goal": "a", "goal": "b"}', "twice"),
        ({"goal": "G", "dollars": 1, "limits": {"dollars": 2}}, "give one of them"),
        ({"goal": "G", "inputs": {"a": {"base64": "%%"}}}, "not base64"),
        ({"goal": "G", "inputs": {"a": {"base64": "aa==", "name": "../x"}}}, "inputs.a: "),
        ({"goal": "G", "id": "a/b"}, "--id 'a/b'"),
        ({"goal": "G", "answer": {"kind": "table", "schema": {}, "colums": []}}, "answer.colums"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line_that_names_the_place(
    tmp_path: Path, settings: Settings, given: object, said: str
) -> None:
    file = written(tmp_path, given)
    with pytest.raises(Refused) as refused:
        read_asked(file, Wish(), "", settings, decided=False)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("what", ["goal", "report", "event", "playbook"])
def test_the_schemas_that_are_printed_are_schemas(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", what]) == Code.COMPLETE
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    if what == "goal":
        valid = Draft202012Validator(schema)
        assert valid.is_valid({"goal": "G", "inputs": {"a": {"rows": [{"x": 1}]}}})
        assert not valid.is_valid({"goal": "G", "dolars": 1})
    if what == "playbook":
        valid = Draft202012Validator(schema)
        for file in HOME.glob("playbooks/*/playbook.yaml"):
            valid.validate(yaml.safe_load(file.read_text(encoding="utf-8")))
        assert not valid.is_valid({"name": "n", "description": "d", "approval": "never"})
