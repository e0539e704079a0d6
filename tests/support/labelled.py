"""What a model may answer to the cases of the shipped suites, rightly and wrongly, by case: in
`tests/evals/answers`, for the checks alone and for scripted models.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import yaml

from holdfast.contracts import Gap, Plan, Subtask
from holdfast.contracts.evals import Answered, Case, Suite
from holdfast.deployment.settings import HOME
from holdfast.evals.outcomes import Outcome, of_answer
from holdfast.intake.suites import read_suite

ANSWERS = Path(__file__).parents[1] / "evals" / "answers"
ANSWERED = ("planner", "routing", "roles", "synthesis", "critic", "review", "team")
ROLES = ("troubleshooter", "documenter", "refund-clerk", "escalator")
Answers = dict[str, dict[str, list[Any]]]
"""By case and by `right`, `wrong`, or `judged`: wrong in a way that only a judge can tell."""


@functools.cache
def suite_of(name: str) -> Suite:
    return read_suite(HOME / "evals" / name)


def answers_of(suite: Suite) -> Answers:
    """Return the answers; those of routing follow from its labels."""
    if suite.name == "routing":
        return {case.name: _routed(case) for case in suite.cases}
    text = (ANSWERS / f"{suite.name}.yaml").read_text(encoding="utf-8")
    read: Answers = yaml.safe_load(text)
    return read


def _routed(case: Case) -> dict[str, list[Any]]:
    """Return the plan as labelled; one by another role, and one with a second subtask."""
    role, seconds = label_of(case)
    other = next(each for each in ROLES if each not in (role, *seconds))
    right = {"id": "case", "role": role, "secondary": seconds[0], "title": "The case"}
    return {
        "right": [[right]],
        "wrong": [
            [right | {"role": other}],
            [right | {"secondary": other}],
            [right, right | {"id": "t2"}],
        ],
    }


def label_of(case: Case) -> tuple[str, tuple[str, ...]]:
    """Return the role of a routed case, and who may stand in."""
    (role,) = next(must.route for must in case.must if must.route)
    return role, next(must.plan.second for must in case.must if must.plan)


def outcome_of(case: Case, answer: Any) -> Outcome:
    """Return what a trial would have brought."""
    if case.stop == "plan":
        return Outcome(status="declined", plan=(plan := plan_of(answer)), text=_words_of(plan))
    if case.call:
        return of_answer(Answered(value=value_of(case, answer)), case)
    if case.request.get("playbook") == "code-review":
        return Outcome(remarks=tuple(answer))
    if isinstance(answer, dict):
        gap = Gap(title=case.name, status="failed", why=answer["failed"])
        return Outcome(status="failed", gaps=(gap,))
    data = json.loads(answer) if answer.startswith("{") else None
    return Outcome(text=answer, document=data)


def value_of(case: Case, answer: Any) -> dict[str, Any]:
    """Return the value of a call: issues from their problems, or a synthesis."""
    if case.call == "critique":
        return {"issues": [{"severity": "warning", "problem": each, "fix": ""} for each in answer]}
    return {"conflicts": [], "gaps": [], "flags": [], **answer}


def plan_of(answer: Any) -> Plan:
    whole = answer if isinstance(answer, dict) else {"subtasks": answer}
    subtasks = [_subtask(number, each) for number, each in enumerate(whole["subtasks"], start=1)]
    return Plan.model_validate({"goal": "the goal", **whole, "subtasks": subtasks})


def _subtask(number: int, given: dict[str, Any]) -> dict[str, Any]:
    made = {"id": f"t{number}", **given}
    over, by = made.pop("over", ""), made.pop("by", "records")
    made.setdefault("instruction", _vague(made["title"]))
    return made | ({"map": {"over": over, "by": by}} if over else {})


def _vague(title: str) -> str:
    return f"{title}: return it as a list."


def _words_of(plan: Plan) -> str:
    said = (word for each in plan.subtasks for word in (each.title, each.instruction))
    return "\n".join((*said, plan.synthesis_instruction))


# ---------------------------------------------------------------- the same, for scripted models


def script_of(suite: Suite, kind: str, number: int = 0) -> dict[str, Any]:
    """Return the script of a model that answers each case so: by its right or wrong answers."""
    answers = answers_of(suite)
    rules: list[dict[str, Any]] = [{"call": "grade", "fields": {"why": "so", "holds": True}}]
    for case in suite.cases:
        rules += _rules(case, answers[case.name][kind][number % len(answers[case.name][kind])])
    return {"rules": rules, "latency": 0}


def _rules(case: Case, answer: Any) -> list[dict[str, Any]]:
    if case.stop == "plan":
        return [{"call": "plan", "text": told_to(case), **_planned(case, answer)}]
    if case.call == "critique":
        synthesis = case.material["synthesis"]
        assert isinstance(synthesis, dict)
        fields = {"issues": value_of(case, answer)["issues"]}
        return [{"call": "critique", "text": synthesis["answer"], "fields": fields}]
    if case.call == "synthesize":
        said = value_of(case, answer)
        fields = {name: said[name] for name in ("answer", "conflicts", "gaps")}
        return [{"call": "synthesize", "text": case.material["goal"], "fields": fields}]
    return [*_looks(case), {"text": told_to(case), "fields": _worked(answer)}]


def told_to(case: Case) -> str:
    """Return words that stand in the prompts of no other case."""
    request: dict[str, Any] = case.request
    if plan := request.get("plan"):
        return str(plan["subtasks"][0]["instruction"])
    if "text" in (ticket := request.get("inputs", {}).get("ticket", "")):
        return str(ticket["text"])
    own = {"two-competitors": "Tern Express", "six-competitors": "Fulmar Freight"}
    return own.get(case.name) or str(request["goal"])


def _planned(case: Case, answer: Any) -> dict[str, Any]:
    """Return a plan as a rule has it."""
    plan = plan_of(answer)
    request: dict[str, Any] = case.request
    inputs = request["inputs"] if request.get("playbook") == "tech-support" else ()
    parts = [
        {
            "id": each.id,
            "role": each.role,
            "secondary": each.secondary,
            "title": each.title,
            "instruction": _instruction(each),
            "inputs": [*each.inputs, *inputs],
            "depends_on": [*each.depends_on],
        }
        for each in plan.subtasks
    ]
    bounds = [
        {"subtask": s.id, "timeout_seconds": s.timeout_seconds, "max_output": s.max_output}
        for s in plan.subtasks
        if s.timeout_seconds or s.max_output
    ]
    maps = [
        {"subtask": s.id, "over": s.map.over, "by": s.map.by, "id": "", "result": []}
        for s in plan.subtasks
        if s.map
    ]
    choices = [[*each] for each in plan.choices]
    fields = {"strategy": plan.strategy, "choices": choices, "bounds": bounds, "maps": maps}
    return {"plan": parts, "fields": fields}


def _instruction(subtask: Subtask) -> str:
    if subtask.instruction != _vague(subtask.title):
        return subtask.instruction
    of = f" from the findings of {', '.join(subtask.depends_on)}" if subtask.depends_on else ""
    return f"Work out {subtask.title}{of}, and return names and figures as a list, one a line."


def _worked(answer: Any) -> dict[str, Any]:
    """Return the fields of an agent's answer."""
    if isinstance(answer, dict):
        failed = {"status": "failed", "why": answer["failed"], "result": ""}
        return {**failed, "sources": [], "reason": ""}
    result = json.loads(answer) if answer.startswith("{") else answer
    return {"status": "complete", "result": result, "sources": ["input"], "why": "", "reason": ""}


