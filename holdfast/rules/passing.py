"""Passing over a role for the plan's second one, when waiting for it would take longer than the
work. Pure.

How long a role lets a run wait is judged by what came back in this run alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.contracts import policies
from holdfast.contracts.replacing import replace
from holdfast.rules import repair
from holdfast.state.events import AgentEnded, Answered, Event, Unanswered
from holdfast.state.moves import Ask, PassOver, StartAgent
from holdfast.state.parts import Flight, Progress, Went
from holdfast.state.run import State

LOOKED_BACK = 3
"""Calls per role that are remembered: older ones say little about the next."""
NO_FAULT_OF_ITS = ("cancelled", "over_reservation", "unreachable", "stopping", "allowance")
"""These ends meet calls of any role alike, and say nothing about one."""
ANSWERED = ("answered", "more", "asks")
"""Ends of an agent's segment in which its model has answered."""


@dataclass(frozen=True)
class Wait:
    """What the next call of a role is expected to lose before it brings an answer."""

    seconds: float
    why: str
    """The calls behind it, as the end of "researcher, …"."""


def note_call(state: State, event: Event) -> State:
    """Remember how a call went that comes back with this event."""
    if not isinstance(event, Answered | Unanswered | AgentEnded):
        return state
    flight = state.flights.get(event.move.id)
    progress = state.work.get(event.move.subtask_id)
    if flight is None or flight.cut or progress is None or not _is_work(event.move):
        return state
    call = _call(flight, event, event.at or state.now)
    if call is None:
        return state
    role = progress.subtask.role
    kept = (*state.lately.get(role, ()), call)[-LOOKED_BACK:]
    return replace(state, lately={**state.lately, role: kept})


def _is_work(move: Ask | StartAgent) -> bool:
    return isinstance(move, StartAgent) or move.call.kind == "work"


def _call(flight: Flight, event: Answered | Unanswered | AgentEnded, at: datetime) -> Went | None:
    took = max((at - flight.started).total_seconds(), 0.0)
    match event:
        case Answered():
            span = event.reply.span
            queued = max((span.started - flight.started).total_seconds(), 0.0) if span else 0.0
            return Went(lost=queued, worked=max(took - queued, 0.0))
        case Unanswered():
            trouble = event.trouble
            spared = trouble.unreached is not None or trouble.kind in NO_FAULT_OF_ITS
            return None if spared else Went(lost=took, failed=True)
        case AgentEnded():
            outcome = event.report.outcome if event.report else "lost"
            if outcome in ANSWERED:
                return Went(worked=took)
            return Went(lost=took, failed=True) if outcome == "lost" else None


def wait_of(state: State, role: str) -> Wait:
    """Return the expected wait for a role: what its last calls lost for each answer."""
    calls = state.lately.get(role, ())
    failed = sum(call.failed for call in calls)
    lost = sum(call.lost for call in calls)
    answers = len(calls) - failed
    last = f"last {len(calls)} calls" if len(calls) > 1 else "last call"
    if failed > 1 and not answers:
        return Wait(float("inf"), f"whose {last} brought no answer")
    why = f"whose {last} lost {lost:.0f} s in the queue"
    if failed:
        why = f"whose {last} lost {lost:.0f} s, {failed} of them without an answer"
    return Wait(lost / max(answers, 1), why)


def work_of(state: State, role: str) -> float | None:
    """Return the seconds that an answer of a role took in this run, or of all roles where it gave
    none yet; None before the first answer.
    """
    own = [call.worked for call in state.lately.get(role, ()) if not call.failed]
    every = [call.worked for each in state.lately.values() for call in each if not call.failed]
    known = own or every
    return sum(known) / len(known) if known else None


USUAL_SECONDS = policies.OUTPUT_TOKENS["expected"] / policies.OUTPUT_TOKENS_PER_SECOND
"""Expected time of an answer while this run has none to go by."""


def pass_over(state: State, progress: Progress) -> PassOver | None:
    """Return the move that gives an unbegun subtask to its second role, if that is faster."""
    subtask = progress.subtask
    if not subtask.secondary or progress.former or progress.started is not None:
        return None
    if not state.lately.get(subtask.role):
        return None
    second = repair.second_role(state, progress)
    wait = wait_of(state, subtask.role)
    work = work_of(state, subtask.secondary)
    work = USUAL_SECONDS if work is None else work
    if second is None or second.name != subtask.secondary or wait.seconds <= work:
        return None
    if wait_of(state, second.name).seconds >= wait.seconds:
        return None
    why = f"{subtask.id}: {second.name} does it instead of {subtask.role}, {wait.why}"
    return PassOver(subtask.id, f"{why}; the work itself takes about {max(work, 1):.0f} s.")


def hand_to_second(state: State, move: PassOver) -> State:
    second = repair.second_role(state, state.work[move.subtask_id])
    assert second is not None, "nobody is passed over for nobody"
    state = repair.hand_over(state, move.subtask_id, second, "")
    return replace(state, notes=(*state.notes, move.why))
