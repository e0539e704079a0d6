"""Models asked by batches, where a whole run may wait. Pure."""

from __future__ import annotations

from holdfast.contracts import Briefing, RoleCard
from holdfast.contracts.errors import BadGoal
from holdfast.ledger.pricing import at_lane


def as_batches(brief: Briefing) -> Briefing:
    """Return a briefing whose models are asked by batches, and paid so. BadGoal where the endpoint
    takes none.
    """
    if not brief.capabilities.batches:
        raise BadGoal("the run is to go by batches, and this endpoint takes none")
    return brief.model_copy(
        update={
            "models": tuple(at_lane(each, "batch") for each in brief.models),
            "planner": brief.planner and at_lane(brief.planner, "batch"),
            "roles": tuple(map(_role, brief.roles)),
        }
    )


def _role(card: RoleCard) -> RoleCard:
    model = card.model and at_lane(card.model, "batch")
    return card.model_copy(update={"model": model}) if model else card
