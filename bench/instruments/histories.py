"""What became of runs under fire: closed or stuck, and whether today's code replays each history
strictly, arguments included.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from holdfast.replaying.replay import export, replay
from holdfast.storage import Store
from holdfast.workflows import WORKFLOWS

OTHER_COMMANDS = re.compile(r'\[TMPRL1100\][^"]*')
"""What the SDK says of a history whose commands today's code does not produce."""
WORDS = 300
"""Characters of what a replay says that are worth printing."""


@dataclass
class Histories:
    """Counts over the runs of a measurement; `keep` is a folder for what does not replay."""

    client: Client
    store: Store
    keep: Path | None = None
    runs: int = 0
    closed: int = 0
    stuck: list[str] = field(default_factory=list)
    """Runs that were still open when they had to be over."""
    poisoned: list[str] = field(default_factory=list)
    """Histories that do not replay: other commands, or a workflow task that fails."""
    different: list[str] = field(default_factory=list)
    """Histories with the same commands and other arguments."""

    @property
    def sound(self) -> bool:
        """True if every run closed and every history replays."""
        return self.runs == self.closed and not (self.stuck or self.poisoned or self.different)

    async def take(self, run_id: str) -> None:
        """Judge one run, which had its time; the server must answer."""
        self.runs += 1
        handle = self.client.get_workflow_handle(run_id)
        try:
            status = (await handle.describe()).status
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            self.stuck.append(f"{run_id}: never began")
            return
        if status is WorkflowExecutionStatus.RUNNING:
            self.stuck.append(f"{run_id}: still open")
        else:
            self.closed += 1
        with _quiet():
            said = await replay(await handle.fetch_history(), WORKFLOWS, self.store)
        if not said:
            return
        line = f"{run_id}: {_gist(said[0])}"
        # What differs begins with an activity's id; a replay that fails is a sentence.
        same_commands = " " not in said[0].partition(":")[0]
        (self.different if same_commands else self.poisoned).append(line)
        if self.keep:
            self.keep.mkdir(parents=True, exist_ok=True)
            text = await export(self.client, run_id, self.store)
            (self.keep / f"{run_id}.json").write_text(text)


async def over(handle: WorkflowHandle[Any, Any], seconds: float | None = None) -> bool:
    """True if a run closes within this many seconds (None: however long it takes). Whoever starts
    it may not have done so yet, and the server may be away meanwhile.
    """
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    description = await handle.describe()
                except RPCError:
                    pass
                else:
                    if description.status is not WorkflowExecutionStatus.RUNNING:
                        return True
                await asyncio.sleep(0.2)
    except TimeoutError:
        return False


def _gist(said: str) -> str:
    found = OTHER_COMMANDS.search(said)
    return (found.group() if found else said)[:WORDS]


@contextmanager
def _quiet() -> Iterator[None]:
    """The SDK logs a traceback for each history that does not replay; the verdict says it."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
