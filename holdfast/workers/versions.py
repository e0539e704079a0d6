"""The builds of a deployment whose runs are pinned: each run is finished by the build that began
it, and one build takes the new ones. Temporal keeps them; this reads and switches them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from temporalio.api.enums.v1 import VersioningBehavior, WorkerDeploymentVersionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from holdfast.contracts.treasury import TREASURER
from holdfast.deployment.invocation import STARTER
from holdfast.workers.pollers import AGAIN_SECONDS, Seen, list_pollers, look

Status = Literal["inactive", "current", "ramping", "draining", "drained", "unknown"]
STATUSES: dict[int, Status] = {
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_CREATED: "inactive",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE: "inactive",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT: "current",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING: "ramping",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING: "draining",
    WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED: "drained",
}
TAKES_NEW: tuple[Status, ...] = ("current", "ramping")
LOOK_SECONDS = 10.0
"""How often a worker looks what has become of its own build."""
RPC_SECONDS = timedelta(seconds=10)
"""Switching writes to each task queue, which takes a server a second or two; one that has just
switched refuses more for a moment, and is asked again.
"""
log = logging.getLogger("worker")


@dataclass(frozen=True)
class Version:
    """One build, as the server has it."""

    build: str
    status: Status
    percent: float = 0.0
    """Share of the new runs that it takes."""
    open: int = 0
    """Workflows that it has to finish: runs, and what these have started."""
    workers: int | None = 0
    """Processes of it that ask for work; None where the server keeps no record of workers."""


def deployment_name(queue: str) -> str:
    """Return the name of a task queue's deployment. Temporal allows no '.' and no ':' in one."""
    return re.sub(r"[.:]", "-", queue)


async def read_versions(client: Client, queue: str) -> tuple[Version, ...]:
    """Return the builds of a queue's deployment, the newest first; none if no worker whose runs are
    pinned has asked for work yet. RPCError.
    """
    name = deployment_name(queue)
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    try:
        service = client.workflow_service
        answer = await service.describe_worker_deployment(request, retry=True, timeout=RPC_SECONDS)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return ()
        raise
    info = answer.worker_deployment_info
    ramped = info.routing_config.ramping_version_percentage
    seen = await look(client, [queue])
    found = []
    for each in sorted(info.version_summaries, key=lambda one: -one.create_time.ToNanoseconds()):
        build, status = each.deployment_version.build_id, STATUSES.get(each.status, "unknown")
        percent = {"current": 100 - ramped, "ramping": ramped}.get(status, 0.0)
        count = await _count_open(client, f"{name}:{build}")
        found.append(Version(build, status, percent, count, _count_workers(seen, queue, build)))
    return tuple(found)


async def _count_open(client: Client, version: str) -> int:
    query = (
        f"TemporalWorkerDeploymentVersion = {json.dumps(version)} AND ExecutionStatus = 'Running'"
        # It needs no build in particular.
        f" AND WorkflowType != '{TREASURER}'"
    )
    return (await client.count_workflows(query, rpc_timeout=RPC_SECONDS)).count


def _count_workers(seen: Seen, queue: str, build: str) -> int | None:
    if seen.beats is None:
        return None
    beats = tuple(each for each in seen.beats if each.build == build)
    found = list_pollers(queue, replace(seen, beats=beats, polls={}, call_polls={}))
    return sum(each.alive for each in found)


def pinned_build(run: WorkflowExecution) -> str:
    """Return the build that a run stays on; empty for one that any build may carry on."""
    info = run.raw_info.versioning_info
    pinned = info.behavior == VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
    return info.deployment_version.build_id if pinned else ""


async def find_buildless(client: Client, queue: str, build: str) -> tuple[str, ...]:
    """Return what to tell somebody who watches a run that stays on a build of which no worker asks
    for work: one line, or nothing. Takes 3 s then, as nobody is called missing on one look.
    """
    try:
        for pause in (AGAIN_SECONDS, 0.0):
            if _count_workers(await look(client, [queue]), queue, build) != 0:
                return ()
            await asyncio.sleep(pause)
    except RPCError as error:
        log.info("workers of %s not known: %s", queue, error)
        return ()
    return (f"it stays on build {build}, and no worker of that asks for work; start one again",)


async def switch(client: Client, queue: str, build: str, percent: int = 100) -> None:
    """Let a build take this share of the new runs, and the current one the rest; with 0 no build
    takes any from the current one. RPCError if the server does not know the build, or it serves
    fewer queues than the current one.
    """
    service, name = client.workflow_service, deployment_name(queue)
    if percent == 100:
        await service.set_worker_deployment_current_version(
            SetWorkerDeploymentCurrentVersionRequest(
                namespace=client.namespace, deployment_name=name, build_id=build
            ),
            retry=True,
            timeout=RPC_SECONDS,
        )
        return
    await service.set_worker_deployment_ramping_version(
        SetWorkerDeploymentRampingVersionRequest(
            namespace=client.namespace,
            deployment_name=name,
            build_id=build if percent else "",
            percentage=percent,
        ),
        retry=True,
        timeout=RPC_SECONDS,
    )


def complain(found: Sequence[Version]) -> tuple[str, ...]:
    """Return what is in the way of runs, a line each. Pure."""
    lines = []
    if found and not any(each.status in TAKES_NEW for each in found):
        lines.append(f"no build takes new runs, which wait; say which does: {STARTER} deploy BUILD")
    lines += [
        f"{each.build} has {each.open} open and no worker; start one of it again"
        for each in found
        if each.open and each.workers == 0
    ]
    return tuple(lines)


def describe_own(build: str, found: Sequence[Version]) -> tuple[int, str]:
    """Return the level and the line in which a worker tells of its own build. Pure."""
    own = next((each for each in found if each.build == build), None)
    if own is None or own.status in TAKES_NEW:
        return logging.INFO, f"build {build} takes new runs" if own else ""
    if own.status == "drained" or (own.status == "draining" and not own.open):
        return logging.INFO, f"build {build} is drained: no open run needs it, this worker may end"
    if own.status == "draining":
        return logging.INFO, f"build {build} is draining: it takes no new runs"
    if any(each.status in TAKES_NEW for each in found):
        return (
            logging.INFO,
            f"build {build} waits: it takes new runs after {STARTER} deploy {build}",
        )
    return logging.WARNING, f"no build takes new runs: {STARTER} deploy {build}"


async def tell_own(client: Client, queue: str, build: str) -> None:
    """Log what becomes of a worker's own build, each time that it changes, forever."""
    told = ""
    while True:
        try:
            level, line = describe_own(build, await read_versions(client, queue))
            if line and line != told:
                log.log(level, "%s", line)
                told = line
        except RPCError as error:
            log.info("builds of %s not known: %s", queue, error)
        await asyncio.sleep(LOOK_SECONDS)
