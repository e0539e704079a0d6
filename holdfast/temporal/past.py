"""What the latest closed runs told of what they took, as the server lists them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client, WorkflowExecution

from holdfast.contracts.past import RunTook
from holdfast.contracts.search import MEMO_TOOK, RUNS
from holdfast.rules.past import read_told

LOOKED_AT = 300
"""The latest closed runs that count, teams among them."""
PATIENCE = timedelta(seconds=5)
KEPT_SECONDS = 30.0
"""How long a worker takes what it has read to be true."""
log = logging.getLogger(__name__)


async def read_past(client: Client, queue: str) -> tuple[RunTook, ...]:
    """Return what the latest closed runs of a deployment took, newest first: those of its task
    queue. RPCError if the server cannot say.
    """
    query = f"{RUNS} AND ExecutionStatus = 'Completed' AND TaskQueue = '{queue}'"
    found = client.list_workflows(query, limit=LOOKED_AT, page_size=LOOKED_AT, rpc_timeout=PATIENCE)
    told = [await _read_one(each) async for each in found]
    return tuple(run for run in told if run is not None)


async def _read_one(run: WorkflowExecution) -> RunTook | None:
    try:
        return read_told(await run.memo_value(MEMO_TOOK, "", type_hint=str))
    except Exception as error:
        # Whoever starts workflows writes memos, in whatever encoding: the other runs still count.
        log.debug("the memo of %s cannot be read: %s", run.id, error)
        return None


@dataclass
class ClosedRuns:
    """What a worker knows of closed runs: whatever goes wrong, nothing, and no run is the worse."""

    client: Callable[[], Client]
    queue: Callable[[], str]
    _read: tuple[RunTook, ...] = ()
    _until: float = 0.0

    async def read(self) -> Sequence[RunTook]:
        if time.monotonic() >= self._until:
            try:
                self._read = await read_past(self.client(), self.queue())
            except Exception as error:
                log.warning("previews go by sizes alone: no list of closed runs: %s", error)
                self._read = ()
            self._until = time.monotonic() + KEPT_SECONDS
        return self._read
