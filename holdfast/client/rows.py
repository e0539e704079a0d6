"""The rows of a map: from its table, or while it runs from what its own history says of them.

The history of the run names the segments of the map, and that of a segment the blobs of its items
and outcomes. No worker is asked.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from holdfast.activities.mapping.closing import (
    columns_of,
    none_stands,
    row_of,
    unknown_row,
    value_mistakes,
)
from holdfast.activities.mapping.standing import Standing, fill
from holdfast.calls.rows import (
    Chunk,
    CollectMaterial,
    Items,
    MapGoal,
    MapTable,
    OpenMaterial,
    Portion,
    RowsDone,
    RowsMaterial,
)
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Order
from holdfast.contracts.errors import BlobLost
from holdfast.contracts.orders import RowsWhich
from holdfast.errors import Refused
from holdfast.history.executions import MAP, Execution, executions_in
from holdfast.history.payloads import decode
from holdfast.intake.connection import Connection
from holdfast.maps.portions import sort_out
from holdfast.ports import Store
from holdfast.storage.payloads import PayloadLost

Row = Mapping[str, JsonValue]
UNKNOWN = 500
"""Characters about ids that no row has."""
AT_ONCE = 500
"""Rows that are read together."""
ASK = "ask_rows"
ACTIVITIES = ("open_map", "close_map", ASK, "collect_rows")


@dataclass(frozen=True)
class Stand:
    """What the history of a map's last segment says of its rows."""

    work: WorkMaterial
    chunks: tuple[Chunk, ...] = ()
    outcomes: tuple[str, ...] = ()
    waiting: frozenset[int] = frozenset()
    """Places of the rows that are to be asked again, though their last answer was no result."""
    table: MapTable | None = None
    """None: more has come since it was made, or it was never made."""


@dataclass(frozen=True)
class Rows:
    """Rows of a map as they stand."""

    heads: tuple[str, ...]
    """The columns."""
    pages: AsyncIterator[list[Row]]
    """Some rows at a time, in the order of their items; read once."""


@asynccontextmanager
async def read_rows(
    connection: Connection, run_id: str, subtask_id: str, which: RowsWhich = "all"
) -> AsyncIterator[Rows]:
    """Yield the rows of a subtask's map that stand so, in the order of its items. Refused where
    there is no such map or the store has lost it; RPCError.
    """
    stand = await _stand_of(connection.client, run_id, subtask_id)
    try:
        async with _reading(connection.store, stand) as (heads, rows):
            pages = _in_pages(rows, which)
            try:
                yield Rows(heads, pages)
            finally:
                await pages.aclose()
    except BlobLost as error:
        raise Refused(f"rows of {subtask_id}: {error.message}") from error


async def why_unfit(connection: Connection, run_id: str, update: str, order: Order) -> str:
    """Return why an order about rows of a map cannot be carried out as its rows stand; empty if it
    can, or where they cannot be read. The run itself sees only how many they are. RPCError.
    """
    try:
        stand = await _stand_of(connection.client, run_id, order.subtask_id)
        if update == "supply":
            wrong = value_mistakes(stand.work, order.value)
            if wrong:
                return "; ".join(wrong)
        if not stand.chunks and stand.table is None:
            # It reads its input.
            return ""
        missing = set(order.ids)
        async with _reading(connection.store, stand) as (_, rows):
            async for page in _in_pages(rows, "all" if missing else order.which):
                if not missing:
                    return ""
                missing -= {str(row["id"]) for row in page}
    except (Refused, BlobLost):
        return ""
    if not order.ids:
        return none_stands(order.which)
    return "; ".join(unknown_row(id) for id in order.ids if id in missing)[:UNKNOWN]


Found = tuple[tuple[str, ...], Iterator[Row]]


def _reading(store: Store, stand: Stand) -> AbstractAsyncContextManager[Found]:
    """Yield the columns and the rows of what stands."""
    has_table = stand.table is not None and stand.table.table is not None
    return _of_table(store, stand) if has_table else _of_blobs(store, stand)


@asynccontextmanager
async def _of_table(store: Store, stand: Stand) -> AsyncIterator[Found]:
    """Yield the columns and the rows of the table."""
    assert stand.table is not None and stand.table.table is not None
    async with store.file(stand.table.table.digest) as path:
        with path.open("rb") as file:
            yield stand.table.columns, (json.loads(line) for line in file)


