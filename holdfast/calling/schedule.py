"""Timeouts and retries of what is in flight. Pure."""

from __future__ import annotations

from holdfast.calling import gathering, outages
from holdfast.calls import KINDS
from holdfast.calls.ping import PING
from holdfast.calls.ping import SECONDS as PING_SECONDS
from holdfast.calls.reach import REACH
from holdfast.calls.work import exchange_seconds
from holdfast.contracts import Call, policies
from holdfast.contracts.policies import EXAMINE, PREPARE, Options
from holdfast.state.moves import (
    Ask,
    Examine,
    Flying,
    Prepare,
    StartAgent,
    StartMap,
    StartTeam,
)
from holdfast.state.run import State


def options_of(state: State, move: Flying) -> Options | None:
    """Return Temporal's options for the activity of a move; None for a workflow below."""
    match move:
        case Prepare():
            # For a model it waits, like a call, until a worker asks models.
            total = policies.PREPARE_PATIENCE if state.goal.use_models else 0
            plan = state.goal.plan
            # Of a playbook's plan nothing is known here.
            scans = any(each.map for each in plan.subtasks) if plan else bool(state.goal.playbook)
            most = policies.SCAN_SECONDS if scans else policies.PREPARE_SECONDS
            return PREPARE.options(most, total=total)
        case StartTeam() | StartAgent() | StartMap():
            return None
        case Examine(material=material):
            # The lens ends itself at the limit and says so; this only catches one that does not.
            return EXAMINE.options(material.timeout_seconds + policies.LENS_MARGIN_SECONDS)
        case Ask(call=call) if call.kind == "reach":
            left = outages.seconds_left(state)
            return REACH.policy.options(min(left, policies.REACH_ATTEMPT_SECONDS), total=left)
        case Ask(call=call) if call.kind == "ping":
            seconds = PING_SECONDS + policies.CALL_MARGIN_SECONDS
            return PING.policy.options(seconds, total=max(outages.seconds_left(state), seconds))
        case Ask(call=call):
            attempts = 0 if call.model else policies.MOST_ATTEMPTS
            seconds = _seconds(state, call) + policies.CALL_MARGIN_SECONDS
            return KINDS[call.kind].policy.options(seconds, attempts=attempts)


def _seconds(state: State, call: Call) -> float:
    """Return the seconds for the exchange with the model: for a subtask its plan's or the caller's
    limit, otherwise what its room needs.
    """
    if call.by_batch:
        return policies.BATCH_SECONDS
    if call.kind == "work":
        subtask = state.work[call.subtask_id].subtask
        limit = gathering.timeout_of(state, subtask)
        return exchange_seconds(subtask, limit, call.max_output)
    return max(policies.CALL_SECONDS, call.max_output // policies.OUTPUT_TOKENS_PER_SECOND)
