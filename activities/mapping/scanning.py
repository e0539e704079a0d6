"""Look at what a map would do, before a cent is spent: how many items, how large, and what is wrong
with them. Inputs that are mapped may be far larger than others: none is held whole.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from holdfast.activities.mapping.census import AROUND_BYTES, MOST, Census
from holdfast.activities.mapping.earlier import Kept, read_earlier
from holdfast.activities.mapping.sources import (
    Names,
    NotItems,
    Raw,
    Taking,
    TooSlow,
    Wanted,
    kind_of_file,
    kind_of_open,
    read_file,
    read_folder,
)
from holdfast.activities.repositories.manifest import Manifest
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.calls.items import SHOWN_BYTES, named_fields
from holdfast.contracts import ItemsFound, KeptItems, PinnedInput, Subtask
from holdfast.contracts.errors import BadGoal, LensFailed
from holdfast.contracts.plans import MapSpec
from holdfast.ports import Store
from holdfast.text import one_line

PEEK_SECONDS = 10.0
"""How long an input is looked at that nobody has said is to be mapped."""
FOLDER_SECONDS = 60.0
"""How long the documents of a folder are read before it is mapped; beyond it they are counted."""
ITEM_BYTES = 16 * 1024 * 1024
"""Bytes of an item whose model is shown only some of its fields."""
LARGEST = 10 * 1024**3
"""Bytes of a file that is mapped."""
PREVIEW_BYTES = 2_000
Read = Callable[[Wanted, Taking], Awaitable[None]]
"""Reads the items of one input."""
FindEarlier = Callable[[Subtask], Awaitable[Kept | KeptItems | None]]
"""Finds what a map may take over of an earlier run, or why nothing."""
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Inputs:
    """Reads the pinned inputs of runs item by item."""

    store: Store
    snapshots: Snapshots

    async def read(self, pinned: PinnedInput, wanted: Wanted, take: Taking) -> None:
        """Read the items of an input. Raise NotItems if it has none of this kind, BlobLost if the
        store has lost it.
        """
        if not pinned.is_folder:
            async with self.store.file(pinned.digest) as path:
                await read_file(path, pinned.path, wanted, take)
            return
        if wanted.by != "files":
            raise NotItems(f"is a {pinned.kind}, which has no {wanted.by}; map it by files")
        try:
            snapshot = await self.snapshots.open(pinned.digest)
        except LensFailed as error:
            raise NotItems(f"cannot be read: {error.message}") from None
        try:
            async with asyncio.timeout(wanted.seconds):
                await read_folder(snapshot, take)
        except TimeoutError:
            raise TooSlow(f"takes longer than {wanted.seconds:.0f} s to read") from None

    async def scan(
        self, pinned: PinnedInput, subtasks: Iterable[Subtask], reuse: Mapping[str, str] = NOTHING
    ) -> ItemsFound | None:
        """Return what the maps among these subtasks find in an input; None: none is over it.
        `reuse`: blobs of the tables of an earlier run's maps, by subtask. Raise BadGoal for what
        one of them cannot be carried out on.
        """
        seconds = FOLDER_SECONDS if pinned.is_folder else Wanted.seconds
        earlier = partial(self._earlier, reuse)
        try:
            return await scan_maps(
                partial(self.read, pinned), pinned.name, subtasks, seconds, earlier
            )
        except TooSlow as error:
            # Thousands of documents: what they say is no longer than they are.
            if pinned.is_folder and (found := await self._count_files(pinned)):
                return found
            raise BadGoal(f"input {one_line(pinned.name)!r} {error}") from None
        except NotItems as error:
            raise BadGoal(f"input {one_line(pinned.name)!r} {error}") from None

    async def _earlier(self, reuse: Mapping[str, str], subtask: Subtask) -> Kept | KeptItems | None:
        """Return what counts the rows that a map may take over; KeptItems: why it takes none; None:
        it is not to take any.
        """
        if not reuse:
            return None
        if subtask.id not in reuse:
            return KeptItems(unused=f"it has no rows of {one_line(subtask.id)}")
        earlier, why = await read_earlier(self.store, reuse[subtask.id])
        return KeptItems(unused=why) if earlier is None else Kept(earlier)

    async def peek(self, pinned: PinnedInput) -> ItemsFound | None:
        """Return what an input has that a planner may want to map, of tables, records and folders;
        None: nothing.
        """
        if pinned.is_folder:
            return await self._count_files(pinned) if pinned.kind == "folder" else None
        async with self.store.file(pinned.digest) as path:
            kind = await asyncio.to_thread(kind_of_file, path, pinned.path)
        if kind.unit not in ("records", "rows"):
            return None
        census, whole = Census(by=kind.unit, counts_only=True), False
        # What it cannot be, it need not be.
        with suppress(NotItems):
            wanted = Wanted(by=kind.unit, seconds=PEEK_SECONDS)
            await self.read(pinned, wanted, partial(_look, census))
            whole = True
        return census.found(whole=whole) if census.count > census.broken else None

    async def pin_large(self, name: str, value: str, file: BinaryIO) -> PinnedInput | None:
        """Pin an open file, piece by piece; None for one that is pinned as any other input is.
        Raise BadGoal if it changes meanwhile.
        """
        before = os.fstat(file.fileno())
        if before.st_size > LARGEST:
            raise BadGoal(f"input {name!r} is larger than {LARGEST >> 30} GiB; give it in parts")
        kind = await asyncio.to_thread(kind_of_open, file, value)
        if kind.unit not in ("records", "rows", "lines") or before.st_size == 0:
            return None
        digest, size = await self.store.put_file(file)
        after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (size, after.st_mtime_ns):
            raise BadGoal(
                f"input {name!r}: {value!r:.300} changed while it was read; start again once nobody"
                " writes to it"
            )
        async with self.store.file(digest) as path:
            start = await asyncio.to_thread(_start_of, path)
        return PinnedInput(
            name=name,
            kind="file",
            size=size,
            digest=digest,
            preview=start if kind.is_text else "",
            path=value,
            # It stands in no prompt.
            reader="read_file" if kind.unit == "lines" else "query_data",
        )

    async def _count_files(self, pinned: PinnedInput) -> ItemsFound | None:
        """Return what the files of a folder are by their sizes: none is opened."""
        content = await self.store.get(pinned.digest)
        files = await asyncio.to_thread(_sizes, content)
        if not files:
            return None
        most = max(files)
        return ItemsFound(
            by="files",
            count=len(files),
            fields=("text",),
            bytes={"text": sum(files)},
            most={"text": most},
            longest=most,
            around=AROUND_BYTES,
        )


def _sizes(manifest: bytes) -> list[int]:
    return [each.size for each in Manifest.model_validate_json(manifest).files]


def census_for(subtask: Subtask, spec: MapSpec) -> Census:
    """Return what looks at the items of a subtask."""
    return Census(
        by=spec.by,
        shown=named_fields(subtask.instruction),
        id=spec.id,
        most=min(spec.most, MOST),
    )


async def _no_earlier(_: Subtask) -> None:
    return None


async def scan_maps(
    read: Read,
    name: str,
    subtasks: Iterable[Subtask],
    seconds: float = Wanted.seconds,
    earlier: FindEarlier = _no_earlier,
) -> ItemsFound | None:
    """Return what the maps over one input find in it, all fields included, so that other maps of
    the plan can be priced as well; None: there is none. Raise NotItems.
    """
    found: ItemsFound | None = None
    kept = dict[str, KeptItems]()
    for subtask in subtasks:
        spec = subtask.map
        if spec is None or spec.over != name:
            continue
        if found is not None and found.by != spec.by:
            raise NotItems(
                f"is mapped by {found.by} and, by {subtask.id}, by {spec.by}; give it twice, under"
                " two names"
            )
        before = await earlier(subtask)
        counting = before if isinstance(before, Kept) else None
        # Rows are compared as they are shown, without secrets.
        census = replace(census_for(subtask, spec), counts_only=counting is None)
        most = ITEM_BYTES if census.shown else SHOWN_BYTES
        wanted = Wanted(by=spec.by, id=spec.id, most=most, seconds=seconds)
        await read(wanted, partial(_look, census, kept=counting))
        census.end()
        if before is not None:
            kept[subtask.id] = before.found() if isinstance(before, Kept) else before
        new = census.found(whole=True)
        # Fewer are equal for the map that shows more of each.
        found = new if found is None or new.repeated < found.repeated else found
    return found and found.model_copy(update={"kept": kept})


async def check_file(path: Path, name: str, subtasks: Iterable[Subtask], seconds: float) -> None:
    """Raise NotItems for a file that the maps over this input cannot be carried out on, as far as
    that can be seen within some seconds.
    """
    with suppress(TooSlow):
        await scan_maps(partial(read_file, path, str(path)), name, subtasks, seconds)


async def _look(census: Census, raws: Iterable[Raw | Names], kept: Kept | None = None) -> None:
    items = await asyncio.to_thread(census.take, raws)
    if kept is not None:
        await asyncio.to_thread(kept.count, census, items)


def _start_of(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(PREVIEW_BYTES).decode("utf-8", "ignore")
