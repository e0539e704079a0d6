"""`use_tool`: the tool of a role without a model, scheduled by the supervisor itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from activities.asking.heartbeat import beating
from activities.asking.keys import key_of
from activities.seam import Journal, Tool
from orchestrator.calls.work import WorkMaterial
from orchestrator.contracts import Draft, Reply
from orchestrator.errors import ToolFailed


@dataclass(frozen=True)
class Tools:
    """The tools of this worker, by name."""

    tools: Mapping[str, Tool]
    journal: Journal

    @activity.defn
    async def use_tool(self, material: WorkMaterial) -> Reply[Draft]:
        """Run one tool over a subtask. A finished run is recorded: it is not repeated when only the
        completion was lost. ToolFailed when the tool cannot do its work.
        """
        tool = self.tools.get(material.tool)
        if tool is None:
            known = ", ".join(sorted(self.tools)) or "none"
            raise ToolFailed(f"unknown tool {material.tool!r}; this worker has: {known}")
        key = key_of(material.model_dump_json())
        recorded = await self.journal.answer(key)
        if recorded is not None:
            return Reply(value=Draft.model_validate_json(recorded))
        try:
            async with beating(), asyncio.timeout(material.timeout_seconds):
                draft = await tool(material)
        except TimeoutError:
            limit = material.timeout_seconds
            raise ToolFailed(f"{material.tool}: no result within {limit} s") from None
        await self.journal.record(key, draft.model_dump_json())
        return Reply(value=draft)
