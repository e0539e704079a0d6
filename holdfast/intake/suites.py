"""Suites of an eval: folders of cases, read from files and checked as a whole.

evals/NAME/suite.yaml    description, passing, and `each`: what every case has unless it says
                         otherwise
evals/NAME/*.yaml        a list of cases
evals/NAME/*.jsonl       a case a line
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from holdfast.calls import MODEL_KINDS
from holdfast.contracts import Check, Finding, ReportStatus
from holdfast.contracts.evals import MOST_TRIALS, Case, Found, Must, PlanShape, Suite
from holdfast.deployment.settings import HOME
from holdfast.errors import Refused
from holdfast.intake.case_inputs import FOLDER, is_planted, whole_paths
from holdfast.intake.files import read_text
from holdfast.intake.requests import RunRequest, explain, read_request
from holdfast.plans.checks import problems
from holdfast.text import PLAIN_ID, one_line, says_something
from holdfast.text.mistakes import suggest
from holdfast.untrusted.reading import NotPlain, from_json, from_yaml

FILE = "suite.yaml"
MOST_NAME = 40
"""Characters of the name of a suite or case: ids of runs are made of them."""
ENDS = get_args(ReportStatus)
OF_SUITE = ("description", "passing", "each")
OF_CASE = ("name", "stop", "findings", "call", "material", "tool", "arguments", "needs", "must")
OF_RUN = tuple(
    field.alias or name
    for name, field in RunRequest.model_fields.items()
    if name not in ("id", "approval", "ask_people", "wait_for_raise", "notify", "on", "reuse")
)
"""What a case says of its run: what `--goal FILE` says, but whom to ask and to tell."""
NOT_ALONE = frozenset({"work", "plan", "replan", "prove", "fix"})
"""Kinds of calls that work from more than their material; a case asks them by a run."""
MATERIAL = {kind.name: kind.material for kind in MODEL_KINDS if kind.name not in NOT_ALONE}
"""The kinds of calls that a case may ask, with the shape of their material."""


def list_suites(project: Path | None) -> dict[str, Path]:
    """Return the folders of all suites by name: the project's own, then those that ship."""
    places = ([project / FOLDER] if project else []) + [HOME / FOLDER]
    found: dict[str, Path] = {}
    for place in places:
        for file in sorted(place.glob(f"*/{FILE}")):
            found.setdefault(file.parent.name, file.parent)
    return found


def read_suite(folder: Path) -> Suite:
    """Return the suite in a folder. Refused lists every mistake with its file and case."""
    wrong: list[str] = []
    head = _mapping(_read(folder / FILE), folder / FILE)
    each = head.get("each") or {}
    if not isinstance(each, dict):
        raise Refused(f"{folder / FILE}: each: give fields of a case")
    wrong += _unknown(folder / FILE, head, OF_SUITE)
    cases = []
    for where, given in _written(folder, wrong):
        try:
            cases.append(_case(_with(each, given), where, folder))
        except Refused as error:
            wrong.append(str(error))
    if not (wrong or cases):
        wrong.append(f"{folder}: no case; write a list of cases into a file beside {FILE}")
    if len(cases) > MOST_TRIALS:
        wrong.append(f"{folder}: {len(cases)} cases, the most is {MOST_TRIALS}; make two suites")
    wrong += _doubles(folder, cases)
    try:
        about = {name: head[name] for name in OF_SUITE[:2] if name in head}
        suite = Suite(name=_name(folder.name, str(folder)), cases=tuple(cases), **about)
    except (ValidationError, Refused) as error:
        wrong.append(_line(folder / FILE, error))
    if wrong:
        raise Refused("\n".join(wrong))
    return suite


