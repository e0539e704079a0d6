"""The call that works on a subtask, as the money allows it. Pure."""

from __future__ import annotations

from holdfast.calling import gathering
from holdfast.calling.reserving import paid_call, tiers
from holdfast.calls.work import WORK
from holdfast.contracts import Tier
from holdfast.state.moves import Ask
from holdfast.state.parts import Progress
from holdfast.state.run import State


def work_call(state: State, progress: Progress) -> Ask:
    """The next try with its tier's whole room for an answer; where that cannot be paid, with the
    next cheaper tier, unless the role's is fixed; at last with less room. The cheapest of these
    where none can be paid.
    """
    assert progress.tier != "none", "work without a model is a lens's"
    fixed = state.brief.role(progress.subtask.role).fixed_tier
    offered = [progress.tier] if fixed else [*tiers(state.brief, progress.tier)]
    for tier in offered:
        ask = _ask(state, progress, tier)
        if state.ledger.fits(ask.amount):
            return ask
    return _ask(state, progress, offered[-1], smaller=True)


def _ask(state: State, progress: Progress, tier: Tier, *, smaller: bool = False) -> Ask:
    subtask = progress.subtask
    what = "repair" if f"work-{subtask.id}" in state.broken else "work"
    return paid_call(
        state,
        WORK,
        f"{what}-{subtask.id}",
        gathering.for_work(state, progress),
        tier=tier,
        progress=progress,
        role=state.brief.role(subtask.role),
        smaller=smaller,
        most=subtask.max_output,
    )
