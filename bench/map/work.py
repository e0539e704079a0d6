"""The stated work: rows in a file, and a script that answers each by what it is about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from bench.instruments.deployment import planned
from holdfast.contracts import Goal, GoalInput, Subtask
from holdfast.contracts.plans import Lane, MapSpec
from holdfast.simulator.wire import BYTES_PER_TOKEN

KINDS = (
    "amber",
    "basil",
    "cedar",
    "daisy",
    "ember",
    "fern",
    "ginger",
    "hazel",
    "iris",
    "jade",
    "kelp",
    "lilac",
    "mint",
    "nettle",
    "olive",
    "pine",
    "quartz",
    "rose",
    "sage",
    "thyme",
    "umber",
    "violet",
    "willow",
    "yarrow",
)
CARE = 97
"""One row of so many is first answered by what is no JSON."""
LATENCY = (0.6, 1.4)
"""Seconds of a row asked by itself."""
BATCH_SECONDS = (20.0, 40.0)
AT_ONCE = 50
MEAN = sum(LATENCY) / 2
SUBTASK = "rows"
RESULT = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "note": {"type": "string"}},
    "required": ["label", "note"],
    "additionalProperties": False,
}
DEADLINES: dict[Lane, int] = {"now": 6 * 3_600, "batch": 26 * 3_600}


@dataclass(frozen=True)
class Work:
    """Rows of one map; `mark` stands in each, so that no two works share a prompt."""

    rows: int
    mark: str = "a"
    lane: Lane = "now"

    @property
    def calls(self) -> int:
        """Calls that it takes: rows with a wrong answer are asked twice."""
        return self.rows + len(range(CARE - 1, self.rows, CARE))

    @property
    def bound(self) -> float:
        """Seconds of all its calls at the concurrency."""
        return self.calls * MEAN / AT_ONCE

    def write(self, folder: Path) -> Path:
        """Write its rows, which have 60 to 460 characters."""
        path = folder / f"rows-{self.mark}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(self.rows):
                kind = KINDS[number % len(KINDS)]
                care = " It needs care." if number % CARE == CARE - 1 else ""
                said = "It came by sea and was weighed. " * (number * 7 % 13)
                text = f"Lot {self.mark}{number} is about {kind}.{care} {said}".strip()
                file.write(json.dumps({"id": f"r{number}", "text": text}) + "\n")
        return path

    def goal(self, path: Path, dollars: str = "1000") -> Goal:
        """Return the goal whose plan maps the file."""
        subtask = Subtask(
            id=SUBTASK,
            title="Each lot",
            instruction="Say of the lot in {text} which kind it is, with a short note.",
            inputs=("lots",),
            role="researcher",
            tier="haiku",
            map=MapSpec(
                over="lots",
                by="records",
                id="id",
                lane=self.lane,
                result=RESULT,
                usual_output=usual_output(),
            ),
        )
        goal = planned(
            (subtask,),
            concurrency=AT_ONCE,
            dollars=dollars,
            tokens=10_000_000_000,
            deadline_seconds=DEADLINES[self.lane],
        )
        return goal.model_copy(
            update={"inputs": (GoalInput(name="lots", kind="file", value=str(path)),)}
        )


def result_of(number: int) -> dict[str, str]:
    """Return the scripted result of a kind of lot, whose note has 610 to 920 characters."""
    return {"label": KINDS[number], "note": "a note of words. " * (36 + 3 * (number % 7))}


def usual_output() -> int:
    """Return the tokens of a scripted answer, as the simulator counts them: no schema says how long
    a note is, so the plan does.
    """
    answers = [
        json.dumps({"result": result_of(number), "why_failed": "", "status": "complete"})
        for number in range(len(KINDS))
    ]
    return ceil(sum(ceil(len(each) / BYTES_PER_TOKEN) for each in answers) / len(answers))


def script() -> dict[str, Any]:
    """Return a script that answers rows by their kind, each with a note of its own length."""
    rules: list[dict[str, Any]] = [
        {"call": "row", "text": "It needs care.", "turn": 1, "answer": "malformed"}
    ]
    for number, kind in enumerate(KINDS):
        fields = {"result": result_of(number)}
        rules.append({"call": "row", "text": f"about {kind}.", "fields": fields})
    return {
        "seed": 3,
        "latencies": {"row": list(LATENCY)},
        "batches": {"seconds": list(BATCH_SECONDS)},
        "rules": rules,
    }
