"""Maps over small files, opened and closed as a worker does it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from holdfast.activities.mapping.blobs import dump_line, lines_of
from holdfast.activities.snapshots import plain
from holdfast.calls.rows import (
    CloseMaterial,
    Item,
    Items,
    MapTable,
    OpenMaterial,
    Outcome,
    RowOrder,
    Unanswered,
)
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import GoalInput, PinnedInput, Subtask
from holdfast.contracts.plans import MapSpec
from holdfast.untrusted.roots import Root
from mapping import maps_on


@dataclass
class Mapping:
    """A store, and the activities of maps over it."""

    folder: Path

    def __post_init__(self) -> None:
        self.maps = maps_on(self.folder, None)
        self.store, self.inputs = self.maps.store, self.maps.inputs

    async def pin(self, content: bytes, name: str = "given.jsonl") -> PinnedInput:
        digest, size = await self.store.put_file(io.BytesIO(content))
        return PinnedInput(name="given", kind="file", size=size, digest=digest, path=f"/x/{name}")

    async def pin_folder(self, path: Path) -> PinnedInput:
        given = GoalInput(name="given", kind="folder", value=str(path))
        return await plain.take(given, (Root.of(path),), self.store)

    def work(
        self, pinned: PinnedInput, by: str, instruction: str = "Label it", **spec: Any
    ) -> WorkMaterial:
        over = MapSpec.model_validate({"over": "given", "by": by, **spec})
        subtask = Subtask(id="label", title="t", instruction=instruction, role="reader", map=over)
        return WorkMaterial(subtask=subtask, inputs=(pinned,))

    async def open(self, work: WorkMaterial, items: int = 100, reuse: str = "") -> Items:
        material = OpenMaterial(work=work, chunk_items=items, chunk_bytes=8 << 20, reuse=reuse)
        return await ActivityEnvironment().run(self.maps.open_map, material)

    async def items(self, opened: Items) -> list[Item]:
        blobs = [await self.store.get(each.digest) for each in opened.chunks]
        return [Item.model_validate_json(line) for blob in blobs for line in lines_of(blob)]

    async def outcomes(self, *outcomes: Outcome) -> str:
        return await self.store.put(b"".join(map(dump_line, outcomes)))

    async def close(
        self,
        work: WorkMaterial,
        opened: Items,
        outcomes: Sequence[str],
        *orders: RowOrder,
        unanswered: tuple[Unanswered, ...] = (),
        waiting: tuple[int, ...] = (),
    ) -> MapTable:
        material = CloseMaterial(
            work=work,
            items=opened.chunks,
            outcomes=tuple(outcomes),
            unanswered=unanswered,
            waiting=waiting,
            orders=orders,
        )
        return await ActivityEnvironment().run(self.maps.close_map, material)
