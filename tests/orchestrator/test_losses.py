"""What a report says of workers that died under its run: as much as its history knows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowExecutionStatus, WorkflowHistory

from holdfast.client.ended import read_end
from holdfast.client.reading import Look, describe_again
from holdfast.contracts import Bill
from holdfast.history.executions import executions_in
from holdfast.history.fold import Fold
from holdfast.history.losses import Loss, describe_losses, describe_paid_again
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.temporal.connection import data_converter
from holdfast.tracing.steps import TraceStep
from holdfast.tracing.trace import make_steps

HISTORY = Path(__file__).parents[1] / "histories" / "a-planned-run.json"
DIED = "A worker died while this run worked, and another took up what it had in hand"
SILENT = "Nothing was heard of a worker for too long: what it had in hand was begun anew"
FREE = Ledger(cap=Amount(Decimal(1), 9, 99_999))
CENT = Amount(Decimal("0.01"), 1, 100)
PAID = FREE.reserve("a", CENT).settle("a", Bill(calls=1, dollars=CENT.dollars))


def again(event: HistoryEvent, kind: str) -> HistoryEvent:
    """The event, as that of an attempt that followed such a failure."""
    begun = event.activity_task_started_event_attributes
    begun.attempt = 2
    if kind == "heartbeat":
        begun.last_failure.timeout_failure_info.timeout_type = TimeoutType.TIMEOUT_TYPE_HEARTBEAT
    elif kind == "too long":
        late = TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
        begun.last_failure.timeout_failure_info.timeout_type = late
    else:
        begun.last_failure.application_failure_info.type = kind
    return event


def struck(kind: str, activity_id: str) -> list[HistoryEvent]:
    """The events of a recorded run, one of whose activities took a second attempt."""
    events = list(WorkflowHistory.from_json("run", HISTORY.read_text()).events)
    (scheduled,) = (
        each.event_id
        for each in events
        if each.activity_task_scheduled_event_attributes.activity_id == activity_id
    )
    for each in events:
        if each.activity_task_started_event_attributes.scheduled_event_id == scheduled:
            again(each, kind)
    return events


def work() -> str:
    """The id of an activity that works on a subtask of the recorded run."""
    events = WorkflowHistory.from_json("run", HISTORY.read_text()).events
    ids = (each.activity_task_scheduled_event_attributes.activity_id for each in events)
    return next(each for each in ids if each.startswith("work-"))


async def folded(events: list[HistoryEvent]) -> Fold:
    fold = Fold("run", data_converter(None))
    for each in events:
        await fold.take(each)
    return fold


async def looked(events: list[HistoryEvent]) -> Look:
    fold = await folded(events)
    return Look(WorkflowExecutionStatus.COMPLETED, fold.state, fold.report, fold.lost)


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "said"), [("WorkerDied", DIED), ("heartbeat", SILENT)])
async def test_a_worker_that_was_lost_is_a_note_of_the_report(kind: str, said: str) -> None:
    look = await looked(struck(kind, work()))
    assert look.report is not None and look.state is not None
    ((subtask, _),) = look.lost
    assert subtask in look.state.work
    made = read_end("run", look).report
    assert made is not None
    assert made.notes == (*look.report.notes, f"{said} ({subtask}). Nothing was paid again.")


@pytest.mark.anyio
async def test_a_call_whose_answer_was_lost_with_its_worker_is_in_the_note_too() -> None:
    failed = [*WorkflowHistory.from_json("run", HISTORY.read_text()).events]
    ended = next(
        each
        for each in failed
        if each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
        and _id_of(each, failed) == work()
    )
    told = ended.activity_task_completed_event_attributes
    scheduled, started = told.scheduled_event_id, told.started_event_id
    ended.event_type = EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED
    ended.activity_task_failed_event_attributes.scheduled_event_id = scheduled
    ended.activity_task_failed_event_attributes.started_event_id = started
    ended.activity_task_failed_event_attributes.failure.application_failure_info.type = "AnswerLost"
    found = executions_in(failed)
    assert [each.lost for each in found if each.lost] == ["died"]


def _id_of(event: HistoryEvent, events: list[HistoryEvent]) -> str:
    scheduled = event.activity_task_completed_event_attributes.scheduled_event_id
    return events[scheduled - 1].activity_task_scheduled_event_attributes.activity_id


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["too long", "EndpointUnreachable"])
async def test_an_attempt_that_failed_in_another_way_lost_no_worker(kind: str) -> None:
    look = await looked(struck(kind, work()))
    assert look.lost == () and look.besides == ()


@pytest.mark.anyio
async def test_what_a_run_lost_for_no_subtask_is_named_in_a_word() -> None:
    events = struck("WorkerDied", "synthesize-1")
    assert (await looked(events)).lost == (("answer", "died"),)


@pytest.mark.anyio
async def test_the_trace_has_each_loss_and_what_agents_lost_is_in_the_note_too() -> None:
    steps = await make_steps(await folded(struck("WorkerDied", work())), "run")
    (lost,) = [each for each in steps if each.lost]
    assert (lost.name, lost.attempt, lost.lost) == (work(), 2, "died")
    look = await looked([*WorkflowHistory.from_json("run", HISTORY.read_text()).events])
    turn = TraceStep(
        session="run", id="a/1", kind="call", name="turn-1", run="a", subtask="t9", lost="died"
    )
    assert replace(look, turns={"a": (turn,)}).besides[0].startswith(f"{DIED} (t9).")


def test_that_nothing_was_paid_again_is_said_only_where_it_is_known() -> None:
    assert describe_paid_again(PAID) == "Nothing was paid again."
    asked = PAID.reserve("b", CENT)
    whole = Bill(calls=1, dollars=CENT.dollars, assumed=CENT.dollars, final=False)
    assumed, unpriced = asked.settle("b", whole), asked.settle("b", Bill(calls=1, dollars=None))
    maybe = "What may have been paid again is in the price, as assumed."
    assert describe_paid_again(assumed) == maybe
    assert describe_paid_again(unpriced) == describe_paid_again(FREE) == ""


def test_each_that_was_lost_is_named_once_and_by_how() -> None:
    lost: list[tuple[str, Loss]] = [("t1", "died"), ("t1", "died"), ("t2", "silent")]
    assert describe_losses(lost) == f"{DIED} (t1). {SILENT} (t2)."
    assert describe_losses(()) == ""


def test_many_names_are_cut_and_their_number_is_said() -> None:
    assert "t8 and 2 more)." in describe_losses([(f"t{n}", "died") for n in range(1, 11)])


@pytest.mark.anyio
async def test_whoever_watches_reads_in_words_that_a_worker_fell_silent() -> None:
    silent = PendingActivityInfo(activity_id="plan-1")
    silent.last_failure.message = "activity Heartbeat timeout"
    late = TimeoutType.TIMEOUT_TYPE_HEARTBEAT
    silent.last_failure.timeout_failure_info.timeout_type = late
    told = await describe_again(silent, data_converter(None))
    assert told == "plan-1 is tried again: its worker was not heard of for too long"
