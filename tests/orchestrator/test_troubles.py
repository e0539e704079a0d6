"""What a model call counts that was cut: nothing if it surely never left, else its reservation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.exceptions import ActivityError, CancelledError

from driving import START
from orchestrator.policies import POLICIES
from orchestrator.recorded.troubles import trouble

OPTIONS = POLICIES["work"].options(60)


def cut(*, after: float | None, started: int = 0) -> int:
    """Calls that are counted of one that was cut so long after it was scheduled."""
    error = ActivityError(
        "cut", scheduled_event_id=5, started_event_id=started, identity="", activity_type="work",
        activity_id="work-t1-1", retry_state=None,
    )  # fmt: skip
    error.__cause__ = CancelledError("cancelled")
    at = None if after is None else START + timedelta(seconds=after)
    found = trouble(error, START, OPTIONS, at)
    assert found.kind == "cancelled"
    return found.bill.calls


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
