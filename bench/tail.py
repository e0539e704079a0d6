"""What stands between the last finding and the end of an ordinary run of six, and before its second
call, at the speeds of real models: digests, the critic, a beginning that all read from the cache.

    python -m bench.tail [SPEED ...]      prints Markdown; 60 and 120 tokens/s take about 6 minutes

The lengths of answers are assumed: 600 to 1,500 tokens for a subtask, 2,400 where it is long, 900
for the answer, 500 for a digest, 800 for a critic, its thoughts included. What a model reads takes
no time here. All runs of a speed go on side by side.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.instruments.deployment import Deployment, deployed, planned
from bench.instruments.tables import head, row
from holdfast.contracts import Goal, GoalInput, Report, Subtask

COLUMNS = ((
    "six subtasks", "tokens/s", "makespan", "after the last finding", "dollars",
    "read from the cache",
),)  # fmt: skip
PARTS = "ABCDEF"
SPEEDS = (60, 120)
FIRST_TOKEN = (0.8, 1.6)
"""Seconds."""
USUAL = (600, 1_500, 900, 1_200, 750, 1_050)
LONG = (600, 750, 2_400, 2_400, 900, 1_200)
"""Tokens of each subtask's answer."""
ANSWER, DIGEST, CRITIC = 900, 500, 800
FILLER = "and what else matters there "
HANDBOOK = "All that the handbook says of it. " * 2_000
"""Some 17,000 tokens."""
WITHOUT_CACHE = "schemas, effort, counting"


@dataclass(frozen=True)
class Shape:
    """One kind of run; its name is in each instruction."""

    name: str
    said: str
    lengths: tuple[int, ...] = USUAL
    depends_on: Mapping[int, tuple[str, ...]] | None = None
    critic: str = "always"
    handbook: bool = False

    def goal(self) -> Goal:
        subtasks = tuple(map(self._part, range(1, len(self.lengths) + 1)))
        goal = planned(subtasks)
        assert goal.plan is not None
        plan = goal.plan.model_copy(update={"critic": self.critic})
        told = GoalInput(name="handbook", kind="text", value=HANDBOOK)
        inputs = (told,) if self.handbook else ()
        return goal.model_copy(update={"plan": plan, "text": self.name, "inputs": inputs})

    def _part(self, number: int) -> Subtask:
        return Subtask(
            id=f"t{number}",
            title=f"Part {PARTS[number - 1]}",
            instruction=f"Say what matters most of {self.place(number)}, with its price",
            role="researcher",
            inputs=("handbook",) if self.handbook else (),
            depends_on=(self.depends_on or {}).get(number, ()),
        )

    def place(self, number: int) -> str:
        return f"part {PARTS[number - 1]} of the {self.name} market"


THEN = {5: ("t1", "t2"), 6: ("t5",)}
SHAPES = (
    Shape("plain", "side by side"),
    Shape("sure", "the same, no critic where code has checked", critic="unless_checked"),
    Shape("long", "two long ones, side by side", LONG),
    Shape("late", "two long ones, others one after another", LONG, THEN),
)
WARM = Shape("warm", "all over one input of 17,000 tokens", handbook=True)


def script(speed: int) -> dict[str, Any]:
    """Return what every run of this speed is answered."""
    return {
        "latency": list(FIRST_TOKEN),
        "tokens_per_second": speed,
        "rules": [
            *(each for shape in (*SHAPES, WARM) for each in _works(shape)),
            {
                "call": "synthesize",
                "result": "\n".join(
                    (*map(_cited, range(1, 1 + len(PARTS))), f"{_words(ANSWER)} [t1]")
                ),
            },
            {"call": "digest", "result": _words(DIGEST)},
            {"call": "critique", "fields": {"issues": [_issue(_words(CRITIC))]}},
        ],
    }


def _works(shape: Shape) -> Iterator[dict[str, Any]]:
    for number, tokens in enumerate(shape.lengths, start=1):
        result = f"It costs {number}50 a year, {_words(tokens)}"
        yield {"call": "work", "text": f"of {shape.place(number)}, with", "result": result}


def _cited(number: int) -> str:
    return f"Part {PARTS[number - 1]} costs {number}50 a year [t{number}]."


def _issue(problem: str) -> dict[str, str]:
    """A remark that is not worth a second answer."""
    return {"problem": problem, "fix": "none", "severity": "info"}


def _words(tokens: int) -> str:
    return FILLER * (tokens * 4 // len(FILLER))


async def measured(deployment: Deployment, shape: Shape, said: str, speed: int) -> str:
    """Return the row of one run."""
    report = await deployment.result(await deployment.start(shape.goal()))
    assert report.status == "complete", report.gaps
    usage = report.usage
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    share = f"{usage.cache_read_tokens:,} of {read:,}" if usage.cache_read_tokens else "0"
    seconds = f"{report.timings.makespan:.1f} s"
    return row((said, speed, seconds, f"{_after(report):.1f} s", f"${report.dollars}", share))


def _after(report: Report) -> float:
    last = max(each.finished for each in report.findings if each.finished)
    assert report.finished is not None
    return (report.finished - last).total_seconds()


async def at(speed: int) -> list[str]:
    """Return the rows of one speed: in one deployment with the endpoint's cache, and in another
    without.
    """
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        async with (
            deployed(Path(one), script(speed), capabilities="full") as cached,
            deployed(Path(other), script(speed), capabilities=WITHOUT_CACHE) as plain,
        ):
            return await asyncio.gather(
                *(measured(cached, each, each.said, speed) for each in SHAPES),
                measured(plain, WARM, f"{WARM.said}, no cache", speed),
                measured(cached, WARM, f"{WARM.said}, one goes first", speed),
            )


async def main(speeds: tuple[int, ...]) -> None:
    sys.stdout.write(head(COLUMNS[0]))
    for speed in speeds:
        sys.stdout.write("".join(await at(speed)))


if __name__ == "__main__":
    asyncio.run(main(tuple(map(int, sys.argv[1:])) or SPEEDS))
