"""A file whose items a plan maps is looked at by whoever starts the run, too."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from holdfast.activities.preparation import INPUT_BYTES
from holdfast.contracts import Goal
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake.goals import Wish, goal_of
from shipped import shipped_catalogue

PLAN = {
    "goal": "Sort the tickets.",
    "subtasks": [
        {
            "id": "classify",
            "title": "Sort each ticket",
            "instruction": "Say which kind of ticket {subject} is, in one word.",
            "map": {"over": "tickets.jsonl", "by": "records", "id": "id"},
            "role": "analyst",
        }
    ],
}


def asked(folder: Path, content: str, instruction: str = "") -> Goal:
    plan = json.loads(json.dumps(PLAN))
    if instruction:
        plan["subtasks"][0]["instruction"] = instruction
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "tickets.jsonl").write_text(content)
    wish = Wish(inputs=(f"t={folder / 'tickets.jsonl'}",), plan=folder / "plan.json", unpriced=True)
    return asyncio.run(goal_of(wish, shipped_catalogue(), Settings(), embedded=False))


@pytest.mark.parametrize(
    ("content", "instruction", "why"),
    [
        ('{"id": 1, "subject": "a"}\n{"id": 1, "subject": "b"}\n', "", "line 2 has the 'id' '1'"),
        ('{"id": 1, "subject": "a"}\n{"subject": "b"}\n', "", "line 2 has no 'id'"),
        ('{"id": 1, "x": 2}\n', "", "has no field 'subject' (in braces)"),
        ('{"id": \n{"id": \n', "", "has no records that can be read: line 1 is no JSON"),
    ],
)
def test_bad_items_are_refused_with_their_place_before_a_run_begins(
    tmp_path: Path, content: str, instruction: str, why: str
) -> None:
    with pytest.raises(Refused) as refused:
        asked(tmp_path, content, instruction)
    assert str(refused.value).startswith("--input t: '")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_mapped_file_may_be_larger_than_other_inputs(tmp_path: Path) -> None:
    content = '{"id": 1, "subject": "a"}\n' + (" " * 999 + "\n") * (INPUT_BYTES // 1_000 + 1)
    assert asked(tmp_path, content).inputs[0].kind == "file"
