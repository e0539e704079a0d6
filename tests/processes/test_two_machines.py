"""Two machines that share no folder: what one has paid when it is killed, the other finds in the
bucket. Real server, real workers, an S3 server beside them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from temporalio.testing import WorkflowEnvironment

import buckets
import holdfast.storage
from bench.instruments.deployment import parallel
from buckets import BUCKET, Bucket
from conftest import TEMPORAL
from holdfast.contracts import Report
from holdfast.deployment.settings import HOME, PREFIX
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.temporal.connection import Target, connect

pytestmark = [pytest.mark.long, pytest.mark.anyio]

QUEUE = "machines"
FOUND = "It was examined, and found to be sound. " * 250
SCRIPT = Script.model_validate(
    {"latencies": {"work": 3}, "rules": [{"call": "work", "result": FOUND}]}
)
OURS = (PREFIX, "TEMPORAL_", "ANTHROPIC_", "STORE_", "AWS_")


@contextmanager
def machine(
    folder: Path, environment: dict[str, str], name: str
) -> Iterator[subprocess.Popen[bytes]]:
    given = environment | {"HOLDFAST_STATE_DIR": str(folder / name)}
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(HOME / "worker.py")], cwd=HOME, env=given, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def until(holds: Callable[[], bool], seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_what_a_killed_machine_had_paid_is_found_by_the_other_and_none_is_paid_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    server = WorkflowEnvironment.start_local(
        dev_server_existing_path=str(TEMPORAL), dev_server_log_level="never"
    )
    with buckets.serve() as bucket:
        async with await server as env, Simulator(SCRIPT) as simulator:
            address = env.client.service_client.config.target_host
            told = bucket.environment | {
                "TEMPORAL_ADDRESS": address,
                "STORE_URL": f"s3://{BUCKET}/runs",
                "HOLDFAST_TASK_QUEUE": QUEUE,
                "HOLDFAST_SHARED_JOURNAL": "true",
                "HOLDFAST_WORKERS": "1",
                "ANTHROPIC_BASE_URL": simulator.url,
                "ANTHROPIC_API_KEY": "scripted",
            }
            for name, value in told.items():
                monkeypatch.setenv(name, value)
            holdfast.storage._bucket.cache_clear()
            target = Target(address, task_queue=QUEUE, store_url=told["STORE_URL"], embedded=False)
            client = await connect(target)
            goal = parallel(6, concurrency=6)
            goal = goal.model_copy(update={"probe": await target.store.put(b"machines")})
            handle = await client.start_workflow(
                "SupervisorWorkflow", goal, id="run", task_queue=QUEUE, result_type=Report
            )
            (frozen,) = (
                each
                for each in psutil.Process().children(recursive=True)
                if "start-dev" in each.cmdline()
            )
            with machine(tmp_path, dict(os.environ), "one") as one:
                await until(lambda: simulator.log.now == 6)
                # What arrives now is recorded, and cannot be reported to the server.
                frozen.suspend()
                try:
                    await until(lambda: _answers(bucket) >= 6)
                    one.kill()
                    one.wait()
                finally:
                    frozen.resume()
            with machine(tmp_path, dict(os.environ), "other"):
                async with asyncio.timeout(120):
                    report = await handle.result()
            history = (await handle.fetch_history()).to_json()
    assert report.status == "complete"
    work = [each for each in simulator.log.bodies.values() if each.call == "work"]
    assert [each.admitted for each in work] == [1] * 6
    said = (tmp_path / "one.log").read_text() + (tmp_path / "other.log").read_text()
    assert "Traceback" not in said
    for shown in (said, history, report.model_dump_json()):
        assert bucket.environment["AWS_SECRET_ACCESS_KEY"] not in shown


def _answers(bucket: Bucket) -> int:
    return sum(name.endswith(".answer") for name in bucket.names())
