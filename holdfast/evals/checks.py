"""Whether what must hold of a case does hold of what came of it. Pure.

Each check is a function of its argument and the outcome, which yields a sentence for each thing
that does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

from pydantic import JsonValue

from holdfast.contracts import Check, Plan, Subtask
from holdfast.contracts.evals import Case, Found, Must, PlanShape
from holdfast.evals.filler import is_filler
from holdfast.evals.outcomes import Outcome
from holdfast.ledger.ranges import format_price
from holdfast.plans import concreteness
from holdfast.plans.checks import compile_pattern, verdicts
from holdfast.state import graph
from holdfast.text.marks import BRACKETS

FAILED = ("failed", "cancelled", "declined")
"""Ends of a run that pass only where a case says so; a run that ends with its plan is declined."""
SHOWN = 200
_MISSING = object()


def wrong_with(case: Case, outcome: Outcome) -> dict[str, tuple[str, ...]]:
    """Return a sentence for each thing that does not hold, by the kind of its check, what only a
    judge decides apart; for an outcome that nothing can be said of, why, without a kind.
    """
    if outcome.why:
        return {"": (outcome.why,)}
    said = any(must.status for must in case.must)
    planned = case.stop == "plan" and outcome.plan is not None
    if outcome.status in FAILED and not (said or planned):
        told = f": {' '.join(outcome.text.split())[:SHOWN]}" if case.tool else ""
        return {"": (f"it ended {outcome.status}{told}",)}
    found: dict[str, tuple[str, ...]] = {}
    for kind, must in ((each.kind, each) for each in case.must):
        if kind != "judge" and (whys := tuple(_CHECKS[kind](getattr(must, kind), outcome))):
            found[kind] = (*found.get(kind, ()), *whys)
    return found


def rubrics(case: Case) -> tuple[str, ...]:
    """Return what a judge is to decide of the answer."""
    return tuple(must.judge for must in case.must if must.judge)


def _says(texts: tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    said = _plain(outcome.text)
    yield from (f"does not say {text!r}" for text in texts if _plain(text) not in said)


def _says_not(texts: tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    said = _plain(outcome.text)
    yield from (f"says {text!r}" for text in texts if _plain(text) in said)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _matches(patterns: tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    for pattern in patterns:
        if not compile_pattern(pattern, any_case=True).search(outcome.text):
            yield f"nothing matches '{pattern}'"


def _matches_not(patterns: tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    for pattern in patterns:
        if found := compile_pattern(pattern, any_case=True).search(outcome.text):
            yield f"{found[0]!r:.{SHOWN}} matches '{pattern}'"


def _told(patterns: tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    said = "\n".join((outcome.text, *(each.why for each in outcome.gaps)))
    for pattern in patterns:
        if not compile_pattern(pattern, any_case=True).search(said):
            yield f"neither answer nor gaps match '{pattern}'"


def _check(check: Check, outcome: Outcome) -> Iterator[str]:
    yield from verdicts((check,), outcome.draft)


def _has(wanted: Mapping[str, JsonValue], outcome: Outcome) -> Iterator[str]:
    for place, value in wanted.items():
        found = _at(outcome.document, place)
        if found is _MISSING:
            yield f"{place} is missing"
        elif found != value:
            yield f"{place} is {_short(found)}, not {_short(value)}"


def _at(value: Any, place: str) -> Any:
    """Return what stands at `rows.0.rate`; _MISSING where nothing does."""
    for part in place.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _short(value: object) -> str:
    said = json.dumps(value, ensure_ascii=False)
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}…"


def _result(schema: Mapping[str, JsonValue], outcome: Outcome) -> Iterator[str]:
    from jsonschema import Draft202012Validator

    if outcome.document is None:
        # Most of what a schema says holds of what is no object.
        yield "the answer is no data"
        return
    found = Draft202012Validator(schema).iter_errors(outcome.document)
    for error in sorted(found, key=lambda each: each.json_path)[:3]:
        yield f"data: {error.json_path}: {error.message[:SHOWN]}"


def _cites(wanted: int | tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    known = {each.subtask_id for each in outcome.findings}
    cited = {
        word
        for inside in BRACKETS.findall(outcome.text)
        for word in inside.replace(",", " ").split()
        if word in known
    }
    if isinstance(wanted, tuple):
        yield from (f"does not cite [{each}]" for each in wanted if each not in cited)
    else:
        # One agent's answer is its finding, which cites sources of its own.
        count = len(cited) or (len({*outcome.sources}) if len(known) == 1 else 0)
        if count < wanted:
            yield f"cites {count}, at least {wanted} are wanted"
    yield from (f"the answer {flag}" for flag in outcome.flags)


def _route(roles: tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    yield from _with_plan(
        outcome, lambda plan: _only("role", roles, [s.role for s in plan.subtasks])
    )


def _plan(shape: PlanShape, outcome: Outcome) -> Iterator[str]:
    yield from _with_plan(outcome, lambda plan: _misfits(shape, plan))


def _with_plan(outcome: Outcome, judge: Callable[[Plan], Iterator[str]]) -> Iterator[str]:
    if outcome.plan is None:
        yield "there is no plan"
    elif _fell_back(outcome.plan):
        yield "no planner made its plan: one agent has the goal as it stands"
    else:
        yield from judge(outcome.plan)


def _fell_back(plan: Plan) -> bool:
    first = plan.subtasks[0]
    return plan == Plan.single(plan.goal, first.role, first.inputs)


def _misfits(shape: PlanShape, plan: Plan) -> Iterator[str]:
    subtasks = plan.subtasks
    roles = [each.role for each in subtasks]
    free = sum(not each.depends_on for each in subtasks)
    longest = len(graph.longest_chain(subtasks, dict.fromkeys((s.id for s in subtasks), 1.0)))
    if not shape.least <= len(subtasks) <= shape.most:
        yield f"the plan has {len(subtasks)} subtasks, not {shape.least} to {shape.most}"
    if free < shape.independent:
        yield f"{free} subtasks wait for none, at least {shape.independent} are wanted"
    if shape.longest and longest > shape.longest:
        yield f"{longest} subtasks wait for each other in a row, at most {shape.longest} may"
    for role in shape.roles:
        if role not in roles:
            yield f"no subtask has the role {role}"
    if shape.only:
        yield from _only("role", shape.only, roles)
    if shape.second:
        yield from _only("second role", shape.second, [each.secondary for each in subtasks])
    if shape.vague is not None:
        vague = [*concreteness.problems(plan, plan.goal), *concreteness.needless_edges(plan)]
        if len(vague) > shape.vague:
            yield f"{len(vague)} vague parts, at most {shape.vague} may be: {vague[0]}"
    yield from _strays(shape, plan)


def _strays(shape: PlanShape, plan: Plan) -> Iterator[str]:
    """Yield what a plan has beside its graph that it should not have, or lacks."""
    subtasks = plan.subtasks
    filler = [each.title for each in subtasks if is_filler(each)]
    if shape.filler is not None and len(filler) > shape.filler:
        yield f"{len(filler)} subtasks do none of the work, at most {shape.filler} may: {filler[0]}"
    given = {name for each in subtasks for name in (*each.inputs, *_mapped(each))}
    yield from (f"no subtask has the input {name}" for name in shape.inputs if name not in given)
    mapped = sorted({name for each in subtasks for name in _mapped(each)})
    if shape.maps is not None and mapped != sorted(shape.maps):
        wanted = " and ".join(shape.maps) or "nothing"
        yield f"{' and '.join(mapped) or 'nothing'} is mapped, not {wanted}"
    best = max([len(subtasks) * (plan.strategy == "select"), *map(len, plan.choices)])
    if best < shape.attempts:
        yield f"{best} attempts at one question, at least {shape.attempts} are wanted"
    if shape.composed is not None and len(plan.roles) > shape.composed:
        yield f"{len(plan.roles)} roles are composed, at most {shape.composed} may be"
    bounded = [bool(each.timeout_seconds or each.max_output) for each in subtasks]
    if shape.bounded is not None and any(each != shape.bounded for each in bounded):
        yield "a subtask has no bound" if shape.bounded else "a subtask has a bound"


def _mapped(subtask: Subtask) -> tuple[str, ...]:
    return (subtask.map.over,) if subtask.map else ()


def _only(what: str, wanted: tuple[str, ...], given: list[str]) -> Iterator[str]:
    others = sorted({each or "none" for each in given} - {*wanted})
    if others:
        yield f"{what} {', '.join(others)}, not {' or '.join(wanted)}"


def _finds(found: Found, outcome: Outcome) -> Iterator[str]:
    texts = _found_texts(found, outcome)
    patterns = {pattern: compile_pattern(pattern, any_case=True) for pattern in found.planted}
    for pattern, compiled in patterns.items():
        if not any(compiled.search(text) for text in texts):
            yield f"the planted fault '{pattern}' was not found"
    false = [each for each in texts if not any(p.search(each) for p in patterns.values())]
    if len(false) > found.most_false:
        beside = f"{len(false)} found that are none of the planted faults"
        yield f"{beside}, at most {found.most_false} may be: {_told_by(false[0])}"


def _found_texts(found: Found, outcome: Outcome) -> list[str]:
    listed = _at(outcome.document, found.at or "issues")
    if isinstance(listed, list):
        return [each if isinstance(each, str) else _whole(each) for each in listed]
    return [*outcome.remarks]


def _told_by(text: str) -> str:
    """Return the problem of an issue, where it is one; else the text."""
    with suppress(ValueError):
        if isinstance(issue := json.loads(text), dict) and "problem" in issue:
            text = str(issue["problem"])
    return _short(text)


def _whole(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _status(wanted: tuple[str, ...], outcome: Outcome) -> Iterator[str]:
    if outcome.status not in wanted:
        yield f"it ended {outcome.status}, not {' or '.join(wanted)}"


def _gaps(most: int, outcome: Outcome) -> Iterator[str]:
    if len(outcome.gaps) > most:
        titles = ", ".join(each.title for each in outcome.gaps)
        yield f"{len(outcome.gaps)} gaps, at most {most} may be: {titles}"


def _dollars(most: Decimal, outcome: Outcome) -> Iterator[str]:
    if outcome.dollars is None:
        yield "its price is not known"
    elif outcome.dollars > most:
        yield f"it cost {format_price(outcome.dollars)}, at most {format_price(most)} may be"


def _seconds(most: float, outcome: Outcome) -> Iterator[str]:
    if outcome.seconds > most:
        yield f"it took {outcome.seconds:.1f} s, at most {most:g} may be"


_CHECKS: Mapping[str, Callable[[Any, Outcome], Iterator[str]]] = {
    "says": _says,
    "says_not": _says_not,
    "matches": _matches,
    "matches_not": _matches_not,
    "told": _told,
    "has": _has,
    "result": _result,
    "cites": _cites,
    "check": _check,
    "route": _route,
    "plan": _plan,
    "finds": _finds,
    "status": _status,
    "gaps": _gaps,
    "dollars": _dollars,
    "seconds": _seconds,
}
assert {*_CHECKS} | {"judge"} == {*Must.model_fields}, "each thing that can be asked is decided"
