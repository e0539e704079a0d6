"""Put texts of rows into groups, each text under its items, for the next level of merging. What is
in memory is one group.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from holdfast.activities.mapping.blobs import lines_of
from holdfast.activities.mapping.opening import Chunks
from holdfast.activities.mapping.standing import DONE, Standing, fill
from holdfast.calls.items import is_short, named_fields, shown_text
from holdfast.calls.rows import Chunk, Item, Items, OpenMaterial, Outcome
from holdfast.contracts.policies import MERGED_TOKENS
from holdfast.ports import Store
from holdfast.text import one_line

MERGED_BYTES = MERGED_TOKENS * 4
"""Bytes of the texts that are merged together."""
BETWEEN = " … "
"""Between the first and the last id of texts that are merged."""
LABEL_LETTERS = 40
"""Characters of a field that stands beside an id."""
LABELS = 20
"""Items whose ids stand above one text."""
MOST_SPANS = 20
"""Groups that are named of those whose texts are too long to be kept."""

Text = tuple[str, str]
"""The id of an item, and its text under its items."""


async def open_texts(store: Store, material: OpenMaterial) -> Items:
    """Return groups of the texts of outcomes as items, in their order, each under its items; and
    the groups of the level before that nobody merged, as they were.
    """
    with tempfile.TemporaryDirectory(prefix="texts-") as folder:
        standing = Standing(Path(folder) / "texts.sqlite")
        try:
            await fill(standing, store, material.named, material.merging)
            await asyncio.to_thread(standing.index)
            unmerged = await _unmerged(standing, store, material)
            texts = _texts(standing)
            first = await asyncio.to_thread(lambda: [*islice(texts, 2)])
            if len(first) < 2:
                text = "".join(shown_text(outcome.result) for outcome, _ in first)
                return Items(chunks=(), fields=("text",), count=0, text=text, unmerged=unmerged)
            names = named_fields(material.work.subtask.instruction)
            labelled = (_labelled(*each, names) for each in chain(first, texts))
            chunks, count = await _store_groups(store, material, labelled)
        finally:
            standing.close()
    return Items(chunks=chunks, fields=("text",), count=count, unmerged=unmerged)


def _texts(standing: Standing) -> Iterator[tuple[Outcome, list[Item]]]:
    return (each for each in standing.texts() if each[0].result is not None)


async def _store_groups(
    store: Store, material: OpenMaterial, texts: Iterable[Text]
) -> tuple[tuple[Chunk, ...], int]:
    chunks = Chunks(store, material.chunk_items, material.chunk_bytes)
    groups, count, first = _groups(texts), 0, 1
    while (group := await asyncio.to_thread(next, groups, None)) is not None:
        ids = (group[0][0], group[-1][0])
        span = BETWEEN.join((ids[0].partition(BETWEEN)[0], ids[1].rpartition(BETWEEN)[2]))
        place = f"texts {first} to {first + len(group) - 1}"
        text = "\n\n".join(text for _, text in group)
        await chunks.add([Item(n=count, id=span, place=place, fields={"text": text})])
        count, first = count + 1, first + len(group)
    await chunks.flush()
    return tuple(chunks.done), count


def _groups(texts: Iterable[Text]) -> Iterator[list[Text]]:
    """Yield groups of at least two texts, but for the last one, and of no more bytes than are
    merged together.
    """
    group, size = list[Text](), 0
    for id, text in texts:
        bytes = len(text.encode())
        if len(group) >= 2 and size + bytes > MERGED_BYTES:
            yield group
            group, size = [], 0
        group.append((id, text))
        size += bytes
    yield group


def _labelled(outcome: Outcome, items: list[Item], names: Collection[str]) -> Text:
    """Return a text under the items that it is about, with the fields of these names; none: with
    all of them.
    """
    more = len(items) - LABELS
    shown = [_label(each, names) for each in items[:LABELS]]
    shown += [f"[and {more:,} equal ones]"] if more > 0 else []
    above = " ".join(shown) or f"[{one_line(outcome.id)}]"
    return outcome.id, f"{above} {shown_text(outcome.result)}"


def _label(item: Item, names: Collection[str]) -> str:
    named = [
        f"{one_line(name)}: {text}"
        for name, value in item.beside.items()
        if (not names or name in names)
        and is_short(value)
        and (text := one_line(shown_text(value))) not in ("", "null", item.id)
        and len(text) <= LABEL_LETTERS
    ]
    return f"[{'; '.join((one_line(item.id), *named))}]"


async def _unmerged(standing: Standing, store: Store, material: OpenMaterial) -> str:
    """Return the texts of groups that nobody merged, as far as there is room, and the ids of the
    others; empty: all were merged.
    """
    kept, named, size = list[str](), list[str](), 0
    for chunk in material.groups:
        for line in lines_of(await store.get(chunk.digest)):
            item = Item.model_validate_json(line)
            if standing.own_status(item.n) in DONE:
                continue
            text = str(item.fields["text"])
            size += len(text.encode())
            if size <= material.unmerged_bytes:
                kept.append(text)
            else:
                named.append(one_line(item.id))
    if named:
        more = len(named) - MOST_SPANS
        listed = "; ".join(named[:MOST_SPANS]) + (f"; {more:,} more" if more > 0 else "")
        kept.append(f"(Too long to stand here: the texts of {listed}; the table has them.)")
    return "\n\n".join(kept)
