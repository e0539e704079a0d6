"""What the agents of a plan of lenses are ordered to do."""

from __future__ import annotations

from holdfast.contracts import PinnedInput, Plan
from holdfast.text import pluralize

REVIEW_ORDER = (
    "Review the repository, first what can do the most harm. Report at most ten defects, the most"
    " serious first; what you looked at and found sound is no remark."
)
OF_A_CHANGE = (
    "Review what differs from {base}: {files}, {added} added, {deleted} deleted. Report at"
    " most ten defects, the most serious first; what you looked at and found sound is no remark."
)


def order_review(plan: Plan, pinned: PinnedInput) -> Plan:
    """Return a plan of lenses whose agents are ordered to review what differs, where something
    does. What its author says of it is material, and no part of the order.
    """
    change = pinned.change
    if change is None:
        return plan
    order = OF_A_CHANGE.format(
        base=pinned.against,
        files=pluralize(change.files, "file"),
        added=pluralize(change.added, "line"),
        deleted=f"{change.deleted:,}",
    )
    subtasks = tuple(
        each.model_copy(update={"instruction": order}) if each.instruction == REVIEW_ORDER else each
        for each in plan.subtasks
    )
    return plan.model_copy(update={"subtasks": subtasks})
