"""Finds who asks a task queue for work: workers that live, and those that did.

A worker of ours tells the server every 2 s that it lives, so one that was killed is known as dead
within seconds. On a server that keeps no such record only the time of its last long poll is known,
and one of those lasts a minute.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio.api.enums.v1 import TaskQueueType, WorkerStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.worker.v1 import WorkerHeartbeat, WorkerSlotsInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, ListWorkersRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from holdfast.temporal.connection import ENCRYPTING

BEAT = timedelta(seconds=2)
"""How often a worker of ours says that it lives: one small request a process."""
SILENT_SECONDS = 6.0
"""Three beats: whoever has said nothing for longer is taken for dead, if a second look agrees. One
who speaks less often, as the SDK does by default, is given three of its own beats once it has two.
"""
AGAIN_SECONDS = 3.0
"""Time until the second look: longer than a beat, so that a living worker has said so meanwhile,
whatever its clock shows, and longer than a restarted server needs to hear of its workers.
"""
POLL_SECONDS = 70.0
"""A worker that lives asks for work at least this often."""
RPC_SECONDS = 5.0
PAGE = 200
KINDS = (
    TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
)
SILENT_SERVER = (
    RPCStatusCode.UNIMPLEMENTED,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.INVALID_ARGUMENT,
)
"""How a server refuses that keeps no record of workers, or keeps it from this client."""


@dataclass(frozen=True)
class Beat:
    """The last time a worker said that it lives."""

    instance: str
    queue: str
    identity: str
    at: float
    """Unix time, by the clock of the worker's machine."""
    every: float = 0.0
    """Seconds between its last two; 0: it has said so once."""
    asking: bool = True
    """False: it finishes what it has and takes no more."""
    calls: bool = True
    """False: it only carries runs on, and carries out no activity."""
    build: str = ""
    """Its build id."""
    encrypts: bool = False


@dataclass(frozen=True)
class Seen:
    """The server's knowledge at one look."""

    at: float
    """Unix time, by the clock of here."""
    beats: tuple[Beat, ...] | None = ()
    """None: this server keeps no record of them."""
    polls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """queue -> identity -> Unix time of its last poll, where no beat tells of anybody alive."""
    call_polls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The same of those that asked for activities."""


@dataclass(frozen=True)
class Poller:
    """A worker that asks a queue for work, or did so lately."""

    identity: str
    alive: bool
    ago: float
    """Seconds since it was last heard of."""
    encrypts: bool = False
    """True if it says that it encrypts what it writes."""


def list_pollers(
    queue: str, seen: Seen, before: Seen | None = None, *, calls: bool = False
) -> tuple[Poller, ...]:
    """Return the workers of a queue, those that live first, each once; with `calls`, those that
    carry out activities. One that takes no more work is left out. `before`: an earlier look, by
    which a worker whose beat has moved lives whatever its clock shows. Pure.
    """
    found: dict[str, Poller] = {}
    elsewhere: dict[str, Poller] = {}
    told: set[str] = set()
    known = {each.instance: each.at for each in before.beats or ()} if before else {}
    # Where beats are kept, who polled and never told that it lives was killed before it could.
    patience = POLL_SECONDS if seen.beats is None else SILENT_SECONDS
    for beat in seen.beats or ():
        ago = seen.at - beat.at
        moved = known.get(beat.instance, beat.at) != beat.at
        recent = abs(ago) <= max(SILENT_SECONDS, 3 * beat.every)
        poller = Poller(beat.identity, moved or recent, max(0.0, ago), beat.encrypts)
        _note(elsewhere, poller)
        if beat.queue == queue:
            told.add(beat.identity)
            if beat.asking and (beat.calls or not calls):
                _note(found, poller)
    polls = seen.call_polls if calls else seen.polls
    for identity, when in polls.get(queue, {}).items():
        if identity not in told:
            ago = max(0.0, seen.at - when)
            # A process that was killed at once had told of some of its queues only.
            _note(found, elsewhere.get(identity) or Poller(identity, ago <= patience, ago))
    return tuple(sorted(found.values(), key=lambda each: (not each.alive, each.ago)))


def _note(found: dict[str, Poller], poller: Poller) -> None:
    """Keep the liveliest of the workers that one process was, one after the other."""
    before = found.get(poller.identity)
    if before is None or (poller.alive, -poller.ago) > (before.alive, -before.ago):
        found[poller.identity] = poller


async def find_pollers(client: Client, queues: Sequence[str]) -> dict[str, tuple[Poller, ...]]:
    """Return the workers of each queue. Takes 3 s where all workers of a queue seem dead: a second
    look confirms it. RPCError.
    """
    before = None
    seen = await look(client, queues)
    if any(_all_dead(list_pollers(queue, seen)) for queue in queues):
        await asyncio.sleep(AGAIN_SECONDS)
        before, seen = seen, await look(client, queues)
    return {queue: list_pollers(queue, seen, before) for queue in queues}


def _all_dead(found: tuple[Poller, ...]) -> bool:
    return bool(found) and not any(each.alive for each in found)


async def look(client: Client, queues: Sequence[str]) -> Seen:
    """Return what the server knows of these queues' workers now. RPCError."""
    beats = await _beats(client, queues)
    seen = Seen(time.time(), beats)
    open_ = [each for each in queues if not any_alive(list_pollers(each, seen, calls=True))]
    of_runs, of_calls = [
        await asyncio.gather(*(_polls(client, queue, kind) for queue in open_)) for kind in KINDS
    ]
    both = [_newest(runs, calls) for runs, calls in zip(of_runs, of_calls, strict=True)]
    return Seen(
        time.time(),
        beats,
        dict(zip(open_, both, strict=True)),
        dict(zip(open_, of_calls, strict=True)),
    )


