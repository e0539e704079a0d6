"""The rate of a tier as the server keeps it for all workers: read, set, and whether it can be.

It is the rate limit of a task queue that is named after the tier, where a person sees it and may
set it, and through which no work goes: each worker obeys it by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import RateLimit, RateLimitConfig, TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    UpdateTaskQueueConfigRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from holdfast.activities.gate.flow import plainly, understood
from holdfast.workers.pollers import POLL_SECONDS

ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
RPC_SECONDS = 5.0
CANNOT = (
    RPCStatusCode.UNIMPLEMENTED,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
)


@dataclass(frozen=True)
class QueueRate:
    """A tier's rate and why. `stamp` changes with every update; `written` is its Unix time."""

    rate: float | None = None
    """Calls per second; 0: none; None: no limit was set."""
    reason: str = ""
    stamp: str = ""
    written: float = 0.0
    workers: int = 1
    """Processes that ask for calls; 1 if there are none."""

    def plainly(self, tier: str, now: float) -> str:
        """How fast a tier may go, for somebody who watches a run."""
        flow = understood(tier, self.rate, self.reason, self.written, now)
        if flow is not None:
            return plainly(tier, flow)
        why = f": {self.reason}" if self.reason else ""
        return f"{tier} limited to {self.rate:g} calls/s by hand{why}"


def queue_of(queue: str, tier: str) -> str:
    """The task queue that holds the rate of a tier, for the runs of a queue."""
    return f"{queue}-{tier}"


async def read_rate(client: Client, queue: str, tier: str) -> QueueRate:
    """The rate of a tier, for the runs of a queue. RPCError."""
    kept = await _described(client, queue_of(queue, tier))
    asked = await _described(client, queue)
    times = {each.identity: each.last_access_time.ToSeconds() for each in asked.pollers}
    newest = max(times.values(), default=0)
    alive = sum(time >= newest - POLL_SECONDS for time in times.values())
    return _read(kept.config.queue_rate_limit, max(1, alive))


async def _described(client: Client, queue: str) -> DescribeTaskQueueResponse:
    return await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=ACTIVITIES,
            report_config=True,
        ),
        timeout=timedelta(seconds=RPC_SECONDS),
    )


async def write_rate(
    client: Client, queue: str, tier: str, rate: float | None, reason: str
) -> QueueRate:
    """Set the rate of a tier, for every worker; None lifts it. RPCError."""
    update = UpdateTaskQueueConfigRequest.RateLimitUpdate(reason=reason)
    if rate is not None:
        update.rate_limit.CopyFrom(RateLimit(requests_per_second=rate))
    answer = await client.workflow_service.update_task_queue_config(
        UpdateTaskQueueConfigRequest(
            namespace=client.namespace,
            identity=client.identity,
            task_queue=queue_of(queue, tier),
            task_queue_type=ACTIVITIES,
            update_queue_rate_limit=update,
        ),
        timeout=timedelta(seconds=RPC_SECONDS),
    )
    return _read(answer.config.queue_rate_limit, 1)


async def can_set_rates(client: Client, queue: str) -> bool:
    """Whether this server lets this client set rates; changes nothing. RPCError."""
    try:
        await client.workflow_service.update_task_queue_config(
            UpdateTaskQueueConfigRequest(
                namespace=client.namespace,
                identity=client.identity,
                task_queue=queue,
                task_queue_type=ACTIVITIES,
            ),
            timeout=timedelta(seconds=RPC_SECONDS),
        )
    except RPCError as error:
        if error.status in CANNOT:
            return False
        # It understood the request, and found nothing to do in it.
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
    return True


def _read(config: RateLimitConfig, workers: int) -> QueueRate:
    limited = config.HasField("rate_limit")
    when = config.metadata.update_time
    return QueueRate(
        rate=config.rate_limit.requests_per_second if limited else None,
        reason=config.metadata.reason,
        stamp=f"{when.seconds}.{when.nanos} {config.metadata.update_identity}",
        written=when.seconds + when.nanos / 1e9,
        workers=workers,
    )
