"""`use_tool`: one call of a tool that a model made."""

from __future__ import annotations

import json
from dataclasses import dataclass

from temporalio import activity

from holdfast.activities.asking.heartbeat import beating
from holdfast.activities.asking.journal import dump_undated, key_of
from holdfast.calls.turn import ToolResult, UseMaterial
from holdfast.contracts import MadeFile
from holdfast.ports import CallTool, Journal, Store
from holdfast.text import one_line
from holdfast.untrusted.redact import MARGIN, redact

REASON_LETTERS = 300
"""Characters of an error in the history: its beginning, and its end, where a traceback says what it
was.
"""


@dataclass(frozen=True)
class Tools:
    """Runs the tools of this worker, and remembers that they ran."""

    call: CallTool
    store: Store
    journal: Journal

    @activity.defn
    async def use_tool(self, material: UseMaterial) -> ToolResult:
        """Run one tool. Its result is recorded before anything else: it is not run again if only
        the completion was lost or the store failed, and never if it has effects and may have run.
        """
        key = key_of(dump_undated(material), material.run)
        async with beating():
            recorded = await self.journal.answer(key)
            if recorded is None:
                *said, made, opened = await self.call(material, key)
                kept = [each.model_dump() for each in made]
                recorded = json.dumps([*said, kept, opened])
                await self.journal.record(key, recorded)
            text, is_error, unknown, files, opened = json.loads(recorded)
            content = text.encode()
            digest = await self.store.put(content)
        return ToolResult(
            use_id=material.use.id,
            digest=digest,
            size=len(content),
            is_error=is_error,
            text=shorten_reason(text) if is_error else "",
            unknown=unknown,
            files=tuple(map(MadeFile.model_validate, files)),
            opened=tuple(opened),
        )


def shorten_reason(text: str) -> str:
    """Return why a tool failed, in one harmless line without secrets."""
    whole = REASON_LETTERS + MARGIN
    if len(text) <= whole:
        line = one_line(redact(text))
        return line if len(line) <= REASON_LETTERS else _ends(line, line)
    return _ends(one_line(redact(text[:whole])), one_line(redact(text[-whole:])))


def _ends(head: str, tail: str) -> str:
    half = REASON_LETTERS // 2 - 2
    return f"{head[:half]} … {tail[-half:]}"