def any_alive(found: tuple[Poller, ...]) -> bool:
    """True if one of these workers lives."""
    return any(each.alive for each in found)


async def _beats(client: Client, queues: Sequence[str]) -> tuple[Beat, ...] | None:
    # That of tools is named after the runs' own.
    shared = json.dumps(min(queues, key=len, default=""))
    request = ListWorkersRequest(
        namespace=client.namespace, page_size=PAGE, query=f"TaskQueue STARTS_WITH {shared}"
    )
    found: list[Beat] = []
    while True:
        try:
            answer = await client.workflow_service.list_workers(
                request, timeout=timedelta(seconds=RPC_SECONDS)
            )
        except RPCError as error:
            if error.status in SILENT_SERVER:
                return None
            raise
        found += [_beat(each.worker_heartbeat) for each in answer.workers_info]
        if not answer.next_page_token:
            return tuple(found)
        request.next_page_token = answer.next_page_token


def _beat(heard: WorkerHeartbeat) -> Beat:
    return Beat(
        instance=heard.worker_instance_key,
        queue=heard.task_queue,
        identity=heard.worker_identity,
        at=heard.heartbeat_time.ToNanoseconds() / 1e9,
        every=heard.elapsed_since_last_heartbeat.ToNanoseconds() / 1e9,
        asking=heard.status == WorkerStatus.WORKER_STATUS_RUNNING,
        calls=_places(heard.activity_task_slots_info) > 0,
        build=heard.deployment_version.build_id,
        encrypts=any(each.name == ENCRYPTING for each in heard.plugins),
    )


def _places(slots: WorkerSlotsInfo) -> int:
    return slots.current_available_slots + slots.current_used_slots


async def count_waiting(client: Client, queue: str) -> int:
    """Return about how many activities wait in a queue for a worker. RPCError."""
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_stats=True,
        ),
        timeout=timedelta(seconds=RPC_SECONDS),
    )
    return answer.stats.approximate_backlog_count


async def _polls(client: Client, queue: str, kind: TaskQueueType.ValueType) -> dict[str, float]:
    """Return identity -> Unix time of its last poll, for workflows or activities."""
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        ),
        timeout=timedelta(seconds=RPC_SECONDS),
    )
    return {each.identity: each.last_access_time.ToNanoseconds() / 1e9 for each in answer.pollers}


def _newest(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {key: max(one.get(key, 0.0), other.get(key, 0.0)) for key in {**one, **other}}
