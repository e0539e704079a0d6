"""A map's activities from a script: no store, no endpoint; what each row brings, a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from temporalio import activity

from holdfast.activities.wiring import Served
from holdfast.calls.rows import (
    BatchesLooked,
    BatchesMaterial,
    BatchLook,
    Chunk,
    CloseMaterial,
    CollectMaterial,
    Items,
    MapTable,
    OpenMaterial,
    RowCounts,
    RowsDone,
    RowsMaterial,
    RowsOrdered,
    Submitted,
)
from holdfast.contracts import Bill, PinnedInput, Usage

Group = Literal["complete", "failed", "declined", "hopeless", "lost", "left"]


def all_complete(n: int, material: RowsMaterial) -> Group:
    return "complete"


@dataclass
class ScriptedMaps:
    """`row` says what becomes of a row, by its place, each time that it is asked."""

    count: int
    row: Callable[[int, RowsMaterial], Group] = all_complete
    dollars: Decimal = Decimal("0.0001")
    """The price of a row in the lane `now`."""
    broken: int = 0
    holds: asyncio.Event | None = None
    """Rows are answered once it is set; cut before that, they come back as they are left."""
    batch_looks: int = 1
    """Looks at a batch until it has ended."""
    asked: list[tuple[str, int]] = field(default_factory=list)
    """The lane and the place of each row that was asked, in order."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    orders: list[Any] = field(default_factory=list)
    ended: dict[int, str] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    retry: tuple[int, ...] = ()
    settled: tuple[int, ...] = ()

    def instead_of_shipped(self, served: Served) -> Served:
        """Return what a worker carries out, with these activities for the shipped ones."""
        own: list[Callable[..., Any]] = [
            self.open_map,
            self.close_map,
            self.ask_rows,
            self.submit_rows,
            self.look_at_batches,
            self.collect_rows,
            self.cancel_batches,
        ]
        names = [each.__name__ for each in own]

        def others(given: list[Callable[..., Any]]) -> list[Callable[..., Any]]:
            return [each for each in given if getattr(each, "__name__", "") not in names]

        return replace(
            served, asking=[*others([*served.asking]), *own], free=others([*served.free])
        )

    @activity.defn
    async def open_map(self, material: OpenMaterial) -> Items:
        size = material.chunk_items
        chunks = tuple(
            Chunk(
                digest=f"items-{first}",
                first=first,
                items=min(size, self.count - first),
                asked=min(size, self.count - first),
                bytes=50 * min(size, self.count - first),
                longest=80,
            )
            for first in range(0, self.count, size)
        )
        return Items(chunks=chunks, fields=("text",), count=self.count, broken=self.broken)

    @activity.defn
    async def close_map(self, material: CloseMaterial) -> MapTable:
        self.orders += material.orders
        named = (*self.retry, *self.settled) if material.orders else ()
        before = {n: self.ended.get(n, "") for n in named}
        for n in self.settled if material.orders else ():
            self.ended[n] = "supplied"
        held = [*self.ended.values()]
        counts = RowCounts(
            items=self.count,
            complete=held.count("complete"),
            failed=held.count("failed"),
            supplied=held.count("supplied"),
        )
        name = material.work.subtask.id
        table = PinnedInput(name=name, kind="file", size=1, digest="0" * 64, reader="query_data")
        failed = [n for n, each in self.ended.items() if each == "failed"]
        touched = len(self.retry) + len(self.settled)
        return MapTable(
            told=tuple(
                RowsOrdered(number=each.number, rows=touched)
                if touched
                else RowsOrdered(number=each.number, why=f"no row has the id {each.ids[0]!r}")
                for each in material.orders
            ),
            counts=counts,
            table=table,
            outcomes=material.outcomes,
            failures=tuple(f"row {n}: it failed" for n in failed[:20]),
            retry=self.retry if material.orders else (),
            settled=self.settled if material.orders else (),
            had_failed=tuple(n for n, each in before.items() if each == "failed"),
            had_result=tuple(n for n, each in before.items() if each in ("complete", "supplied")),
        )

    @activity.defn
    async def ask_rows(self, material: RowsMaterial) -> RowsDone:
        self.begun.set()
        rows = self._places(material)
        if self.holds is not None:
            try:
                while not self.holds.is_set():
                    activity.heartbeat()
                    await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                return RowsDone(left=tuple(rows), why="cut")
        return self._answer(rows, material, "now", self.dollars)

    @activity.defn
    async def submit_rows(self, material: RowsMaterial) -> Submitted:
        batch = f"batch-{material.call.number}"
        self.batches[batch] = self.batch_looks
        self.begun.set()
        return Submitted(batch=batch, rows=len(self._places(material)))

    @activity.defn
    async def look_at_batches(self, material: BatchesMaterial) -> BatchesLooked:
        for each in material.batches:
            self.batches[each] -= 1
        return self._looked(material)

    @activity.defn
    async def cancel_batches(self, material: BatchesMaterial) -> BatchesLooked:
        self.cancelled += material.batches
        for each in material.batches:
            self.batches[each] = 0
        return self._looked(material)

    @activity.defn
    async def collect_rows(self, material: CollectMaterial) -> RowsDone:
        rows = self._places(material.rows)
        if material.batch in self.cancelled:
            done = rows[: len(rows) // 2]
            answered = self._answer(done, material.rows, "batch", self.dollars / 2)
            return answered.model_copy(update={"left": tuple(rows[len(done) :])})
        return self._answer(rows, material.rows, "batch", self.dollars / 2)

    def _looked(self, material: BatchesMaterial) -> BatchesLooked:
        looks = (BatchLook(batch=each, ended=self.batches[each] <= 0) for each in material.batches)
        return BatchesLooked(looks=tuple(looks))

    def _places(self, material: RowsMaterial) -> list[int]:
        whole = (n for each in material.chunks for n in range(each.first, each.first + each.items))
        return list(material.rows or whole)

    def _answer(
        self, rows: list[int], material: RowsMaterial, lane: str, dollars: Decimal
    ) -> RowsDone:
        groups: dict[str, list[int]] = {}
        for n in rows:
            group = self.row(n, material)
            groups.setdefault(group, []).append(n)
            if group != "left":
                self.asked.append((lane, n))
            self.ended[n] = group if group == "complete" else "failed"
        paid = len(rows) - len(groups.get("left", ()))
        usage = Usage(input_tokens=100 * paid, output_tokens=20 * paid)
        bill = Bill(model=material.call.model.id, calls=paid, usage=usage, dollars=dollars * paid)  # type: ignore[union-attr]
        return RowsDone(
            outcomes=f"outcomes-{material.call.id}",
            complete=len(groups.get("complete", ())),
            failed=tuple(groups.get("failed", ())),
            declined=tuple(groups.get("declined", ())),
            hopeless=len(groups.get("hopeless", ())),
            lost=tuple(groups.get("lost", ())),
            left=tuple(groups.get("left", ())),
            bill=bill,
        )
