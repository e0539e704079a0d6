"""The work: plans of subtasks, and the script that makes each take as long as the plan says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.instruments.deployment import part, planned
from bench.overhead.asking import MAIN, Step
from holdfast.activities.claude.endpoint import FULL
from holdfast.activities.claude.wire import shape
from holdfast.calls import MODEL_KINDS
from holdfast.contracts import Goal
from holdfast.deployment.settings import HOME
from holdfast.ports import ModelRequest

NEEDED = 2
"""Subtasks of the layer before that each one needs."""
Layers = tuple[tuple[float, ...], ...]
"""Seconds of each subtask."""


@dataclass(frozen=True)
class Load:
    """Runs of the same shape, all started at once. Every engine asks for the work of each subtask,
    then for a synthesis, then for its critique.
    """

    mark: str
    """A letter that tells its prompts from those of other loads."""
    name: str
    layers: Layers
    ending: float = 0.0
    """Seconds of the synthesis, and again of the critique."""
    runs: int = 1
    shown: Literal["over the ideal", "seconds", "runs/s"] = "over the ideal"

    @property
    def size(self) -> int:
        """Subtasks of a run."""
        return sum(len(layer) for layer in self.layers)

    def plan(self, run: int) -> list[Step]:
        """What one run does. Its words are no other run's, so that nothing is shared by chance."""
        steps: list[Step] = []
        start = 0
        for depth, layer in enumerate(self.layers):
            for place in range(len(layer)):
                step = part(start + place + 1)
                said = step.instruction.replace("the market", f"the market {self.mark}{run}")
                steps.append(Step(step.id, said, self._needed(depth, place, start)))
            start += len(layer)
        return steps

    def _needed(self, depth: int, place: int, start: int) -> tuple[str, ...]:
        if not depth:
            return ()
        width = len(self.layers[depth - 1])
        before = [(place + step) % width for step in range(min(NEEDED, width))]
        return tuple(f"t{start - width + each + 1}" for each in before)

    def goal(self, run: int) -> Goal:
        """The same for this project, with as much at once as the plan could use."""
        steps = self.plan(run)
        subtasks = tuple(
            part(number, *each.after).model_copy(update={"instruction": each.instruction})
            for number, each in enumerate(steps, 1)
        )
        goal = planned(subtasks, concurrency=max(len(layer) for layer in self.layers))
        assert goal.plan is not None
        text = f"Look at the market {self.mark}{run}"
        return goal.model_copy(
            update={"text": text, "plan": goal.plan.model_copy(update={"goal": text})}
        )

    @property
    def ideal(self) -> float:
        """Seconds of the longest path through a run, synthesis and critique included."""
        path: dict[str, float] = {}
        seconds = [each for layer in self.layers for each in layer]
        for step, own in zip(self.plan(0), seconds, strict=True):
            path[step.id] = own + max((path[each] for each in step.after), default=0.0)
        return max(path.values()) + 2 * self.ending

    def rules(self) -> list[dict[str, Any]]:
        """What makes a simulator take so long. Last subtasks first: a prompt also holds what the
        subtasks before it found.
        """
        market = f"the market {self.mark}"
        rules: list[dict[str, Any]] = [
            {"call": call, "text": market, "latency": [self.ending] * 2}
            for call in ("synthesize", "critique")
        ]
        seconds = [each for layer in self.layers for each in layer]
        if len(set(seconds)) == 1:
            return [*rules, {"call": "work", "text": market, "latency": seconds[:1] * 2}]
        of_parts = [
            {"call": "work", "text": f"part {number} of {market}", "latency": [each] * 2}
            for number, each in enumerate(seconds, 1)
        ]
        return rules + of_parts[::-1]


def fixed_parts() -> dict[str, dict[str, Any]]:
    """Call -> what all its requests have in common, as this project asks, for the other engines."""
    kinds = {kind.name: kind for kind in MODEL_KINDS}
    bodies = {}
    for call in MAIN:
        policy, prompt = kinds[call].policy, HOME / "prompts" / f"{kinds[call].prompt}.md"
        request = ModelRequest(
            model=f"claude-{policy.tier}-5-5",
            system=prompt.read_text(encoding="utf-8").strip(),
            prompt="",
            schema=kinds[call].answer.model_json_schema(),
            max_output=policy.max_output,
            effort=policy.effort,
        )
        bodies[call] = shape(request, FULL)
        # The other engines bring their own.
        del bodies[call]["messages"], bodies[call]["stream"]
    return bodies


def script(loads: Sequence[Load]) -> dict[str, Any]:
    """One script for all these loads."""
    return {"rules": [rule for load in loads for rule in load.rules()]}


def uneven(
    layers: int, width: int, shortest: float, longest: float
) -> tuple[tuple[float, ...], ...]:
    """Seconds between these two, mixed so that no layer is one of short or of long subtasks."""
    count = layers * width
    seconds = [
        round(shortest + (number * 7 % count) / (count - 1) * (longest - shortest), 3)
        for number in range(1, count + 1)
    ]
    return tuple(tuple(seconds[first : first + width]) for first in range(0, count, width))


LOADS = [
    Load("A", "20 subtasks of 1.0 s", ((1.0,) * 20,), ending=0.3),
    Load("B", "24 uneven subtasks in 4 layers", uneven(4, 6, 0.25, 1.4), ending=0.3),
    Load("C", "200 subtasks of 0.5 s in one run", ((0.5,) * 200,), shown="seconds"),
    Load("D", "100 runs of 6 subtasks, answered at once", ((0.0,) * 6,), runs=100, shown="runs/s"),
]
SMALL = [
    Load("A", "2 subtasks of 0.1 s", ((0.1, 0.1),), ending=0.1),
    Load("B", "4 uneven subtasks in 2 layers", uneven(2, 2, 0.1, 0.2), ending=0.1),
    Load("C", "5 subtasks of 0.1 s in one run", ((0.1,) * 5,), shown="seconds"),
    Load("D", "2 runs of 2 subtasks, answered at once", ((0.0, 0.0),), runs=2, shown="runs/s"),
]
"""The same shapes, small enough to see in seconds that all of it runs."""
WARM_UP = Load("W", "a run that is not measured", ((0.0,),))
