"""Passing over a role for the second one that the plan names: who would be waited for longer than
the work takes is not waited for. Pure.
"""

from __future__ import annotations

from holdfast.contracts import policies
from holdfast.contracts.replacing import replace
from holdfast.rules import repair
from holdfast.rules.lately import wait_of, work_of
from holdfast.state.moves import PassOver
from holdfast.state.parts import Progress
from holdfast.state.run import State

USUAL_SECONDS = policies.OUTPUT_TOKENS["expected"] / policies.OUTPUT_TOKENS_PER_SECOND
"""What an answer is taken to need while this run has none to go by."""


def pass_over(state: State, progress: Progress) -> PassOver | None:
    """That the second role does it; None: its own does. Whoever has begun goes on."""
    subtask = progress.subtask
    if not subtask.secondary or progress.former or progress.started is not None:
        return None
    if not state.lately.get(subtask.role):
        return None
    second = repair.second(state, progress)
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
    """The state in which the second role has the subtask, and a note says why."""
    second = repair.second(state, state.work[move.subtask_id])
    assert second is not None, "nobody is passed over for nobody"
    state = repair.hand_over(state, move.subtask_id, second, "")
    return replace(state, notes=(*state.notes, move.why))
