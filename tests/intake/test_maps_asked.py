"""A map in a plan, as people write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.activities.catalogue.files import read_playbook
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.contracts import GoalInput, Plan
from holdfast.errors import Refused
from holdfast.intake import plans

LABEL = {
    "type": "object",
    "properties": {"label": {"type": "string", "enum": ["bug", "question"]}},
    "required": ["label"],
}
AS_WRITTEN = """
goal: Sort the tickets.
subtasks:
  - id: classify
    title: Sort each ticket
    instruction: Say which kind of ticket {subject} is, in one word.
    map: {over: tickets.jsonl, id: ticket_id, most: 50000}
    role: analyst
    lane: auto
    tolerate: 2%
    result: schemas/label.json
"""


def written(folder: Path, text: str = AS_WRITTEN) -> Path:
    (folder / "schemas").mkdir(exist_ok=True)
    (folder / "schemas/label.json").write_text(json.dumps({"$schema": "x", **LABEL}))
    file = folder / "plan.yaml"
    file.write_text(text)
    return file


def test_a_map_is_taken_as_people_write_it_with_its_lane_share_and_schema_beside_it(
    tmp_path: Path,
) -> None:
    plan = plans.read_plan(written(tmp_path))
    spec = plan.subtasks[0].map
    assert spec is not None
    assert (spec.over, spec.by, spec.id, spec.most) == (
        "tickets.jsonl",
        "records",
        "ticket_id",
        50_000,
    )
    assert (spec.lane, spec.tolerate) == ("auto", 2.0)
    assert spec.result == {**LABEL, "additionalProperties": False}
    named = [GoalInput(name="tickets", kind="file", value="/data/tickets.jsonl")]
    over = plans.name_inputs(plan, named).subtasks[0].map
    assert over is not None and over.over == "tickets"
    inside = written(tmp_path, plans.as_yaml(plan))
    assert plans.read_plan(inside) == plan


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"tolerate": "few"}, "subtasks[0].tolerate: 'few' is no share of the items; write one"),
        ({"tolerate": "120%"}, "subtasks[0].map.tolerate: input should be less than or equal"),
        ({"lane": "soon"}, "subtasks[0].map.lane: input should be 'now', 'batch' or 'auto'"),
        ({"result": "schemas/none.json"}, "subtasks[0].result: there is no file '"),
        ({"result": {"type": "string"}}, "subtasks[0].result: must be a JSON schema with `type:"),
        (
            {"map": {"over": "a", "by": "rows", "lane": "now"}, "lane": "auto"},
            "subtasks[0].lane: stands in `map` as well; leave one out",
        ),
        ({"map": None, "result": None}, "lane: no effect without `map` beside it"),
        ({"map": {"over": "tickets"}}, "subtasks[0].map.by: "),
        ({"map": {"over": "a.csv", "most": 0}}, "subtasks[0].map.most: input should be greater"),
        ({"map": {"over": "a.csv", "most": 10**7}}, "subtasks[0].map.most: input should be less"),
        ({"map": {"over": "a.csv", "key": "x"}}, "subtasks[0].map.key: there is no such field"),
    ],
)
def test_what_a_map_cannot_be_is_refused_in_a_line_with_its_place(
    changed: dict[str, Any], why: str, tmp_path: Path
) -> None:
    plan = yaml.safe_load(AS_WRITTEN)
    plan["subtasks"][0] |= changed
    with pytest.raises(Refused) as refused:
        plans.read_plan(written(tmp_path, yaml.safe_dump(plan)))
    assert why in str(refused.value)
    assert all(len(line) < 300 for line in str(refused.value).splitlines())


def test_a_program_gives_the_schema_itself_and_names_no_file() -> None:
    one = yaml.safe_load(AS_WRITTEN)
    one["subtasks"][0] |= {"map": {"over": "a.csv"}, "result": "/etc/passwd"}
    with pytest.raises(Refused, match=r"subtasks\[0\]\.result: give the schema itself"):
        plans.parse_plan(json.dumps(one), "the plan", as_yaml=False)
    one["subtasks"][0]["result"] = LABEL
    plan = plans.parse_plan(json.dumps(one), "the plan", as_yaml=False)
    assert plan.subtasks[0].map is not None and plan.subtasks[0].map.by == "rows"
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_playbook_brings_a_map_whose_schema_stands_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "tickets"
    folder.mkdir()
    written(folder)
    book = {
        "name": "tickets",
        "description": "Sorts tickets.",
        "inputs": {"tickets.jsonl": {"kind": "file", "required": True}},
        "plan": yaml.safe_load(AS_WRITTEN),
    }
    file = folder / "playbook.yaml"
    file.write_text(yaml.safe_dump(book))
    plan = read_playbook(file).plan
    assert plan is not None and plan.subtasks[0].map is not None
    assert plan.subtasks[0].map.result["properties"] == LABEL["properties"]
    book["plan"]["subtasks"][0]["tolerate"] = "2 of 100"
    file.write_text(yaml.safe_dump(book))
    with pytest.raises(CatalogueError, match=r"plan\.subtasks\[0\]\.tolerate: '2 of 100'"):
        read_playbook(file)
