"""A goal becomes a graph of subtasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, TypeAdapter

from holdfast.calls.about import About, quote, say_today
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.calls.turn import READS_ON
from holdfast.calls.work import WORK
from holdfast.contracts import (
    CheckKind,
    Contract,
    PinnedInput,
    Plan,
    Reply,
    RoleCard,
    Strategy,
    Subtask,
    policies,
)
from holdfast.contracts.plans import MapSpec, MapUnit
from holdfast.contracts.policies import model_policy
from holdfast.text import one_line


class CheckAnswer(Answer):
    kind: Annotated[CheckKind, AnyCase]
    argument: str


class SubtaskAnswer(Answer):
    id: str
    title: str
    why: str
    role: str
    secondary: str
    tier: Annotated[Literal["haiku", "sonnet", ""], AnyCase]
    inputs: list[str]
    depends_on: list[str]
    instruction: str
    acceptance_criteria: str
    checks: list[CheckAnswer]


class BoundAnswer(Answer):
    subtask: str
    timeout_seconds: int
    max_output: int


class RoleAnswer(Answer):
    name: str
    description: str
    tier: Annotated[Literal["haiku", "sonnet"], AnyCase]
    tools: list[str]


class PlanAnswer(Answer):
    goal: str
    strategy: Annotated[Strategy, AnyCase]
    synthesis_instruction: str
    roles: list[RoleAnswer]
    subtasks: list[SubtaskAnswer]
    choices: list[list[str]]
    bounds: list[BoundAnswer]


class FieldAnswer(Answer):
    name: str
    values: list[str]


class MapAnswer(Answer):
    subtask: str
    over: str
    by: Annotated[MapUnit, AnyCase]
    id: str
    result: list[FieldAnswer]


class MappingPlanAnswer(PlanAnswer):
    maps: list[MapAnswer]


class PlanMaterial(Contract):
    goal: str
    roles: tuple[RoleCard, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    guidance: str = ""
    subtask_limit: int = 6
    subtask_timeout_seconds: int = 300
    """Limit of the run: a subtask may have less."""
    errors: tuple[str, ...] = ()
    previous: str = Field(default="", exclude_if=lambda text: not text)
    """The plan that has these errors."""
    begun: Plan | None = Field(default=None, exclude_if=lambda plan: plan is None)
    """Of the plan before, the subtasks that have begun."""
    asked: tuple[str, ...] = ()
    """Fingerprints of what the runs above have planned."""
    about: About = About()
    barred: dict[str, str] = Field(default_factory=dict)
    """Roles that no plan of this run may have, and why."""
    early: int = Field(default=0, exclude_if=lambda most: not most)
    """Subtasks that may start while the rest of the plan is being written."""


MOST_WHY = 300
"""Characters of a subtask's reason to be in the plan."""


def to_subtask(item: SubtaskAnswer) -> Subtask:
    differing = {"tier": item.tier or None, "why": " ".join(item.why.split())[:MOST_WHY]}
    return Subtask.model_validate(item.model_dump() | differing)


def to_plan(answer: PlanAnswer) -> Plan:
    """Return the plan that an answer means; `validity.problems` says whether it is valid.
    ValueError for bounds of a subtask that it does not have.
    """
    bounds = {each.subtask: each.model_dump(exclude={"subtask"}) for each in answer.bounds}
    if strange := [name for name in bounds if name not in {each.id for each in answer.subtasks}]:
        raise ValueError(f"bounds: the plan has no subtask {strange[0]!r}")
    maps = {each.subtask: to_map(each) for each in maps_of(answer)}
    if strange := [name for name in maps if name not in {each.id for each in answer.subtasks}]:
        raise ValueError(f"maps: the plan has no subtask {strange[0]!r}")
    subtasks = tuple(
        to_subtask(item).model_copy(
            update={**bounds.get(item.id, {}), **_mapped(maps.get(item.id))}
        )
        for item in answer.subtasks
    )
    # Of one there is nothing to select: no call is worth asking a model to say so.
    strategy = answer.strategy if len(subtasks) > 1 else "merge"
    update = {"subtasks": subtasks, "strategy": strategy}
    return Plan.model_validate(answer.model_dump(exclude={"bounds", "maps"}) | update)


