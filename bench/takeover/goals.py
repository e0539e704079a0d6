"""The runs of the takeover measurement: what each is about, and what people say to it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.instruments.deployment import part, planned
from holdfast.contracts import Approval, Goal, Limits, Order

WIDTH = 5
LAYERS = 3
"""Each subtask but those of the last layer has one that needs it."""
LAST = WIDTH
"""Place in its layer of the subtask that ends just before the others."""
Said = tuple[str, Order]
"""Name of an Update, and its argument."""


@dataclass(frozen=True)
class Kind:
    """One kind of run. `flaws` are the simulator's answers by number of the subtask."""

    name: str
    orders: tuple[Said, ...] = ()
    """Said around each takeover, in random order; what makes no sense by then is refused."""
    ending: tuple[Said, ...] = ()
    """Said at the end until the run closes, so that none waits for a person forever."""
    flaws: tuple[tuple[int, str], ...] = ()
    shaped: Callable[[Goal], Goal] = lambda goal: goal

    def goal(self, run: str) -> Goal:
        """Return its goal, in words that no other run has."""
        subtasks = tuple(
            part(number, *([f"t{number - WIDTH}"] if number > WIDTH else [])).model_copy(
                update={"instruction": f"{about(number, run)}: say what matters most about it"}
            )
            for number in range(1, LAYERS * WIDTH + 1)
        )
        goal = planned(subtasks, concurrency=WIDTH, replans=0, tries_per_subtask=2)
        return self.shaped(goal)

    def rules(self, run: str) -> list[dict[str, Any]]:
        """What the simulator does differently for this run: the first answer has the flaw."""
        return [
            {"call": "work", "text": about(number, run), "answer": flaw, "first": 1}
            for number, flaw in self.flaws
        ]


def about(number: int, run: str) -> str:
    """Return which part of which run it is, as its prompts say."""
    return f"Look at part {number} of market {run}"


def to(subtask: int, text: str = "") -> Order:
    """An order about one subtask."""
    return Order(subtask_id=f"t{subtask}", text=text, by="bench")


def limited(**limits: Any) -> Callable[[Goal], Goal]:
    """The same goal with other limits."""

    def shaped(goal: Goal) -> Goal:
        given = goal.limits.model_dump() | limits
        return goal.model_copy(update={"limits": Limits.model_validate(given)})

    return shaped


def changed(**fields: Any) -> Callable[[Goal], Goal]:
    """The same goal with other fields."""
    return lambda goal: goal.model_copy(update=fields)


def raised(dollars: int, model_calls: int) -> Order:
    """An order for a higher cap."""
    return Order(limits=Limits(dollars=dollars, model_calls=model_calls), by="bench")


KINDS = (
    Kind("results alone"),
    Kind(
        "pauses",
        orders=(("pause", Order()), ("resume", Order()), ("raise_cap", raised(2_000, 2_000))),
        ending=(("resume", Order()),),
    ),
    Kind(
        "ended by hand",
        orders=(("skip", to(3)), ("cancel_subtask", to(8)), ("skip", to(12)), ("skip", to(7))),
    ),
    Kind(
        "asks people",
        orders=(("answer", to(2, "The first of the two.")), ("answer", to(9, "The second."))),
        ending=(("answer", to(2, "Both.")), ("answer", to(9, "Both."))),
        flaws=((2, "escalation"), (9, "escalation")),
        shaped=changed(ask_people=True),
    ),
    Kind(
        "failures",
        orders=(
            ("retry", to(1, "Look again at part one, in other words")),
            ("supply", to(4, "Found by hand.")),
            ("retry", to(8, "Look again at part eight, in other words")),
        ),
        flaws=((1, "failed"), (4, "failed"), (8, "failed")),
        shaped=limited(tries_per_subtask=1),
    ),
    # Half of a deadline is kept for the synthesis.
    Kind("deadline at the first takeover", shaped=limited(deadline_seconds=9)),
    Kind("deadline at the second takeover", shaped=limited(deadline_seconds=19)),
    Kind(
        "approval",
        orders=(("approve", Order(by="bench")), ("pause", Order())),
        ending=(("approve", Order()), ("resume", Order())),
        shaped=changed(approval=Approval(when="always")),
    ),
    Kind(
        "short of calls",
        orders=(("raise_cap", raised(1_000, 20)), ("raise_cap", raised(1_000, 100))),
        ending=(("raise_cap", raised(1_000, 200)),),
        shaped=lambda goal: changed(wait_for_raise=True)(limited(model_calls=9)(goal)),
    ),
)
