"""What a model call without a result means to its run, and what one counts that was cut: nothing if
it surely never left, else its reservation.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from driving import START
from holdfast.calls.work import WORK
from holdfast.history.troubles import KILLS, classify_trouble, describe_error

OPTIONS = WORK.policy.options(60)


def ended(
    cause: Exception, started: int = 0, retry_state: RetryState | None = None
) -> ActivityError:
    """As Temporal hands an activity's failure to the workflow."""
    error = ActivityError(
        "ended",
        scheduled_event_id=5,
        started_event_id=started,
        identity="",
        activity_type="work",
        activity_id="work-t1-1",
        retry_state=retry_state,
    )
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("NotBilled", "not_billed"),
        ("EndpointUnreachable", "unreachable"),
        ("PossiblyBilled", "possibly_billed"),
        ("OverReservation", "over_reservation"),
        ("CallRefused", "refused"),
        ("AuthenticationRefused", "stopping"),
        ("SpendLimitReached", "stopping"),
        ("AllowanceReached", "allowance"),
        ("BlobLost", "lost"),
        ("ValueError", "refused"),
        (None, "refused"),
    ],
)
def test_an_error_says_by_its_name_what_it_means_to_the_run(type: str | None, kind: str) -> None:
    cause = ApplicationError("why", type=type)
    assert classify_trouble(ended(cause), START, OPTIONS).kind == kind


def cut(*, after: float | None, started: int = 0) -> int:
    """Calls that are counted of one that was cut this long after it was scheduled."""
    error = ended(CancelledError("cancelled"), started)
    at = None if after is None else START + timedelta(seconds=after)
    found = classify_trouble(error, START, OPTIONS, at)
    assert found.kind == "cancelled"
    return found.bill.calls


def test_what_no_event_has_scheduled_never_left_however_late_it_was_cut() -> None:
    error = ended(CancelledError("cancelled"))
    error._scheduled_event_id = 0
    assert classify_trouble(error, START, OPTIONS, START + timedelta(seconds=300)).bill.calls == 0


def test_an_attempt_that_ran_says_itself_what_left() -> None:
    assert cut(after=300, started=9) == 0


def test_what_was_cut_before_an_attempt_can_have_been_lost_counts_nothing() -> None:
    assert cut(after=0) == cut(after=9.9) == 0


@pytest.mark.parametrize("after", [10, 300, None])
def test_what_waited_for_its_next_attempt_may_have_been_sent_by_one_before(
    after: float | None,
) -> None:
    """The server ends it by itself, and tells nothing of a worker that died with it in hand."""
    assert cut(after=after) == 1


@pytest.mark.parametrize(
    "cause",
    [
        ApplicationError("its worker died", type="WorkerDied"),
        TimeoutError("heartbeat", type=TimeoutType.HEARTBEAT, last_heartbeat_details=()),
    ],
)
def test_what_was_given_up_because_each_worker_died_of_it_says_so(cause: Exception) -> None:
    last = ended(cause, retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED)
    assert describe_error(last) == KILLS
    assert describe_error(ended(cause)) != KILLS, "something else ended it"
    own = ended(ApplicationError("no"), retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED)
    assert describe_error(own) == "no"
