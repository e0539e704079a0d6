"""What an activity that failed means for the supervisor: one pure reading of Temporal's errors."""

from __future__ import annotations

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
)

from orchestrator.contracts import Bill
from orchestrator.events import Trouble, TroubleKind

KINDS: dict[str, TroubleKind] = {
    "NotBilled": "not_billed",
    "PossiblyBilled": "possibly_billed",
    "OverReservation": "over_reservation",
    "CallRefused": "refused",
    "AuthenticationRefused": "stopping",
    "SpendLimitReached": "stopping",
}


def trouble(error: ActivityError, *, cut: bool) -> Trouble:
    """What is known of a model call without a result. `cut`: the supervisor had cancelled it."""
    cause = error.cause
    if isinstance(cause, CancelledError):
        # Had the request left, the seam would have said PossiblyBilled.
        return Trouble("cancelled", "cut before it was sent")
    if not isinstance(cause, ApplicationError):
        # A timeout: nobody knows how far the call came.
        return Trouble("cancelled" if cut else "possibly_billed", words(error), Bill(calls=1))
    kind = KINDS.get(cause.type or "", "refused")
    bill = Bill.model_validate(cause.details[0]) if cause.details else Bill()
    return Trouble("cancelled" if cut else kind, words(error), bill)


def words(error: ActivityError | ChildWorkflowError) -> str:
    """The innermost reason, as one line."""
    cause = _innermost(error)
    text = cause.message if isinstance(cause, ApplicationError) else str(cause)
    return " ".join(text.split())[:500] or type(cause).__name__


def refused(error: ChildWorkflowError) -> bool:
    """Whether a child was refused by `prepare`, before it could spend anything."""
    cause = _innermost(error)
    return isinstance(cause, ApplicationError) and cause.type == "BadGoal"


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
