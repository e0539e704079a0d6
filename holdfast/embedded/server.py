"""Temporal's own development server as we run it: flags, ports, and when it is ready."""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
import sqlite3
import sys
import time
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.contracts.search import SEARCH_ATTRIBUTES, STATUS
from holdfast.deployment import extras
from holdfast.embedded import processes
from holdfast.embedded.processes import Record
from holdfast.embedded.state import Endpoint, StateDir
from holdfast.errors import EmbeddedError
from holdfast.temporal.attributes import add_attributes

NAMESPACE = "default"
RETENTION = timedelta(days=30)
STOP_SECONDS = 10.0
"""A clean end takes about 1 s."""
PORT_SECONDS = 1.0
PORTS = range(17_000, 32_000)
"""These are below what Linux and macOS hand out to clients: while the server is down, its own
client could be given the server's port and connect to itself.
"""
CODEC_PORT = 8701
"""Where the Web UI looks for what decrypts."""
PRAGMAS = ("journal_mode=wal", "synchronous=normal")
"""Four to six times the activities per second; synchronous does not persist, so on every start."""
DYNAMIC = (
    # Any web page could otherwise start runs through the HTTP API, by a form or a rebound name.
    'frontend.httpAllowedHosts=["none"]',
    # One partition: what was queued first starts first, and a changed rate holds for all of it.
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    # Of one urgency, those who ask take turns.
    "matching.enableFairness=true",
    # Timers and retries below a second would fire up to a second late.
    'history.timerProcessorMaxTimeShift="50ms"',
    # A task that failed, as for a key that its worker lacks, would be tried after ten minutes.
    'history.workflowTaskRetryMaxInterval="15s"',
    # How often it fails before `list` says so.
    "system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute=2",
    "frontend.WorkflowPauseEnabled=true",
)


def find_binary() -> Path | None:
    """Return the server's program: the one beside this Python, else the first on PATH."""
    beside = Path(sys.executable).parent / "temporal"
    found = beside if beside.exists() else shutil.which("temporal")
    return Path(found) if found else None


def binary() -> Path:
    """Return the server's program as `find_binary`. EmbeddedError if there is none."""
    found = find_binary()
    if found is None:
        raise EmbeddedError(
            "the embedded Temporal server is not installed",
            f"there is no program temporal beside {sys.executable} or on PATH",
            f"{extras.how_to_get('embedded')}, or set TEMPORAL_ADDRESS to a server of your own",
        )
    return found


def command(program: Path, state: StateDir, endpoint: Endpoint) -> list[str]:
    """Return the whole command line. It holds no secret."""
    parts = [
        str(program),
        "server",
        "start-dev",
        "--ip",
        "127.0.0.1",
        "--ui-ip",
        "127.0.0.1",
        "--port",
        str(endpoint.port),
        "--ui-port",
        str(endpoint.ui_port),
        "--http-port",
        str(endpoint.http_port),
        "--metrics-port",
        str(endpoint.metrics_port),
        "--db-filename",
        str(state.database),
        "--ui-disable-news-fetch",
        "--log-level",
        "warn",
        "--log-format",
        "json",
    ]
    if endpoint.key_file:
        parts += ["--ui-codec-endpoint", f"http://127.0.0.1:{CODEC_PORT}"]
    for name, kind in SEARCH_ATTRIBUTES.items():
        parts += ["--search-attribute", f"{name}={kind}"]
    for pragma in PRAGMAS:
        parts += ["--sqlite-pragma", pragma]
    for value in DYNAMIC:
        parts += ["--dynamic-config-value", value]
    return parts


def free_port(wanted: int, taken: set[int]) -> int:
    """Return `wanted` if it is free, so that open browser tabs keep working; else another."""
    if wanted and _comes_free(wanted):
        taken.add(wanted)
        return wanted
    for port in random.SystemRandom().sample(PORTS, 200):
        if port not in taken and _free(port):
            taken.add(port)
            return port
    raise EmbeddedError(
        "no free port", f"127.0.0.1:{PORTS.start}-{PORTS.stop}", "end what listens there"
    )


def _comes_free(port: int) -> bool:
    """True if a port becomes free soon: threads of a killed server hold it a moment longer."""
    deadline = time.monotonic() + PORT_SECONDS
    while not _free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def with_free_ports(endpoint: Endpoint, keep: bool) -> Endpoint:
    """Return the endpoint on free ports; with `keep` on its former ones where they are free."""
    taken: set[int] = set()
    names = ("port", "ui_port", "http_port", "metrics_port")
    return endpoint.model_copy(
        update={name: free_port(getattr(endpoint, name) if keep else 0, taken) for name in names}
    )


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server does: connections of a killed server that linger do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def answers(endpoint: Endpoint) -> bool:
    """True if the server serves our namespace with its search attributes; also sets the retention.

    Blocks for about a second at most: not for a thread with a running event loop.
    """
    return asyncio.run(_answers(endpoint.target.address))


async def _answers(address: str) -> bool:
    try:
        async with asyncio.timeout(1):
            client = await Client.connect(address)
        attributes = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=NAMESPACE), timeout=timedelta(seconds=1)
        )
        missing = SEARCH_ATTRIBUTES.keys() - attributes.custom_attributes.keys()
        if missing:
            # A server that an older version started has the older ones; one that only starts, none.
            if STATUS.name not in missing:
                await add_attributes(client, NAMESPACE, missing, seconds=1)
            return False
        found = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=NAMESPACE), timeout=timedelta(seconds=1)
        )
        if found.config.workflow_execution_retention_ttl.ToTimedelta() != RETENTION:
            await client.workflow_service.update_namespace(
                UpdateNamespaceRequest(
                    namespace=NAMESPACE,
                    config=NamespaceConfig(
                        workflow_execution_retention_ttl=Duration(
                            seconds=int(RETENTION.total_seconds())
                        )
                    ),
                ),
                timeout=timedelta(seconds=1),
            )
    except (RuntimeError, RPCError, TimeoutError):
        return False
    return True


def stop(state: StateDir, serving: Record | None) -> bool:
    """End the server and fold its write-ahead log into the database, which it does not do itself.
    False: it was not running. Blocking, about a second; the caller holds the exclusive lock.
    """
    if not processes.stop(serving, state.database, STOP_SECONDS):
        return False
    # A log that stays is no loss: the next server reads it.
    with suppress(sqlite3.Error), closing(sqlite3.connect(state.database)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return True


def probe_local(address: str = "localhost:7233") -> bool:
    """True if something listens where a developer's own Temporal server usually does."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=0.3):
            return True
    except OSError:
        return False