@asynccontextmanager
async def _of_blobs(store: Store, stand: Stand) -> AsyncIterator[Found]:
    """Yield the same of what there is until there is a table."""
    with tempfile.TemporaryDirectory(prefix="rows-") as folder:
        standing = Standing(Path(folder) / "rows.sqlite")
        try:
            await fill(standing, store, stand.chunks, stand.outcomes)
            await asyncio.to_thread(standing.reopen, stand.waiting, "to be mended")
            columns = columns_of(stand.work, standing.fields)
            yield columns.heads, (row_of(each, columns) for each in standing.rows())
        finally:
            standing.close()


async def _in_pages(rows: Iterator[Row], which: RowsWhich) -> AsyncGenerator[list[Row]]:
    wanted = (row for row in rows if which == "all" or row["status"] == which)
    while page := await asyncio.to_thread(lambda: list(islice(wanted, AT_ONCE))):
        yield page


# ---------------------------------------------------------------- what the histories say


async def _stand_of(client: Client, run_id: str, subtask_id: str) -> Stand:
    segment = await _last_segment(client, run_id, subtask_id)
    handle = client.get_workflow_handle(segment)
    try:
        found = executions_in([event async for event in handle.fetch_history_events()])
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise Refused(f"the rows of {subtask_id} are not known any more") from error
        raise
    assert found.own is not None, "every history has a beginning"
    goal = await _decoded(client, found.own.input, MapGoal)
    before = goal.resume
    waiting = frozenset(n for each in before.portions for n in each.rows)
    stand = Stand(goal.work, before.chunks, before.outcomes, waiting, before.table)
    if before.level:
        # Texts are merged, and the rows are done.
        return stand
    ended = [each for each in found if each.type in ACTIVITIES and each.end == "completed"]
    for each in sorted(ended, key=lambda each: each.ended.event_id if each.ended else 0):
        if each.type == "open_map" and (await _decoded(client, each.input, OpenMaterial)).of_texts:
            break
        stand = await _after(client, stand, each, goal)
    return stand


async def _after(client: Client, stand: Stand, ended: Execution, goal: MapGoal) -> Stand:
    """Return what stands after an activity."""
    if ended.type == "open_map":
        items = await _decoded(client, ended.result, Items)
        return replace(stand, chunks=items.chunks, outcomes=items.outcomes, table=None)
    if ended.type == "close_map":
        table = await _decoded(client, ended.result, MapTable)
        waiting = stand.waiting.difference(table.settled).union(table.retry)
        stand = replace(stand, chunks=table.items, waiting=waiting)
        return replace(stand, outcomes=table.outcomes, table=table)
    done = await _decoded(client, ended.result, RowsDone)
    if not done.outcomes:
        return stand
    rows = await _decoded(
        client, ended.input, RowsMaterial if ended.type == ASK else CollectMaterial
    )
    waiting = _still_waiting(stand.waiting, rows if ended.type == ASK else rows.rows, done, goal)
    outcomes = (*stand.outcomes, done.outcomes)
    return replace(stand, outcomes=outcomes, waiting=waiting, table=None)


def _still_waiting(
    waiting: frozenset[int], rows: RowsMaterial, done: RowsDone, goal: MapGoal
) -> frozenset[int]:
    """Return the rows that are to be asked again once some of them were."""
    portion = Portion(
        chunks=tuple(range(len(rows.chunks))),
        rows=rows.rows,
        step=rows.step,
        before=rows.before,
        declined=rows.declined,
    )
    again, *_ = sort_out(rows.chunks, portion, done, len(goal.models), goal.tries)
    more = {n for each in again if each.before for n in each.rows}
    return waiting.difference(rows.rows) | more


async def _last_segment(client: Client, run_id: str, subtask_id: str) -> str:
    """Return the id of the workflow that is the last segment of a map. Refused if there is none."""
    events = client.get_workflow_handle(run_id).fetch_history_events()
    found = executions_in([event async for event in events])
    maps = [each.id for each in found if each.type == MAP]
    own = [each for each in maps if each.rpartition(".")[0] == f"{run_id}.{subtask_id}"]
    if not own:
        known = dict.fromkeys(each.rpartition(".")[0].removeprefix(f"{run_id}.") for each in maps)
        raise Refused(
            f"{subtask_id!r} of {run_id} is no map that has begun;"
            f" maps of it: {', '.join(known) or 'none'}"
        )
    return own[-1]


async def _decoded(client: Client, payloads: Sequence[Payload], kind: type[Any]) -> Any:
    try:
        return await decode(client.data_converter, payloads, kind)
    except PayloadLost as error:
        raise Refused(f"the rows are not known: {error}") from error