def stands(text: str, most: int) -> Plan | None:
    """Return what stands of a plan whose answer breaks off: its first subtasks that wait for no
    other, at most so many. None: nothing stands, or it is no plan. The text is untrusted.
    """
    # Not every endpoint keeps to a form: there may be thoughts, a sentence or a fence before it.
    said = text.rpartition("</think>")[2]
    begins = _BEGINNING.search(said)
    if begins is None or "<think>" in said[: begins.start()]:
        return None
    try:
        found = _JSON.validate_json(said[begins.start() :], experimental_allow_partial=True)
        # The last one may have more to come, until something else has begun behind them.
        closed = [*found][-1] != "subtasks"
        whole = found["subtasks"] if closed else found["subtasks"][:-1]
        if closed and len(whole) == 1:
            # One agent gets the whole goal, in other words.
            return None
        answer = PlanAnswer.model_validate({**found, "subtasks": whole, **_TO_COME})
        subtasks = [to_subtask(each) for each in answer.subtasks if not each.depends_on]
        update = {"subtasks": tuple(subtasks[:most]), "strategy": "merge", "roles": ()}
        plan = Plan.model_validate(answer.model_dump(exclude={"bounds"}) | update)
    except (ValueError, TypeError, LookupError):
        return None
    return plan if plan.subtasks else None


_JSON = TypeAdapter[Any](Any)
_BEGINNING = re.compile(rf'{{\s*"(?:{"|".join(MappingPlanAnswer.model_fields)})"\s*:')
_TO_COME: dict[str, object] = {"choices": [], "bounds": []}
"""What a planner writes behind the subtasks."""


def _mapped(spec: MapSpec | None) -> dict[str, object]:
    """Return what a map has otherwise than a planner says: rows climb tiers and keep their role."""
    return {"map": spec, **({"secondary": ""} if spec else {})}


def maps_of(answer: PlanAnswer) -> list[MapAnswer]:
    return answer.maps if isinstance(answer, MappingPlanAnswer) else []


def to_map(answer: MapAnswer) -> MapSpec:
    """Return what a planner says of a map; the rest is as usual."""
    properties: dict[str, JsonValue] = {
        each.name: {"type": "string", **({"enum": [*each.values]} if each.values else {})}
        for each in answer.result
    }
    form: dict[str, JsonValue] = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    result = form if properties else {}
    return MapSpec(over=answer.over, by=answer.by, id=answer.id, result=result)


def may_map(material: PlanMaterial) -> bool:
    return many_items(material.inputs)


def many_items(inputs: Iterable[PinnedInput]) -> bool:
    """True if an input has so many items that a subtask may be done once for each."""
    found = (each.items for each in inputs if each.items is not None)
    return any(each.count >= policies.FEWEST_MAPPED or not each.whole for each in found)


MAPS = (
    "In `maps`: a subtask that is done once for each item of an input that has many. `over` names"
    " the input, `by` its unit, `id` a field whose value names an item, or nothing; `result` the"
    " fields of each answer, with all their `values` where they are few, one of them for items that"
    " do not say, such as unclear. All are text: say in the"
    " instruction how numbers and dates are written. An answer has room for 1,000 tokens; for"
    " longer texts say `max_output` in `bounds`. Plan one where each item is to be judged by"
    " itself and there are more than one agent reads well (some 100 short texts, 20 long ones);"
    " what code can count or query needs none. Its role sees one item at a time and has no tools:"
    " the system reads the input for it, a folder as well. If no role fits, compose one. Its"
    " instruction may name fields in braces, then only those are shown; its `secondary` and"
    " `acceptance_criteria` are empty, as nobody judges rows by them. Who depends on it gets"
    " counts, some failures and a table for query_data: id, place, status, the fields of `result`,"
    " why_failed, same_as, tier, tries, dollars, and the items' own short fields, shown or not;"
    " a name that is taken gets `result_` or, of an item's field, `item_` before it. Leave `maps`"
    " empty where nothing is done item by item."
)


def plan_prompt(material: PlanMaterial) -> str:
    """Return the planner's user turn: inputs by preview, roles, goal, and earlier errors."""
    inputs = "\n\n".join(_preview(pinned) for pinned in material.inputs) or "none"
    parts = [
        f"Inputs of the goal, by name:\n{inputs}",
        f"Roles you may assign:\n{menu(material.roles)}",
    ]
    if material.guidance:
        parts.append(f"Guidance of this playbook:\n{material.guidance}")
    parts.append(section("goal", material.goal))
    parts += say_today(material.about)
    parts += _before(material)
    parts.append(_bounds(material.subtask_timeout_seconds))
    parts += [MAPS] if may_map(material) else []
    parts.append(f"Write the plan, with at most {material.subtask_limit} subtasks.")
    return "\n\n".join(parts)


