"""Nothing is accepted in silence: each field that a caller, a role file, a playbook, a plan or the
environment can set is read somewhere by the code that runs.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from functools import cache

import pytest
from pydantic import BaseModel

from holdfast import contracts
from holdfast.activities.catalogue.files import FrontMatter, PlaybookFile, PlaybookInput
from holdfast.activities.toolset.shelf import shipped_tools
from holdfast.calls.turn import TurnMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Approval, Check, Goal, GoalInput, Limits, Plan, RoleCard, Subtask
from holdfast.deployment.settings import HOME, Settings
from holdfast.state.run import State
from holdfast.temporal.connection import Target

PARTS = ("holdfast", "activities", "workflows")
SET_BY_PEOPLE: Mapping[type[BaseModel], tuple[str, ...]] = {
    Goal: ("goal", "wanted"),
    Limits: ("limits",),
    Approval: ("approval",),
    GoalInput: ("given", "each"),
    Plan: ("plan",),
    Subtask: ("subtask", "each", "item"),
    Check: ("check",),
    RoleCard: ("role", "card"),
    FrontMatter: ("front",),
    PlaybookFile: ("playbook", "self"),
    PlaybookInput: ("spec", "declared"),
    Settings: ("settings", "self"),
}
"""The models that somebody can fill, and the names under which the code holds one."""


@cache
def reads() -> frozenset[tuple[str, str]]:
    """(holder, field) of everything that is read; the holder is the last name before the dot."""
    return frozenset(read for tree in _trees() for read in _reads(tree))


def _trees() -> Iterator[ast.AST]:
    files = [path for part in PARTS for path in (HOME / part).rglob("*.py")]
    for path in files:
        yield ast.parse(path.read_text(encoding="utf-8"))


def _reads(tree: ast.AST) -> Iterator[tuple[str, str]]:
    copies = {
        id(keyword.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Attribute)
        if keyword_is_copy(node)
        for keyword in [node]
    }
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        # Handing a value on under its own name is not an effect, and a method is not a field.
        if id(node) not in copies and id(node) not in called:
            yield _name(node.value), node.attr


def keyword_is_copy(keyword: ast.keyword) -> bool:
    return isinstance(keyword.value, ast.Attribute) and keyword.arg == keyword.value.attr


def _name(holder: ast.expr) -> str:
    match holder:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


COPIED: Mapping[tuple[type[BaseModel], str], type] = (
    {
        (RoleCard, "specs"): TurnMaterial,
        (RoleCard, "told_last"): WorkMaterial,
    }
    | {
        (FrontMatter, name): RoleCard
        for name in (
            "name",
            "description",
            "effort",
            "fallback",
            "team",
            "hands_over",
            "repeat",
            "fixed_tier",
            "turns",
            "cases",
        )
    }
    | {
        (PlaybookFile, name): contracts.PlaybookCard
        for name in ("name", "description", "guidance", "template", "min_confidence", "verify")
    }
    | {
        (Goal, "heard"): State,
        (Goal, "heard_json"): State,
        (Settings, "task_queue"): Target,
    }
)
"""Fields that become one of the same name in another shape, where they are looked for instead."""


@pytest.mark.long
@pytest.mark.parametrize("model", SET_BY_PEOPLE, ids=lambda each: each.__name__)
def test_each_field_that_somebody_can_set_is_read(model: type[BaseModel]) -> None:
    needed = {name for tool in shipped_tools().values() for name in tool.needs}
    for field in model.model_fields:
        if (model, field) in COPIED:
            assert field in COPIED[model, field].__annotations__
            assert field in {name for _, name in reads()}
        elif not (model is Settings and field in needed):  # These are read by their names.
            holders = SET_BY_PEOPLE[model]
            found = any((holder, field) in reads() for holder in holders)
            assert found, (
                f"nobody reads {model.__name__}.{field} of {holders}: it goes, or is refused"
            )


MODULES = [
    f"holdfast.calls.{path.stem}" for path in sorted((HOME / "holdfast/calls").glob("[a-z]*.py"))
]
CONTRACTS = [
    each
    for module in (contracts, *map(importlib.import_module, MODULES))
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, BaseModel)
    if f"{each.__module__}.".startswith(f"{module.__name__}.")
]
FOR_READERS = {
    "ReviewData": "as Report, of a review",
    "LensSum": "as Report, of a review",
    "Report": "it is written for people and programs outside, as JSON",
    "Timings": "as Report",
    "Gap": "as Report",
    "Reached": "how long it was is shown in the history, to whoever reads that",
    "Usage": "its sum goes over all fields by name",
    "PlanAnswer": "a schema that a model fills",
    "PingAnswer": "that it was filled is all that is asked",
}


@pytest.mark.long
def test_no_field_of_any_contract_is_left_that_nobody_reads() -> None:
    names = {field for _, field in reads()}
    unread = [
        f"{model.__name__}.{field}"
        for model in CONTRACTS
        if model.__name__ not in FOR_READERS
        for field in model.model_fields
        if field not in names
    ]
    assert unread == []
