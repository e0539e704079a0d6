"""Ten runs whose weaker models fail in one way, always: a stronger model or another role completes
each, and the report says who, for how much and why.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Bill, Goal, GoalInput, Report
from holdfast.contracts.errors import TookTooLong
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.rendering import findings as shown
from parameters import rest_long
from repositories import Repository
from reviewing import agent_of, finds
from scripted import USAGE, Line, ScriptedModel, calls, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

ROLE = """---
name: {name}
description: Reads what it is given
model: {model}
tools: list_files, read_file
---
You are the {name}.
"""
LATE = TookTooLong(
    "cut by deadline of 20 s", Bill(model="m", calls=1, dollars=Decimal("0.001"), usage=USAGE)
)
LISTS = calls(("list_files", {}), says="So far: perhaps 40.")
PLAN = plans(subtask("t1", role="reader"), subtask("t2", "t1"))
INVALID = plans(subtask("t1", role="wizard"))
FAILS = works("", status="failed", why="gone")
MENDS = [
    {"op": "add", "subtask": subtask("t3"), "why": "another way"},
    {"op": "replace", "subtask": subtask("t2", "t3"), "why": "needs t3"},
]


class Weak(ScriptedModel):
    """Answers each call by what is asked and who is asked: a tier, or a role that stands in."""

    def __init__(self, answer: Callable[[str, str], Line]) -> None:
        super().__init__({"t1": [], "t2": [], "t3": []})
        self.answer = answer

    def _what(self, request: ModelRequest) -> str:
        agent = bool(agent_of(request))
        return "lens" if agent else super()._what(request)

    async def _answer(self, what: str, request: ModelRequest) -> ModelAnswer:
        tier = next(each for each in ("haiku", "sonnet", "opus") if each in request.model)
        stands_in = what == "t1" and "You are the" not in request.system
        self._left[what] = deque([self.answer(what, "another role" if stands_in else tier)])
        return await super()._answer(what, request)


def usual(what: str) -> Line:
    """What a model answers that is not weak."""
    answers: dict[str, Line] = {
        "plan": PLAN,
        "replan": {"changes": MENDS},
        "refine": {"instruction": "Find out all about part t1 of the goal once more"},
        "synthesize": synthesizes("Done [t2]."),
        "critique": {"issues": []},
        "lens": finds(),
    }
    return answers.get(what, works("40"))


@dataclass(frozen=True)
class Case:
    what: str
    weak: dict[str, Line]
    """What is answered to `what`, by tier; every other call is answered well."""
    said: str
    """What the report says of it."""
    model: str = "haiku"
    fails: bool = False
    """True if t1 fails beyond repair, so that the plan must change."""
    planned: bool = False
    """True if a planner is asked."""


CASES = {
    "an agent that uses up its turns": Case(
        "t1", {"haiku": LISTS}, "try 1 on haiku, out of turns, $0.0"
    ),
    "one that does so on each tier": Case(
        "t1",
        {"haiku": LISTS, "sonnet": LISTS, "opus": LISTS},
        "by analyst, the fallback, on sonnet, accepted, $0.0",
    ),
    "a call that is cut by time twice": Case(
        "t1", {"haiku": LATE}, "try 1 on haiku, timeout, $0.0"
    ),
    "an agent in doubt": Case(
        "t1", {"haiku": works("?", confidence=10)}, "try 1 on haiku, confidence too low, $0.0"
    ),
    "a role of one tier that is never right": Case(
        "t1",
        {"haiku": FAILS},
        "by analyst, the fallback, on sonnet, accepted, $0.0",
        "haiku\nfixed_tier: true",
    ),
    "a planner whose plans are invalid": Case(
        "plan", {"sonnet": INVALID}, "The plan was asked of opus, because sonnet", planned=True
    ),
    "a planner that is cut by time": Case(
        "plan", {"sonnet": LATE}, "The plan was asked of opus, because sonnet", planned=True
    ),
    "a replanner whose changes are invalid": Case(
        "replan",
        {"sonnet": {"changes": MENDS[1:]}},
        "A change of the plan was asked of opus, because sonnet",
        fails=True,
    ),
    "a replanner that is cut by time": Case(
        "replan",
        {"sonnet": LATE},
        "A change of the plan was asked of opus, because sonnet",
        fails=True,
    ),
}


async def carry_out(runs: Runs, case: Case) -> Report:
    def answer(what: str, who: str) -> Line:
        if what == "t1" and case.fails:
            return FAILS
        return case.weak.get(who, usual(what)) if what == case.what else usual(what)

    repository = Repository.at(runs.folder / "repo")
    repository.commit({"notes.py": "import os\nprint(undefined_name)\n"})
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    limits = {"turns_per_agent": 2, "subtask_timeout_seconds": 20, "replans": 1}
    asked: dict[str, Any] = {"text": "Find part of it", "use_models": True, "limits": limits}
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True)
    (home / "reader.md").write_text(ROLE.format(name="reader", model=case.model))
    if not case.planned:
        whole = ready(*({**each, "inputs": ["repo"]} for each in PLAN["subtasks"]))
        asked |= {"plan": whole, "inputs": [given]}
    return await runs.run(
        Goal.model_validate(asked), Weak(answer), catalogue=Catalogue.of(home.parent)
    )


@pytest.mark.parametrize("name", rest_long(CASES))
async def test_what_a_weak_model_cannot_do_is_completed_by_climbing(runs: Runs, name: str) -> None:
    case = CASES[name]
    report = await carry_out(runs, case)
    found = {each.subtask_id: each for each in report.findings}
    lines = [*report.notes, *(line for each in report.findings for line in shown.tries(each))]
    assert found["t2"].status == "complete", report.gaps
    assert found["t1"].status == ("failed" if case.fails else "complete"), found["t1"].why
    told = [line for line in lines if case.said in line.replace("\\", "")]
    assert told and "$0.0" in told[0], lines