def _looks(case: Case) -> list[dict[str, Any]]:
    """Return the turn in which an agent opens a folder, without which its answer does not count."""
    request: dict[str, Any] = case.request
    inputs, plan = request.get("inputs", {}), request.get("plan")
    named = plan["subtasks"][0]["inputs"] if plan else [*inputs]
    paths = {name: Path(str(inputs[name])) for name in named}
    folders = [name for name, path in paths.items() if path.is_dir()]
    calls = [
        {"name": name, "input": {"file_path": f"{folder}/{_first_file(paths[folder])}"}}
        for folder in folders
        for name in ("read_document", "read_file")
    ]
    return [{"text": told_to(case), "turn": 1, "tools": calls}] if calls else []


def _first_file(folder: Path) -> str:
    found = min(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return found.relative_to(folder).as_posix()


def remarks_of(suite: Suite, kind: str) -> dict[str, list[dict[str, Any]]]:
    """Return the remarks on each change of a suite of reviews, by a line that only this change has,
    each with the code of its line.
    """
    answers = answers_of(suite)
    found = {}
    for case in suite.cases:
        inputs: Any = case.request["inputs"]
        before, after = inputs["repo"]["before"], inputs["repo"]["after"]
        old = {line for text in before.values() for line in text.splitlines()}
        new = {line for text in after.values() for line in text.splitlines()} - old
        given = (each.partition(" ") for each in answers[case.name][kind][-1])
        found[max((line.strip() for line in new), key=len)] = [
            _remark(place, message, before | after) for place, _, message in given
        ]
    return found


def _remark(place: str, message: str, files: dict[str, str]) -> dict[str, Any]:
    file, _, line = place.partition(":")
    lines = files[file].splitlines()
    at = min(int(line), len(lines))
    return {"file": file, "line": at, "message": message, "code": lines[at - 1]}
