"""`examine`: the lens of a role without a model, which the supervisor schedules itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from holdfast.activities.asking.heartbeat import beating
from holdfast.activities.asking.journal import key_of
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft, Reply
from holdfast.contracts.errors import LensFailed
from holdfast.ports import Journal, Lens


@dataclass(frozen=True)
class Lenses:
    """The lenses of this worker, by name."""

    lenses: Mapping[str, Lens]
    journal: Journal

    @activity.defn
    async def examine(self, material: WorkMaterial) -> Reply[Draft]:
        """Look at a subtask's inputs through one lens. What it found is recorded, and not looked
        for again if only the completion was lost. Raise LensFailed if the lens cannot do its work.
        """
        lens = self.lenses.get(material.lens)
        if lens is None:
            known = ", ".join(sorted(self.lenses)) or "none"
            raise LensFailed(f"unknown lens {material.lens!r}; this worker has: {known}")
        key = key_of(material.model_dump_json())
        recorded = await self.journal.answer(key)
        if recorded is not None:
            return Reply(value=Draft.model_validate_json(recorded))
        try:
            async with beating(), asyncio.timeout(material.timeout_seconds):
                draft = await lens(material)
        except TimeoutError:
            limit = material.timeout_seconds
            raise LensFailed(f"{material.lens}: no result within {limit} s") from None
        await self.journal.record(key, draft.model_dump_json())
        return Reply(value=draft)
