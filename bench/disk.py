"""What many runs leave on disk, and what `clean` takes of it: runs of six subtasks, each answered
with six pages of text; then half of them leave the server, as they do when their retention ends.

    python -m bench.disk [--runs 1000]        prints Markdown

The last column is what stays when `clean` runs a month later: what a run that the server still has
can need stays, whatever its age. The database keeps the size that it has had.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest

from bench.instruments.deployment import Deployment, deployed, parallel
from bench.instruments.tables import head, row
from holdfast.embedded.state import StateDir
from holdfast.storage import store_at
from holdfast.storage.references import needed
from holdfast.upkeep import cleaning
from holdfast.upkeep.cleaning import Kind

COLUMNS = (("kept in", "files after the runs", "MB", "MB after clean, a month later"),)
AT_ONCE = 50
"""Runs."""
SUBTASKS = 6
LATER = timedelta(days=31)
PAGES = "The north grew, and the south did not, because prices fell there. " * 300
"""About 20,000 characters: more than stays in a history as it is."""
SCRIPT = {"rules": [{"call": "work", "result": PAGES}]}
DELETING_SECONDS = 300.0


async def measured(runs: int) -> list[tuple[str, int, int, int]]:
    """Of each kind: its files and bytes after the runs, and its bytes after `clean`."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), SCRIPT) as deployment:
            ids = []
            for first in range(0, runs, AT_ONCE):
                count = min(AT_ONCE, runs - first)
                handles = [await deployment.start(parallel(SUBTASKS)) for _ in range(count)]
                ids += [(await deployment.result(each), each.id)[1] for each in handles]
            database = StateDir.of(deployment.settings).database
            grown = database.stat().st_size
            before = await _kinds(deployment, 0)
            await _leave(deployment, ids[: runs // 2])
            after = await _kinds(deployment, LATER.total_seconds())
            for kind in after:
                await asyncio.to_thread(kind.removed)
            left = await _kinds(deployment, LATER.total_seconds())
            sizes = [
                (kind.name, len(_all(kind)), cleaning.size(_all(kind)), cleaning.size(_all(rest)))
                for kind, rest in zip(before, left, strict=True)
            ]
            return [*sizes, ("temporal.db", 1, grown, database.stat().st_size)]


def _all(kind: Kind) -> tuple[cleaning.Item, ...]:
    return (*kind.going, *kind.staying)


async def _kinds(deployment: Deployment, later: float) -> tuple[Kind, ...]:
    found, _ = await needed(deployment.client, store_at(deployment.target.store_url))
    settings, target = deployment.settings, deployment.target
    now = time.time() + later
    return await asyncio.to_thread(cleaning.kinds, settings, target, found, cleaning.DAY, now)


async def _leave(deployment: Deployment, ids: list[str]) -> None:
    """These runs are no longer the server's."""
    before = await deployment.client.count_workflows("ExecutionStatus = 'Completed'")
    for each in ids:
        await deployment.client.workflow_service.delete_workflow_execution(
            DeleteWorkflowExecutionRequest(
                namespace=deployment.client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=each),
            )
        )
    until = time.monotonic() + DELETING_SECONDS
    while time.monotonic() < until:
        left = await deployment.client.count_workflows("ExecutionStatus = 'Completed'")
        if left.count <= before.count - len(ids):
            return
        await asyncio.sleep(1)
    raise TimeoutError("the server has not deleted the runs")


def main() -> int:
    about = (__doc__ or "").partition("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.disk", description=about)
    parser.add_argument("--runs", type=int, default=1_000)
    found = asyncio.run(measured(parser.parse_args().runs))
    sys.stdout.write(head(*COLUMNS))
    for name, files, size, left in found:
        sys.stdout.write(row((name, f"{files:,}", f"{size / 1e6:.1f}", f"{left / 1e6:.1f}")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