def _before(material: PlanMaterial) -> Iterator[str]:
    """Yield what came of the plans before, so that what is right in them, and has begun, stays."""
    if material.errors:
        listed = "\n".join(f"- {error}" for error in material.errors)
        rest = ""
        if material.previous:
            yield envelope("your previous plan", material.previous)
            rest = ", and keep the rest word for word"
            rest += ", as parts of it have begun" * bool(material.begun)
        wrong = envelope("errors of your previous plan", listed)
        yield f"Your previous plan was refused; mend every error{rest}:\n{wrong}"
    elif material.begun:
        fields = set(SubtaskAnswer.model_fields)
        lines = [each.model_dump_json(include=fields) for each in material.begun.subtasks]
        begun = envelope("subtasks that have begun", "\n".join(lines))
        yield (
            "Only the beginning of your previous plan arrived, and these subtasks of it have begun:"
            f"\n{begun}\nList those that the goal needs first, word for word, and say again as"
            f" its `goal`: {quote(material.begun.goal)}"
        )


def _bounds(longest: int) -> str:
    """Return what a planner may set for the calls of a subtask."""
    least, most = policies.LEAST_OUTPUT, WORK.policy.max_output
    return (
        f"In `bounds`: `timeout_seconds` of one call, 0 or 1 to {longest}; `max_output`, tokens of"
        f" one answer with its thoughts, 0 or {least} to {most}."
    )


def menu(roles: Iterable[RoleCard]) -> str:
    """Return the roles that a planner may assign, one a line."""
    return "\n".join(
        f"- {role.name} ({role.tier}): {describe(role)}" for role in filter(is_offered, roles)
    )


def is_offered(role: RoleCard) -> bool:
    """True if a planner may assign it: neither a tool nor of the dearest tier."""
    return role.tier in ("haiku", "sonnet")


def describe(role: RoleCard) -> str:
    """Return what a role does, with its cases, the tools that it has and lacks here, and the fields
    of its result.
    """
    named = role.result.get("properties")
    fields = ", ".join(named) if isinstance(named, dict) else ""
    cases = f" Its cases: {'; '.join(role.cases)}." if role.cases else ""
    tools = f" Its tools: {list_tools(role)}." if role.tools else ""
    tools += f" Not here: {', '.join(role.without)}." if role.without else ""
    data = f" Its finding is JSON: {fields}." if fields else ""
    stop = "" if role.description.endswith(".") or not (cases or tools or data) else "."
    return f"{role.description}{stop}{cases}{tools}{data}"


def list_tools(role: RoleCard) -> str:
    """Return a role's tools for planners and people, those apart that an agent has only for an
    input that they read.
    """
    for_inputs = {each.tool for each in role.reads if each.inputs}
    own = [name for name in role.tools if name != READS_ON]
    always = ", ".join(name for name in own if name not in for_inputs)
    reading = ", ".join(name for name in own if name in for_inputs)
    return "; ".join(filter(None, (always, f"{reading} for inputs that they read" * bool(reading))))


def _preview(pinned: PinnedInput) -> str:
    head = f"- {pinned.name}: {pinned.kind}, {pinned.size} bytes{_items(pinned)}"
    if pinned.reader:
        return f"{head}; a document, which only a role with {pinned.reader} reads{_or_map(pinned)}"
    if pinned.is_folder:
        head = f"{head}; only roles with tools read it{_or_map(pinned)}"
    begins = "it begins" if pinned.size > len(pinned.preview.encode()) else "in full"
    return f"{head}; {begins}:\n{envelope(f'input {pinned.name}', pinned.preview)}"


def _or_map(pinned: PinnedInput) -> str:
    return f", or a map by {pinned.items.by}" if pinned.items and _items(pinned) else ""


def _items(pinned: PinnedInput) -> str:
    """Return how many items a map of it would have; nothing of an input with few."""
    found = pinned.items
    if found is None or (found.whole and found.count < policies.FEWEST_MAPPED):
        return ""
    more = "" if found.whole else "more than "
    fields = f" with the fields {one_line(', '.join(found.fields))[:MOST_FIELDS]}"
    return f", {more}{found.count:,} {found.by}{fields * bool(found.fields)}"


MOST_FIELDS = 500
"""Characters of the names of an input's fields."""
LONGER = 2_500
"""Planners are told more rules than those who work."""


PLAN: ModelKind[PlanMaterial, PlanAnswer, Plan] = ModelKind(
    name="plan",
    reply=Reply[Plan],
    policy=model_policy("sonnet", 8_000, "medium"),
    answer=PlanAnswer,
    value=lambda answer, _: to_plan(answer),
    prompt="planner",
    plans=True,
    turn=plan_prompt,
    longer=LONGER,
    beyond=lambda material: 2 * len(MAPS) if may_map(material) else 0,
    words="what to do, by whom",
)
