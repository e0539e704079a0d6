"""Open a map: read its input once, and keep the items in blobs, chunk by chunk."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from holdfast.activities.mapping.census import digest_of
from holdfast.activities.mapping.scanning import Inputs, census_for
from holdfast.activities.mapping.sources import Names, NotItems, Raw, Wanted
from holdfast.calls.items import is_short, shown_text
from holdfast.calls.row import row_prompt
from holdfast.calls.rows import Chunk, Item, Items, MapTable, OpenMaterial, Outcome
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import PinnedInput
from holdfast.contracts.errors import BlobLost, CallRefused
from holdfast.contracts.plans import MapSpec
from holdfast.ports import Store
from holdfast.text import one_line

MERGED_BYTES = 8_000 * 4
"""Bytes of the texts that are merged together."""
OUTCOMES_BYTES = 8 * 1024 * 1024
"""Bytes of one blob of outcomes."""


def lines_of(content: bytes) -> Iterator[bytes]:
    """Yield the lines of a blob of items or outcomes."""
    return (line for line in content.split(b"\n") if line)


def dump_line(value: Item | Outcome) -> bytes:
    return value.model_dump_json(exclude_defaults=True).encode() + b"\n"


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
    before, unused = await _before(inputs.store, material)
    kept: dict[int, tuple[int, str]] = {}

    def look(raws: Iterable[Raw | Names]) -> list[Item]:
        items = census.take(raws)
        for item in items if before else ():
            if not item.broken and item.same_as is None:
                old = before.places.get(digest_of(item.fields)) if before else None
                if old is not None:
                    kept[old] = (item.n, item.id)
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
    places = sorted(n for n, _ in kept.values())
    if before and not places:
        unused = "no item is equal to one of the earlier run that was complete"
    return Items(
        chunks=tuple(chunks.done),
        fields=census.fields if not census.shown else census.shown,
        count=census.count,
        broken=census.broken,
        repeated=census.repeated,
        samples=tuple(census.samples),
        reused=len(places),
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


# ---------------------------------------------------------------- rows of an earlier run


@dataclass(frozen=True)
class Before:
    """The complete rows of an earlier map in which the same was asked."""

    places: dict[bytes, int]
    """The earlier item of each content."""
    outcomes: tuple[str, ...]
    last: dict[int, int]
    """Which of these blobs has the last outcome of an earlier item, which is complete."""

    async def take_over(self, store: Store, kept: dict[int, tuple[int, str]]) -> tuple[str, ...]:
        """Store the outcomes of these items under their new places, as blobs, and return them."""
        for old in [old for old in kept if old not in self.last]:
            del kept[old]
        blobs, part, size = [], [], 0
        for number, digest in enumerate(self.outcomes):
            content = await store.get(digest)
            for line in lines_of(content):
                found = Outcome.model_validate_json(line)
                if found.n not in kept or self.last[found.n] != number:
                    continue
                n, name = kept[found.n]
                free = {
                    "n": n,
                    "id": name,
                    "tries": 0,
                    "dollars": Decimal(0),
                    "tokens": 0,
                    "raw": "",
                }
                part.append(dump_line(found.model_copy(update=free)))
                size += len(part[-1])
                if size > OUTCOMES_BYTES:
                    blobs.append(await store.put(b"".join(part)))
                    part, size = [], 0
        if part:
            blobs.append(await store.put(b"".join(part)))
        return tuple(blobs)


async def _before(store: Store, material: OpenMaterial) -> tuple[Before | None, str]:
    """Return what can be taken over, and why nothing can."""
    if not material.reuse:
        return None, ""
    try:
        table = MapTable.model_validate_json(await store.get(material.reuse))
        if table.asked != asked_of(material.work):
            return None, (
                "the earlier run asked something else: its instruction, schema, role, tier, checks"
                " or other inputs differ"
            )
        last: dict[int, int] = {}
        for number, digest in enumerate(table.outcomes):
            content = await store.get(digest)
            await asyncio.to_thread(_note_complete, content, number, last)
        places: dict[bytes, int] = {}
        for chunk in table.items:
            content = await store.get(chunk.digest)
            await asyncio.to_thread(_note_places, content, places, last)
    except BlobLost:
        return None, "what the earlier run kept of its rows is no longer in the store"
    return Before(places, table.outcomes, last), ""


def _note_complete(content: bytes, number: int, last: dict[int, int]) -> None:
    for line in lines_of(content):
        found = Outcome.model_validate_json(line)
        if found.status == "complete":
            last[found.n] = number
        else:
            last.pop(found.n, None)


def _note_places(content: bytes, places: dict[bytes, int], last: dict[int, int]) -> None:
    for line in lines_of(content):
        item = Item.model_validate_json(line)
        if item.n in last:
            places.setdefault(digest_of(item.fields), item.n)


def asked_of(work: WorkMaterial) -> str:
    """Return the fingerprint of what a map asks of each item."""
    subtask, spec = work.subtask, work.subtask.map
    assert spec is not None, "only maps have one"
    said = {
        "instruction": subtask.instruction,
        "criteria": subtask.acceptance_criteria,
        "checks": [each.model_dump() for each in subtask.checks],
        "tier": subtask.tier,
        "role": [subtask.role, work.prompt, work.composed],
        "form": spec.result or work.form,
        "inputs": sorted(
            (each.name, each.digest) for each in work.inputs if each.name != spec.over
        ),
        "found": [(each.subtask_id, each.content) for each in work.dependencies],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


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
