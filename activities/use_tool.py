"""`use_tool`: one call of a tool that a model made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.asking.heartbeat import beating
from activities.asking.keys import key_of
from activities.repositories.scratch import Snapshots
from activities.seam import Journal, Store
from activities.toolset import running
from activities.toolset.tool import Result, Tool
from activities.turns.conversation import arguments_of
from activities.turns.place import Place
from orchestrator.calls.turn import ToolResult, UseMaterial
from orchestrator.errors import PossiblyBilled

MAY_HAVE_RUN = (
    "This call was begun before, and its worker died: whether it has taken effect is not known. It"
    " was not run again. Find out before you repeat it."
)


@dataclass(frozen=True)
class Tools:
    """The tools of this worker, by name, and where they run."""

    tools: Mapping[str, Tool]
    store: Store
    snapshots: Snapshots
    journal: Journal
    scratch: Path
    settings: Callable[[str], str]

    @activity.defn
    async def use_tool(self, material: UseMaterial) -> ToolResult:
        """Run one tool. What it brought is recorded: it is not run again when only the completion
        was lost, and never when it has effects and may have run.
        """
        key = key_of(material.model_dump_json())
        recorded = await self.journal.answer(key)
        if recorded is not None:
            return ToolResult.model_validate_json(recorded)
        name = material.use.name
        tool = self.tools.get(name) if name in material.tools else None
        async with beating():
            result = await self._run(tool, material, key)
        content = result.text.encode()
        made = ToolResult(
            use_id=material.use.id,
            digest=await self.store.put(content),
            size=len(content),
            is_error=result.is_error,
        )
        await self.journal.record(key, made.model_dump_json())
        return made

    async def _run(self, tool: Tool | None, material: UseMaterial, key: str) -> Result:
        if tool is not None and tool.effects and not tool.idempotent:
            try:
                await self.journal.mark_sent(key)
            except PossiblyBilled:
                return Result(MAY_HAVE_RUN, is_error=True)
        here = Place(
            key=key,
            inputs={pinned.name: pinned for pinned in material.work.inputs},
            store=self.store,
            snapshots=self.snapshots,
            journal=self.journal,
            scratch=self.scratch,
            settings=self.settings,
        )
        arguments = await arguments_of(self.store, material.transcript, material.use.id)
        return await running.call(tool, material.use.name, here, arguments)
