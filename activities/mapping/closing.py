"""Close a map: put together what stands of all rows, carry out what people decided about some, and
make the table of it.
"""

from __future__ import annotations

import asyncio
import csv
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from pathlib import Path

from pydantic import JsonValue

from holdfast.activities.asking.forms import find_mistakes
from holdfast.activities.mapping.blobs import dump_line
from holdfast.activities.mapping.standing import DONE, OPEN, Standing, Stood, fill
from holdfast.calls.row import form_of
from holdfast.calls.rows import (
    EMPTY,
    CloseMaterial,
    Item,
    MapTable,
    Outcome,
    RowCounts,
    RowOrder,
    RowsOrdered,
    Unanswered,
    asked_of,
)
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import MadeFile, PinnedInput
from holdfast.ports import Store
from holdfast.rendering.answers import csv_cell
from holdfast.text import one_line

FAILURES = 20
WHY_LETTERS = 300
FEW_WRONG = 3
"""Mistakes of one order that are told."""
FEW_VALUES = 20
VALUE_LETTERS = 60
SHARE = 3
"""Rows for each value of a field, at least, whose schema does not list them."""
VALUE_FIELDS = 20
"""Fields whose values are counted."""
BEFORE = ("id", "place", "status")
AFTER = ("why_failed", "same_as", "tier", "tries", "dollars")


async def close(store: Store, material: CloseMaterial) -> MapTable:
    """Return what stands of the rows, with the table of it in the store."""
    with tempfile.TemporaryDirectory(prefix="rows-") as folder:
        standing = Standing(Path(folder) / "rows.sqlite")
        try:
            await fill(standing, store, material.items, material.outcomes)
            lost = await asyncio.to_thread(_fail, standing, material.unanswered)
            await asyncio.to_thread(standing.reopen, material.waiting)
            carried = await asyncio.to_thread(_carry_out, standing, material.work, material.orders)
            outcomes = material.outcomes
            if lost:
                outcomes = (*outcomes, await store.put(b"".join(lost)))
            if carried.lines:
                outcomes = (*outcomes, await store.put(b"".join(carried.lines)))
            columns = columns_of(material.work, standing.fields)
            form = form_of(material.work)
            writing = await asyncio.to_thread(_write, standing, columns, form, Path(folder))
            files = [
                await _keep(store, material.work.subtask.id, Path(folder) / name)
                for name in (TABLE, CSV)
            ]
        finally:
            standing.close()
    table = files[0]
    name = material.work.subtask.id
    return MapTable(
        counts=writing.counts,
        table=PinnedInput(
            name=name,
            kind="file",
            size=table.size,
            digest=table.digest,
            path=table.name,
            reader="query_data",
            rows=writing.counts.items,
        ),
        columns=columns.heads,
        own=tuple(columns.own.values()),
        values=writing.values(),
        failures=tuple(writing.failures),
        retry=tuple(sorted(carried.retry)),
        settled=tuple(sorted(carried.settled)),
        had_failed=carried.were("failed"),
        had_result=carried.were("complete", "supplied", "skipped"),
        told=tuple(carried.told),
        items=material.items,
        outcomes=outcomes,
        files=tuple(files),
        asked=asked_of(material.work),
    )


TABLE, CSV = "table.jsonl", "table.csv"


async def _keep(store: Store, subtask: str, path: Path) -> MadeFile:
    with path.open("rb") as file:
        digest, size = await store.put_file(file)
    stem = "".join(each if each.isalnum() and each.isascii() else "-" for each in subtask)
    return MadeFile(name=f"{stem.strip('-') or 'rows'}{path.suffix}", size=size, digest=digest)


def _fail(standing: Standing, unanswered: tuple[Unanswered, ...]) -> list[bytes]:
    """Give rows without an answer their outcome. Return these, as lines."""
    return [
        dump_line(outcome)
        for each in unanswered
        for outcome in standing.fail(each.rows, one_line(each.why[:WHY_LETTERS]))
    ]


# ---------------------------------------------------------------- orders


@dataclass
class Carried:
    """What orders have changed."""

    lines: list[bytes] = field(default_factory=list)
    """Outcomes that people gave, as lines."""
    retry: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)
    before: dict[int, str] = field(default_factory=dict)
    """What the items of both were before the first of these orders."""
    told: list[RowsOrdered] = field(default_factory=list)

    def were(self, *statuses: str) -> tuple[int, ...]:
        places = {*self.retry, *self.settled}
        return tuple(sorted(n for n in places if self.before.get(n) in statuses))


