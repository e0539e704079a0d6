"""The rate of a tier as the server keeps it for all workers: read, set, and whether it can be.

It is the rate limit of a task queue that is named after the tier, where a person sees it and may
set it, and through which no work goes: each worker obeys it by itself.
"""

from __future__ import annotations

import math
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

from holdfast.activities.gate.throttle import Throttle, describe, parse
from holdfast.workers.pollers import POLL_SECONDS

ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
RPC_SECONDS = timedelta(seconds=5)
CANNOT = (
    RPCStatusCode.UNIMPLEMENTED,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
)


@dataclass(frozen=True)
class QueueRate:
    """A tier's rate and why."""

    rate: float | None = None
    """Calls per second; 0: none; None: no limit was set."""
    reason: str = ""
    written: float = 0.0
    """Unix time of the update; 0: there was none."""
    workers: int = 1
    """Processes that ask for calls; 1 if there are none."""

    def throttle(self, tier: str, now: float) -> Throttle:
        return parse(tier, self.rate, self.reason, self.written, now)

    def explain(self, tier: str, now: float) -> str:
        """Return how fast a tier may go, for somebody who watches a run."""
        return describe(tier, self.throttle(tier, now), now)

    def says(self, rate: float | None, reason: str) -> bool:
        """Return True if this is kept already. Rates travel in single precision."""
        if rate is None or self.rate is None:
            return rate is self.rate and (reason == self.reason or not self.written)
        return math.isclose(rate, self.rate, rel_tol=1e-5) and reason == self.reason


def queue_of(queue: str, tier: str) -> str:
    """Return the task queue that holds the rate of a tier, for the runs of a queue."""
    return f"{queue}-{tier}"


async def read_rate(client: Client, queue: str, tier: str) -> QueueRate:
    """Return the rate of a tier, for the runs of a queue. RPCError."""
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
        timeout=RPC_SECONDS,
    )


async def write_rate(
    client: Client, queue: str, tier: str, rate: float | None, reason: str
) -> QueueRate:
    """Set the rate of a tier, for every worker; None lifts it. RPCError."""
    request = _request(client, queue_of(queue, tier))
    request.update_queue_rate_limit.reason = reason
    if rate is not None:
        limit = RateLimit(requests_per_second=rate)
        request.update_queue_rate_limit.rate_limit.CopyFrom(limit)
    answer = await client.workflow_service.update_task_queue_config(request, timeout=RPC_SECONDS)
    return _read(answer.config.queue_rate_limit, 1)


async def can_set_rates(client: Client, queue: str) -> bool:
    """Return True if this server lets this client set rates; changes nothing. RPCError."""
    request = _request(client, queue)
    try:
        await client.workflow_service.update_task_queue_config(request, timeout=RPC_SECONDS)
    except RPCError as error:
        if error.status in CANNOT:
            return False
        # It understood the request, and found nothing to do in it.
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
    return True


def _request(client: Client, queue: str) -> UpdateTaskQueueConfigRequest:
    return UpdateTaskQueueConfigRequest(
        namespace=client.namespace,
        identity=client.identity,
        task_queue=queue,
        task_queue_type=ACTIVITIES,
    )


def _read(config: RateLimitConfig, workers: int) -> QueueRate:
    limited = config.HasField("rate_limit")
    when = config.metadata.update_time
    return QueueRate(
        rate=config.rate_limit.requests_per_second if limited else None,
        reason=config.metadata.reason,
        written=when.seconds + when.nanos / 1e9,
        workers=workers,
    )
