"""A whole goal for one agent, as it is asked for: `--single`, `--role`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.contracts import Goal
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake.goals import Wish, goal_of
from scripted import ready, subtask
from shipped import shipped_catalogue

pytestmark = pytest.mark.usefixtures("bare_environment")

SHIPPED = shipped_catalogue()


def asked(**wish: object) -> Goal:
    whole = Wish(**{"text": "What is a monorepo?", **wish})  # type: ignore[arg-type]
    return asyncio.run(goal_of(whole, SHIPPED, Settings(), embedded=False))


def test_the_goal_as_it_stands_is_one_subtask_of_an_analyst_with_all_inputs() -> None:
    plan = asked(single=True, inputs=("note=text:words",)).plan
    assert plan is not None
    (whole,) = plan.subtasks
    assert (whole.instruction, whole.role) == ("What is a monorepo?", "analyst")
    assert whole.inputs == ("note",)


def test_another_role_may_have_it_in_however_few_words_the_goal_is() -> None:
    plan = asked(single=True, role="writer", text="A haiku").plan
    assert plan is not None and plan.subtasks[0].role == "writer"


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"role": "writer"}, "--role 'writer': it says who has the whole goal; give --single"),
        ({"single": True, "role": "wrter"}, "unknown role 'wrter' (did you mean 'writer'?)"),
        ({"single": True, "limits": ("subtasks=2",)}, "--single and --limits subtasks=2"),
        ({"single": True, "playbook": "code-review"}, "'code-review' brings a plan"),
    ],
)
def test_what_says_two_things_at_once_is_refused_in_a_line(
    wish: dict[str, object], why: str
) -> None:
    inputs = ("repo=.",) if "playbook" in wish else ()
    with pytest.raises(Refused) as refusal:
        asked(inputs=inputs, **wish)
    assert why in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_plan_beside_it_and_a_plan_of_one_that_asks_for_two_are_refused(tmp_path: Path) -> None:
    file, one = tmp_path / "plan.json", ready(subtask("t1"))
    file.write_text(one.model_copy(update={"strategy": "select"}).model_dump_json())
    with pytest.raises(Refused, match="select needs two subtasks or more"):
        asked(plan=file)
    file.write_text(one.model_dump_json())
    with pytest.raises(Refused, match="--single and --plan"):
        asked(plan=file, single=True)
    file.write_text(ready(subtask("t1"), subtask("t2")).model_dump_json())
    with pytest.raises(Refused, match="2 are planned, the limit is 1"):
        asked(plan=file, limits=("subtasks=1",))
