"""A whole deployment in the process of a test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from holdfast.client.holdfast import Holdfast
from holdfast.deployment.settings import Settings
from holdfast.embedded.server import binary
from holdfast.intake.connection import Connection
from holdfast.serving.own_tools import Given
from holdfast.serving.plugin import HoldfastPlugin
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.temporal.connection import Target

QUEUE = "holdfast-test"
STARTS = timedelta(seconds=60)


@dataclass(frozen=True)
class Deployment:
    """A server, a worker, a scripted endpoint, and a client of them."""

    hf: Holdfast
    client: Client
    """For workflows of your own beside runs: its workers have `HoldfastPlugin`."""
    simulator: Simulator
    """`simulator.log` says what models were asked; `simulator.script` may be replaced."""


@asynccontextmanager
async def deployed(
    script: Mapping[str, Any] | Script | None = None,
    *,
    tools: Iterable[Given] = (),
    roles: str | Path | None = None,
    project: str | Path | None = None,
) -> AsyncIterator[Deployment]:
    """Yield a deployment of its own in a temporary folder, until the block ends. It takes about two
    seconds, and reads no setting of yours but the environment's PATH. Not for two at once in one
    process.
    """
    scripted = script if isinstance(script, Script) else Script.model_validate(script or {})
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        async with Simulator(scripted) as simulator:
            with _environment(Path(folder), simulator.url):
                plugin = HoldfastPlugin(tools=tools, roles=roles, project=project)
                async with _server() as server:
                    connection = await _connect(server, plugin, project)
                    async with Worker(connection.client, task_queue=QUEUE):
                        yield Deployment(Holdfast.on(connection), connection.client, simulator)


@contextmanager
def _environment(folder: Path, endpoint: str) -> Iterator[None]:
    """Let settings be those of the test alone."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(("HOLDFAST_", "ANTHROPIC_", "TEMPORAL_", "STORE_")):
            del os.environ[name]
    os.environ |= {
        "ANTHROPIC_BASE_URL": endpoint,
        "ANTHROPIC_API_KEY": "scripted",
        "HOLDFAST_STATE_DIR": str(folder),
        "HOLDFAST_ALLOWED_ROOTS": "/",
        "STORE_URL": (folder / "store").as_uri(),
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@asynccontextmanager
async def _server() -> AsyncIterator[WorkflowEnvironment]:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(binary()),
        dev_server_log_level="never",
        dev_server_startup_timeout=STARTS,
    )
    async with environment:
        yield environment


async def _connect(
    server: WorkflowEnvironment, plugin: HoldfastPlugin, project: str | Path | None
) -> Connection:
    address = server.client.service_client.config.target_host
    client = await Client.connect(address, plugins=[plugin])
    settings = Settings(**({} if project is None else {"project": Path(project).absolute()}))
    target = Target(address, task_queue=QUEUE, store_url=settings.store_url, embedded=False)
    return Connection(settings, target, client)
