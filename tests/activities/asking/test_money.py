"""The cap holds, measured at the endpoint and not at ourselves: the real adapter, faults on."""

from __future__ import annotations

from decimal import Decimal

import pytest

from conftest import Runs
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.contracts import Goal, Limits
from holdfast.deployment.settings import Settings
from holdfast.simulator.script import Rule, Script
from holdfast.simulator.server import Simulator
from parameters import rest_long
from scripted import ready, subtask

pytestmark = pytest.mark.anyio

FAULTS = (
    Rule(call="work", probability=0.15, fault="drop_mid_stream"),
    Rule(call="work", probability=0.1, fault="drop_before_headers"),
    Rule(call="work", probability=0.1, answer="low_confidence"),
    Rule(call="work", probability=0.1, answer="malformed"),
    Rule(call="work", probability=0.1, answer="refusal"),
)


@pytest.mark.parametrize(
    "limits", rest_long([{"dollars": "0.04"}, {"model_calls": 14}, {"tokens": 100_000}])
)
async def test_twenty_parallel_subtasks_never_overshoot_together(
    runs: Runs, limits: dict[str, object]
) -> None:
    prices = Prices.of(Settings(_env_file=None))
    plan = ready(*(subtask(f"t{number}", tier="haiku") for number in range(1, 21)))
    bounds = Limits.model_validate({"concurrency": 20, "replans": 0, **limits})
    async with Simulator(Script(seed=7, rules=FAULTS)) as simulator:
        model = Claude(key="scripted", base_url=simulator.url, price=prices.price)
        goal = Goal(text="Compare", plan=plan, use_models=True, limits=bounds)
        report = await runs.run(goal, model)
        await model.aclose()
        log = simulator.log
    admitted = sum(body.admitted for body in log.bodies.values())
    assert report.status in ("budget_stopped", "complete_with_gaps", "complete")
    assert 0 < log.dollars <= bounds.dollars
    assert admitted <= bounds.model_calls and log.usage.total <= bounds.tokens
    # What the report says is never less than what was charged.
    assert report.dollars is not None and log.dollars <= report.dollars <= bounds.dollars
    assert admitted <= report.model_calls <= bounds.model_calls
    assert report.dollars_estimated is not None and report.dollars_estimated > Decimal(0)
