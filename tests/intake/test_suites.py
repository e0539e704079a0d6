"""A suite is read whole, and every mistake in it is one line that names its file and case."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.contracts import Finding
from holdfast.errors import Refused
from holdfast.intake.suites import list_suites, read_suite

SUITE = """
description: Three forms of a case
passing: 80
each: {limits: {dollars: 1}, must: [{seconds: 60}]}
"""
CASES = """
- name: asked
  goal: Which is dearer?
  inputs: {offer: offer.md, note: "text:hello", page: {text: Hello}}
  plan: {goal: Compare, subtasks: [{id: t1, title: A, instruction: Read it, role: analyst}]}
  findings: {t1: "Seven [1]"}
  limits: {subtasks: 2}
  must: [{says: seven}, {cites: [t1]}]
- name: criticised
  call: critique
  material:
    goal: g
    instruction: i
    synthesis: {answer: "It costs 7."}
    findings: [{subtask_id: t1, status: complete, content: "It costs 9."}]
  must: [{finds: {planted: ['7\\b'], most_false: 1}}]
"""
LINES = (
    '{"name": "read", "tool": "calculate", "arguments": {"expression": "1+1"},'
    ' "must": [{"says": "2"}]}\n'
)


def written(folder: Path, suite: str = SUITE, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.yaml").write_text(suite)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_a_suite_has_cases_of_three_forms_with_what_every_case_has(tmp_path: Path) -> None:
    suite = read_suite(written(tmp_path / "offers", a_yaml=CASES, b_jsonl=LINES))
    asked, criticised, read = suite.cases
    assert (suite.name, suite.passing) == ("offers", 80)
    assert [each.form for each in suite.cases] == ["run", "call", "tool"]
    assert asked.request["inputs"] == {
        "offer": str(tmp_path / "offers" / "offer.md"),
        "note": "text:hello",
        "page": {"text": "Hello"},
    }
    assert asked.request["limits"] == {"dollars": 1, "subtasks": 2}
    assert [each.kind for each in asked.must] == ["seconds", "says", "cites"]
    given = Finding(subtask_id="t1", status="complete", content="Seven [1]", confidence=90)
    assert asked.findings == (given,)
    assert criticised.call == "critique" and read.arguments == {"expression": "1+1"}


WRONG = {
    "- {goal: G, must: [{says: x}]}": "case 1: name: give up to 40",
    "- {name: a, must: [{says: x}]}": "a: asks for nothing",
    "- {name: a, goal: G, tool: t, must: [{says: x}]}": "a: asks for tool and a run",
    "- {name: a, goal: G}": "a: must: give a list",
    "- {name: a, goal: G, must: [{say: x}]}": "a: must 1: say: there is no such field",
    "- {name: a, goal: G, must: [{says: x, cites: 1}]}": "a: must 1: give one of says,",
    "- {name: a, goal: G, must: [{matches: '('}]}": "a: must 1: regex '(': missing )",
    "- {name: a, goal: G, must: [{plan: {lest: 1}}]}": "(did you mean 'least'?); there are: ",
    "- {name: a, goal: G, must: [{result: {type: 7}}]}": "a: must 1: result: no JSON schema: ",
    "- {name: a, goal: G, must: [{cites: -1}]}": "a: must 1: cites",
    "- {name: a, goal: G, must: [{dollars: -1}]}": "a: must 1: dollars: ",
    "- {name: a, goal: G, must: [{seconds: -1}]}": "a: must 1: seconds: ",
    "- {name: a, goal: G, must: [{plan: {filler: -1}}]}": "a: must 1: plan.filler: ",
    "- {name: a, goal: G, must: [{status: great}]}": "a: must 1: status 'great': known: complete,",
    "- {name: a, goal: G, must: [{says: ''}]}": "a: must 1: says: a text is empty",
    "- {name: a, goal: G, must: [{says_not: [x, ' ']}]}": "a: must 1: says_not: a text is empty",
    "- {name: a, goal: G, must: [{matches: ''}]}": "a: must 1: matches: a text is empty",
    "- {name: a, goal: G, must: [{finds: {planted: ''}}]}": "a: must 1: finds: a text is empty",
    "- {name: a, goal: G, gaol: x, must: [{says: x}]}": "a: gaol: there is no such field",
    "- {name: a, goal: G, limits: 3, must: [{says: x}]}": "a: limits: ",
    "- {name: a, goal: G, findings: {t1: x}, must: [{says: x}]}": "a: findings: give the plan",
    "- {name: a, call: critic, material: {}, must: [{says: x}]}": "a: call 'critic': known: ",
    "- {name: a, call: work, material: {}, must: [{says: x}]}": "ask for it by a run",
    "- {name: a, call: critique, material: {goal: g}, must: [{says: x}]}": "a: material: ",
    "- {name: a, goal: G, must: [{says: x}]}\n- {name: a, goal: H, must: [{says: x}]}": "two cases",
    "{name: a}": "give a list of cases",
    "- 3": "case 1: a case is a mapping",
    "- [": "not YAML: line",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_one_line_that_names_file_and_case(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path / "bad", suite="", cases_yaml=text)
    with pytest.raises(Refused) as refusal:
        read_suite(folder)
    said = str(refusal.value)
    assert WRONG[text] in said and "bad" in said and "\n" not in said


def test_all_mistakes_of_a_suite_are_told_at_once(tmp_path: Path) -> None:
    head, lines = "pasing: 3\npassing: 120", '{"name": 1}\n{'
    folder = written(tmp_path / "bad", head, a_yaml="- {name: a}", b_jsonl=lines)
    with pytest.raises(Refused) as refusal:
        read_suite(folder)
    said = str(refusal.value).splitlines()
    assert len(said) == 5 and "pasing: there is no such field (did you mean 'passing'?)" in said[0]
    assert "a.yaml: a: asks for nothing" in said[1] and "b.jsonl: line 2: not JSON" in said[3]
    assert "suite.yaml: passing: " in said[4]


@pytest.mark.parametrize("name", list_suites(None))
def test_each_shipped_suite_can_be_read(name: str) -> None:
    assert read_suite(list_suites(None)[name]).description


def test_the_projects_own_suite_comes_before_the_shipped_one_of_its_name(tmp_path: Path) -> None:
    assert tmp_path not in {each.parent.parent for each in list_suites(None).values()}
    written(tmp_path / "evals" / "mine")
    assert list_suites(tmp_path)["mine"] == tmp_path / "evals" / "mine"


def test_an_input_lies_within_the_project_of_its_suite_also_by_a_link(tmp_path: Path) -> None:
    folder = written(tmp_path / "project" / "evals" / "mine")
    (tmp_path / "key").write_text("secret")
    (tmp_path / "project" / "own.md").write_text("ours")
    (folder / "link").symlink_to(tmp_path / "key")
    (folder / "state").mkdir()
    (folder / "state" / "link").symlink_to("../../../../key")
    planted = "{before: state, after: {a.py: x}}"
    for given in ("/etc/passwd", "~/.ssh/id_rsa", "../../../key", "link", planted):
        case = f"- {{name: a, goal: G, inputs: {{p: {given}}}, must: [{{says: x}}]}}"
        (folder / "cases.yaml").write_text(case)
        with pytest.raises(Refused, match=r"cases\.yaml: a: inputs\.p: '.* leads outside ") as said:
            read_suite(folder)
        assert "\n" not in str(said.value), given
    (folder / "cases.yaml").write_text(case.replace(planted, "../../own.md"))
    assert read_suite(folder).cases[0].request["inputs"] == {"p": f"{folder}/../../own.md"}
