"""The worker of bare Temporal, in place of worker.py: `bare_worker.py --embedded STATE_DIR`.

One queue, so that a workflow task hands its activities on without the server; many slots; the
sandbox without what it need not import anew. ANTHROPIC_BASE_URL names the endpoint, BARE_FIXED the
file with what all requests of a call share, BARE_STICKY_SECONDS how long a run waits for the worker
that had it before another may take it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from bench.overhead.asking import Model
from bench.overhead.bare import Asking, BareRowsWorkflow, BareWorkflow

EAGER = 50
SLOTS = 500


async def main(place: Path) -> None:
    endpoint = json.loads((place / "endpoint.json").read_text(encoding="utf-8"))
    model = Model(os.environ["ANTHROPIC_BASE_URL"], Path(os.environ["BARE_FIXED"]))
    sticky = float(os.environ.get("BARE_STICKY_SECONDS", "1"))
    await Worker(
        await Client.connect(f"{endpoint.get('host', '127.0.0.1')}:{endpoint['port']}"),
        task_queue=endpoint["task_queue"],
        workflows=[BareWorkflow, BareRowsWorkflow],
        activities=[Asking(model).ask],
        workflow_runner=SandboxedWorkflowRunner(
            restrictions=SandboxRestrictions.default.with_passthrough_modules("bench", "anthropic")
        ),
        max_concurrent_activities=SLOTS,
        max_eager_activity_reservations_per_workflow_task=EAGER,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=sticky),
        # Without an id the SDK hashes every imported module, which takes a second.
        build_id="bare",
    ).run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[2])))
