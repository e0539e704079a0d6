"""What a plan may say of its maps, by hand or by a planner."""

from __future__ import annotations

from typing import Any

import pytest

from driving import subtask
from holdfast.activities.mapping.closing import AFTER, BEFORE
from holdfast.calls.plan import (
    MAPS,
    MappingPlanAnswer,
    PlanMaterial,
    may_map,
    plan_prompt,
    to_plan,
)
from holdfast.calls.replan import Change, Patch
from holdfast.contracts import ItemsFound, PinnedInput, Plan, RoleCard, Subtask
from holdfast.contracts.plans import MapSpec
from holdfast.plans import mapping, validity
from holdfast.plans.revision import apply_patch

ROLES = (
    RoleCard(name="clerk", description="", tier="haiku", tools=("read_document", "calculate")),
    RoleCard(name="surfer", description="", tier="haiku", tools=("web_search",)),
    RoleCard(name="lens", description="", tier="none", tools=("bugs",)),
    RoleCard(name="form", description="", tier="haiku", result={"type": "object"}),
)


def problems(spec: dict[str, Any] | None = None, **fields: Any) -> tuple[str, ...]:
    told = {"over": "tickets", "by": "records", **(spec or {})}
    subtask = Subtask.model_validate(
        {
            "id": "t1",
            "title": "",
            "instruction": "Say what each ticket is about.",
            "role": "clerk",
            "map": told,
            **fields,
        }
    )
    plan = Plan(goal="g", subtasks=(subtask,))
    wrong = validity.problems(plan, ROLES, ("tickets",), 6)
    return tuple(each.partition(": ")[2] for each in wrong)


@pytest.mark.parametrize(
    ("spec", "fields", "wrong"),
    [
        ({"over": "ticket"}, {}, "map.over: unknown input 'ticket' (did you mean 'tickets'?)"),
        (
            {},
            {"role": "surfer"},
            "map: role 'surfer' works with web_search, and a row has no tools",
        ),
        ({}, {"role": "lens"}, "map: role 'lens' has no model; each row is one answer"),
        ({}, {"secondary": "form"}, "secondary: no effect, because rows of a map climb tiers"),
        (
            {},
            {"instruction": "Say what {subject is about, as {{x}} and {y}."},
            "instruction: the brace in '{subject is about, as {{x}} an' has no other half",
        ),
        (
            {},
            {"instruction": "Label each {subject} with a word, so: {{kind}"},
            "instruction: the brace in '}' has no other half; for a brace as it is write it twice",
        ),
        ({"reduce": "Merge them."}, {"role": "form"}, "map.reduce: it merges texts"),
    ],
)
def test_a_map_that_cannot_be_carried_out_is_refused_in_one_line(
    spec: dict[str, Any], fields: dict[str, Any], wrong: str
) -> None:
    (told,) = problems(spec, **fields)
    assert told.startswith(wrong)


def test_a_role_whose_tools_only_read_and_reckon_may_have_a_map() -> None:
    assert problems() == ()


def test_a_row_may_have_less_room_than_an_ordinary_answer_but_some() -> None:
    assert problems(max_output=64) == ()
    (wrong,) = problems(max_output=63)
    assert wrong.startswith("max_output: 63: must be 64 to ")


def test_batches_need_a_day_and_the_refusal_names_the_limit() -> None:
    spec = MapSpec(over="tickets", by="records", lane="batch")
    subtask = Subtask(id="t1", title="", instruction="", role="clerk", map=spec)
    plan = Plan(goal="g", subtasks=(subtask,))
    (wrong,) = mapping.time_problems(plan, None, 900)
    assert "the deadline is 900 s; say --limits deadline_seconds=90000, or lane: auto" in wrong
    assert not [*mapping.time_problems(plan, None, 90_000)]
    assert not [*mapping.time_problems(plan, "auto", 900)], "the run's lane holds for all its maps"


def tickets(count: int) -> PinnedInput:
    found = ItemsFound(by="records", count=count, fields=("id", "subject"))
    return PinnedInput(name="tickets", kind="file", size=9_000, items=found)


def test_a_planner_is_told_of_maps_only_where_an_input_has_many_items() -> None:
    few, many = (PlanMaterial(goal="g", inputs=(tickets(count),)) for count in (5, 5_000))
    assert not may_map(few) and MAPS not in plan_prompt(few)
    assert may_map(many) and MAPS in plan_prompt(many)
    assert "9000 bytes, 5,000 records with the fields id, subject" in plan_prompt(many)


