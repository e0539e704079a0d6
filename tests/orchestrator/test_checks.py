"""Criteria that code decides: what passes, what fails, and what cannot be carried out at all."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from driving import subtask
from holdfast.contracts import Check, CheckKind, Draft, Plan, RoleCard
from holdfast.plans import checks, validity

EXAMPLES = settings(max_examples=80, deadline=None, database=None)


def verdict(kind: CheckKind, argument: str, content: str, **fields: object) -> str:
    draft = Draft(content=content).model_copy(update=fields)
    return "; ".join(checks.verdicts((Check(kind=kind, argument=argument),), draft))


def problem(kind: CheckKind, argument: str) -> str:
    checked = subtask("a").model_copy(update={"checks": (Check(kind=kind, argument=argument),)})
    return "; ".join(checks.plan_problems(Plan(goal="Compare", subtasks=(checked,))))


@pytest.mark.parametrize(
    ("kind", "argument", "content"),
    [
        ("valid_json", "", '{"a": [1, null]}'),
        ("keys", "name, year", '[{"name": 1, "year": 2}, {"year": 1, "name": null}]'),
        ("regex", r"^\w+ \d{4}$", "March 2026"),
        ("contains", "TOTAL", "the total is 3"),
        ("contains", ",", "a, b"),
        ("min_words", "3", "one two three"),
        ("max_words", " 3 ", "one two three"),
        ("number_between", "1000,2000", "It was 1,500.50 dollars"),
        ("number_between", "-5,-1", "It fell by -3"),
        (
            "adds_up",
            "rows.value,total",
            '{"rows": [{"value": 0.1}, {"value": "0.2"}], "total": 0.3}',
        ),
        ("adds_up", "r.n,sum", '{"r": [{"n": 1e15}, {"n": 1e-15}, {"n": -1e15}], "sum": 1e-15}'),
        ("adds_up", "rows.value, total", '{"rows": [], "total": "0.00"}'),
        ("acyclic", "rows.id,needs", '{"rows": [{"id": "a", "needs": ["b"]}, {"id": "b"}]}'),
    ],
)
def test_what_a_check_accepts(kind: CheckKind, argument: str, content: str) -> None:
    assert problem(kind, argument) == ""
    assert verdict(kind, argument, content) == ""


@pytest.mark.parametrize(
    ("kind", "argument", "content", "said"),
    [
        ("valid_json", "", "Here is it: {}", "not valid JSON"),
        ("valid_json", "", "NaN", "not valid JSON"),
        ("valid_json", "", "[" * 100_000, "not valid JSON"),
        ("keys", "name,year", '[{"name": 1, "year": 2}, {"name": 1}]', "keys are missing: year"),
        ("keys", "name", '["name"]', "keys are missing: name"),
        ("keys", "name", "[]", "the list is empty"),
        ("keys", "name", "name: x", "so it has no keys"),
        (
            "adds_up",
            "rows.value,total",
            '{"rows": [{"value": 10.10}, {"value": "20.20"}], "total": 30.31}',
            "rows.value adds up to 30.30, and total is 30.31",
        ),
        ("adds_up", "rows.value,total", '{"rows": [{"value": true}], "total": 1}', "is no number"),
        ("adds_up", "rows.value,total", '{"rows": [{"value": "NaN"}], "total": 1}', "is no number"),
        ("adds_up", "rows.value,total", '{"rows": [{"value": 1}]}', "None is no number"),
        ("adds_up", "rows.value,total", '{"rows": [{"value": 1e99}]}', "more than 15 digits"),
        ("adds_up", "rows.value,total", '{"total": 1}', "no list 'rows' whose rows have 'value'"),
        ("adds_up", "rows.value,total", "in words", "does not add up"),
        (
            "acyclic",
            "rows.id,needs",
            '{"rows": [{"id": "a", "needs": ["b"]}, {"id": "b", "needs": "a"}]}',
            "rows.needs goes round in a circle: a → b → a",
        ),
        (
            "acyclic",
            "rows.id,needs",
            '{"rows": [{"id": "a", "needs": "b"}, {"id": "b", "needs": "a"}, {"id": "b"}]}',
            "rows.needs goes round in a circle: a → b → a",
        ),
        (
            "acyclic",
            "rows.id,needs",
            '{"rows": [{"id": "a", "needs": ["c"]}]}',
            "names what is not in the list: c",
        ),
        ("acyclic", "rows.id,needs", "[]", "the result has no order"),
        ("keys", "name", "[" * 100_000, "so it has no keys"),
        ("regex", "^a+$", "b", "nothing matches the pattern '^a+$'"),
        ("contains", "total", "sum", "the text 'total' is missing"),
        ("min_words", "3", "one two", "2 words, at least 3 are wanted"),
        ("max_words", "1", "one two", "2 words, at most 1 are wanted"),
        ("number_between", "1,2", "3 and 0.5", "no number between 1 and 2"),
        ("number_between", "1,2", "none", "no number between 1 and 2"),
    ],
)
def test_what_a_check_rejects_and_says(
    kind: CheckKind, argument: str, content: str, said: str
) -> None:
    assert said in verdict(kind, argument, content)


def test_sources_are_counted_by_what_is_cited() -> None:
    assert verdict("cites_sources", "", "x", sources=()) == "no source is cited"
    assert verdict("cites_sources", "", "x", sources=("report",)) == ""


def test_every_failed_check_has_its_sentence() -> None:
    both = (Check(kind="min_words", argument="9"), Check(kind="valid_json"))
    assert len(checks.verdicts(both, Draft(content="no"))) == 2


@pytest.mark.parametrize(
    ("kind", "argument", "said"),
    [
        ("regex", "(", "regex '(': missing ): ("),
        ("regex", "é(", "regex 'é(': missing ): é("),
        ("regex", r"(a)\1", "regex "),
        ("regex", "(?=a)b", "regex "),
        ("regex", "a" * 201, "longer than 200 characters"),
        ("min_words", "many", "needs a number of words, not 'many'"),
        ("max_words", "", "needs a number of words, not ''"),
        ("min_words", "\u00b2", "needs a number of words"),
        ("min_words", "-1", "needs a number of words"),
        ("max_words", "9" * 5_000, "needs a number of words"),
        ("number_between", "1", "needs two numbers as 'low,high', not '1'"),
        ("number_between", "2,1", "needs two numbers"),
        ("number_between", "nan,nan", "needs two numbers"),
        ("contains", " ", "needs an argument"),
        ("keys", " , ", "needs an argument"),
        ("adds_up", "total", "needs 'list.key,key', not 'total'"),
        ("acyclic", "a.b", "needs 'list.key,key', not 'a.b'"),
    ],
)
def test_a_check_that_cannot_be_carried_out_is_refused_with_the_plan(
    kind: CheckKind, argument: str, said: str
) -> None:
    found = problem(kind, argument)
    assert found.startswith("subtasks[0] 'a': checks: ")
    assert said in found


def test_a_refused_pattern_writes_nothing_to_the_error_stream(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert problem("regex", "(unclosed")
    assert capfd.readouterr().err == ""


def test_a_pattern_that_ruins_backtracking_matchers_is_linear_here() -> None:
    assert "nothing matches" in verdict("regex", "^(a+)+$", "a" * 200_000 + "b")


@EXAMPLES
@given(
    st.sampled_from(
        (
            "valid_json",
            "keys",
            "regex",
            "contains",
            "min_words",
            "max_words",
            "cites_sources",
            "number_between",
        )
    ),
    st.text(max_size=12) | st.from_regex(r"[0-9, .eE+-]{0,8}"),
    st.text(max_size=40) | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps),
)
def test_whatever_a_plan_may_hold_no_answer_makes_a_check_raise(
    kind: CheckKind, argument: str, content: str
) -> None:
    if not problem(kind, argument):
        assert isinstance(verdict(kind, argument, content), str)


def test_a_planner_is_told_every_kind_of_check_with_its_argument() -> None:
    told = re.findall(r"(\w+) \(([^)]+)\)", checks.KINDS)
    assert [kind for kind, _ in told] == list(get_args(CheckKind))
    assert dict(told)["min_words"] == "a number"


def test_a_plan_with_checks_that_no_answer_can_meet_is_refused() -> None:
    counts = (Check(kind="min_words", argument="200"), Check(kind="max_words", argument="50"))
    told = checks.problems((*counts, Check(kind="min_words", argument="10")))
    assert told == ("no answer has at least 200 and at most 50 words; change one",)
    assert checks.problems((counts[0],)) == ()


def test_keys_that_the_closed_form_of_a_role_does_not_have_are_refused_by_name() -> None:
    form: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"engines": {"type": "array", "items": {"type": "string"}}},
    }
    role = RoleCard(name="lister", description="Lists engines", result=form)
    wanted = (Check(kind="keys", argument="engines, licence"),)
    checked = subtask("a").model_copy(update={"role": "lister", "checks": wanted})
    plan = Plan(goal="Compare", subtasks=(checked,))
    (told,) = validity.problems(plan, (role,), (), 6)
    assert told == "subtasks[0] 'a': checks: keys: licence: its result has only engines"
    text = role.model_copy(update={"result": {}})
    assert validity.problems(plan, (text,), (), 6) == ()
