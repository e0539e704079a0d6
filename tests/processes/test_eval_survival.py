"""An eval whose worker and server are killed with -9 again and again, and which is left and taken
up under its id: every trial has its mark, and none is paid twice.
"""

from __future__ import annotations

import asyncio
import json
import random
from decimal import Decimal
from pathlib import Path

import pytest

from bench.instruments.deployment import deployed
from holdfast.client.evaluating import follow_eval, start_eval, trials_of
from holdfast.contracts.evals import EvalGoal
from holdfast.intake.connection import Connection
from holdfast.intake.suites import read_suite

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CASES, FAULTS = 24, 4
SCRIPT = {
    "mark": "row [0-9]+",
    "latency": [0.2, 0.6],
    "rules": [
        {"call": "judge", "text": f"row {place}.", "fields": {"winner": "none"}}
        for place in range(FAULTS)
    ],
}


def suite_at(folder: Path) -> Path:
    folder.mkdir()
    (folder / "suite.yaml").write_text("each: {call: judge, must: [{has: {winner: t1}}]}")
    lines = [
        {
            "name": f"c{number}",
            "material": {
                "question": f"Which one holds in row {number}.",
                "findings": [{"subtask_id": "t1", "status": "complete", "content": "It holds."}],
            },
        }
        for number in range(CASES)
    ]
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


async def test_kills_lose_no_trial_and_pay_none_twice(tmp_path: Path) -> None:
    chance = random.Random(7)
    suite = read_suite(suite_at(tmp_path / "rows"))
    async with asyncio.timeout(280), deployed(tmp_path, SCRIPT) as deployment:
        connection = Connection(deployment.settings, deployment.target, deployment.client)
        trials = await trials_of(connection, [suite], "struck")
        goal = EvalGoal(name="rows", trials=trials, dollars=Decimal(30), concurrency=6)
        await start_eval(connection, "struck", goal)
        following = asyncio.create_task(follow_eval(connection, "struck"))
        kills = 0
        while not following.done() and kills < 5:
            await deployment.served()
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            kills += 1
            deployment.kill("server" if kills == 5 else "worker")
        report = await following
        log = await asyncio.to_thread(deployment.simulator.log)
        # Once more, under the same id.
        await start_eval(connection, "struck", goal)
        again = await follow_eval(connection, "struck")
        later = await asyncio.to_thread(deployment.simulator.log)
    failed = [each.case for each in report.marks if not each.passed]
    assert len(report.marks) == CASES and kills >= 3
    # A call that was cut in flight has no answer that anybody could have: it counts at its worst.
    cut = [each for each in report.marks if each.assumed]
    assert {f"c{place}" for place in range(FAULTS)} <= {*failed}
    assert {*failed} - {each.case for each in cut} <= {f"c{place}" for place in range(FAULTS)}
    assert len(cut) <= 6 * kills
    assert all(mark["calls"] == 1 for name, mark in log["marks"].items() if name)
    assert later["dollars"] == log["dollars"] and again.marks == report.marks
    assert report.dollars is not None and float(log["dollars"]) <= float(report.dollars) <= 30
