"""Open a map: read its input once, and keep the items in blobs, chunk by chunk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.activities.mapping.blobs import dump_line
from holdfast.activities.mapping.earlier import is_asked, read_earlier
from holdfast.activities.mapping.scanning import Inputs, census_for
from holdfast.activities.mapping.sources import Names, NotItems, Raw, Wanted
from holdfast.calls.row import row_prompt
from holdfast.calls.rows import (
    NONE_EQUAL,
    Chunk,
    Item,
    Items,
    OpenMaterial,
    asked_of,
)
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import PinnedInput
from holdfast.contracts.errors import CallRefused
from holdfast.contracts.plans import MapSpec
from holdfast.ports import Store
from holdfast.text import one_line


@dataclass
class Chunks:
    """Puts items into chunks, and chunks into the store; of each chunk it keeps the description."""

    store: Store
    most_items: int
    most_bytes: int
    done: list[Chunk] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _bytes: int = 0
    _first: int = 0

    async def add(self, items: Iterable[Item]) -> None:
        """Take in items, in the order of their places."""
        for item in items:
            line = dump_line(item)
            if self._lines and (
                len(self._lines) >= self.most_items or self._bytes + len(line) > self.most_bytes
            ):
                await self.flush()
            if not self._lines:
                self._first = item.n
            self._lines.append(line)
            self._bytes += len(line)
            if not item.broken and item.same_as is None:
                self._sizes.append(len(row_prompt(item).encode()))

    async def flush(self) -> None:
        """Store what is not stored yet."""
        if self._lines:
            digest = await self.store.put(b"".join(self._lines))
            self.done.append(
                Chunk(
                    digest=digest,
                    first=self._first,
                    items=len(self._lines),
                    asked=len(self._sizes),
                    bytes=sum(self._sizes),
                    longest=max(self._sizes, default=0),
                )
            )
        self._lines, self._sizes, self._bytes = [], [], 0


async def open_items(inputs: Inputs, material: OpenMaterial) -> Items:
    """Return the items of a map's input, in chunks. Raise CallRefused for an input that cannot be
    mapped as its plan says.
    """
    spec, pinned = mapped(material.work)
    census = census_for(material.work.subtask, spec)
    chunks = Chunks(inputs.store, material.chunk_items, material.chunk_bytes)
    before, unused = await read_earlier(inputs.store, material.reuse, asked_of(material.work))
    kept: dict[int, Item] = {}

    def look(raws: Iterable[Raw | Names]) -> list[Item]:
        items = census.take(raws)
        if before is not None:
            found = ((before.find(item), item) for item in items)
            kept.update((old, item) for old, item in found if old is not None)
        return items

    async def take(raws: Iterable[Raw | Names]) -> None:
        await chunks.add(await asyncio.to_thread(look, raws))

    wanted = Wanted(by=spec.by, fields=census.shown, id=spec.id)
    try:
        await inputs.read(pinned, wanted, take)
        census.end()
    except NotItems as error:
        raise CallRefused(f"input {one_line(pinned.name)!r} {error}") from None
    await chunks.flush()
    outcomes = await before.take_over(inputs.store, kept) if before else ()
    places = sorted(item.n for item in kept.values() if is_asked(item))
    mended = sum(item.broken != "" for item in kept.values())
    if before and not kept:
        unused = NONE_EQUAL
    return Items(
        chunks=tuple(chunks.done),
        fields=census.fields if not census.shown else census.shown,
        count=census.count,
        broken=census.broken - mended,
        repeated=census.repeated,
        samples=tuple(census.samples),
        reused=len(places) + mended,
        outcomes=outcomes,
        kept=tuple(places),
        unused=unused,
    )


def mapped(work: WorkMaterial) -> tuple[MapSpec, PinnedInput]:
    """Return what a subtask says of its map, and the input that it is over. Raise CallRefused."""
    spec = work.subtask.map
    if spec is None:
        raise CallRefused(f"subtask {work.subtask.id} is no map")
    for pinned in work.inputs:
        if pinned.name == spec.over:
            return spec, pinned
    known = ", ".join(each.name for each in work.inputs) or "none"
    raise CallRefused(f"there is no input {one_line(spec.over)!r:.100} to map; there are: {known}")
