"""The rows of an earlier map that another one takes over, where items and question are equal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from holdfast.activities.mapping.blobs import dump_line, lines_of
from holdfast.activities.mapping.census import Census, digest_of
from holdfast.calls.rows import ASKED_OTHERWISE, Item, MapTable, Outcome
from holdfast.contracts import KeptItems
from holdfast.contracts.errors import BlobLost
from holdfast.ports import Store

OUTCOMES_BYTES = 8 * 1024 * 1024
"""Bytes of one blob of outcomes."""


@dataclass(frozen=True)
class Earlier:
    """The rows of an earlier map that have a result, of a model or of a person."""

    asked: str
    """Fingerprint of what was asked of each."""
    outcomes: tuple[str, ...]
    last: Mapping[int, int]
    """Which of these blobs has the last outcome of an item, which is its result."""
    places: Mapping[bytes, int]
    """The item of each content; one that is not asked by its id as well."""

    def find(self, item: Item) -> int | None:
        """Return the place that an item had there; None: it is asked."""
        return self.places.get(_key(item))

    async def take_over(self, store: Store, kept: Mapping[int, Item]) -> tuple[str, ...]:
        """Store the outcomes of items, by their places there, as those of these items now. Return
        the blobs.
        """
        blobs, part, size = [], [], 0
        for number, digest in enumerate(self.outcomes):
            content = await store.get(digest)
            for line in lines_of(content):
                found = Outcome.model_validate_json(line)
                item = kept.get(found.n)
                if item is None or self.last[found.n] != number:
                    continue
                part.append(dump_line(_unpaid(found, item)))
                size += len(part[-1])
                if size > OUTCOMES_BYTES:
                    blobs.append(await store.put(b"".join(part)))
                    part, size = [], 0
        if part:
            blobs.append(await store.put(b"".join(part)))
        return tuple(blobs)


def is_asked(item: Item) -> bool:
    """True if an item costs a call: it is neither broken nor repeats another."""
    return not item.broken and item.same_as is None


def _key(item: Item) -> bytes:
    if is_asked(item):
        return digest_of(item.fields)
    # What a person gave one of several equal items was for this one.
    return digest_of({"own": [item.id, item.broken, item.fields]})


def _unpaid(found: Outcome, item: Item) -> Outcome:
    free = {"tries": 0, "dollars": Decimal(0), "tokens": 0, "raw": ""}
    return found.model_copy(update={"n": item.n, "id": item.id, **free})


async def read_earlier(store: Store, table: str, asked: str = "") -> tuple[Earlier | None, str]:
    """Return what can be taken over of a map, by the blob of its table, and why nothing can.
    `asked`: fingerprint of what is asked now; empty: it is compared later.
    """
    if not table:
        return None, ""
    try:
        told = MapTable.model_validate_json(await store.get(table))
        if asked and told.asked != asked:
            return None, ASKED_OTHERWISE
        last: dict[int, int] = {}
        for number, digest in enumerate(told.outcomes):
            content = await store.get(digest)
            await asyncio.to_thread(_note_results, content, number, last)
        places: dict[bytes, int] = {}
        for chunk in told.items:
            content = await store.get(chunk.digest)
            await asyncio.to_thread(_note_places, content, places, last)
    except BlobLost:
        return None, "what the earlier run kept of its rows is no longer in the store"
    return Earlier(told.asked, told.outcomes, last, places), ""


def _note_results(content: bytes, number: int, last: dict[int, int]) -> None:
    for line in lines_of(content):
        found = Outcome.model_validate_json(line)
        if found.status in ("complete", "supplied"):
            last[found.n] = number
        else:
            last.pop(found.n, None)


def _note_places(content: bytes, places: dict[bytes, int], last: Mapping[int, int]) -> None:
    for line in lines_of(content):
        item = Item.model_validate_json(line)
        if item.n in last:
            places.setdefault(_key(item), item.n)


@dataclass
class Kept:
    """Counts the items whose rows an earlier map has."""

    earlier: Earlier
    rows: int = 0
    mended: int = 0
    bytes: int = 0

    def count(self, census: Census, items: Iterable[Item]) -> None:
        """Take in items as a census has found them."""
        for each in items:
            if self.earlier.find(each) is None:
                continue
            self.mended += each.broken != ""
            if is_asked(each):
                self.rows += 1
                self.bytes += census.shown_bytes(each)

    def found(self) -> KeptItems:
        asked = self.earlier.asked
        return KeptItems(rows=self.rows, mended=self.mended, bytes=self.bytes, asked=asked)
