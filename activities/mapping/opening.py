"""Open a map: read its input once, and keep the items in blobs, chunk by chunk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.activities.mapping.blobs import dump_line, lines_of
from holdfast.activities.mapping.earlier import is_asked, read_earlier
from holdfast.activities.mapping.scanning import Inputs, census_for
from holdfast.activities.mapping.sources import Names, NotItems, Raw, Wanted
from holdfast.calls.items import is_short, shown_text
from holdfast.calls.row import row_prompt
from holdfast.calls.rows import (
    NONE_EQUAL,
    Chunk,
    Item,
    Items,
    OpenMaterial,
    Outcome,
    asked_of,
)
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import PinnedInput
from holdfast.contracts.errors import CallRefused
from holdfast.contracts.plans import MapSpec
from holdfast.ports import Store
from holdfast.text import one_line

MERGED_BYTES = 8_000 * 4
"""Bytes of the texts that are merged together."""


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


# ---------------------------------------------------------------- texts to merge


BETWEEN = " … "
"""Between the first and the last id of texts that are merged."""
LABEL_LETTERS = 40
"""Characters of a field that stands beside an id."""
LABELS = 20
"""Items whose ids stand above one text."""


async def open_texts(store: Store, material: OpenMaterial) -> Items:
    """Return groups of the texts of outcomes as items, in their order, each under its items."""
    found: dict[int, Outcome] = {}
    for digest in material.merging:
        for line in lines_of(await store.get(digest)):
            outcome = Outcome.model_validate_json(line)
            if outcome.result is not None and outcome.status in ("complete", "supplied"):
                found[outcome.n] = outcome
            else:
                found.pop(outcome.n, None)
    ordered = [found[n] for n in sorted(found)]
    if len(ordered) <= 1:
        text = "".join(shown_text(each.result) for each in ordered)
        return Items(chunks=(), fields=("text",), count=0, text=text)
    labels: dict[int, list[str]] = {}
    for chunk in material.named:
        content = await store.get(chunk.digest)
        await asyncio.to_thread(_label, content, labels)
    texts = [_labelled(each, labels.get(each.n, [])) for each in ordered]
    chunks = Chunks(store, material.chunk_items, material.chunk_bytes)
    groups = list(_groups(texts))
    for n, (first, group) in enumerate(groups):
        ids = (ordered[first].id, ordered[first + len(group) - 1].id)
        span = BETWEEN.join((ids[0].partition(BETWEEN)[0], ids[1].rpartition(BETWEEN)[2]))
        place = f"texts {first + 1} to {first + len(group)}"
        await chunks.add([Item(n=n, id=span, place=place, fields={"text": "\n\n".join(group)})])
    await chunks.flush()
    return Items(chunks=tuple(chunks.done), fields=("text",), count=len(groups))


def _label(content: bytes, labels: dict[int, list[str]]) -> None:
    """Add the label of each item of a blob to those of its text."""
    for line in lines_of(content):
        item = Item.model_validate_json(line)
        said = {name: value for name, value in item.fields.items() if is_short(value)}
        named = [
            f"{one_line(name)}: {text}"
            for name, value in (said | item.beside).items()
            if (text := one_line(shown_text(value))) not in ("", "null", item.id)
            and len(text) <= LABEL_LETTERS
        ]
        place = item.n if item.same_as is None else item.same_as
        labels.setdefault(place, []).append(f"[{'; '.join((one_line(item.id), *named))}]")


def _labelled(outcome: Outcome, labels: list[str]) -> str:
    """Return a text under the items that it is about."""
    more = len(labels) - LABELS
    shown = [*labels[:LABELS], *([f"[and {more:,} equal ones]"] if more > 0 else [])]
    return f"{' '.join(shown) or f'[{one_line(outcome.id)}]'} {shown_text(outcome.result)}"


def _groups(texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield groups of at least two texts, and of no more bytes than are merged together; the place
    of its first one with each.
    """
    first, group, size = 0, list[str](), 0
    for n, text in enumerate(texts):
        bytes = len(text.encode())
        if len(group) >= 2 and size + bytes > MERGED_BYTES:
            yield first, group
            first, group, size = n, [], 0
        group.append(text)
        size += bytes
    yield first, group
