"""What a case may ask of a plan beside its graph."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts import Plan
from holdfast.contracts.evals import Case, Must
from holdfast.evals.checks import wrong_with
from holdfast.evals.outcomes import Outcome
from labelled import plan_of

ONE = [{"role": "analyst", "title": "Rents of both houses", "inputs": ["rents"]}]
MAPPED = [ONE[0] | {"over": "rents"}]
COMPOSED = {"name": "made-reader", "description": "Reads rents."}


def wrong(shape: dict[str, Any], plan: Plan) -> list[str]:
    case = Case(name="c", stop="plan", must=(Must.model_validate({"plan": shape}),))
    outcome = Outcome(status="declined", plan=plan)
    return [why for whys in wrong_with(case, outcome).values() for why in whys]


@pytest.mark.parametrize(
    ("shape", "good", "bad", "why"),
    [
        ({"filler": 0}, ONE, [*ONE, {"role": "analyst", "title": "Final review"}], "Final review"),
        ({"inputs": "rents"}, MAPPED, [{"role": "analyst", "title": "Rents"}], "input rents"),
        ({"maps": "rents"}, MAPPED, ONE, "nothing is mapped, not rents"),
        ({"maps": []}, ONE, MAPPED, "rents is mapped, not nothing"),
        (
            {"attempts": 2},
            {"strategy": "select", "subtasks": ONE * 2},
            {"subtasks": ONE * 2},
            "0 attempts at one question",
        ),
        ({"attempts": 2}, {"choices": [["t1", "t2"]], "subtasks": ONE * 2}, ONE, "0 attempts"),
        ({"composed": 0}, ONE, {"roles": [COMPOSED], "subtasks": ONE}, "1 roles are composed"),
        ({"bounded": True}, [ONE[0] | {"timeout_seconds": 30}], ONE, "has no bound"),
        ({"bounded": False}, ONE, [ONE[0] | {"max_output": 900}], "has a bound"),
    ],
)
def test_a_shape_of_plans_is_held_and_says_what_does_not_fit(
    shape: dict[str, Any], good: Any, bad: Any, why: str
) -> None:
    assert wrong(shape, plan_of(good)) == []
    [told] = wrong(shape, plan_of(bad))
    assert why in told


def test_the_plan_that_nobody_made_is_none_of_a_planner() -> None:
    assert wrong({"most": 1}, plan_of(ONE)) == []
    [told] = wrong({"most": 1}, Plan.single("Compare the rents", "analyst", ["rents"]))
    assert told.startswith("no planner made its plan")
