"""Calls of tools that a person must approve: which they are, and how a segment ends and begins with
them. Pure.

A turn's other calls are made first. Then the segment ends with the pending calls in its Resume, so
that waiting for a person holds no money and no slot; the next one begins with the decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from holdfast.agent.state import AgentState
from holdfast.calls.turn import AgentGoal, Decision, ToolResult, ToolUse, Turn
from holdfast.contracts.policies import MOST_TOOL_CALLS
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount, Ledger

NOBODY = (
    "This call was not made: a person must approve each call of this tool, and nobody can be asked"
    " in this run. Go on without it."
)
TOO_LONG = (
    "This call was not made: a person must approve it, and its arguments are too long to be read."
    " Make them shorter."
)
UNKNOWN = (
    "A person approved this call, and what ran it was lost: whether it has taken effect is not"
    " known. It is not run again. Find out before you repeat it."
)


def first_state(goal: AgentGoal, now: datetime) -> AgentState:
    """Return the state in which a segment begins, with a person's decisions so far."""
    cap = Amount(goal.slice.dollars, goal.slice.calls, goal.slice.tokens)
    state = AgentState(goal, now, Ledger(cap), goal.resume)
    if not goal.resume.pending:
        return state
    decided = {each.use_id: each for each in goal.decisions}
    back = {each.use_id: each for each in goal.resume.results}
    results, approved = dict[int, ToolResult](), list[int]()
    for place, use in enumerate(goal.resume.pending, start=1):
        decision = decided.get(use.id)
        if use.id in back:
            results[place] = back[use.id]
        elif decision is not None and decision.verdict == "approved":
            approved.append(place)
        elif decision is not None:
            results[place] = error(use, _refusal(decision))
    unknown = [key for key, each in decided.items() if each.verdict == "unknown"]
    may_have_run = tuple(use for use in goal.resume.pending if use.id in unknown)
    resume = goal.resume.model_copy(update={"pending": (), "results": ()})
    state = replace(state, resume=resume, approved=tuple(approved), may_have_run=may_have_run)
    return gather_results(replace(state, uses=goal.resume.pending, results=results))


def _refusal(decision: Decision) -> str:
    if decision.verdict == "unknown":
        return UNKNOWN
    why = f": {decision.why}" if decision.why else "."
    return f"A person declined this call{why}"


def answer_unaskable(state: AgentState, turn: Turn) -> Mapping[int, ToolResult]:
    """Return results for calls that need approval and that no person is asked about, by place."""
    placed = enumerate(turn.uses, start=1)
    told = {
        place: error(use, why)
        for place, use in placed
        if use.name in state.goal.role.approval and (why := _why_unaskable(state, turn, use))
    }
    return {place: each for place, each in told.items() if place <= MOST_TOOL_CALLS}


def _why_unaskable(state: AgentState, turn: Turn, use: ToolUse) -> str:
    """Return why no person is asked about a call; empty if one is."""
    if not state.goal.ask_people:
        return NOBODY
    return turn.unfit.get(use.id, "") or ("" if use.shown else TOO_LONG)


def must_wait(state: AgentState, place: int, use: ToolUse) -> bool:
    """True if a person must approve a call before it is made."""
    return use.name in state.goal.role.approval and place not in state.approved


def put_off(state: AgentState) -> AgentState:
    """Keep calls without a result for the next segment."""
    back = tuple(state.results[place] for place in sorted(state.results))
    resume = state.resume.model_copy(update={"pending": state.uses, "results": back})
    return replace(state, resume=resume)


def gather_results(state: AgentState) -> AgentState:
    """Pass all results of a turn back together, in the order of its calls, once all are there."""
    if len(state.results) < len(state.uses):
        return state
    ordered = tuple(state.results[place] for place in sorted(state.results))
    failed = state.resume.failed_calls + sum(each.is_error for each in ordered)
    resume = state.resume.model_copy(update={"results": ordered, "failed_calls": failed})
    return replace(state, resume=resume, uses=(), results={}, approved=())


def error(use: ToolUse, text: str) -> ToolResult:
    """Return an error for the model, as the result of a call that stored nothing."""
    size = len(text.encode())
    return ToolResult(use_id=use.id, digest="", size=size, is_error=True, text=text)