def _carry_out(standing: Standing, work: WorkMaterial, orders: tuple[RowOrder, ...]) -> Carried:
    carried = Carried()
    if orders:
        standing.index()
    for order in orders:
        wrong = _unfit(standing, work, order)
        done = 0
        for id in () if wrong else order.ids or standing.which(order.which):
            why = _carry(standing, order, id, carried)
            done += not why
            wrong += [why] if why else []
        why = "; ".join(wrong[:FEW_WRONG])
        why += f"; {len(wrong) - FEW_WRONG:,} more" if len(wrong) > FEW_WRONG else ""
        carried.told.append(RowsOrdered(number=order.number, rows=done, why=why))
    return carried


def _unfit(standing: Standing, work: WorkMaterial, order: RowOrder) -> list[str]:
    """Return why nothing of an order can be done."""
    if order.kind == "supply":
        return list(value_mistakes(work, order.value))
    if order.ids or standing.which(order.which):
        return []
    return [none_stands(order.which)]


def none_stands(which: str) -> str:
    """Return that no row stands so."""
    return f"no row {'has failed' if which == 'failed' else f'is {which}'}; there is nothing to do"


def unknown_row(id: str) -> str:
    """Return that no item has this id."""
    return f"no row has the id {one_line(id)[:100]!r}"


def value_mistakes(work: WorkMaterial, value: JsonValue) -> tuple[str, ...]:
    """Return what is wrong with a result that a person gives a row."""
    form = form_of(work)
    if form:
        return tuple(islice(find_mistakes(form, value), FEW_WRONG))
    return () if isinstance(value, str) else ("result: must be text, a JSON string",)


def _carry(standing: Standing, order: RowOrder, id: str, carried: Carried) -> str:
    """Carry out an order about one row. Return why it cannot be done; empty: it is."""
    found = standing.row(id)
    if found is None:
        return unknown_row(id)
    item, before, _ = found
    if item.same_as is None:
        status = before.status if before else "failed" if item.broken else ""
        carried.before.setdefault(item.n, status)
    if order.kind == "retry":
        if item.broken:
            return f"row {one_line(id)[:100]} cannot be asked: {item.broken}"
        _ask_again(standing, item, carried)
        return ""
    who = f" by {one_line(order.by)}" if order.by else ""
    why = f"{'supplied' if order.kind == 'supply' else 'skipped'}{who}"
    outcome = Outcome(
        n=item.n,
        id=item.id,
        status="supplied" if order.kind == "supply" else "skipped",
        result=order.value if order.kind == "supply" else None,
        why=f"{why}: {order.why}" if order.why else why,
        tries=before.tries if before and item.same_as is None else 0,
        dollars=before.dollars if before and item.same_as is None else None,
        tokens=before.tokens if before and item.same_as is None else 0,
    )
    standing.put(outcome)
    carried.lines.append(dump_line(outcome))
    carried.settled.add(item.n)
    carried.retry.discard(item.n)
    return ""


def _ask_again(standing: Standing, item: Item, carried: Carried) -> None:
    """Note that an item is asked again. One that was skipped is open again, and one that repeats an
    earlier one has that one's outcome again.
    """
    place = item.n if item.same_as is None else item.same_as
    own = standing.own_status(item.n)
    if own == "skipped" or (own and item.same_as is not None):
        void = Outcome(n=item.n, id=item.id, status="skipped", void=True)
        standing.put(void)
        carried.lines.append(dump_line(void))
        carried.settled.discard(item.n)
    carried.retry.add(place)
    carried.settled.discard(place)


# ---------------------------------------------------------------- the table


@dataclass
class Writing:
    """What is told of a table beside it."""

    form: Mapping[str, JsonValue] = field(default_factory=dict)
    """The schema of a result; empty: results are texts, whose values are not counted."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column of each of its fields."""
    counts: RowCounts = field(default_factory=RowCounts)
    failures: list[str] = field(default_factory=list)
    counted: dict[str, Counter[str] | None] = field(default_factory=dict)
    """How often each value stands, by field; None: it has too many values to say."""

    def count(self, name: str, value: JsonValue) -> None:
        """Count a value of a field, unless that has too many or too long ones."""
        if self.form and name not in self.counted and len(self.counted) < VALUE_FIELDS:
            self.counted[name] = Counter()
        values = self.counted.get(name)
        if values is None:
            return
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        values[EMPTY if value is None else one_line(text) or EMPTY] += 1
        if isinstance(value, dict) or len(text) > VALUE_LETTERS or len(values) > FEW_VALUES:
            self.counted[name] = None

    def values(self) -> dict[str, dict[str, int]]:
        """Return the counts of the fields whose values are few by their schema, or far fewer than
        rows, by the names of their columns.
        """
        return {
            self.columns.get(name, name): dict(found.most_common())
            for name, found in self.counted.items()
            if found and (self._is_closed(name) or SHARE * len(found) <= found.total())
        }

    def _is_closed(self, name: str) -> bool:
        properties = self.form.get("properties")
        told = properties.get(name) if isinstance(properties, dict) else None
        return isinstance(told, dict) and ("enum" in told or told.get("type") == "boolean")


