"""Look at what a map would do, before a cent is spent: how many items, how large, and what is wrong
with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.activities.mapping.census import AROUND_BYTES, MOST, Census
from holdfast.activities.mapping.sources import (
    Names,
    NotItems,
    Raw,
    Taking,
    Wanted,
    kind_of_file,
    read_file,
    read_folder,
    unit_for,
)
from holdfast.activities.repositories.manifest import Manifest
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.calls.items import SHOWN_BYTES, named_fields
from holdfast.contracts import ItemsFound, PinnedInput, Subtask
from holdfast.contracts.errors import LensFailed
from holdfast.contracts.plans import MapSpec
from holdfast.ports import Store

PEEK_SECONDS = 10.0
"""How long an input is looked at that nobody has said is to be mapped."""
ITEM_BYTES = 16 * 1024 * 1024
"""Bytes of an item whose model is shown only some of its fields."""


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
            path = await self.store.path_of(pinned.digest)
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
            raise NotItems(f"takes longer than {wanted.seconds:.0f} s to read") from None

    async def scan(self, pinned: PinnedInput, subtasks: Iterable[Subtask]) -> ItemsFound | None:
        """Return what the maps of a plan find in an input, and without any what one would; None:
        nothing, or none. Raise NotItems for what one of its maps cannot be carried out on.
        """
        maps = [(each, each.map) for each in subtasks if each.map and each.map.over == pinned.name]
        if not maps:
            return await self._peek(pinned)
        found = None
        for subtask, spec in maps:
            found = await self._scan(pinned, subtask, spec, found)
        return found

    async def _scan(
        self, pinned: PinnedInput, subtask: Subtask, spec: MapSpec, before: ItemsFound | None
    ) -> ItemsFound:
        if before is not None and before.by != spec.by:
            raise NotItems(
                f"is mapped by {before.by} and, by {subtask.id}, by {spec.by}; give it twice, under"
                " two names"
            )
        census = census_for(subtask, spec)
        # All fields are looked at: people, planners and other maps of the plan want to know them.
        wanted = Wanted(by=spec.by, id=spec.id, most=ITEM_BYTES if census.shown else SHOWN_BYTES)

        async def take(raws: Iterable[Raw | Names]) -> None:
            await asyncio.to_thread(census.take, raws)

        await self.read(pinned, wanted, take)
        census.end()
        return census.found(whole=True)

    async def _peek(self, pinned: PinnedInput) -> ItemsFound | None:
        """Return what an input has that a planner may want to map: of tables, records, folders."""
        if pinned.is_folder:
            return await self._count_files(pinned) if pinned.kind == "folder" else None
        path = await self.store.path_of(pinned.digest)
        kind = await asyncio.to_thread(kind_of_file, path, pinned.path)
        if kind.unit not in ("records", "rows"):
            return None
        census = Census(by=kind.unit)
        wanted = Wanted(by=kind.unit, seconds=PEEK_SECONDS)

        async def take(raws: Iterable[Raw | Names]) -> None:
            await asyncio.to_thread(census.take, raws)

        whole = False
        # What it cannot be, it need not be.
        with suppress(NotItems):
            await self.read(pinned, wanted, take)
            whole = True
        return census.found(whole=whole) if census.count > census.broken else None

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


async def check_file(path: Path, name: str, spec: MapSpec) -> None:
    """Raise NotItems for a file that has no items of this kind, by a look at its beginning."""
    unit_for(spec.by, await asyncio.to_thread(kind_of_file, path, name))
