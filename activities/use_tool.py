"""`use_tool`: one call of a tool that a model made."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from activities.asking.heartbeat import beating
from activities.asking.keys import key_of
from activities.seam import CallTool, Journal, Store
from orchestrator.calls.turn import ToolResult, UseMaterial


@dataclass(frozen=True)
class Tools:
    """What runs the tools of this worker, and what remembers that they ran."""

    call: CallTool
    store: Store
    journal: Journal

    @activity.defn
    async def use_tool(self, material: UseMaterial) -> ToolResult:
        """Run one tool. What it brought is recorded: it is not run again when only the completion
        was lost, and never when it has effects and may have run.
        """
        key = key_of(material.model_dump_json())
        recorded = await self.journal.answer(key)
        if recorded is not None:
            return ToolResult.model_validate_json(recorded)
        async with beating():
            text, is_error = await self.call(material, key)
        content = text.encode()
        made = ToolResult(
            use_id=material.use.id,
            digest=await self.store.put(content),
            size=len(content),
            is_error=is_error,
        )
        await self.journal.record(key, made.model_dump_json())
        return made
