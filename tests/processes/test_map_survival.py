"""A map whose worker is killed with -9 again and again, and just where it would cost most: no row
that had arrived is asked twice, and the table is that of a run that nobody disturbed.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.instruments.deployment import Deployment, deployed
from conftest import Handle
from holdfast.calls.rows import MapReport, RowsDone
from holdfast.contracts import Goal, Report
from holdfast.storage import store_at
from holdfast.temporal.connection import Target

pytestmark = [pytest.mark.anyio, pytest.mark.long]

ROWS = 240
LABELS = ("tea", "coffee", "water")
SCRIPT: dict[str, Any] = {
    "mark": "row [0-9]+",
    "latencies": {"row": [0.2, 0.6]},
    "rules": [
        *(
            {"call": "row", "text": f"kind {each}", "fields": {"result": {"label": each}}}
            for each in LABELS
        ),
    ],
}
FORM = {
    "type": "object",
    "properties": {"label": {"type": "string", "enum": [*LABELS]}},
    "required": ["label"],
    "additionalProperties": False,
}
CAP = "2"
HANG: dict[str, Any] = {"first": 1, "fault": "hang", "seconds": 600}
WINDOWS: dict[str, dict[str, Any]] = {
    "after its mark, before the batch": {"step": "create", **HANG},
    "after the batch, before its record": {"step": "create", **HANG, "after": True},
    "while it looks": {"step": "retrieve", **HANG},
    "while it reads results": {"step": "results", "first": 1, "fault": "stall", "at": 0.5},
}


def goal(lane: str) -> Goal:
    lines = [
        json.dumps({"id": f"t{n}", "text": f"row {n} of kind {LABELS[n % len(LABELS)]}"})
        for n in range(ROWS)
    ]
    spec = {"over": "tickets", "by": "records", "id": "id", "lane": lane, "result": FORM}
    classify = {
        "id": "classify",
        "title": "Classify",
        "instruction": "Say what kind of drink the {text} is about",
        "inputs": ["tickets"],
        "role": "analyst",
        "tier": "haiku",
        "map": spec,
    }
    return Goal.model_validate(
        {
            "text": "Classify the tickets",
            "use_models": True,
            "inputs": [{"name": "tickets", "kind": "text", "value": "\n".join(lines)}],
            "plan": {"goal": "Classify", "subtasks": [classify]},
            "limits": {"dollars": CAP, "concurrency": 12, "deadline_seconds": 100_000},
        }
    )


async def rows_of(deployment: Deployment, handle: Handle) -> tuple[list[Any], list[RowsDone]]:
    """Return what the table says of each row, and what came of all rows that were asked."""
    child = deployment.client.get_workflow_handle(f"{handle.id}.classify.1", result_type=MapReport)
    report: MapReport = await child.result()
    assert report.table.table is not None, report.why
    target: Target = deployment.target
    blob = await store_at(target.store_url).get(report.table.table.digest)
    rows = [json.loads(line) for line in blob.splitlines()]
    history = await child.fetch_history()
    converter = deployment.client.data_converter
    done = []
    for event in history.events:
        found = event.activity_task_completed_event_attributes.result.payloads
        if found and b'"hopeless"' in found[0].data:
            (each,) = await converter.decode(found, [RowsDone])
            done.append(each)
    return [(row["id"], row["status"], row.get("label")) for row in rows], done


EXPECTED = [(f"t{n}", "complete", LABELS[n % len(LABELS)]) for n in range(ROWS)]


def check_money(report: Report, log: dict[str, Any]) -> None:
    assert report.status == "complete", report.gaps
    assert report.dollars is not None
    # The simulator rounds what it keeps for an hour by itself.
    assert float(log["dollars"]) - 0.000_01 <= float(report.dollars) <= float(CAP)


async def test_random_kills_repeat_no_row_that_had_arrived(tmp_path: Path) -> None:
    chance = random.Random(7)
    async with asyncio.timeout(280), deployed(tmp_path, SCRIPT) as deployment:
        handle: Handle = await deployment.start(goal("now"))
        result = asyncio.create_task(deployment.result(handle))
        kills = 0
        while not result.done() and kills < 5:
            await deployment.served()
            await asyncio.sleep(chance.uniform(0.2, 2.0))
            deployment.kill_worker()
            kills += 1
        report = await result
        rows, done = await rows_of(deployment, handle)
        log = await asyncio.to_thread(deployment.simulator.log)
    assert rows == EXPECTED
    check_money(report, log)
    twice = sum(mark["calls"] - 1 for name, mark in log["marks"].items() if name)
    lost = sum(len(each.lost) for each in done)
    assert kills >= 3 and twice <= lost <= 12 * kills


@pytest.mark.parametrize("window", WINDOWS)
async def test_a_worker_that_is_killed_around_its_batch_pays_each_row_once(
    tmp_path: Path, window: str
) -> None:
    fault = WINDOWS[window]
    script = {**SCRIPT, "batches": {"seconds": 2, "foreign": 1, "faults": [fault]}}
    async with asyncio.timeout(280), deployed(tmp_path, script) as deployment:
        handle: Handle = await deployment.start(goal("batch"))
        result = asyncio.create_task(deployment.result(handle))
        await reached(deployment, fault["step"])
        deployment.kill_worker()
        report = await result
        rows, done = await rows_of(deployment, handle)
        log = await asyncio.to_thread(deployment.simulator.log)
    assert rows == EXPECTED
    check_money(report, log)
    calls = Counter(mark["calls"] for name, mark in log["marks"].items() if name)
    assert calls == {1: ROWS} and not any(each.lost for each in done)


async def reached(deployment: Deployment, step: str) -> None:
    """Return once the simulator has got a request of this step."""
    while True:
        log = await asyncio.to_thread(deployment.simulator.log)
        if log["steps"].get(step):
            return
        await asyncio.sleep(0.1)
