"""Between the last finding and the end of a run: digests ahead."""

from __future__ import annotations

from typing import Any

import pytest

from driving import Drive, subtask
from holdfast.contracts import Plan
from outcomes import AMPLE, draft, end, in_flight

LONG = "All work and no play. " * 2_000


def plan_of(*subtasks: Any, **fields: Any) -> Plan:
    return Plan(goal="Compare", subtasks=tuple(subtasks), **fields)


def ends_long(run: Drive, id: str) -> None:
    end(run, f"work-{id}-1", value=draft(id).model_copy(update={"content": LONG}))


def test_a_long_finding_is_digested_while_the_last_subtasks_are_at_work() -> None:
    run = Drive(plan_of(subtask("a"), subtask("b")), AMPLE)
    ends_long(run, "a")
    assert in_flight(run) == ["work-b-1", "digest-a-1"]
    end(run, "digest-a-1")
    end(run, "work-b-1")
    assert in_flight(run) == ["synthesize-1"], "it is not digested again"
    assert run.finding("a").digest


@pytest.mark.parametrize(
    ("subtasks", "concurrency"),
    [
        ((subtask("a"), subtask("b"), subtask("c")), 2),
        ((subtask("a"), subtask("b"), subtask("c", "b")), 5),
    ],
)
def test_what_has_yet_to_start_comes_before_a_digest_for_the_answer(
    subtasks: Any, concurrency: int
) -> None:
    run = Drive(plan_of(*subtasks), AMPLE.model_copy(update={"concurrency": concurrency}))
    ends_long(run, "a")
    assert not any(each.startswith("digest") for each in in_flight(run))
    end(run, "work-b-1")
    assert "work-c-1" in in_flight(run) and "digest-a-1" in in_flight(run)


def test_no_attempt_is_digested_that_may_be_put_aside() -> None:
    run = Drive(plan_of(subtask("a"), subtask("b"), choices=(("a", "b"),)), AMPLE)
    ends_long(run, "a")
    assert in_flight(run) == ["work-b-1"]
