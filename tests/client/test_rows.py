"""The rows of a map are read from the histories and the store alone, while it runs and later."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import BaseModel
from temporalio.api.common.v1 import ActivityType, Payloads, WorkflowType
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from holdfast.activities.mapping.closing import cells_of
from holdfast.calls.rows import MapGoal, OpenMaterial, Outcome, RowsDone
from holdfast.calls.turn import Slice
from holdfast.cli.commands.runs import show_rows
from holdfast.client.rows import read_rows, why_unfit
from holdfast.contracts import Order, RoleCard
from holdfast.contracts.orders import RowsWhich
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.temporal.connection import data_converter
from mapped import Mapping
from mapping import material as of_rows

pytestmark = pytest.mark.anyio

CONVERTER = data_converter(None)
ROWS = b'{"id": "a", "t": 1}\n{"id": "b", "t": 2}\n{"id": \n{"id": "c", "t": 3}\n'
COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED


class Histories:
    """A client that has histories, by the id of their workflow."""

    def __init__(self) -> None:
        self.data_converter = CONVERTER
        self.events: dict[str, list[HistoryEvent]] = {}

    def get_workflow_handle(self, id: str) -> Any:
        async def fetch() -> AsyncIterator[HistoryEvent]:
            for event in self.events[id]:
                yield event

        return SimpleNamespace(fetch_history_events=fetch)

    async def begin(self, id: str, *told: BaseModel) -> None:
        event = self._add(id, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)
        event.workflow_execution_started_event_attributes.input.CopyFrom(await payloads(*told))

    def start(self, id: str, child: str) -> None:
        kind = EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
        told = self._add(id, kind).start_child_workflow_execution_initiated_event_attributes
        told.workflow_id = child
        told.workflow_type.CopyFrom(WorkflowType(name="MapWorkflow"))

    async def run(self, id: str, name: str, told: BaseModel, result: BaseModel) -> None:
        scheduled = self._add(id, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
        attributes = scheduled.activity_task_scheduled_event_attributes
        attributes.activity_type.CopyFrom(ActivityType(name=name))
        attributes.input.CopyFrom(await payloads(told))
        ended = self._add(id, COMPLETED).activity_task_completed_event_attributes
        ended.scheduled_event_id = scheduled.event_id
        ended.result.CopyFrom(await payloads(result))

    def _add(self, id: str, kind: EventType.ValueType) -> HistoryEvent:
        events = self.events.setdefault(id, [])
        events.append(HistoryEvent(event_id=len(events) + 1, event_type=kind))
        return events[-1]


async def payloads(*told: BaseModel) -> Payloads:
    return Payloads(payloads=await CONVERTER.encode(told))


@pytest.fixture
def mapping(tmp_path: Path) -> Mapping:
    return Mapping(tmp_path)


async def running(
    mapping: Mapping, *, mended: bool = True, tries: int = 3
) -> tuple[Connection, Histories, Any]:
    """A run whose map has answers to two of three rows, of which one was mended."""
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id")
    opened = await mapping.open(work)
    client = Histories()
    await client.begin("r1")
    client.start("r1", "r1.label.1")
    spare = Slice(dollars=Decimal(1), calls=1, tokens=1)
    role = RoleCard(name="reader", description="Reads.")
    goal = MapGoal(work=work, role=role, models=(), slice=spare, lane="now", tries=tries)
    await client.begin("r1.label.1", goal)
    material = OpenMaterial(work=work, chunk_items=9, chunk_bytes=9)
    await client.run("r1.label.1", "open_map", material, opened)
    wrong = Outcome(n=0, id="a", status="failed", why="it has no form")
    good = [
        Outcome(n=n, id=id, status="complete", result=result)
        for n, id, result in ((1, "b", "=1+1"), (0, "a", "lid"))
    ]
    asked = of_rows(opened.chunks[0])
    again = asked.model_copy(update={"rows": (0,), "step": 1})
    done = RowsDone(outcomes=await mapping.outcomes(wrong, good[0]), complete=1, failed=(0,))
    await client.run("r1.label.1", "ask_rows", asked, done)
    if mended:
        done = RowsDone(outcomes=await mapping.outcomes(good[1]), complete=1)
        await client.run("r1.label.1", "ask_rows", again, done)
    connection = SimpleNamespace(client=client, store=mapping.store)
    return cast(Connection, connection), client, (work, opened, material)


async def rows_of(connection: Connection, which: RowsWhich = "all") -> list[tuple[Any, ...]]:
    async with read_rows(connection, "r1", "label", which) as rows:
        found = [row async for page in rows.pages for row in page]
    return [(row["id"], row["status"], row["result"]) for row in found]


async def test_rows_are_read_while_their_map_runs(mapping: Mapping) -> None:
    connection, _, _ = await running(mapping)
    assert await rows_of(connection) == [
        ("a", "complete", "lid"),
        ("b", "complete", "=1+1"),
        ("line 3", "failed", None),
        ("c", "open", None),
    ]
    assert await rows_of(connection, "open") == [("c", "open", None)]


async def test_a_row_that_waits_to_be_mended_is_open_until_no_try_is_left(mapping: Mapping) -> None:
    connection, _, _ = await running(mapping, mended=False)
    assert await rows_of(connection, "failed") == [("line 3", "failed", None)]
    async with read_rows(connection, "r1", "label", "open") as rows:
        found = [(row["id"], row["why_failed"]) async for page in rows.pages for row in page]
    assert found == [("a", "to be mended: it has no form"), ("c", "")]
    told = Order(subtask_id="label", rows=True, which="open")
    assert await why_unfit(connection, "r1", "skip", told) == ""
    last, _, _ = await running(mapping, mended=False, tries=1)
    assert [id for id, *_ in await rows_of(last, "failed")] == ["a", "line 3"]


async def test_rows_are_read_from_the_table_and_merged_texts_are_none(mapping: Mapping) -> None:
    connection, client, (work, opened, material) = await running(mapping)
    outcomes = [await mapping.outcomes(Outcome(n=3, id="c", status="complete", result="late"))]
    table = await mapping.close(work, opened, outcomes)
    await client.run("r1.label.1", "close_map", material, table)
    merging = material.model_copy(update={"merging": tuple(outcomes)})
    await client.run("r1.label.1", "open_map", merging, opened)
    asked = of_rows(opened.chunks[0])
    merged = RowsDone(outcomes=await mapping.outcomes(Outcome(n=0, id="1", status="complete")))
    await client.run("r1.label.1", "ask_rows", asked, merged)
    assert await rows_of(connection, "complete") == [("c", "complete", "late")]


def test_a_table_for_people_writes_the_smallest_dollars_in_full() -> None:
    cells = cells_of({"id": "a", "dollars": 2.1e-05, "n": 3, "none": None})
    assert cells == ["a", "0.000021", "3", ""]
    assert cells_of({"dollars": None}) == [""]


async def test_a_subtask_that_is_no_map_is_refused_with_those_that_are(mapping: Mapping) -> None:
    connection, _, _ = await running(mapping)
    with pytest.raises(Refused, match="'t1' of r1 is no map that has begun; maps of it: label"):
        async with read_rows(connection, "r1", "t1"):
            pass


async def test_rows_are_printed_as_csv_without_formulas_as_json_and_on_a_screen(
    mapping: Mapping, capsys: pytest.CaptureFixture[str]
) -> None:
    connection, _, _ = await running(mapping)
    await show_rows.run(connection, "r1", "label", "complete", as_json=False, as_csv=True)
    assert capsys.readouterr().out.splitlines() == [
        '"id","place","status","result","why_failed","same_as","tier","tries","dollars","t"',
        '"a","line 1","complete","lid","","","haiku","1","0.0","1"',
        '"b","line 2","complete","\'=1+1","","","haiku","1","0.0","2"',
    ]
    await show_rows.run(connection, "r1", "label", "failed", as_json=True, as_csv=False)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["why_failed"][:10]) == ("line 3", "is no JSON")
    await show_rows.run(connection, "r1", "label", "all", as_json=False, as_csv=False)
    assert "=1+1" in capsys.readouterr().out
    await show_rows.run(connection, "r1", "label", "skipped", as_json=False, as_csv=False)
    assert "no row is skipped" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("update", "order", "why"),
    [
        ("skip", {"ids": ("a", "nope")}, "no row has the id 'nope'"),
        ("skip", {"which": "skipped"}, "no row is skipped; there is nothing to do"),
        ("supply", {"ids": ("a",), "value": 3}, "result: must be text, a JSON string"),
        ("supply", {"ids": ("a",), "value": "mine"}, ""),
        ("skip", {"which": "open"}, ""),
        ("retry", {}, ""),
        ("retry", {"subtask_id": "t1"}, ""),
    ],
)
async def test_an_order_about_rows_is_held_against_the_rows_as_they_stand(
    mapping: Mapping, update: str, order: dict[str, Any], why: str
) -> None:
    connection, _, _ = await running(mapping)
    told = Order.model_validate({"subtask_id": "label", "rows": True, **order})
    assert await why_unfit(connection, "r1", update, told) == why
