"""A thousand subtasks through the rules alone: what an event costs does not grow with them."""

from __future__ import annotations

import sys
from collections import deque
from datetime import timedelta
from decimal import Decimal

import pytest

from driving import BRIEFING, START, Drive, subtask
from holdfast.calls.critique import Critique
from holdfast.calls.replan import ReplanMaterial, Standing, replan_prompt, select_shown
from holdfast.contracts import Bill, Contract, Draft, Goal, Limits, Plan, Reply, Span, Synthesis
from holdfast.rules.next_moves import next_moves
from holdfast.rules.reducer import apply
from holdfast.rules.timers import timers
from holdfast.state.events import Answered, Event, Prepared, Started
from holdfast.state.moves import Ask
from holdfast.state.run import State, first_state


class Driven:
    """A run whose calls are answered at once, in the order in which they were asked."""

    def __init__(self, count: int, *, layers: int = 1) -> None:
        width = count // layers
        subtasks = tuple(
            subtask(f"t{n}", *([f"t{n - width}"] if n >= width else []), tier="haiku")
            for n in range(count)
        )
        limits = Limits(dollars=10_000, model_calls=3_000, tokens=10**9, concurrency=500)
        self.plan = Plan(goal="Compare", subtasks=subtasks)
        goal = Goal(text="Compare", plan=self.plan, use_models=True, limits=limits)
        self.asked: deque[Ask] = deque()
        self.events = 0
        self.state: State = first_state("run", goal, START, "first")
        self._go_on()
        self._take(Prepared(BRIEFING))
        while self.state.phase != "closed":
            ask = self.asked.popleft()
            at = self.state.now + timedelta(milliseconds=1)
            paid = Bill(calls=1, dollars=Decimal("0.001")) if ask.call.model else Bill()
            reply = Reply[Contract](
                value=self._answer(ask), bill=paid, span=Span(started=at, ended=at)
            )
            self._take(Answered(ask, reply))

    def _take(self, event: Event) -> None:
        self.state = apply(self.state, event)
        self.events += 1
        self._go_on()

    def _go_on(self) -> None:
        for move in next_moves(self.state):
            self.state = apply(self.state, Started(move))
            if isinstance(move, Ask):
                self.asked.append(move)
        timers(self.state)

    def _answer(self, ask: Ask) -> Contract:
        match ask.call.kind:
            case "plan":
                return self.plan
            case "work":
                return Draft(content=f"found by {ask.call.subtask_id}", confidence=90)
            case "synthesize":
                return Synthesis(answer="All.", confidence=90)
            case _:
                return Critique(issues=())


def steps_an_event(count: int, layers: int) -> float:
    """Calls of functions, those of C included, that the rules make for one event of a run."""
    steps = 0

    def counted(_frame: object, what: str, _argument: object) -> None:
        nonlocal steps
        steps += what in ("call", "c_call")

    sys.setprofile(counted)
    try:
        run = Driven(count, layers=layers)
    finally:
        sys.setprofile(None)
    assert len(run.state.findings) == count
    return steps / run.events


@pytest.mark.parametrize(
    "layers", [pytest.param(1, marks=pytest.mark.long), 20], ids=["all at once", "in twenty layers"]
)
@pytest.mark.long
def test_an_event_of_a_thousand_subtasks_takes_hardly_more_steps_than_one_of_a_hundred(
    layers: int,
) -> None:
    assert steps_an_event(1_000, layers) < 1.5 * steps_an_event(100, layers)


def test_whoever_changes_a_plan_of_a_thousand_is_shown_what_went_wrong_and_what_needs_it() -> None:
    subtasks = tuple(subtask(f"t{n}", *(["t500"] if n in (3, 998) else [])) for n in range(1_000))
    standings = tuple(
        Standing(subtask_id=each.id, status="failed" if each.id == "t500" else "complete")
        for each in subtasks
    )
    plan = Plan(goal="Compare", subtasks=subtasks)
    told = ReplanMaterial(goal="Compare", plan=plan, standings=standings, trouble="t500", roles=())
    assert [each.id for each in select_shown(told)] == ["t3", "t500", "t998"]
    prompt = replan_prompt(told)
    assert "997 more subtasks are not shown: 997 complete." in prompt and len(prompt) < 2_000


def test_subtasks_with_a_length_of_their_own_are_asked_side_by_side() -> None:
    short = [subtask(id).model_copy(update={"max_output": 1_000}) for id in ("t1", "t2", "t3")]
    drive = Drive(None)
    ready = Plan(goal="Compare", subtasks=tuple(short))
    (ask,) = [each for each in drive.in_flight if isinstance(each, Ask)]
    drive.put(Answered(ask, Reply[Plan](value=ready, bill=Bill(calls=1, dollars=Decimal("0.01")))))
    assert [each.subtask_id for each in drive.in_flight] == ["t1", "t2", "t3"]
