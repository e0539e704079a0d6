"""The form that an answer is asked for in: what no answer could be asked for is refused before
anything starts, in one line that names the option.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.catalogue.answer_forms import MOST_COLUMNS
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import AnswerForm, Goal
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake.answers import WantedForm
from holdfast.intake.goals import Wish, goal_of
from holdfast.intake.launch import details
from shipped import shipped_catalogue

GOOD: dict[str, Any] = {"type": "object", "properties": {"best": {"type": "string"}}}
CLOSED = {**GOOD, "additionalProperties": False}


@pytest.fixture(autouse=True)
def endpoint(bare_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")


def asked(kind: str, schema: Path | None = None, columns: str | None = None, **more: Any) -> Goal:
    wish = Wish("Compare", form=WantedForm(kind, schema, columns), **more)
    return asyncio.run(goal_of(wish, shipped_catalogue(), Settings(), embedded=True))


def refused(*form: Any, **more: Any) -> str:
    with pytest.raises(Refused) as why:
        asked(*form, **more)
    said = str(why.value)
    assert "\n" not in said
    return said


def written(folder: Path, schema: object) -> Path:
    path = folder / "form.json"
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    return path


def test_a_form_is_taken_into_the_goal_with_the_objects_of_its_schema_closed(
    tmp_path: Path,
) -> None:
    given = written(tmp_path, {"$schema": "https://json-schema.org/draft/2020-12/schema", **GOOD})
    assert asked("json", given).form == AnswerForm(kind="json", result=CLOSED)
    assert asked("table", None, "a , b").form == AnswerForm(kind="table", columns=("a", "b"))
    assert asked("table").form == AnswerForm(kind="table")
    assert asked("markdown").form == AnswerForm(kind="markdown")
    assert asked("").form == AnswerForm()
    assert "- the answer as **table**: a, b" in details(asked("table", None, "a,b"))


def test_data_is_refused_where_each_answer_begins_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "case.md").write_text("Patient: none")
    case = {"playbook": "patient-case", "inputs": (f"case={tmp_path / 'case.md'}",)}
    assert refused("table", **case) == (
        "--answer table: each answer of playbook 'patient-case' begins with a notice, for which"
        " data has no room; leave --answer out"
    )


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "not JSON: line 1"),
        ("", "not JSON"),
        ("[]", "it must be an object"),
        ({}, "needs a JSON schema"),
        ({"type": "string"}, "must be of `type: object` or `type: array`"),
        ({"anyOf": [GOOD]}, "must be of `type: object` or `type: array`"),
        ({"type": "object"}, "schema: needs `properties`"),
        ({"type": "array"}, "schema: needs `items`"),
        ({**GOOD, "required": ["worst"]}, "schema.required"),
        ({**GOOD, "required": [["best"]]}, "schema.required"),
        ({**GOOD, "allOf": [GOOD]}, "allOf"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://evil.example/a.json"}}},
            "schema.properties.a.$ref: must be #/$defs/NAME",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
            "schema.properties.a.$ref: must be #/$defs/NAME",
        ),
        (deep(11), "nested deeper than 10"),
        ("[" * 200 + "]" * 200, "levels deep"),
        ({**GOOD, "description": "x" * 9_000}, "more than 8,000"),
        (" " * 300_000, "--schema"),
        ({"type": "object", "properties": {"a\nb": {"type": "no"}}}, "schema.properties.a\\nb"),
    ],
)
def test_a_schema_that_no_answer_could_be_asked_for_is_refused_by_its_place(
    tmp_path: Path, schema: object, why: str
) -> None:
    said = refused("json", written(tmp_path, schema))
    assert said.startswith("--schema ") and why in said


def test_a_schema_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "none.json" in refused("json", tmp_path / "none.json")
    assert "--schema" in refused("json", tmp_path)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (("xml",), "--answer 'xml': it is markdown, json or table"),
        (("json",), "--answer json needs the JSON schema of the answer: give --schema FILE"),
        (("", Path("a.json")), "--schema is for --answer json"),
        (("table", Path("a.json")), "--schema is for --answer json"),
        (("", None, "a"), "--columns is for --answer table"),
        (("markdown", None, "a"), "--columns is for --answer table"),
        (("table", None, ""), "--columns: one of them has no name"),
        (("table", None, "a,,b"), "--columns: one of them has no name"),
        (("table", None, "a,b, a"), "--columns: 'a' is given twice"),
        (("table", None, "a\x1b[2J"), "plain letters"),
        (("table", None, "a" * 81), "at most 80 plain letters"),
        (("table", None, ",".join(map(str, range(MOST_COLUMNS + 1)))), "are 21, at most 20"),
    ],
)
def test_an_option_that_has_no_effect_or_no_sense_is_refused(form: Any, why: str) -> None:
    assert why in refused(*form)


def test_a_form_that_no_model_would_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path))
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *command], check=True)
    review: dict[str, Any] = {"playbook": "code-review", "inputs": ("repo=.",)}
    said = refused("table", **review)
    assert said == (
        "--answer table: playbook 'code-review' has its answer written by code, in a form of its"
        " own; leave --answer out"
    )
    assert refused("table", **review, models=True) == said
    assert asked("markdown", **review).form.kind == "markdown"


def test_a_playbook_says_how_its_answers_look_and_the_caller_may_say_otherwise(
    tmp_path: Path,
) -> None:
    def playbook(answer: object, more: str = "") -> Catalogue:
        folder = tmp_path / "playbooks/prices"
        folder.mkdir(parents=True, exist_ok=True)
        head = f"name: prices\ndescription: Compares prices.\n{more}"
        (folder / "playbook.yaml").write_text(f"{head}answer: {json.dumps(answer)}\n")
        return Catalogue.load(tmp_path)

    table = playbook({"kind": "table", "columns": ["a"]}).playbooks["prices"].card(None)
    assert table.form == AnswerForm(kind="table", columns=("a",))
    data = playbook({"kind": "json", "result": GOOD}).playbooks["prices"].card(None)
    assert data.form.result == CLOSED
    for answer, more, why in (
        ({"kind": "json"}, "", "answer.result: an answer as json needs a JSON schema"),
        ({"kind": "table", "result": GOOD}, "", "answer.result: no effect"),
        ({"columns": ["a"]}, "", "answer.columns: no effect"),
        ({"kind": "xml"}, "", "answer.kind"),
        ({"kind": "table", "colums": ["a"]}, "", "answer.colums: no effect; remove it"),
        ({"kind": "table"}, "template: review\nverify: 3\n", "no effect beside `verify`"),
    ):
        assert why in playbook(answer, more).unusable_playbook("prices")
