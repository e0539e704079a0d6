"""The worker process: registers what `activities/wiring.py` builds, and runs until told to end.

    python worker.py                         with a server of your own (TEMPORAL_ADDRESS, STORE_URL)
    python worker.py --project FOLDER        the same, for that project; may be repeated
    python worker.py --embedded STATE_DIR    started by the embedded server's supervision

It is as many processes as HOLDFAST_WORKERS says (`holdfast/deployment/siblings.py`). SIGTERM drains
them all: no new work is taken, calls in flight may finish. Exit codes: 0 told to end, 2 a setting
is wrong, 5 the server is not reachable.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, get_args

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.runtime import Runtime
from temporalio.worker import (
    Interceptor,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerDeploymentConfig,
)

from holdfast.activities.gate.rate_gate import RateGate
from holdfast.activities.wiring import MakeJournal, MakeLenses, Served, build, shipped_lenses
from holdfast.client.schedules import count_active
from holdfast.contracts import LONGEST_CALL_SECONDS, Tier
from holdfast.contracts.policies import LENS_MARGIN_SECONDS, tools_queue
from holdfast.contracts.treasury import TREASURER, treasurers_queue
from holdfast.deployment import project
from holdfast.deployment.build import build_of
from holdfast.deployment.settings import Settings
from holdfast.deployment.siblings import OPTION, Siblings, end_with_parent, number_of
from holdfast.embedded import StateDir, attendance, embedded_target
from holdfast.errors import EmbeddedError, Refused, Unreachable
from holdfast.serving.evaluating import with_evals
from holdfast.serving.health import Health, Why
from holdfast.serving.own_tools import Given, Own, gate_of
from holdfast.serving.schedules import with_schedules
from holdfast.serving.throttle_notes import ShowThrottles
from holdfast.telemetry.logs import LogContext, configure_logging, flush_logs, measured_runtime
from holdfast.telemetry.metrics import CountCalls, Gauges
from holdfast.telemetry.otel.closed_runs import send_spans
from holdfast.telemetry.otel.exporting import spans_wanted
from holdfast.temporal.connection import Target, connect
from holdfast.temporal.own_server import configured_target
from holdfast.temporal.treasury import Treasurer, Unanswered, caps_of
from holdfast.upkeep.daily import keep_clean
from holdfast.workers.held import Held, hand_back, hand_back_given
from holdfast.workers.pollers import any_alive, find_pollers
from holdfast.workers.served import Lookout
from holdfast.workers.versions import deployment_name, tell_own
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.treasurer import TreasurerWorkflow

CONNECT_SECONDS = 60.0
"""A worker may be started before its server."""
GRACE = timedelta(seconds=LONGEST_CALL_SECONDS + LENS_MARGIN_SECONDS)
"""The longest that anything is scheduled for: a worker that drains waits for what is in flight, so
that nothing is paid twice; it ends as soon as that is done.
"""
TOOL_SLOTS = max(4, 2 * (os.cpu_count() or 2))
"""Tools, lenses and preparations at once in all processes of a worker, but four in each. Most of
them compute in a child, of which a worker has about as many; whatever came beyond them would wait
within its own time, not in the queue where no time runs. A tool that waits for the network has one
of these places, too.
"""
MODEL_SLOTS = 600
"""Calls in flight per process; they wait for the network or their turn, not for this machine."""
EAGER = 100
"""Calls that a workflow task begins with this worker at once, without a way through the queue; more
would be too much for one answer of the server.
"""
STICKY = timedelta(seconds=1)
"""The SDK's own 10 s leave a run idle for as long after its worker died."""
TELL_SECONDS = 5.0
log = logging.getLogger("worker")


@dataclass(frozen=True)
class More:
    """What another worker of this project has beside its own lenses and journal."""

    parts: Mapping[str, Any] = field(default_factory=dict)
    """Options of `wiring.build`."""
    interceptors: tuple[Interceptor, ...] = ()


MakeMore = Callable[[Settings], More]


