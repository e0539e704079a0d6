"""What a chaos campaign asks for: random graphs of subtasks, random limits, an endpoint with
faults, and what people say meanwhile. The same seed asks for the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from bench.instruments.deployment import part
from holdfast.contracts import Limits, Order, Plan

FEWEST, MOST = 3, 14
"""Subtasks of a run."""
MOST_NEEDED = 3
PLANNED_BY_MODEL = 0.2
SHORT_DEADLINE = 0.15
SMALL_CAP = 0.15
ORDERS_WITHIN = 40.0
"""Seconds after the start of a run in which people give orders."""
MARK = r"market [0-9]+-[0-9]{4}"
"""Stands in every prompt of a run and tells the endpoint's charges apart."""

ENDPOINT: dict[str, Any] = {
    "mark": MARK,
    "latency": [0.3, 3.0],
    "subtasks": 6,
}
"""An endpoint on a good day."""
FAULTS: dict[str, Any] = {
    "rules": [
        {"probability": 0.02, "status": 429, "headers": {"retry-after": "1"}},
        {"probability": 0.02, "status": 529},
        {"probability": 0.02, "status": 500},
        {"probability": 0.01, "status": 503},
        {"probability": 0.01, "fault": "drop_mid_stream"},
        {"probability": 0.01, "fault": "end_mid_stream"},
        {"probability": 0.01, "fault": "error_mid_stream"},
        {"probability": 0.01, "fault": "drop_before_headers"},
        {"probability": 0.004, "fault": "stall_mid_stream", "seconds": 120},
        {"probability": 0.01, "fault": "slow_pings", "seconds": 8},
        {"probability": 0.03, "latency": [8, 15]},
        {"probability": 0.02, "answer": "malformed"},
        {"probability": 0.02, "answer": "truncated"},
        {"call": "work", "probability": 0.03, "answer": "low_confidence"},
        {"call": "work", "probability": 0.02, "answer": "failed"},
        {"call": "work", "probability": 0.01, "answer": "refusal"},
        {"call": "work", "probability": 0.04, "answer": "escalation"},
    ],
}
"""What makes it a bad day: about every fifth call meets something."""


@dataclass(frozen=True)
class Asked:
    """One run."""

    run_id: str
    mark: str
    arguments: tuple[str, ...]
    """Arguments of `starter.py run`."""
    orders: tuple[tuple[float, str, Order], ...]
    """Seconds after its start, name of the Update, argument. `cancel` cancels the run."""


def asked(seed: int, number: int, folder: Path) -> Asked:
    """The run of this number; its plan, if it has one, is written into the folder."""
    chance = Random(f"{seed} {number}")
    name = f"{seed}-{number:04d}"
    mark = f"market {name}"
    arguments = ["run", f"Look at {mark} and say what matters most about it", "--models", "--yes"]
    count = chance.randint(FEWEST, MOST)
    if chance.random() >= PLANNED_BY_MODEL:
        path = folder / f"{name}.json"
        path.write_text(_plan(chance, count, mark).model_dump_json())
        arguments += ["--plan", str(path)]
    limits: dict[str, Any] = {
        "dollars": 500,
        "model_calls": 2_000,
        "subtasks": MOST,
        "concurrency": chance.randint(2, 8),
        "deadline_seconds": 900,
    }
    if chance.random() < SHORT_DEADLINE:
        limits["deadline_seconds"] = chance.randint(20, 90)
    if chance.random() < SMALL_CAP:
        limits["dollars"] = chance.choice(("0.60", "1.00", "2.00"))
        arguments += ["--wait-for-raise"] * chance.randint(0, 1)
    for key, value in limits.items():
        arguments += ["--limits", f"{key}={value}"]
    arguments += ["--ask"] * chance.randint(0, 1)
    return Asked(f"chaos-{name}", mark, tuple(arguments), _orders(chance, count, mark))


def _plan(chance: Random, count: int, mark: str) -> Plan:
    subtasks = []
    for number in range(1, count + 1):
        earlier = [f"t{each}" for each in range(1, number)]
        needed = chance.sample(earlier, min(len(earlier), chance.randint(0, MOST_NEEDED)))
        subtask = part(number, *needed, tier=chance.choice(("haiku", "haiku", "sonnet")))
        changes = {
            "instruction": f"Look at part {number} of {mark} and say what matters most about it",
            "acceptance_criteria": chance.choice(("", "", "", "It names what matters most.")),
        }
        subtasks.append(subtask.model_copy(update=changes))
    return Plan(goal=f"Look at {mark}", subtasks=tuple(subtasks))


def _orders(chance: Random, count: int, mark: str) -> tuple[tuple[float, str, Order], ...]:
    said = []
    for number in range(chance.choice((0, 0, 1, 2, 3))):
        about = f"t{chance.randint(1, count)}"
        order = chance.choice(
            (
                ("pause", Order(by="chaos")),
                ("skip", Order(subtask_id=about, by="chaos")),
                ("cancel_subtask", Order(subtask_id=about, by="chaos")),
                # Other words each time: an equal prompt would look like one that is paid twice.
                ("retry", Order(subtask_id=about, text=f"Look at {mark} again, {number}")),
                ("supply", Order(subtask_id=about, text="Found by hand.")),
                ("raise_cap", Order(limits=Limits(dollars=1_000, model_calls=2_000))),
            )
        )
        said.append((chance.uniform(0, ORDERS_WITHIN), *order))
    if chance.random() < 0.03:
        said.append((chance.uniform(0, ORDERS_WITHIN), "cancel", Order()))
    return tuple(sorted(said, key=lambda each: each[0]))


def described(goal: Asked) -> str:
    """One line for the record."""
    orders = [(round(at, 1), name, order.subtask_id) for at, name, order in goal.orders]
    return json.dumps({"run": goal.run_id, "arguments": goal.arguments, "orders": orders})
