"""Figures of a worker for Prometheus: the SDK's own, and what only this project knows.

Off unless HOLDFAST_METRICS_PORT is set, and then on 127.0.0.1 unless told. No label names a run, a
subtask or anything else that somebody may choose: each is one of a few known words.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, Protocol, get_args

from temporalio import activity
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.common import MetricMeter
from temporalio.exceptions import ApplicationError
from temporalio.runtime import PrometheusConfig
from temporalio.service import RPCError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from holdfast.contracts import Bill, Call, Reply, Tier
from holdfast.contracts.policies import tools_queue
from holdfast.contracts.search import WAITING
from holdfast.contracts.treasury import TREASURER
from holdfast.history.troubles import find_detail

MICRO = 1_000_000
"""Counters hold whole numbers: money is counted in millionths of a dollar."""
LOOK_SECONDS = 15.0
"""Interval between two looks: Prometheus's default."""
RPC_SECONDS = timedelta(seconds=5)
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800)
"""The SDK's histograms end at a minute, within which many a call of a model does not return."""
_LATENCIES = (
    "temporal_activity_execution_latency",
    "temporal_activity_schedule_to_start_latency",
    "temporal_activity_succeed_endtoend_latency",
    "temporal_workflow_endtoend_latency",
)
DIRECTIONS = ("input", "output", "cache_read", "cache_write")
log = logging.getLogger("worker")
_KINDS = {
    "workflow": TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    "activity": TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
}


class Gated(Protocol):
    """A source of how the calls of each tier are let out."""

    def figures(self) -> Mapping[str, tuple[int, float | None]]:
        """Return, for each tier, how many calls wait and how many may leave a second (None: any
        number).
        """
        ...


def prometheus(place: str) -> PrometheusConfig:
    """Return how this process answers Prometheus at ADDRESS:PORT."""
    return PrometheusConfig(
        bind_address=place,
        counters_total_suffix=True,
        durations_as_seconds=True,
        histogram_bucket_overrides=dict.fromkeys(_LATENCIES, SECONDS),
    )


class CountCalls(Interceptor):
    """Counts what activities returned and what they cost."""

    def __init__(self, meter: MetricMeter) -> None:
        self._calls = meter.create_counter("holdfast_calls", "Calls and tools that came back.")
        self._paid = meter.create_counter("holdfast_microdollars", "Millionths of a dollar paid.")
        self._tokens = meter.create_counter("holdfast_tokens", "Tokens as endpoints counted them.")
        # What is paid first would be no increase of a series that begins with it.
        for tier in get_args(Tier):
            self._paid.add(0, {"tier": tier})
            for direction in DIRECTIONS:
                self._tokens.add(0, {"tier": tier, "direction": direction})

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return the interceptor that the SDK makes for each worker."""
        return _Counted(next, self)

    def came_back(self, input: ExecuteActivityInput, verdict: str, bill: Bill) -> None:
        """Count one activity."""
        call = input.args[0] if input.args else None
        tier = call.tier if isinstance(call, Call) and call.model is not None else "none"
        kind = activity.info().activity_type
        self._calls.add(1, {"kind": kind, "tier": tier, "verdict": verdict})
        # What the journal kept from before a reset was counted when it was paid.
        if not bill.calls or bill.earlier:
            return
        self._paid.add(int((bill.dollars or Decimal(0)) * MICRO), {"tier": tier})
        used = bill.usage
        for name in DIRECTIONS:
            self._tokens.add(getattr(used, f"{name}_tokens"), {"tier": tier, "direction": name})


class _Counted(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, counts: CountCalls) -> None:
        super().__init__(next)
        self._counts = counts

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            result = await super().execute_activity(input)
        except ApplicationError as error:
            bill = find_detail(error.details, Bill) or Bill()
            self._counts.came_back(input, error.type or "error", bill)
            raise
        if isinstance(result, Reply):
            verdict = result.problem.kind if result.problem else "answered"
            self._counts.came_back(input, verdict, result.bill)
        else:
            error_told = bool(getattr(result, "is_error", False))
            self._counts.came_back(input, "tool_error" if error_told else "answered", Bill())
        return result


class Gauges:
    """Gauges of what a deployment waits for, read from the server at intervals."""

    def __init__(self, meter: MetricMeter, gate: Gated) -> None:
        self._gate = gate
        self._waiting = meter.create_gauge("holdfast_gate_waiting", "Calls held by the gate.")
        self._limited = meter.create_gauge("holdfast_gate_limited", "1: the tier is slowed.")
        self._rate = meter.create_gauge_float(
            "holdfast_gate_rate", "Calls a second that may leave of a tier that is slowed."
        )
        self._open = meter.create_gauge("holdfast_runs_open", "Runs, teams and agents under way.")
        self._people = meter.create_gauge("holdfast_runs_waiting", "Runs that wait for a person.")
        self._age = meter.create_gauge_float(
            "holdfast_queue_age_seconds", "Age of the oldest task that nobody has taken."
        )
        self._backlog = meter.create_gauge("holdfast_queue_tasks", "Tasks that nobody has taken.")
        self._seen = meter.create_gauge_float(
            "holdfast_looked_at_seconds", "Unix time of the last look at the server that succeeded."
        )

    async def keep(self, client: Client, queue: str, *, server: bool) -> None:
        """Update for ever. `server`: this process is the one that asks the server."""
        while True:
            try:
                self.show_gate()
                if server:
                    await self.look(client, queue)
            except RPCError:
                # Its time stands still in `holdfast_looked_at_seconds`.
                pass
            except Exception:
                # A figure is no reason to end a worker.
                log.exception("a figure could not be had")
            await asyncio.sleep(LOOK_SECONDS)

    def show_gate(self) -> None:
        """Show how the calls of each tier are let out now."""
        for tier, (waiting, rate) in self._gate.figures().items():
            self._waiting.set(waiting, {"tier": tier})
            self._limited.set(int(rate is not None), {"tier": tier})
            # A gauge has no word for "any number"; what it shows then counts for nothing.
            self._rate.set(rate or 0.0, {"tier": tier})

    async def look(self, client: Client, queue: str) -> None:
        """Ask the server once. RPCError if it does not answer."""
        running = f'ExecutionStatus = "Running" AND WorkflowType != "{TREASURER}"'
        found = await client.count_workflows(running, rpc_timeout=RPC_SECONDS)
        self._open.set(found.count)
        for told, name in (("runs", queue), ("tools", tools_queue(queue))):
            for kind, number in _KINDS.items():
                tasks, age = await _backlog(client, name, number)
                self._backlog.set(tasks, {"queue": told, "kind": kind})
                self._age.set(age, {"queue": told, "kind": kind})
        self._seen.set(time.time())
        # Last: a namespace may lack the search attribute, and then says so.
        asked = f"{running} AND {WAITING.name} = true"
        found = await client.count_workflows(asked, rpc_timeout=RPC_SECONDS)
        self._people.set(found.count)


async def _backlog(client: Client, queue: str, kind: TaskQueueType.ValueType) -> tuple[int, float]:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=kind,
        report_stats=True,
    )
    told = await client.workflow_service.describe_task_queue(request, timeout=RPC_SECONDS)
    age = told.stats.approximate_backlog_age.ToTimedelta().total_seconds()
    return told.stats.approximate_backlog_count, age