@dataclass(frozen=True)
class Columns:
    """The columns of a table."""

    results: Mapping[str, str]
    """By the field of a result, as the schema has it; one without is `result`."""
    own: Mapping[str, str]
    """By the field of an item."""

    @property
    def heads(self) -> tuple[str, ...]:
        return (*BEFORE, *self.results.values(), *AFTER, *self.own.values())


def columns_of(work: WorkMaterial, fields: Iterable[str] = ()) -> Columns:
    """Return the columns of a map's table, whose items have these short fields: each has a name of
    its own, in whatever case.
    """
    properties = form_of(work).get("properties")
    named = tuple(properties) if isinstance(properties, dict) and properties else ("result",)
    taken = {*BEFORE, *AFTER}
    results = {name: _name(name, "result_", taken) for name in named}
    return Columns(results, {name: _name(name, "item_", taken) for name in fields})


def _name(name: str, prefix: str, taken: set[str]) -> str:
    """Return the name of a column, with a prefix where it is taken."""
    while name.casefold() in taken:
        name = prefix + name
    taken.add(name.casefold())
    return name


def row_of(stood: Stood, columns: Columns) -> dict[str, JsonValue]:
    """Return a row of a table."""
    item, outcome, same_as = stood
    repeats = item.same_as is not None
    dollars = None if outcome is None or outcome.dollars is None else float(outcome.dollars)
    results = _results(outcome, columns.results)
    return {
        "id": item.id,
        "place": item.place,
        "status": OPEN if outcome is None else outcome.status,
        **{columns.results[name]: value for name, value in results.items()},
        "why_failed": "" if outcome is None else outcome.why,
        "same_as": same_as,
        "tier": "" if outcome is None or not outcome.tries else outcome.tier,
        "tries": 0 if outcome is None or repeats else outcome.tries,
        "dollars": 0.0 if repeats else dollars,
        **{column: item.beside.get(name) for name, column in columns.own.items()},
    }


def cells_of(row: Mapping[str, JsonValue]) -> list[str]:
    """Return the cells of a row of CSV, none of which is a formula to a spreadsheet."""
    shown = {**row, "dollars": _in_full(row["dollars"])}
    return [csv_cell(_text(value)) for value in shown.values()]


def _in_full(value: JsonValue) -> JsonValue:
    """Return a number as people write it, without an exponent."""
    return f"{Decimal(str(value)):f}" if isinstance(value, float) else value


def _write(
    standing: Standing, columns: Columns, form: Mapping[str, JsonValue], folder: Path
) -> Writing:
    writing, counts = Writing(form, columns.results), Counter[str]()
    with (
        (folder / TABLE).open("w", encoding="utf-8") as lines,
        (folder / CSV).open("w", encoding="utf-8", newline="") as table,
    ):
        cells = csv.writer(table, quoting=csv.QUOTE_ALL)
        cells.writerow(map(csv_cell, columns.heads))
        for stood in standing.rows():
            item, outcome, _ = stood
            _count(counts, item, outcome)
            row = row_of(stood, columns)
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            cells.writerow(cells_of(row))
            if outcome is not None and outcome.status in DONE:
                for name, value in _results(outcome, columns.results).items():
                    writing.count(name, value)
            failed = outcome is not None and outcome.status == "failed"
            if outcome is not None and failed and len(writing.failures) < FAILURES:
                writing.failures.append(_failure(item, outcome))
    writing.counts = RowCounts(**counts)
    return writing


def _failure(item: Item, outcome: Outcome) -> str:
    where = "" if item.place == item.id else f" ({one_line(item.place)})"
    return f"{one_line(item.id)}{where}: {one_line(outcome.why)[:WHY_LETTERS]}"


def _count(counts: Counter[str], item: Item, outcome: Outcome | None) -> None:
    counts["items"] += 1
    if outcome is not None and outcome.status != OPEN:
        counts[outcome.status] += 1
        counts["broken"] += outcome.status == "failed" and item.broken != ""
    if item.same_as is not None:
        counts["repeated"] += 1
    elif outcome is not None:
        counts["asked"] += outcome.tries
        counts["reused"] += outcome.status == "complete" and outcome.tries == 0


def _results(outcome: Outcome | None, columns: Iterable[str]) -> dict[str, JsonValue]:
    result = outcome.result if outcome is not None else None
    if isinstance(result, dict) and (*columns,) != ("result",):
        return {name: result.get(name) for name in columns}
    # What a person supplied may have any form.
    return {name: result if place == 0 else None for place, name in enumerate(columns)}


def _text(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
