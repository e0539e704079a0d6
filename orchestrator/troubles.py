"""What an activity that failed means for the supervisor: one pure reading of Temporal's errors."""

from __future__ import annotations

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

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


def words(error: ActivityError) -> str:
    """The innermost reason, as one line."""
    cause: BaseException | None = error
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    text = cause.message if isinstance(cause, ApplicationError) else str(cause)
    return " ".join(text.split())[:500] or type(cause).__name__
