"""What is measured: one server on a machine of its own, one endpoint and one store at the address
of the bridge, and worker processes, each with a machine, a state directory and a cache of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from bench.instruments.usage import cpu_seconds
from bench.machines.network import Network
from bench.overhead.engines import BARE_WORKER, write_fixed
from bench.overhead.loads import Load
from holdfast.certifying.deployment import Simulated, simulated
from holdfast.contracts import Goal, Report
from holdfast.deployment.settings import HOME
from holdfast.embedded import server
from holdfast.embedded.state import Endpoint, StateDir
from holdfast.errors import Refused
from holdfast.temporal.connection import Target, connect

QUEUE = "machines"
BUCKET = "kept"
READY_SECONDS = 600
AWS = {
    "AWS_ACCESS_KEY_ID": "scripted",
    "AWS_SECRET_ACCESS_KEY": "scripted",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True)
class Spent:
    """CPU seconds so far: of the workers, the server, and of endpoint and store together."""

    workers: float
    server: float
    others: float

    def __sub__(self, before: Spent) -> Spent:
        return Spent(
            self.workers - before.workers, self.server - before.server, self.others - before.others
        )


@dataclass(frozen=True)
class Store:
    """An S3 server on the bridge."""

    process: Process
    environment: Mapping[str, str]
    """What a process needs to find it."""


@dataclass
class Stand:
    """What a measurement talks to."""

    folder: Path
    target: Target
    client: Client
    """One that keeps big payloads in the store; `plain` does not, as bare Temporal would not."""
    plain: Client
    simulator: Simulated
    server: Process
    store: Store
    workers: list[Process] = field(default_factory=list)
    probe: str = ""

    async def start(self, goal: Goal) -> WorkflowHandle[Any, Report]:
        """Start a run."""
        self.probe = self.probe or await self.target.store.put(b"bench")
        return await self.client.start_workflow(
            "SupervisorWorkflow",
            goal.model_copy(update={"probe": self.probe}),
            id=f"bench-{uuid.uuid4().hex[:8]}",
            task_queue=QUEUE,
            result_type=Report,
        )

    async def start_here(self, load: Load, run: int) -> WorkflowHandle[Any, Any]:
        """Start one run of a load by this project."""
        return await self.start(load.goal(run))

    async def start_bare(self, load: Load, run: int) -> WorkflowHandle[Any, Any]:
        """Start it by bare Temporal."""
        return await self.plain.start_workflow(
            "BareWorkflow", load.plan(run), id=f"bare-{load.mark}{run}", task_queue=QUEUE
        )

    @property
    def journals(self) -> list[Path]:
        """The journals of all machines, dead ones included."""
        return [StateDir(path).journal for path in sorted(self.folder.glob("machine-*"))]

    async def log(self) -> dict[str, Any]:
        """Return what the endpoint was asked and what it would have charged."""
        return await asyncio.to_thread(self.simulator.log)

    def spent(self) -> Spent:
        """Return what was used so far."""
        assert self.simulator.process is not None
        others = (self.simulator.process, self.store.process)
        return Spent(
            sum(cpu_seconds(each.pid) for each in self.workers),
            cpu_seconds(self.server.pid),
            sum(cpu_seconds(each.pid) for each in others),
        )

    async def ready(self) -> None:
        """Return once each worker asks for work. Refused if one ends, or they take too long."""
        request = DescribeTaskQueueRequest(
            namespace="default",
            task_queue=TaskQueue(name=QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                while all(each.returncode is None for each in self.workers):
                    with suppress(RPCError):
                        found = await self.plain.workflow_service.describe_task_queue(request)
                        if len(found.pollers) == len(self.workers):
                            return
                    await asyncio.sleep(0.1)
                lines = [
                    line
                    for log in sorted(self.folder.glob("machine-*.log"))
                    for line in log.read_text().splitlines()[-1:]
                ]
                raise Refused(f"a worker has ended before it asked for work: {' '.join(lines)}")
        raise Refused(f"not all workers ask for work after {READY_SECONDS} s")


@asynccontextmanager
async def stored(network: Network, folder: Path) -> AsyncIterator[Store]:
    """Serve an empty bucket, and let this process find it."""
    port = server.free_port(0, set())
    environment = AWS | {"AWS_ENDPOINT_URL": f"http://{network.address}:{port}"}
    where = ("-H", network.address, "-p", str(port))
    async with _process((sys.executable, "-m", "moto.server", *where), folder / "store") as process:
        # Until here nobody in this process has looked for a store.
        os.environ.update(environment)
        await asyncio.to_thread(_make_bucket)
        yield Store(process, environment)


def _make_bucket() -> None:
    import boto3
    from botocore.config import Config

    again = Config(retries={"total_max_attempts": 12, "mode": "standard"})
    boto3.session.Session().client("s3", config=again).create_bucket(Bucket=BUCKET)


@asynccontextmanager
async def standing(
    network: Network,
    folder: Path,
    store: Store,
    script: Mapping[str, Any],
    machines: int,
    told: Mapping[str, str],
    *,
    bare: bool = False,
) -> AsyncIterator[Stand]:
    """Everything up, with one worker a machine; `told` are further settings of theirs. Workers that
    are killed stay dead.
    """
    async with AsyncExitStack() as up:
        simulator = await up.enter_async_context(simulated(folder, script, host=network.address))
        process, address = await up.enter_async_context(_served(network, folder))
        url = f"s3://{BUCKET}/{uuid.uuid4().hex}"
        # The operator's own variables for a server are for another one.
        target = Target(address, task_queue=QUEUE, store_url=url, embedded=True)
        client = await connect(target, READY_SECONDS)
        stand = Stand(
            folder, target, client, await Client.connect(address), simulator, process, store
        )
        given = {
            "PATH": os.environ["PATH"],
            "TEMPORAL_ADDRESS": address,
            "STORE_URL": url,
            "HOLDFAST_TASK_QUEUE": QUEUE,
            "HOLDFAST_WORKERS": "1",
            "ANTHROPIC_BASE_URL": simulator.url,
            "ANTHROPIC_API_KEY": "scripted",
            "BARE_FIXED": str(write_fixed(folder)),
            **store.environment,
            **told,
        }
        for number in range(1, machines + 1):
            own = folder / f"machine-{number}"
            own.mkdir()
            host, _, port = address.rpartition(":")
            where = {"host": host, "port": int(port), "task_queue": QUEUE}
            (own / "endpoint.json").write_text(json.dumps(where))
            program = (
                (str(BARE_WORKER), "--embedded", str(own)) if bare else (str(HOME / "worker.py"),)
            )
            environment = given | {"HOME": str(own), "HOLDFAST_STATE_DIR": str(own)}
            command = (*network.within(number), sys.executable, *program)
            stand.workers.append(await up.enter_async_context(_process(command, own, environment)))
        await stand.ready()
        yield stand


@asynccontextmanager
async def _served(network: Network, folder: Path) -> AsyncIterator[tuple[Process, str]]:
    """The server that embedded deployments have, with its flags, but on a machine of its own."""
    state = StateDir(folder / "server")
    state.path.mkdir()
    ports = dict.fromkeys(("port", "ui_port", "http_port", "metrics_port"), 0)
    asked = Endpoint.model_validate(ports | {"task_queue": QUEUE, "store_url": "", "salt": ""})
    endpoint = server.with_free_ports(asked, keep=False)
    command = server.command(server.binary(), state, endpoint)
    # Its parts would not find each other by another address than this; only the bridge leads there.
    command[command.index("--ip") + 1] = "0.0.0.0"
    async with _process((*network.within(0), *command), state.path) as process:
        yield process, f"{network.addresses[0]}:{endpoint.port}"


@asynccontextmanager
async def _process(
    command: Sequence[str], place: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Process]:
    """A process that is killed when the block ends; what it says is in a file beside the place."""
    with place.with_suffix(".log").open("ab") as said:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=place.parent,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