def workers(
    client: Client,
    queue: str,
    served: Served,
    deployment: WorkerDeploymentConfig,
    interceptors: Sequence[Interceptor],
    workflows: Sequence[type] = WORKFLOWS,
    processes: int = 1,
    serves: str = "all",
    **more: Any,
) -> list[Worker]:
    """Return one worker for workflows and model calls and one for tools on this machine, whose
    capacity `processes` share, or what it `serves` of both. `more` are further options of the SDK.
    """
    options = _options(deployment) | {"interceptors": interceptors} | more
    found = []
    if serves != "tools":
        found.append(
            Worker(
                client,
                task_queue=queue,
                workflows=workflows,
                # A worker without models carries on their runs, and leaves the calls to others.
                activities=[*served.preparing, *served.asking] if served.tiers else (),
                max_concurrent_activities=MODEL_SLOTS,
                max_eager_activity_reservations_per_workflow_task=EAGER,
                sticky_queue_schedule_to_start_timeout=STICKY,
                **options,
            )
        )
    if serves != "runs":
        found.append(
            Worker(
                client,
                task_queue=tools_queue(queue),
                activities=[*served.preparing, *served.free, *served.asking],
                max_concurrent_activities=max(4, TOOL_SLOTS // processes),
                **options,
            )
        )
    return found


def treasurers_worker(client: Client, queue: str, build: str, **more: Any) -> Worker:
    """Return the worker for the treasurer of a queue; `more` as for `workers`."""
    options = _options(deployment_of(queue, build, pinned=False)) | more
    options["max_concurrent_workflow_task_polls"] = 2
    return Worker(
        client,
        task_queue=treasurers_queue(queue),
        workflows=[TreasurerWorkflow],
        sticky_queue_schedule_to_start_timeout=STICKY,
        **options,
    )


def deployment_of(queue: str, build: str, *, pinned: bool) -> WorkerDeploymentConfig:
    """Return what the workers of a queue tell of their build, and whether runs stay on it."""
    # Without an id the SDK hashes every imported module, which takes a second.
    if not pinned:
        version = WorkerDeploymentVersion("holdfast", build)
        return WorkerDeploymentConfig(version=version, use_worker_versioning=False)
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name(queue), build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


def _options(deployment: WorkerDeploymentConfig) -> dict[str, Any]:
    return {
        "deployment_config": deployment,
        "graceful_shutdown_timeout": GRACE,
        # Cancellation reaches an activity with its heartbeat; the default delays it by up to 8 s.
        "max_heartbeat_throttle_interval": timedelta(seconds=1),
    }


async def serve(
    settings: Settings,
    target: Target,
    served: Served,
    gate: RateGate,
    *,
    first: bool,
    around: Sequence[Interceptor] = (),
) -> None:
    """Work until SIGTERM or SIGINT; embedded, also until nobody needs this process. The `first`
    process has all duties, its siblings end with it. `around`: next to each activity.
    """
    told = _told_to_end(first=first)
    holding = StateDir.of(settings).held
    held = Held(holding)
    client = await connect(target, CONNECT_SECONDS, held.identity)
    lost = await hand_back(client, holding, served.journal)
    # Beside the work: many runs may be open.
    handing = asyncio.create_task(hand_back_given(client, target.task_queue, lost))
    lookout = Lookout(embedded=target.embedded)
    served = with_evals(with_schedules(served, settings, target), settings, target)
    started = _registered(client, target, settings, served, (gate, lookout), (held, *around))
    health = Health(_why_unready(client, [each.task_queue for each in started]))
    listening = await health.listen(settings.health) if first and settings.health else None
    ends = [asyncio.create_task(told.wait()), *(asyncio.create_task(w.run()) for w in started)]
    # Also of tiers that others serve: who looks at a run may be answered by this process.
    queue, tiers = target.task_queue, get_args(Tier)
    ends += [asyncio.create_task(each.keep(client, queue, tiers)) for each in (gate, lookout)]
    siblings = Siblings(settings.workers - 1 if first else 0)
    attending = None
    duties = _duties(settings, target, client, gate, first=first)
    ends += [asyncio.create_task(each) for each in duties]
    if first and target.embedded:
        attending = asyncio.create_task(attend(settings, target, client, started, siblings))
        ends.append(attending)
    log.info("serving %s at %s", target.task_queue, target.address)
    done, waiting = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    if attending and not told.is_set():
        # It drains the workers itself, and then stops the server.
        await attending
    log.info("draining")
    health.drain()
    await drain(started, siblings)
    await served.close()
    held.close()
    handing.cancel()
    for task in waiting:
        task.cancel()
    if listening:
        listening.close()
    log.info("ended")


def _why_unready(client: Client, queues: Sequence[str]) -> Why:
    """Return what asks the server whether it hears this process ask each of these queues for
    work.
    """

    async def why() -> str:
        for queue, found in (await find_pollers(client, queues)).items():
            if not any_alive(tuple(each for each in found if each.identity == client.identity)):
                return f"the server does not hear it ask {queue} for work"
        return ""

    return why


def _told_to_end(*, first: bool) -> asyncio.Event:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    if not first:
        end_with_parent(told.set)
    return told


def _registered(
    client: Client,
    target: Target,
    settings: Settings,
    served: Served,
    told: tuple[RateGate, Lookout],
    around: tuple[Interceptor, ...],
) -> list[Worker]:
    gate, lookout = told

    def notes() -> Mapping[str, str]:
        # That nobody asks models says more than a tier's rate.
        return {**gate.slowed(), **lookout.lines()}

    queue, build = target.task_queue, build_of(settings)
    serves = "all" if target.embedded else settings.serves
    # What the sandbox forbids is kept out by tests and linter, and tests and replay run in it: here
    # it would only cost, a tenth of all that a worker computes.
    runner = UnsandboxedWorkflowRunner()
    found = workers(
        client,
        queue,
        served,
        deployment_of(queue, build, pinned=_is_pinned(settings, target)),
        (LogContext(), *around, ShowThrottles(notes), *_counting(settings)),
        processes=settings.workers,
        serves=serves,
        workflow_runner=runner,
    )
    if serves != "tools":
        found.append(treasurers_worker(client, queue, build, workflow_runner=runner))
    return found


def _is_pinned(settings: Settings, target: Target) -> bool:
    # Beside the embedded server a worker of another version is replaced, and nothing is to be set.
    return settings.pin_runs and not target.embedded


def _duties(
    settings: Settings, target: Target, client: Client, gate: RateGate, *, first: bool
) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield what runs beside the work until the process ends."""
    if first:
        yield keep_clean(settings, target, client)
        if caps_of(settings).bind:
            yield tell_treasurer(settings, target, client)
    if first and _is_pinned(settings, target):
        yield tell_own(client, target.task_queue, build_of(settings))
    if settings.metrics_port:
        gauges = Gauges(Runtime.default().metric_meter, gate)
        yield gauges.keep(client, target.task_queue, server=first)
    if first and spans_wanted():
        yield send_spans(client, StateDir.of(settings).path, settings.secrets)


async def tell_treasurer(settings: Settings, target: Target, client: Client) -> None:
    """Start the treasurer of this deployment if there is none, and tell it the settings."""
    treasurer = Treasurer(lambda: client, target.task_queue, caps_of(settings))
    while True:
        try:
            await treasurer.tell()
            break
        except Unanswered as error:
            log.info("the treasurer was not told what may be spent: %s", error)
            await asyncio.sleep(TELL_SECONDS)
    await asyncio.Event().wait()


def _counting(settings: Settings) -> Sequence[Interceptor]:
    return (CountCalls(Runtime.default().metric_meter),) if settings.metrics_port else ()


async def attend(
    settings: Settings, target: Target, client: Client, started: list[Worker], siblings: Siblings
) -> None:
    """Do the embedded worker's duties beside its work."""

    async def open_runs() -> int:
        # Another program may have the server's port by now, and never answer.
        patience = timedelta(seconds=5)
        query = f'ExecutionStatus="Running" AND WorkflowType != "{TREASURER}"'
        open_now = (await client.count_workflows(query, rpc_timeout=patience)).count
        # A schedule is used, although nothing is open until its time comes.
        return open_now or await count_active(client, patience)

    try:
        await attendance.attend(settings, target, open_runs, partial(drain, started, siblings))
    except attendance.Moved as moved:
        log.warning("the server moved to %s: connecting anew", moved)
        # The same process under a new address, at once: nothing in flight can be delivered to the
        # old one, where a stranger may listen who never answers the pollers' goodbye.
        await siblings.kill()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


async def drain(started: list[Worker], siblings: Siblings) -> None:
    """Take no more work and let what is in flight finish. All at once: while one waits for its last
    call, another must not take new work.
    """
    await asyncio.gather(*(each.shutdown() for each in started), siblings.drain())


def main(
    arguments: list[str] | None = None,
    make_lenses: MakeLenses = shipped_lenses,
    make_journal: MakeJournal | None = None,
    make_more: MakeMore = lambda _settings: More(),
) -> int:
    """Return the exit code. `make_…` let another worker of this project bring its own parts."""
    module = "python -m holdfast.serving" if Path(sys.argv[0]).name == "__main__.py" else None
    parser = argparse.ArgumentParser(module, description="The worker process.")
    parser.add_argument("--embedded", metavar="STATE_DIR", type=Path, help="of the embedded server")
    parser.add_argument(
        "--project",
        metavar="FOLDER",
        type=Path,
        action="append",
        default=[],
        help="with a holdfast.toml; once for each project that is served",
    )
    parser.add_argument(OPTION, dest="sibling", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    place: Path | None = given.embedded
    try:
        serve_projects(given.project)
        settings = Settings(state_dir=place) if place else Settings()
        target = embedded_target(settings) if place else configured_target(settings)
        _log(settings, given.sibling, embedded=target.embedded)
        _warn(settings)
        gate = gate_of(settings)
        more = make_more(settings)
        served = build(
            settings, target, gate, make_lenses=make_lenses, make_journal=make_journal, **more.parts
        )
    # Temporal's profiles fail with RuntimeError.
    except (ValueError, OSError, RuntimeError, EmbeddedError) as error:
        return _refused(error, 2)
    # What is there now stays: the collector need not go through it, now or ever.
    gc.freeze()
    gc.enable()
    try:
        first, around = not given.sibling, more.interceptors
        asyncio.run(serve(settings, target, served, gate, first=first, around=around))
    except Unreachable as error:
        return _refused(error, 5)
    except Refused as error:
        return _refused(error, 2)
    finally:
        flush_logs()
    return 0


def worker(
    *,
    tools: Iterable[Given] = (),
    roles: str | Path | None = None,
    project: str | Path | None = None,
) -> None:
    """Be a worker until SIGTERM or Ctrl-C, with tools and roles of your own, on a server of your
    own (TEMPORAL_ADDRESS, STORE_URL). Raise Refused, or Unreachable.

    `tools`: typed functions, of which agents read docstring and signature; they run in this
    process. `roles`: a folder of role files, in which they are named. `project`: a project's
    folder.
    """
    settings = Settings.of(project, workers=1)
    if not settings.uses_own_server:
        raise Refused(
            "the embedded server has a worker of its own: put the tools into your project's folder"
            " `tools`, or set TEMPORAL_ADDRESS and STORE_URL to a server of your own"
        )
    target = configured_target(settings)
    own = Own.of(tools, roles, settings)
    configure_logging(None, settings.log_level, settings.secrets)
    gate = gate_of(settings)
    served = build(settings, target, gate, **own.parts)
    try:
        asyncio.run(serve(settings, target, served, gate, first=True))
    finally:
        flush_logs()


def serve_projects(folders: Sequence[Path]) -> None:
    """Name these projects to this process and its siblings; without any, the environment does.
    BadSettings for a folder that is none.
    """
    named = [str(project.resolve_named(each)) for each in folders]
    if len(named) == 1:
        os.environ |= {project.VARIABLE: named[0], project.SEVERAL: ""}
    elif named:
        os.environ[project.SEVERAL] = os.pathsep.join(named)
    if os.environ.get(project.SEVERAL):
        # What one of them sets for itself is not for the others.
        os.environ[project.VARIABLE] = ""


def _log(settings: Settings, sibling: str, *, embedded: bool) -> None:
    # A file of its own for each: one that rotates what others write into loses lines.
    number = number_of(sibling) if sibling else 1
    path = StateDir.of(settings).worker_log(number) if embedded else None
    configure_logging(path, settings.log_level, settings.secrets)
    Runtime.set_default(measured_runtime(metrics_place(settings, number)))


def metrics_place(settings: Settings, number: int) -> str:
    """Return where a worker's process of this number answers Prometheus; empty: nowhere."""
    port, address = settings.metrics_port, settings.metrics_address
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port + number - 1}" if port else ""


def _warn(settings: Settings) -> None:
    for each in settings.projects:
        if idle := settings.list_idle(each):
            log.warning(
                "%s: no effect, as the worker serves several projects: %s", each, ", ".join(idle)
            )


def _refused(error: Exception, code: int) -> int:
    sys.stderr.write(" ".join(str(error).split()) + "\n")
    return code
