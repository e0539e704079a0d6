"""What stands of each row of a map: its last outcome, kept in a file while a table is made of it.
All but `fill` is blocking.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from holdfast.activities.mapping.blobs import lines_of
from holdfast.calls.items import is_short
from holdfast.calls.rows import Chunk, Item, Outcome
from holdfast.ports import Store

OPEN = "open"
"""Status in a table of a row that has no outcome yet."""
DONE = ("complete", "supplied")
"""Statuses of rows with a result."""
SET_UP = (
    "pragma journal_mode = off",
    "pragma synchronous = off",
    "create table items (n integer primary key, id text, same integer, line blob)",
    "create table outcomes (n integer primary key, status text, line blob)",
)
STANDS = """
select items.line, coalesce(own.line, twins.line), coalesce(first.id, '') from items
left join outcomes own on own.n = items.n
left join outcomes twins on twins.n = items.same
left join items first on first.n = items.same
"""
MOST_FIELDS = 40
"""Fields of items that stand in a table of rows."""


class Stood(NamedTuple):
    """How one row stands."""

    item: Item
    outcome: Outcome | None
    """That of the item it repeats, where it has none of its own; None: there is none yet."""
    same_as: str
    """The id of that item; empty: it repeats none."""


class Standing:
    """Items and their last outcomes, by place."""

    def __init__(self, path: Path) -> None:
        # Each statement in the thread that has it just then, never two at once.
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        for statement in SET_UP:
            self._db.execute(statement)
        self._short: dict[str, None] = {}
        self._long: set[str] = set()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of items, in their order, that are short in all of them."""
        return tuple(each for each in self._short if each not in self._long)[:MOST_FIELDS]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def add_items(self, content: bytes) -> None:
        """Add the items of a blob; a broken one has failed."""
        items, failed = [], []
        for line in lines_of(content):
            item = Item.model_validate_json(line)
            # What is long of it is not needed any more.
            kept = item.model_copy(update={"fields": {}, "beside": self._see(item), "long": ()})
            items.append((item.n, item.id, item.same_as, kept.model_dump_json()))
            if item.broken:
                failed.append(
                    Outcome(n=item.n, id=item.id, status="failed", why=item.broken, tries=0)
                )
        self._db.execute("begin")
        self._db.executemany("insert or replace into items values (?, ?, ?, ?)", items)
        self._put(failed)
        self._db.execute("commit")

    def add_outcomes(self, content: bytes) -> None:
        """Add the outcomes of a blob, which count from now on."""
        self._db.execute("begin")
        self._put([Outcome.model_validate_json(line) for line in lines_of(content)])
        self._db.execute("commit")

    def put(self, outcome: Outcome) -> None:
        """Add one outcome, which counts from now on."""
        self._put([outcome])

    def fail(self, rows: Iterable[int], why: str) -> list[Outcome]:
        """Fail items that had no answer, and return their outcomes."""
        asked = "select line from items where n = ? and same is null"
        found = [self._db.execute(asked, (n,)).fetchone() for n in rows]
        items = [Item.model_validate_json(line) for (line,) in filter(None, found)]
        failed = [self._failed(each, why) for each in items if not each.broken]
        self._db.execute("begin")
        self._put(failed)
        self._db.execute("commit")
        return failed

    def reopen(self, rows: Iterable[int], why: str = "not asked again") -> None:
        """Let failed rows stand open: they are still to be asked again, as `why` says."""
        asked = "select line from outcomes where n = ? and status = 'failed'"
        lines = [self._db.execute(asked, (n,)).fetchone() for n in rows]
        found = [Outcome.model_validate_json(line) for (line,) in filter(None, lines)]
        self._db.execute("begin")
        self._put(
            [
                each.model_copy(update={"status": "open", "why": f"{why}: {each.why}"})
                for each in found
            ]
        )
        self._db.execute("commit")

    def _failed(self, item: Item, why: str) -> Outcome:
        found = self._db.execute("select line from outcomes where n = ?", (item.n,)).fetchone()
        # An answer before it may have been one to mend: what it was and cost still stands.
        before = (
            Outcome.model_validate_json(found[0])
            if found
            else Outcome(n=item.n, id=item.id, status="failed", tries=0, dollars=None)
        )
        return before.model_copy(update={"status": "failed", "result": None, "why": why})

    def _see(self, item: Item) -> dict[str, JsonValue]:
        """Return the short fields of an item but one that is its id."""
        whole = {**item.fields, **item.beside}
        short = {
            name: value
            for name, value in whole.items()
            if is_short(value) and not (name == "id" and str(value) == item.id)
        }
        self._short.update(dict.fromkeys(n for n, value in short.items() if value is not None))
        self._long.update(item.long, (n for n, value in whole.items() if not is_short(value)))
        return short

    def rows(self) -> Iterator[Stood]:
        """Yield each row in the order of its items."""
        for found in self._db.execute(f"{STANDS} order by items.n"):
            yield _stood(*found)

    def row(self, id: str) -> Stood | None:
        """Return the row of this id; None if there is none."""
        found = self._db.execute(f"{STANDS} where items.id = ? limit 1", (id,)).fetchone()
        return None if found is None else _stood(*found)

    def which(self, status: str) -> list[str]:
        """Return the ids of the items whose own outcome has this status; `open`: also of those that
        have none, nor repeat an earlier one.
        """
        none = " or status is null and same is null" if status == OPEN else ""
        asked = f"select items.id from items left join outcomes using (n) where status = ?{none}"
        return [row[0] for row in self._db.execute(f"{asked} order by n", (status,))]

    def own_status(self, n: int) -> str:
        """Return the status of the outcome that the item of this place has itself; empty: none."""
        found = self._db.execute("select status from outcomes where n = ?", (n,)).fetchone()
        return "" if found is None else str(found[0])

    def texts(self) -> Iterator[tuple[Outcome, list[Item]]]:
        """Yield each outcome with a result, in the order of its items, with the items that have no
        other one. Ids and repetitions are to be indexed before.
        """
        asked = f"select n, line from outcomes where status in {DONE} order by n"
        about = (
            "select line from items where n = ?1 or (same = ?1 and n not in"
            " (select n from outcomes)) order by n"
        )
        for n, line in self._db.execute(asked):
            items = [Item.model_validate_json(each) for (each,) in self._db.execute(about, (n,))]
            yield Outcome.model_validate_json(line), items

    def _put(self, outcomes: list[Outcome]) -> None:
        last = {each.n: each for each in outcomes}.values()
        rows = [(each.n, each.status, each.model_dump_json()) for each in last if not each.void]
        self._db.executemany("insert or replace into outcomes values (?, ?, ?)", rows)
        void = [(each.n,) for each in last if each.void]
        self._db.executemany("delete from outcomes where n = ?", void)

    def index(self) -> None:
        """Make ids and repetitions quick to find."""
        self._db.execute("create index ids on items (id)")
        self._db.execute("create index repetitions on items (same)")


async def fill(
    standing: Standing, store: Store, items: Iterable[Chunk], outcomes: Iterable[str]
) -> None:
    """Add all items and outcomes, the oldest first, to what stands of rows."""
    for chunk in items:
        await asyncio.to_thread(standing.add_items, await store.get(chunk.digest))
    for digest in outcomes:
        await asyncio.to_thread(standing.add_outcomes, await store.get(digest))


def _stood(item: str, outcome: str | None, same_as: str) -> Stood:
    known = None if outcome is None else Outcome.model_validate_json(outcome)
    return Stood(Item.model_validate_json(item), known, same_as)
