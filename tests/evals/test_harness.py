"""Evals of the shipped suites on scripted models: what they answer wrongly is found, all of it, and
of what they answer rightly nothing is.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.client.evaluating import follow_eval, start_eval, trials_of
from holdfast.contracts.evals import EvalGoal, Mark, Suite
from holdfast.deployment.settings import HOME, Settings
from holdfast.intake.connection import Connection
from holdfast.intake.suites import read_suite
from holdfast.ports import Model, ModelAnswer, ModelRequest
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from labelled import remarks_of, script_of
from reviewing import PROMPTS, ReviewingModel, finds
from scripted import USAGE
from shipped import shipped_catalogue

pytestmark = [pytest.mark.anyio, pytest.mark.long]


def suite_here(folder: Path, name: str) -> Suite:
    """Return a shipped suite from a copy that the worker of a test may read."""
    for each in ("evals", "playbooks", "examples"):
        if not (folder / each).exists():
            shutil.copytree(HOME / each, folder / each, symlinks=True)
    return read_suite(folder / "evals" / name)


async def marks_of(
    runs: Runs, connection: Connection, suite: Suite, script: Mapping[str, Any], id: str
) -> list[Mark]:
    async with Simulator(Script.model_validate(script)) as simulator:
        price = Prices.of(Settings(_env_file=None)).price
        claude = Claude(key="scripted", base_url=simulator.url, price=price)
        marks = await marks_by(runs, connection, suite, claude, id)
        await claude.aclose()
    return marks


async def marks_by(
    runs: Runs, connection: Connection, suite: Suite, model: Model, id: str
) -> list[Mark]:
    async with runs.worker(model, catalogue=shipped_catalogue()), asyncio.timeout(500):
        trials = await trials_of(connection, [suite], id)
        goal = EvalGoal(name=suite.name, trials=trials, dollars=Decimal(400))
        await start_eval(connection, id, goal)
        report = await follow_eval(connection, id)
    assert len(report.marks) == len(trials)
    return [*report.marks]


@dataclass
class Labelled(ReviewingModel):
    """Tells the remarks of the change whose line stands in its prompt, as the agent `logic`."""

    remarks: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)

    async def _answer(self, what: str, request: ModelRequest) -> ModelAnswer:
        if what not in PROMPTS:
            return await super()._answer(what, request)
        told = str(request.messages[0]["content"]) if request.messages else request.prompt
        lines = {line for line in self.remarks if line in told or repr(line)[1:-1] in told}
        found = [each for line in lines for each in self.remarks[line]] if what == "logic" else []
        text = json.dumps(finds(*found))
        raw = {"content": [{"type": "text", "text": text}]}
        return ModelAnswer(text, "end_turn", request.model, USAGE, raw=raw)


@pytest.mark.parametrize("name", ["routing", "planner", "critic", "synthesis", "roles"])
async def test_what_a_model_answers_wrongly_is_found_and_nothing_that_it_answers_rightly(
    runs: Runs, connection: Connection, tmp_path: Path, name: str
) -> None:
    suite = suite_here(tmp_path / "home", name)
    # All of them are tried without a model, in milliseconds; here is tried that trials are marked.
    suite = suite.model_copy(update={"cases": suite.cases[:: len(suite.cases) // 12 or 1]})
    right = await marks_of(runs, connection, suite, script_of(suite, "right"), f"{name}-right")
    alarms = {each.case: each.wrong for each in right if not each.passed}
    wrong = await marks_of(runs, connection, suite, script_of(suite, "wrong"), f"{name}-wrong")
    missed = [each.case for each in wrong if each.passed]
    assert (alarms, missed) == ({}, [])


async def test_the_shipped_tools_answer_as_their_suite_says(
    runs: Runs, connection: Connection, tmp_path: Path
) -> None:
    suite = suite_here(tmp_path / "home", "tools")
    marks = await marks_of(runs, connection, suite, {"rules": []}, "tools")
    assert {each.case: each.wrong for each in marks if not each.passed} == {}
    assert sum(each.dollars or 0 for each in marks) == 0


async def test_defects_that_agents_miss_are_missed_and_their_false_alarms_are_counted(
    runs: Runs, connection: Connection, tmp_path: Path
) -> None:
    suite = suite_here(tmp_path / "home", "review")
    suite = suite.model_copy(update={"cases": suite.cases[::3]})
    told = {
        kind: await marks_by(
            runs, connection, suite, Labelled({}, remarks=remarks_of(suite, kind)), f"review-{kind}"
        )
        for kind in ("right", "wrong")
    }
    assert {each.case: each.wrong for each in told["right"] if not each.passed} == {}
    assert [each.case for each in told["wrong"] if each.passed] == []


WORDS = "A statement of the scripted agent, with a figure. " * 32
"""Some 400 tokens."""


async def test_what_a_team_costs_and_takes_beside_one_agent_at_answers_of_one_length(
    runs: Runs, connection: Connection, tmp_path: Path
) -> None:
    script = {
        "latency": 0.2,
        "tokens_per_second": 600,
        "subtasks": 4,
        "rules": [{"call": call, "result": WORDS} for call in ("work", "take_turn", "synthesize")],
    }
    told = {}
    for name in ("one-agent", "team"):
        suite = suite_here(tmp_path / "home", name)
        case = next(each for each in suite.cases if each.name == "three-parts-and-advice")
        suite = suite.model_copy(update={"cases": (case,)})
        [told[name]] = await marks_of(runs, connection, suite, script, name)
    one, team = told["one-agent"], told["team"]
    assert one.dollars and team.dollars
    assert team.dollars > 4 * one.dollars
    assert team.seconds > 2 * one.seconds