def test_a_folder_that_may_be_mapped_is_not_said_to_be_for_roles_with_tools_alone() -> None:
    found = ItemsFound(by="files", count=200, fields=("text",))
    folder = PinnedInput(name="letters", kind="folder", size=9_000, items=found)
    told = plan_prompt(PlanMaterial(goal="g", inputs=(folder,)))
    assert "only roles with tools read it, or a map by files; " in told
    assert "the system reads the input for it, a folder as well" in told
    few = folder.model_copy(update={"items": found.model_copy(update={"count": 3})})
    assert "or a map" not in plan_prompt(PlanMaterial(goal="g", inputs=(few,)))


def answered(subtask: str, instruction: str) -> dict[str, Any]:
    whole = {
        "id": "t1",
        "title": "",
        "why": "",
        "role": "clerk",
        "secondary": "",
        "tier": "",
        "inputs": [],
        "depends_on": [],
        "instruction": instruction,
        "acceptance_criteria": "",
        "checks": [],
    }
    mapped = {
        "subtask": subtask,
        "over": "tickets",
        "by": "records",
        "id": "id",
        "result": [{"name": "kind", "values": ["bug", "wish"]}, {"name": "why", "values": []}],
    }
    return {
        "goal": "g",
        "strategy": "merge",
        "synthesis_instruction": "",
        "roles": [],
        "subtasks": [whole],
        "choices": [],
        "bounds": [],
        "maps": [mapped],
    }


def test_a_map_of_a_planner_becomes_one_with_a_closed_form_of_its_results() -> None:
    plan = to_plan(MappingPlanAnswer.model_validate(answered("t1", "Sort {subject} by kind.")))
    spec = plan.subtasks[0].map
    assert spec is not None and (spec.over, spec.by, spec.id) == ("tickets", "records", "id")
    assert spec.result["properties"] == {
        "kind": {"type": "string", "enum": ["bug", "wish"]},
        "why": {"type": "string"},
    }
    assert spec.result["additionalProperties"] is False
    with pytest.raises(ValueError, match="the plan has no subtask 't9'"):
        to_plan(MappingPlanAnswer.model_validate(answered("t9", "")))


def test_a_role_that_takes_over_is_left_out_of_a_map_and_kept_elsewhere() -> None:
    told = answered("t1", "Sort {subject} by kind.")
    told["subtasks"][0]["secondary"] = "analyst"
    kept = to_plan(MappingPlanAnswer.model_validate({**told, "maps": []})).subtasks[0]
    mapped = to_plan(MappingPlanAnswer.model_validate(told)).subtasks[0]
    assert (kept.secondary, mapped.secondary) == ("analyst", "")
    assert "`secondary` and `acceptance_criteria` are empty" in MAPS
    assert "items' own short fields" in MAPS and "compose one" in MAPS


def test_a_planner_is_told_the_columns_of_the_table_and_of_a_value_for_what_no_item_says() -> None:
    columns = (*BEFORE, "the fields of `result`", *AFTER)
    assert f"query_data: {', '.join(columns)}, and the items'" in MAPS
    assert "for items that do not say, such as unclear" in MAPS


def test_a_field_that_no_item_has_is_refused_with_the_nearest_one() -> None:
    plan = to_plan(MappingPlanAnswer.model_validate(answered("t1", "Sort {subjects} by kind.")))
    (wrong,) = mapping.field_problems(plan.subtasks[0], (tickets(100),))
    assert wrong.startswith("instruction: {subjects} is no field of 'tickets' (did you mean")


def test_a_waiting_map_that_a_change_replaces_stays_a_map_with_the_bounds_of_its_calls() -> None:
    spec = MapSpec(over="tickets", by="records")
    old = subtask("t2", "t1").model_copy(update={"map": spec, "max_output": 900})
    plan = Plan(goal="g", subtasks=(subtask("t1"), old))
    new = subtask("t2", "t3")
    patch = Patch(
        changes=(Change(op="replace", subtask=new), Change(op="add", subtask=subtask("t3")))
    )
    [_, replaced, _] = apply_patch(plan, patch).subtasks
    assert replaced == new.model_copy(update={"map": spec, "max_output": 900})
