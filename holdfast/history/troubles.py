"""Reads from Temporal's errors what a failed activity means for the supervisor. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    RetryState,
    TerminatedError,
    TimeoutError,
    TimeoutType,
)

from holdfast.contracts import Bill, Contract, Report, Span, Unreached
from holdfast.contracts.errors import TookTooLong, WorkerDied, trouble_of
from holdfast.contracts.policies import Options
from holdfast.state.events import Trouble
from holdfast.state.moves import StopReason

Detail = TypeVar("Detail", bound=Contract)
FIXED: dict[type[BaseException], str] = {CancelledError: "cancelled", TerminatedError: "terminated"}
"""Words for errors that have their own in the SDK and none in a history."""
LATE = "it took longer than it may, and was given up"
KILLS = "each worker that tried it died or fell silent, so it was given up"
REFUSALS: dict[str, StopReason] = {"BadGoal": "refused", "CapTooSmall": "small cap"}


def classify_trouble(
    error: ActivityError, started: datetime, options: Options, cut_at: datetime | None = None
) -> Trouble:
    """Return what is known of a model call without a result, scheduled at `started` with these
    options.
    """
    cause, at = error.cause, find_end(error, started, options)
    if isinstance(cause, CancelledError):
        if is_unsent(error) or error.started_event_id or _is_young(started, options, cut_at):
            # Had the request left, the seam would have said PossiblyBilled.
            return Trouble("cancelled", "cut before it was sent", at=at)
        return Trouble("cancelled", "cut while no attempt at it ran", Bill(calls=1), at)
    if isinstance(cause, TimeoutError) and _never_left(error, cause):
        return Trouble("not_billed", f"nobody took it: {describe_error(error)}", at=at)
    if not isinstance(cause, ApplicationError):
        # A timeout: nobody knows how far the call came.
        late = isinstance(cause, TimeoutError) and cause.type == TimeoutType.START_TO_CLOSE
        return Trouble("possibly_billed", describe_error(error), Bill(calls=1), at, too_long=late)
    bill = find_detail(cause.details, Bill) or Bill()
    unreached, late = find_detail(cause.details, Unreached), cause.type == TookTooLong.__name__
    return Trouble(
        trouble_of(cause.type), describe_error(error), bill, at, unreached, too_long=late
    )


def is_unsent(error: ActivityError) -> bool:
    """True if the activity was cut in the workflow task that asked for it: no event schedules it,
    and no worker was ever given it.
    """
    return isinstance(error.cause, CancelledError) and not error.scheduled_event_id


def _is_young(started: datetime, options: Options, cut_at: datetime | None) -> bool:
    """True if no attempt can have been lost before the cut: a loss shows by missed heartbeats. The
    server ends what waits for its next attempt by itself, and tells nothing of those before.
    """
    return cut_at is not None and cut_at - started < options["heartbeat_timeout"]


def _never_left(error: ActivityError, cause: TimeoutError) -> bool:
    """True if a call ended in its queue: no attempt at it runs, and none that ran was paid."""
    if error.started_event_id > 0:
        return False
    last = cause.__cause__
    return last is None or (isinstance(last, ApplicationError) and last.type == "NotBilled")


def find_end(error: ActivityError, started: datetime, options: Options) -> datetime | None:
    """Return when an activity ended without a result, as it said itself or as its timeouts tell;
    None: nobody knows.
    """
    cause = error.cause
    if isinstance(cause, ApplicationError):
        span = find_detail(cause.details, Span)
        return span.ended if span else None
    if not isinstance(cause, TimeoutError):
        return None
    limit = {
        TimeoutType.HEARTBEAT: options["heartbeat_timeout"],
        TimeoutType.START_TO_CLOSE: options["start_to_close_timeout"],
    }.get(cause.type or TimeoutType.SCHEDULE_TO_CLOSE, options["schedule_to_close_timeout"])
    return started + limit if limit else None


def find_detail(details: Sequence[Any], kind: type[Detail]) -> Detail | None:
    """Return the detail of this shape; None if there is none. Details arrive as plain JSON; an old
    one may lack fields.
    """
    for each in details:
        if isinstance(each, dict) and not set(each).isdisjoint(kind.model_fields):
            try:
                return kind.model_validate(each)
            except ValidationError:
                continue
    return None


def describe_error(error: ActivityError | ChildWorkflowError) -> str:
    """Return the innermost reason, as one line."""
    cause = _innermost(error)
    for kind, said in FIXED.items():
        if isinstance(cause, kind):
            return said
    if isinstance(cause, TimeoutError) and cause.type == TimeoutType.START_TO_CLOSE:
        return LATE
    if _kills(error, cause):
        return KILLS
    text = cause.message if isinstance(cause, ApplicationError) else str(cause)
    return " ".join(text.split())[:500] or type(cause).__name__


def _kills(error: ActivityError | ChildWorkflowError, cause: BaseException) -> bool:
    """True if an activity was given up after its last attempt, too, was lost with its worker."""
    if error.retry_state != RetryState.MAXIMUM_ATTEMPTS_REACHED:
        return False
    if isinstance(cause, ApplicationError):
        return cause.type == WorkerDied.__name__
    return isinstance(cause, TimeoutError) and cause.type == TimeoutType.HEARTBEAT


def classify_refusal(error: ActivityError) -> StopReason:
    """Return whether `prepare` refused the goal, refused its cap, or could not do its work."""
    cause = _innermost(error)
    kind = cause.type if isinstance(cause, ApplicationError) else ""
    return REFUSALS.get(kind or "", "unprepared")


def find_report(cause: BaseException | None) -> Report | None:
    """Return the report of a run that failed, from the error that closed its workflow."""
    return find_detail(cause.details, Report) if isinstance(cause, ApplicationError) else None


def spent_nothing(cause: BaseException | None) -> bool:
    """True if what closed a run below came before it could ask anything: an activity's error closes
    a run only when `prepare` failed, and as cancelled it closes only before its first step.
    """
    return isinstance(cause, ActivityError | CancelledError)


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
