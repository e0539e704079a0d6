"""`use_tool`: one call of a tool that a model made."""

from __future__ import annotations

import json
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
        """Run one tool. What it brought is recorded before all else: it is not run again when only
        the completion was lost or the store failed, and never when it has effects and may have run.
        """
        key = key_of(material.model_dump_json(), material.run)
        async with beating():
            recorded = await self.journal.answer(key)
            if recorded is None:
                result = await self._run(material, key)
                recorded = json.dumps([result.is_error, result.text])
                await self.journal.record(key, recorded)
            is_error, text = json.loads(recorded)
            content = text.encode()
            digest = await self.store.put(content)
        return ToolResult(
            use_id=material.use.id, digest=digest, size=len(content), is_error=is_error
        )

    async def _run(self, material: UseMaterial, key: str) -> Result:
        name = material.use.name
        tool = self.tools.get(name) if name in material.tools else None
        # Before the mark: what cannot be read has surely not run.
        arguments = await arguments_of(self.store, material.transcript, material.use.id)
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
        return await running.call(tool, name, here, arguments)
