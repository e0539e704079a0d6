"""The real worker with one role more: a reader with a tool whose results have 20 KB. As long as
STATE_DIR/hesitate is there, the agent of subtask tN comes to a halt before its Nth use of the
journal, which is noted in STATE_DIR/hesitating. Every run of the tool is noted in STATE_DIR/runs:
`python tests/support/loop_worker.py --embedded STATE_DIR`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from furnished import furnish
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.toolset.tool import Here, tool
from holdfast.serving import worker

RESULT = ("What is known of it stands here, in a sentence of its own. " * 400)[:20_000]
READER = """---
name: reader
description: Reads page after page
model: haiku
tools: look
---
You read.
"""
STATE = Path(sys.argv[sys.argv.index("--embedded") + 1])


@tool()
async def look(here: Here, page: int) -> str:
    """One page of what there is."""
    known = journal.answered(here.key)
    with (STATE / "runs").open("a") as noted:
        noted.write(f"{'again' if known else 'first'} {here.key}\n")
    return f"Page {page} for {here.key[-8:]}. {RESULT}"[:20_000]


class HaltingJournal(FileJournal):
    """Counts what each agent does with it, and comes to a halt at one place."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._uses: Counter[str] = Counter()

    def answered(self, key: str) -> bool:
        """Whether this was finished before."""
        return os.path.exists(self._path(key, "answer"))

    async def _halt(self, key: str, what: str) -> None:
        """Before the Nth use by tN's agent."""
        _, workflow, _, activity, *_ = key.split("/")
        subtask_id = workflow.split(".")[-2] if "." in workflow else ""
        if not subtask_id or not (STATE / "hesitate").exists():
            return
        self._uses[subtask_id] += 1
        if f"t{self._uses[subtask_id]}" == subtask_id:
            with (STATE / "hesitating").open("a") as noted:
                noted.write(f"{subtask_id} {what} {activity}\n")
            await asyncio.Event().wait()

    async def answer(self, key: str) -> str | None:
        await self._halt(key, "answer")
        return await super().answer(key)

    async def mark_sent(self, key: str) -> None:
        await self._halt(key, "mark")
        await super().mark_sent(key)

    async def record(self, key: str, answer: str) -> None:
        await self._halt(key, "record")
        await super().record(key, answer)


def made(directory: Path) -> HaltingJournal:
    global journal
    journal = HaltingJournal(directory)
    return journal


journal: HaltingJournal

if __name__ == "__main__":
    # Some agents stand in the middle of a tool: the others' tools need slots, too.
    worker.TOOL_SLOTS = 50
    furnish(STATE, "reader", READER, look)
    code = worker.main(make_journal=made)
    os._exit(code)
