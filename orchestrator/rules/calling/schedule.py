"""How long what is in flight may take: Temporal's options of a move. Pure."""

from __future__ import annotations

from orchestrator import policies
from orchestrator.calls import KINDS
from orchestrator.calls.reach import REACH
from orchestrator.calls.work import WORK
from orchestrator.contracts import LONGEST_CALL_SECONDS, Call
from orchestrator.moves import Ask, Examine, Flying, Prepare, StartAgent, StartTeam
from orchestrator.policies import EXAMINE, PREPARE, Options
from orchestrator.rules import outages
from orchestrator.rules.calling import gathering
from orchestrator.rules.state import State


def options_of(state: State, move: Flying) -> Options | None:
    """Timeouts and retries of the activity that carries out a move; None for a run of its own."""
    match move:
        case Prepare():
            # For a model it waits, like a call, until somebody serves the tier.
            total = policies.PREPARE_PATIENCE if state.goal.use_models else 0
            return PREPARE.options(policies.PREPARE_SECONDS, total=total)
        case StartTeam() | StartAgent():
            return None
        case Examine(material=material):
            # The lens ends itself at the limit and says so; this only catches one that does not.
            return EXAMINE.options(material.timeout_seconds + policies.LENS_MARGIN_SECONDS)
        case Ask(call=call) if call.kind == "reach":
            left = outages.seconds_left(state)
            return REACH.policy.options(min(left, policies.REACH_ATTEMPT_SECONDS), total=left)
        case Ask(call=call):
            attempts = 0 if call.model else policies.FREE_ATTEMPTS
            return KINDS[call.kind].policy.options(_seconds(state, call), attempts=attempts)


def _seconds(state: State, call: Call) -> float:
    """What an agent may take for its subtask the caller says, and within that the plan; twice that
    for an answer that gets twice the room. All other calls take what their room needs.
    """
    if call.kind == "work":
        limit = gathering.timeout_of(state, state.work[call.subtask_id].subtask)
        room = max(call.max_output, 1) / WORK.policy.max_output
        return min(limit * max(room, 1.0), LONGEST_CALL_SECONDS)
    return max(policies.CALL_SECONDS, call.max_output // policies.OUTPUT_TOKENS_PER_SECOND)
