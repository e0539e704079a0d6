"""A plan of a code review that has one quick lens: for tests of what starts runs, by dozens."""

from __future__ import annotations

from holdfast.contracts import Plan

PLAN = Plan.model_validate(
    {
        "goal": "Look",
        "subtasks": [
            {
                "id": "a",
                "title": "Look",
                "instruction": "Look at the repository and tell what its history says of it.",
                "role": "history",
                "inputs": ["repo"],
            }
        ],
    }
)
