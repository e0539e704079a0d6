"""How far a map has come: by its history, each event once, and what its activities tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pydantic import BaseModel
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from driving import ROLES, model, subtask
from holdfast.calls.rows import (
    Chunk,
    Items,
    MapGoal,
    MapResume,
    MapTable,
    OpenMaterial,
    Portion,
    RowCounts,
    RowsBeat,
    RowsDone,
    RowsMaterial,
    Submitted,
)
from holdfast.calls.turn import Slice
from holdfast.calls.work import WorkMaterial
from holdfast.cli.screen.waiting import reminders
from holdfast.client.maps import _line
from holdfast.contracts import Bill, Call
from holdfast.contracts.plans import MapSpec
from holdfast.contracts.view import Question, RunView
from holdfast.history.mapping import MapFold
from holdfast.rendering.progress import progress_line
from holdfast.temporal.connection import data_converter

pytestmark = pytest.mark.anyio
START = datetime(2026, 11, 1, tzinfo=UTC)
ONE = subtask("classify", role="researcher").model_copy(
    update={"map": MapSpec(over="tickets", by="records")}
)
WORK = WorkMaterial(subtask=ONE)
CALL = Call(kind="row", purpose="rows", number=1, subtask_id="classify", tier="haiku")


class History:
    """The events of a map's segment, as a server would have them."""

    def __init__(self, resume: MapResume = MapResume()) -> None:  # noqa: B008
        self.fold, self.converter, self.last = (
            MapFold(data_converter(None)),
            data_converter(None),
            0,
        )
        self.goal = MapGoal(
            work=WORK,
            role=ROLES[0],
            models=(model("haiku", 1),),
            slice=Slice(dollars=Decimal(1), calls=0, tokens=0),
            lane="now",
            resume=resume,
        )

    async def begin(self) -> None:
        event = self._event(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)
        payloads = await self.converter.encode([self.goal])
        event.workflow_execution_started_event_attributes.input.payloads.extend(payloads)
        await self.fold.take(event)

    async def schedule(self, kind: str, id: str, material: BaseModel) -> int:
        event = self._event(EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
        told = event.activity_task_scheduled_event_attributes
        told.activity_type.name, told.activity_id = kind, id
        told.input.payloads.extend(await self.converter.encode([material]))
        await self.fold.take(event)
        return event.event_id

    async def complete(self, scheduled: int, result: BaseModel) -> None:
        event = self._event(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
        told = event.activity_task_completed_event_attributes
        told.scheduled_event_id = scheduled
        told.result.payloads.extend(await self.converter.encode([result]))
        await self.fold.take(event)
        # A reader may see an event twice.
        await self.fold.take(event)

    async def ask(self, id: str, done: RowsDone | None = None, *, again: bool = False) -> int:
        material = RowsMaterial(
            call=CALL, work=WORK, role=ROLES[0], chunks=(), before=("ab",) if again else ()
        )
        scheduled = await self.schedule("ask_rows", id, material)
        if done is not None:
            await self.complete(scheduled, done)
        return scheduled

    async def open(self, items: Items) -> None:
        material = OpenMaterial(work=WORK, chunk_items=100, chunk_bytes=1_000)
        await self.complete(await self.schedule("open_map", "open-1", material), items)

    def _event(self, kind: EventType.ValueType) -> HistoryEvent:
        self.last += 1
        event = HistoryEvent(event_id=self.last, event_type=kind)
        event.event_time.FromDatetime(START + timedelta(seconds=self.last))
        return event

    def line(self, *beats: tuple[str, RowsBeat], seconds: float = 60) -> str:
        return _line(self.fold, [*beats], Decimal("0.10"), START + timedelta(seconds=seconds))


def paid(calls: int, dollars: str, **groups: object) -> RowsDone:
    return RowsDone.model_validate(
        {"bill": Bill(calls=calls, dollars=Decimal(dollars)), "outcomes": "ab", **groups}
    )


def test_one_line_says_how_far_a_map_is() -> None:
    said = progress_line(412, 10_000, 3, Decimal("0.4083"), 374)
    assert said == "412 of 10,000, 3 failed, $0.41, about 6 min"
    assert progress_line(5, 5, 0, None, 0) == "5 of 5, unpriced"
    assert progress_line(0, 9, 0, Decimal(2), 20) == "0 of 9, $2.00, about 20 s"
    assert progress_line(1, 9, 0, Decimal(2), 9_000).endswith("about 2.5 h")


async def test_rows_count_as_their_chunks_end_and_as_those_under_way_tell() -> None:
    run = History()
    await run.begin()
    assert run.line() == "reads its input"
    await run.open(Items(chunks=(), fields=(), count=300, broken=2, repeated=8))
    assert run.line() == "10 of 300, 2 failed, $0.10"
    await run.ask("rows-1", paid(100, "0.02", complete=95, failed=(1, 2, 3), hopeless=2))
    await run.ask("rows-2")
    beat = ("rows-2", RowsBeat(done=20, failed=1, dollars=Decimal("0.005")))
    assert run.line(seconds=52) == "110 of 300, 7 failed, $0.12, about 2 min"
    assert run.line(beat, seconds=52).startswith("130 of 300, 8 failed, $0.13, about ")


async def test_a_row_that_another_answer_cures_has_not_failed() -> None:
    run = History()
    await run.begin()
    await run.open(Items(chunks=(), fields=(), count=10))
    await run.ask("rows-1", paid(10, "0.01", complete=6, failed=(1, 2), declined=(3, 4)))
    assert run.line().startswith("10 of 10, 4 failed")
    await run.ask("rows-2", paid(4, "0.01", complete=3, failed=(4,)), again=True)
    assert run.line().startswith("10 of 10, 1 failed")
    await run.ask("rows-3", again=True)
    told = RowsBeat(done=1, dollars=Decimal("0.001"))
    assert run.line(("rows-3", told)) == "10 of 10, $0.13"


async def test_a_segment_goes_on_where_the_one_before_stood() -> None:
    stands = MapResume(
        opened=True,
        chunks=(Chunk(digest="a", first=0, items=50, asked=50, bytes=1, longest=1),),
        items=50,
        complete=30,
        failed=1,
        portions=(Portion(chunks=(0,), rows=(7, 8), step=1, before=("a",)),),
    )
    run = History(stands)
    await run.begin()
    assert run.line() == "33 of 50, 3 failed, $0.10"
    ended = RowCounts(items=50, complete=47, failed=2, supplied=1)
    closing = await run.schedule(
        "close_map", "close-1", OpenMaterial(work=WORK, chunk_items=1, chunk_bytes=1)
    )
    await run.complete(closing, MapTable(counts=ended))
    assert run.line().startswith("50 of 50, 2 failed")


async def test_whoever_is_asked_about_failed_rows_is_told_the_orders_about_them() -> None:
    asked = Question(kind="subtask", subtask_id="classify", text="3 of 60 rows failed", rows=True)
    view = RunView(
        run_id="r1", goal="g", phase="working", started=START, now=START, waiting=(asked,)
    )
    (reminder,) = reminders(view)
    assert reminder.command.endswith('answer r1 classify "go on"')
    assert "retry r1 classify --rows failed" in reminder.others
    assert "skip r1 classify --rows failed" in reminder.others


async def test_rows_that_are_out_in_batches_are_told_and_no_time_is_guessed() -> None:
    run = History()
    await run.begin()
    await run.open(Items(chunks=(), fields=(), count=40))
    material = RowsMaterial(call=CALL, work=WORK, role=ROLES[0], chunks=())
    made = await run.schedule("submit_rows", "batch-1", material)
    await run.complete(made, Submitted(batch="msgbatch_1", rows=40))
    assert run.line() == "0 of 40, $0.10, 40 in batches"
