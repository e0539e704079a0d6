"""Ten turns of an agent against a server that counts its cache by prefix, as the API does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_agents import catalogue, goal, segments

from conftest import Runs
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.contracts import Capabilities, Goal
from holdfast.deployment.settings import Settings
from holdfast.simulator.script import Rule, Script
from holdfast.simulator.server import Simulator
from scripted import ready, subtask

pytestmark = pytest.mark.anyio

TURNS = 10
LINES = "".join(f"Line {number} of a file worth reading to its end.\n" for number in range(5_000))


def reads(turn: int) -> dict[str, Any]:
    """A call that brings about 20 KB."""
    given = {"file_path": "repo/long.md", "offset": 400 * turn, "limit": 400}
    return {"name": "read_file", "input": given}


async def caching() -> Capabilities:
    """What the API understands."""
    return Capabilities(caching=True)


@pytest.mark.long
async def test_four_fifths_of_what_ten_turns_send_are_read_from_the_cache(runs: Runs) -> None:
    rules = tuple(
        Rule(call="take_turn", turn=turn, tools=(reads(turn),)) for turn in range(1, TURNS)
    )
    wanted = goal(runs)
    (Path(wanted.inputs[0].value) / "long.md").write_text(LINES)
    prices = Prices.of(Settings(_env_file=None))
    async with Simulator(Script(seed=7, rules=rules)) as simulator:
        model = Claude(key="scripted", base_url=simulator.url, price=prices.price)
        report = await runs.run(wanted, model, catalogue=catalogue(runs), capabilities=caching)
        await model.aclose()
        used = simulator.log.calls["take_turn"]
        asked = [body for body in simulator.log.bodies.values() if body.call == "take_turn"]
    assert report.status == "complete", report.gaps
    assert [body.admitted for body in asked] == [1] * TURNS
    sent = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
    assert used.cache_read_tokens / sent > 0.8, used
    done = [each for segment in await segments(runs, report) for each in segment]
    assert len(done) == len(set(done)) == 2 * TURNS - 1


LONG_ROLE = f"""---
name: reader
description: Reads what it is given
model: haiku
---
You read. {"Every word counts, and none is left out. " * 300}
"""


async def test_calls_that_are_made_once_pay_for_no_cache_however_long_their_role_is(
    runs: Runs,
) -> None:
    """They leave together, so that each would write what none could read."""
    plan = ready(*(subtask(f"t{number}", role="reader") for number in range(3)))
    wanted = Goal(text="Read on", plan=plan, use_models=True)
    prices = Prices.of(Settings(_env_file=None))
    async with Simulator(Script(seed=7)) as simulator:
        model = Claude(key="scripted", base_url=simulator.url, price=prices.price)
        known = catalogue(runs, LONG_ROLE)
        report = await runs.run(wanted, model, catalogue=known, capabilities=caching)
        await model.aclose()
        calls = simulator.log.calls
    assert report.status == "complete", report.gaps
    # Long enough to be kept, had it been marked.
    assert calls["work"].total / 3 > 2_000
    kept = {name: used.cache_write_tokens + used.cache_read_tokens for name, used in calls.items()}
    assert kept == {"work": 0, "synthesize": 0, "critique": 0}
