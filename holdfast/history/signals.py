"""Understands what others tell a run by Temporal's Signals. Pure.

Anybody can send one: what is not understood is ignored, as are amounts that no call can have, and a
moment that is still to come.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError

from holdfast.contracts import Standstill, Undone
from holdfast.contracts.plans import PlanSoFar
from holdfast.contracts.signals import BEGUN, PLANNED, RESET, STANDSTILL
from holdfast.state.events import LONGEST_NAME, AnswerBegun, PlanGrew, TeamWaits, WasReset
from holdfast.text import one_line


def parse_signal(
    name: str, told: object, at: datetime
) -> WasReset | TeamWaits | AnswerBegun | PlanGrew | None:
    """Return the event of a Signal, taken in at this moment, which is recorded; None: it is not
    understood.
    """
    try:
        if name == RESET:
            undone = Undone.model_validate(told)
            by = one_line(undone.by[: 2 * LONGEST_NAME])[:LONGEST_NAME]
            return WasReset(undone.model_copy(update={"at": min(undone.at, at), "by": by}))
        if name == STANDSTILL:
            word = Standstill.model_validate(told)
            return TeamWaits(word.model_copy(update={"at": min(word.at, at)}))
        if name == BEGUN and isinstance(told, str):
            return AnswerBegun(told, at)
        if name == PLANNED:
            so_far = PlanSoFar.model_validate(told)
            return PlanGrew(so_far.call, so_far.plan, at)
    except ValidationError:
        pass
    return None
