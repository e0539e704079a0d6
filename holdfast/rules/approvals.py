"""Calls of tools that a person must approve, from the run's side. Pure.

An agent whose message holds such calls ends its segment: its subtask waits without money and
without a slot. Once each call is decided on, the next segment makes those that were approved and
tells the model about the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from holdfast.calls.turn import Decision
from holdfast.contracts import Order, policies
from holdfast.contracts.replacing import replace
from holdfast.state.edits import update
from holdfast.state.parts import CallAsked, Progress
from holdfast.state.run import State

WHY_LETTERS = 2_000
"""Characters of a person's reason that the model reads."""
NOBODY_CAME = "nobody decided on it in time"


def ask(state: State, subtask_id: str) -> State:
    """Let a subtask wait until a person has decided on each pending call of its agent."""
    resume = state.work[subtask_id].resume
    back = [each.use_id for each in resume.results]
    uses = [use for use in resume.pending if use.id not in back]
    calls = tuple(
        CallAsked(number, use) for number, use in enumerate(uses, start=state.calls_asked + 1)
    )
    state = replace(state, calls_asked=state.calls_asked + len(calls))
    return update(
        state,
        subtask_id,
        lambda each: replace(each, stage="approval", calls=calls, calls_since=state.now),
    )


def waiting_calls(state: State) -> tuple[tuple[Progress, CallAsked], ...]:
    """Return the calls that people are asked about now, each with its subtask."""
    return tuple(
        (progress, call)
        for progress in (state.work[key] for key in state.work.asking)
        if progress.stage == "approval"
        for call in progress.calls
        if call.decision is None
    )


def refusal(state: State, order: Order) -> str:
    """Return why there is nothing to decide on; empty if there is."""
    if _find_call(state, order) is not None:
        return ""
    return f"no call {order.call or ''}".strip() + f" waits for approval{hint(state)}"


def hint(state: State) -> str:
    """Return the numbers of the waiting calls, as an addition to a refusal."""
    numbers = [str(call.number) for _, call in waiting_calls(state)]
    many = len(numbers) != 1
    return f"; what waits: call{'s' * many} {', '.join(numbers)}" if numbers else ""


def describe_call(state: State, order: Order) -> str:
    """Return the waiting call that an order is about, and whose it is; empty for other orders."""
    found = _find_call(state, order) if order.call else None
    return f"{found[0].subtask.id}: {found[1].text}" if found else ""


def _find_call(state: State, order: Order) -> tuple[Progress, CallAsked] | None:
    return next((each for each in waiting_calls(state) if each[1].number == order.call), None)


def decide(state: State, order: Order, verdict: Literal["approved", "declined"]) -> State:
    """Decide on a call. It is made, or the model told why not, once all of its message are."""
    found = _find_call(state, order)
    assert found is not None, "refused when nothing waits"
    progress, asked = found
    why = order.text.strip()[:WHY_LETTERS]
    decision = Decision(use_id=asked.use.id, verdict=verdict, why=why, by=order.by)
    return _decide(
        state, progress.subtask.id, lambda call: decision if call.number == asked.number else None
    )


def expire(state: State, subtask_id: str) -> State:
    """Decline the undecided calls of a subtask because nobody came in time, and note it."""
    left = [call for _, call in waiting_calls(state) if call in state.work[subtask_id].calls]
    hours = policies.PERSON_PATIENCE.total_seconds() / 3_600
    notes = tuple(
        f"Nobody decided on call {call.number} of {subtask_id} ({call.use.name}) within {hours:.0f}"
        " hours: it was not made."
        for call in left
    )
    state = replace(state, notes=(*state.notes, *notes))
    return _decide(
        state,
        subtask_id,
        lambda call: Decision(use_id=call.use.id, verdict="declined", why=NOBODY_CAME),
    )


def mark_unknown(state: State, subtask_id: str) -> State:
    """Mark approved calls that a lost segment may have made: none is made again."""

    def lost(call: CallAsked) -> CallAsked:
        if call.decision is None or call.decision.verdict != "approved":
            return call
        return replace(call, decision=call.decision.model_copy(update={"verdict": "unknown"}))

    return update(state, subtask_id, lambda each: replace(each, calls=tuple(map(lost, each.calls))))


def _decide(
    state: State, subtask_id: str, decision: Callable[[CallAsked], Decision | None]
) -> State:
    """Decide on calls; with the last one the agent goes on."""

    def each(progress: Progress) -> Progress:
        calls = tuple(
            replace(call, decision=call.decision or decision(call)) for call in progress.calls
        )
        left = any(call.decision is None for call in calls)
        return replace(progress, calls=calls, stage="approval" if left else "work")

    return update(state, subtask_id, each)


def list_unasked(state: State) -> tuple[str, ...]:
    """Return which calls, by which roles, a run that asks nobody goes without."""
    if state.goal.ask_people:
        return ()
    roles = {progress.subtask.role: None for progress in state.work.values()}
    return tuple(
        f"calls of {', '.join(card.approval)} by {card.name}: a person must approve each, and this"
        " run asks nobody (--ask)"
        for card in state.brief.roles
        if card.name in roles and card.approval
    )
