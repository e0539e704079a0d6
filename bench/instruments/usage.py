"""What the processes of a deployment have used so far, as the system and the server count it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from urllib.request import urlopen

import psutil

from bench.instruments.deployment import Deployment
from holdfast.embedded import status

REQUESTS = {"service_requests": "requests", "persistence_requests": "stored"}
"""The server's own counters -> the fields below."""


COUNTED_SECONDS = 1.2
"""The server puts its counters on their page once a second."""


@dataclass(frozen=True)
class Usage:
    """CPU in seconds; requests that the server answered, and those to its store; calls charged."""

    worker: float = 0.0
    server: float = 0.0
    requests: float = 0.0
    stored: float = 0.0
    calls: float = 0.0

    def __sub__(self, before: Usage) -> Usage:
        pairs = zip(astuple(self), astuple(before), strict=True)
        return Usage(*(now - then for now, then in pairs))

    def __truediv__(self, share: float) -> Usage:
        return Usage(*(each / share for each in astuple(self)))


async def used(deployment: Deployment, workers: Iterable[int] = ()) -> Usage:
    """Up to this moment, though it takes a second. `workers`: pids of further workers."""
    now = status(deployment.settings)
    assert now.endpoint and now.server_pid and now.worker_pid
    worker = sum(cpu_seconds(pid) for pid in (now.worker_pid, *workers))
    server = cpu_seconds(now.server_pid)
    await asyncio.sleep(COUNTED_SECONDS)
    counted = await asyncio.to_thread(counters, now.endpoint.metrics_port)
    log = await asyncio.to_thread(deployment.simulator.log)
    return Usage(worker, server, calls=log["admitted"], **counted)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its children, dead ones included."""
    process = psutil.Process(pid)
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        times = each.cpu_times()
        total += times.user + times.system
        if each is process:
            total += times.children_user + times.children_system
    return total


def counters(metrics_port: int) -> dict[str, float]:
    """Requests so far, over all kinds, from the server's Prometheus page."""
    with urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    found = dict.fromkeys(REQUESTS.values(), 0.0)
    for line in lines:
        name, _, _ = line.partition("{")
        if name in REQUESTS:
            found[REQUESTS[name]] += float(line.rpartition(" ")[2])
    return found
