"""Does works in deployments of their own, and looks at what they used and left."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from bench.instruments.deployment import Deployment, deployed
from bench.instruments.usage import Usage, used
from bench.map.work import SUBTASK, Work, script
from holdfast.calls.rows import MapReport, MapTable, RowCounts
from holdfast.contracts import Approval, Order, Report
from holdfast.contracts.view import Preview
from holdfast.storage import store_at

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Size:
    """A history."""

    events: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Done:
    """One work, done."""

    seconds: float
    report: Report
    used: Usage
    """What was used, a row."""
    run: Size
    map: Size
    """The largest of its segments."""
    peak: float
    """MB of the worker at its largest."""
    preview: Preview
    counts: RowCounts
    table: str
    """Digest of what came of each row."""
    log: dict[str, Any]

    @property
    def expected(self) -> Decimal:
        return sum((each.expected or Decimal(0) for each in self.preview.subtasks), Decimal(0))

    @property
    def high(self) -> Decimal:
        return sum((each.high or Decimal(0) for each in self.preview.subtasks), Decimal(0))

    @property
    def charged(self) -> Decimal:
        return Decimal(str(self.log["dollars"]))


@asynccontextmanager
async def place() -> AsyncIterator[tuple[Deployment, Path]]:
    """A deployment, and the folder that its goals may name files of."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with deployed(folder, script(), allowed_roots=(folder,)) as deployment:
            yield deployment, folder


async def do(work: Work) -> Done:
    """Do a work undisturbed, its preview first."""
    async with place() as (deployment, folder):
        goal = work.goal(work.write(folder))
        goal = goal.model_copy(update={"approval": Approval(when="always")})
        before = await used(deployment)
        handle = await deployment.start(goal)
        preview = await _previewed(handle)
        began = time.monotonic()
        await handle.execute_update("approve", Order(by="bench"))
        report = await deployment.result(handle)
        seconds = time.monotonic() - began
        pid = deployment.pid("worker")
        assert pid is not None
        peak = peak_of(pid)
        spent = await used(deployment) - before
        run, largest, table = await left_of(deployment, handle)
        return Done(
            seconds=seconds,
            report=report,
            used=spent / work.rows,
            run=run,
            map=largest,
            peak=peak,
            preview=preview,
            counts=table.counts,
            table=await digest_of(deployment, table),
            log=await asyncio.to_thread(counts_of, deployment),
        )


async def _previewed(handle: WorkflowHandle[Any, Report]) -> Preview:
    while True:
        view = await handle.query("view")
        if view["phase"] == "approval":
            return Preview.model_validate(view["preview"])
        if view["phase"] == "closed":
            raise SystemExit("; ".join(view["notes"]))
        await asyncio.sleep(POLL_SECONDS)


async def left_of(
    deployment: Deployment, handle: WorkflowHandle[Any, Report]
) -> tuple[Size, Size, MapTable]:
    """Return the histories of a run and of its map's largest segment, and what its rows left."""
    sizes, number, table = [], 1, MapTable()
    while True:
        child = deployment.client.get_workflow_handle(
            f"{handle.id}.{SUBTASK}.{number}", result_type=MapReport
        )
        try:
            sizes.append(await size_of(child))
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            break
        table = (await child.result()).table
        number += 1
    largest = max(sizes, key=lambda each: each.events, default=Size())
    return await size_of(handle), largest, table


async def size_of(handle: WorkflowHandle[Any, Any]) -> Size:
    about = (await handle.describe()).raw_description.workflow_execution_info
    return Size(about.history_length, about.history_size_bytes)


async def digest_of(deployment: Deployment, table: MapTable) -> str:
    """Return a digest of each row's id, status and result: not of what it cost."""
    if table.table is None:
        return ""
    content = await store_at(deployment.target.store_url).get(table.table.digest)
    lines = []
    for line in content.splitlines():
        row = json.loads(line)
        lines.append(json.dumps([row["id"], row["status"], row.get("label"), row.get("note")]))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def counts_of(deployment: Deployment) -> dict[str, Any]:
    """Return what the simulator counted, without each body. Blocking."""
    log = deployment.simulator.log()
    return {name: value for name, value in log.items() if name not in ("bodies", "batches")}


def peak_of(pid: int) -> float:
    """Return the MB that a process had resident at its largest, as Linux counts them."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1_024
    raise RuntimeError("this system does not say how large a process was")