def _written(folder: Path, wrong: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each case as it was written, and how its mistakes name it; what cannot be read is
    wrong.
    """
    for path in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"), *folder.glob("*.jsonl"))):
        if path.name == FILE:
            continue
        try:
            for place, given in _items(path):
                said = given.get("name") if isinstance(given, dict) else None
                where = f"{path}: {said if isinstance(said, str) and said else place}"
                if isinstance(given, dict):
                    yield where, given
                else:
                    wrong.append(f"{where}: a case is a mapping with a name")
        except Refused as error:
            wrong.append(str(error))


def _items(path: Path) -> Iterator[tuple[str, object]]:
    if path.suffix == ".jsonl":
        for number, line in enumerate(read_text(path, str(path)).splitlines(), start=1):
            if line.strip():
                try:
                    yield f"line {number}", from_json(line)
                except NotPlain as error:
                    raise Refused(f"{path}: line {number}: {error}") from error
        return
    given = _read(path)
    if not isinstance(given, list):
        raise Refused(f"{path}: give a list of cases")
    yield from ((f"case {number}", each) for number, each in enumerate(given, start=1))


def _read(path: Path) -> object:
    try:
        return from_yaml(read_text(path, str(path)))
    except NotPlain as error:
        raise Refused(f"{path}: {error}") from error


def _mapping(given: object, where: Path) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Refused(f"{where}: give {', '.join(OF_SUITE)}")
    return given


def _with(each: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case with what every case has: of inputs and limits what it does not name itself,
    and what must hold of every case beside its own.
    """
    made = {**each, **given}
    for name in ("inputs", "limits"):
        both = (each.get(name), given.get(name))
        if all(isinstance(one, dict) for one in both):
            made[name] = {**each[name], **given[name]}
    both = (each.get("must"), given.get("must"))
    if all(isinstance(one, list) for one in both):
        made["must"] = [*each["must"], *given["must"]]
    return made


def _case(given: dict[str, Any], where: str, folder: Path) -> Case:
    """Return a case. Refused, naming where it stands, says what is wrong."""
    if unknown := _unknown(where, given, (*OF_CASE, *OF_RUN)):
        raise Refused("\n".join(unknown))
    request = {name: value for name, value in given.items() if name in OF_RUN}
    request["inputs"] = whole_paths(request.get("inputs", {}), folder, where)
    _check_form(given, where)
    read_request(_without_planted(request), where)
    must = given.get("must", [])
    if not (isinstance(must, list) and must):
        raise Refused(f"{where}: must: give a list of what must hold")
    fields = {name: given[name] for name in OF_CASE if name in given}
    fields |= {
        "name": _name(given.get("name"), where),
        "request": request,
        "findings": _findings(given.get("findings", {}), where),
        "must": tuple(_must(each, f"{where}: must {place}") for place, each in enumerate(must, 1)),
    }
    try:
        case = Case.model_validate(fields)
    except ValidationError as error:
        raise Refused(_line(where, error)) from error
    if case.call:
        _check_material(case, where)
    return case


def _check_form(given: Mapping[str, Any], where: str) -> None:
    """Refuse a case that asks for nothing, or for two things at once."""
    asks = [name for name in ("call", "tool") if given.get(name)]
    asks += ["a run"] if any(given.get(name) for name in ("goal", "playbook", "plan")) else []
    if len(asks) != 1:
        said = " and ".join(asks) or "nothing"
        raise Refused(f"{where}: asks for {said}; give one of goal, playbook or plan; call; tool")
    if asks != ["a run"] and any(given.get(name) for name in ("stop", "findings")):
        raise Refused(f"{where}: stop and findings are of runs; leave them out")
    if given.get("findings") and not given.get("plan"):
        raise Refused(f"{where}: findings: give the plan, too, whose subtasks they are of")


def _check_material(case: Case, where: str) -> None:
    shape = MATERIAL.get(case.call)
    if shape is None:
        hint = "; ask for it by a run" if case.call in NOT_ALONE else suggest(case.call, MATERIAL)
        raise Refused(f"{where}: call {case.call!r}: known: {', '.join(MATERIAL)}{hint}")
    if unknown := _unknown(f"{where}: material", case.material, shape.model_fields):
        raise Refused("\n".join(unknown))
    try:
        shape.model_validate(case.material)
    except ValidationError as error:
        raise Refused(_line(f"{where}: material", error)) from error


def _must(given: object, where: str) -> Must:
    if not isinstance(given, dict) or len(given) != 1:
        raise Refused(f"{where}: give one of {', '.join(Must.model_fields)}")
    unknown = _unknown(where, given, Must.model_fields)
    for name, shape in (("plan", PlanShape), ("finds", Found)):
        if isinstance(within := given.get(name), dict):
            unknown += [
                f"{each}; there are: {', '.join(shape.model_fields)}"
                for each in _unknown(f"{where}: {name}", within, shape.model_fields)
            ]
    if unknown:
        raise Refused("\n".join(unknown))
    try:
        must = Must.model_validate(given)
    except ValidationError as error:
        raise Refused(_line(where, error)) from error
    if must == Must():
        raise Refused(f"{where}: {next(iter(given))}: says nothing; fill it or leave it out")
    if why := _never_decides(must):
        raise Refused(f"{where}: {why}")
    patterns = (*must.matches, *must.matches_not, *must.told, *(must.finds or Found()).planted)
    wanted = [Check(kind="regex", argument=each) for each in patterns]
    if wrong := problems([*wanted, *((must.check,) if must.check else ())]):
        raise Refused(f"{where}: {wrong[0]}")
    return must


def _never_decides(must: Must) -> str:
    """Return why something holds always, or never; empty: it may do either."""
    texts = [*must.says, *must.says_not, *must.matches, *must.matches_not, *must.told]
    texts += [*(must.finds or Found()).planted, *([must.judge] if must.judge else ())]
    if not all(map(says_something, texts)):
        return f"{must.kind}: a text is empty; fill it or leave it out"
    for status in must.status:
        if status not in ENDS:
            known = ", ".join(ENDS)
            return f"status {status!r:.60}: known: {known}{suggest(status, ENDS)}"
    return _wrong_schema(must.result) if must.result else ""


def _wrong_schema(schema: Mapping[str, Any]) -> str:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"result: no JSON schema: {error.json_path}: {one_line(error.message):.200}"
    return ""


def _findings(given: object, where: str) -> tuple[Finding, ...]:
    """Return given findings: by subtask a text, or fields of a finding."""
    if not isinstance(given, dict):
        raise Refused(f"{where}: findings: give a text for each subtask's id")
    made = []
    for subtask_id, said in given.items():
        fields = {"content": said} if isinstance(said, str) else said
        known = {"status": "complete", "confidence": 90, "subtask_id": subtask_id}
        if not isinstance(fields, dict):
            raise Refused(f"{where}: findings.{subtask_id}: give a text, or fields of a finding")
        if unknown := _unknown(f"{where}: findings.{subtask_id}", fields, Finding.model_fields):
            raise Refused("\n".join(unknown))
        try:
            made.append(Finding.model_validate({**known, **fields}))
        except ValidationError as error:
            raise Refused(_line(f"{where}: findings.{subtask_id}", error)) from error
    return tuple(made)


def _without_planted(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request that can be read before its repositories are made."""
    inputs = request["inputs"]
    if not isinstance(inputs, dict):
        return {**request}
    paths = {name: "made" if is_planted(each) else each for name, each in inputs.items()}
    return {**request, "inputs": paths}


def _name(given: object, where: str) -> str:
    if isinstance(given, str) and PLAIN_ID.fullmatch(given) and len(given) <= MOST_NAME:
        return given
    raise Refused(
        f"{where}: name: give up to {MOST_NAME} letters, digits, '.', '_' and '-', the first a"
        " letter or digit"
    )


def _doubles(folder: Path, cases: list[Case]) -> list[str]:
    names = [each.name for each in cases]
    return [
        f"{folder}: {name}: two cases have this name; rename one"
        for name in sorted({each for each in names if names.count(each) > 1})
    ]


def _unknown(where: object, given: Mapping[str, Any], known: Any) -> list[str]:
    return [
        f"{where}: {name!s:.60}: there is no such field{suggest(str(name), known)}"
        for name in given
        if name not in known
    ]


def _line(where: object, error: Exception) -> str:
    return f"{where}: {explain(error) if isinstance(error, ValidationError) else error}"
