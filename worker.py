"""The worker process: builds what a run needs, registers it, runs until it is told to end.

    python worker.py                         with a server of your own (TEMPORAL_ADDRESS, STORE_URL)
    python worker.py --embedded STATE_DIR    started by the embedded server's supervision

SIGTERM drains: no new work is taken, calls in flight may finish. Exit codes: 0 told to end, 2 a
setting is wrong, 5 the server is not reachable.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, get_args

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.runtime import Runtime
from temporalio.worker import Worker, WorkerDeploymentConfig

from activities.agents import Agents
from activities.asking.allowance import Allowance
from activities.asking.journal import FileJournal
from activities.asking.prices import Prices
from activities.assembly import TEMPLATES
from activities.catalogue import Catalogue
from activities.code_review.lenses import lens_tools
from activities.gate.rate_gate import RateGate
from activities.gate.throttles import ShowThrottles
from activities.preparation import Preparation
from activities.prompts.excerpts import Excerpts
from activities.prompts.files import system_prompts
from activities.repositories import snapshot
from activities.repositories.scratch import Snapshots
from activities.seam import Model, Tool
from activities.use_tool import Tools
from deployment.daily import keep_clean
from deployment.embedded import EmbeddedError, StateDir, attendance, registered
from deployment.embedded.trouble import said
from deployment.known_secrets import KnownSecrets
from deployment.roots import Roots, roots_at
from deployment.served import Lookout
from deployment.settings import Settings
from deployment.storage import DirectoryStore
from deployment.telemetry import LogContext, configure_logging, runtime
from deployment.temporal import Target, Unreachable, configured, connect
from orchestrator import __version__
from orchestrator.contracts import LONGEST_CALL_SECONDS, Capabilities, Tier
from workflows import WORKFLOWS

CONNECT_SECONDS = 60.0
"""A worker may be started before its server."""
GRACE = timedelta(seconds=LONGEST_CALL_SECONDS)
"""The longest call that Limits allow: a worker that drains waits for what is in flight, so that
nothing is paid twice; it ends as soon as that is done.
"""
TOOL_SLOTS = max(4, 2 * (os.cpu_count() or 2))
MODEL_SLOTS = 200
"""Calls in flight per tier and process; they wait for the network, not for this machine."""
FindCapabilities = Callable[[], Awaitable[Capabilities]]
MakeTools = Callable[[DirectoryStore, Path], Mapping[str, Tool]]
"""(store, scratch folder) -> the tools of this worker, by name."""
MakeJournal = Callable[[Path], FileJournal]
"""folder -> the journal of this worker."""
log = logging.getLogger("worker")


def shipped_tools(store: DirectoryStore, scratch: Path) -> Mapping[str, Tool]:
    """The analysers."""
    return lens_tools(Snapshots(store, scratch))


@dataclass(frozen=True)
class Served:
    """What this process registers: activities of the main queue, and those that ask a model."""

    preparing: list[Callable[..., Any]]
    """On the main queue for runs without models, on a tier's for the others."""
    free: list[Callable[..., Any]]
    asking: list[Callable[..., Any]]
    tiers: tuple[Tier, ...]
    gate: RateGate
    lookout: Lookout
    close: Callable[[], Awaitable[None]]
    """Closes the connections to the models."""

    def notes(self) -> Mapping[str, str]:
        """tier -> what a reader must know of it; that nobody serves it says more than its rate."""
        return {**self.gate.slowed(), **self.lookout.lines()}


def build(
    settings: Settings,
    target: Target,
    make_tools: MakeTools,
    make_journal: MakeJournal = FileJournal,
) -> Served:
    """Wire the collaborators. ValueError says what is wrong with a setting or a file."""
    state = StateDir.of(settings)
    with said(state.path):
        state.create()
    store = DirectoryStore.at(target.store_url)
    journal = make_journal(state.journal)
    gate = RateGate()
    catalogue = Catalogue.load()
    prices = Prices.of(settings)
    tools = make_tools(store, state.snapshots)
    endpoint = model_endpoint(settings, prices)
    preparation = Preparation(
        catalogue=catalogue,
        store=store,
        pricing=prices,
        tools=tuple(tools),
        take_snapshot=snapshot.take,
        allowed_roots=allowed_roots(settings, embedded=target.embedded),
        capabilities=endpoint.capabilities,
        has_endpoint=endpoint.model is not None,
        version=__version__,
        endpoint=endpoint.address,
        most_dollars=settings.most_dollars_run,
        capped=capped(settings),
    )
    agents = Agents(
        endpoint.model,
        journal,
        store,
        {name: role.prompt for name, role in catalogue.roles.items()},
        system_prompts(),
        TEMPLATES,
        prices.price,
        gate,
        code=Excerpts(Snapshots(store, state.snapshots)).around,
        budget=budget(settings, state, prices),
        address=endpoint.address,
    )
    return Served(
        preparing=activities_of(preparation),
        free=activities_of(Tools(tools, journal)),
        asking=activities_of(agents),
        tiers=tuple(card.tier for card in prices.cards()) if endpoint.model else (),
        gate=gate,
        lookout=Lookout(embedded=target.embedded),
        close=endpoint.close,
    )


def capped(settings: Settings) -> str:
    """The setting that bounds dollars, if one does."""
    caps = ("most_dollars_day", "most_dollars_run")
    held = (name for name in caps if getattr(settings, name) is not None)
    return next(map(Settings.variable, held), "")


def budget(settings: Settings, state: StateDir, prices: Prices) -> Allowance | None:
    """What holds calls to the deployment's own caps; None without one."""
    run, day = settings.most_dollars_run, settings.most_dollars_day
    return Allowance(state.spent, prices.price, run, day) if capped(settings) else None


def allowed_roots(settings: Settings, *, embedded: bool) -> Callable[[], Roots]:
    """What Goals may name: the roots of the settings as they are now, and for an embedded server
    also what starters have registered so far.
    """
    fixed, missing = roots_at(settings.allowed_roots)
    for path in missing:
        log.warning("HOLDFAST_ALLOWED_ROOTS: there is no %s; it is read at the next start", path)
    return lambda: (*fixed, *(registered(settings) if embedded else ()))


async def _nothing() -> Capabilities:
    return Capabilities()


async def _closed() -> None:
    """There is nothing to close."""


@dataclass(frozen=True)
class ModelEndpoint:
    """Where models are asked; without a model nobody can be."""

    model: Model | None = None
    address: str = ""
    capabilities: FindCapabilities = _nothing
    close: Callable[[], Awaitable[None]] = _closed


def model_endpoint(settings: Settings, prices: Prices) -> ModelEndpoint:
    """The endpoint that the settings name, if they name one."""
    if not settings.has_endpoint:
        return ModelEndpoint()
    # The SDK takes seconds to import; what needs no model does not wait for it, nor does a worker
    # that comes back after a crash.
    from activities.claude.adapter import Claude
    from activities.claude.endpoint import find_capabilities

    secret = settings.anthropic_api_key
    key = secret.get_secret_value() if secret else ""
    base_url = settings.anthropic_base_url
    models = tuple(card.id for card in prices.cards())
    known = KnownSecrets(settings.secrets)
    model = Claude(key=key, base_url=base_url, price=prices.price, known=known)
    find = partial(find_capabilities, key, base_url, settings.capabilities, models)
    return ModelEndpoint(model, model.address, find, model.aclose)


def activities_of(holder: object) -> list[Callable[..., Any]]:
    """The methods of an object that are activities, so that a new one needs no second entry."""
    members = (getattr(holder, name) for name in dir(type(holder)))
    return [each for each in members if hasattr(each, "__temporal_activity_definition")]


def workers(client: Client, queue: str, served: Served, build_id: str) -> list[Worker]:
    """One worker for workflows and tools, one per tier for what asks a model."""
    options: dict[str, Any] = {
        # Without an id the SDK hashes every imported module, which takes a second.
        "deployment_config": WorkerDeploymentConfig(
            version=WorkerDeploymentVersion("holdfast", build_id), use_worker_versioning=False
        ),
        "graceful_shutdown_timeout": GRACE,
        # Cancellation reaches an activity with its heartbeat; the default delays it by up to 8 s.
        "max_heartbeat_throttle_interval": timedelta(seconds=1),
        "interceptors": [LogContext(), ShowThrottles(served.notes)],
    }
    main = Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        activities=[*served.preparing, *served.free, *served.asking],
        max_concurrent_activities=TOOL_SLOTS,
        # The default leaves a run idle for 10 s after its worker died.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        **options,
    )
    return [
        main,
        *(
            Worker(
                client,
                task_queue=f"{queue}-{tier}",
                activities=[*served.preparing, *served.asking],
                max_concurrent_activities=MODEL_SLOTS,
                **options,
            )
            for tier in served.tiers
        ),
    ]


async def serve(settings: Settings, target: Target, served: Served) -> None:
    """Work until SIGTERM or SIGINT; embedded, also until nobody needs this process."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    client = await connect(target, CONNECT_SECONDS)
    started = workers(client, target.task_queue, served, settings.build_id or __version__)
    ends = [asyncio.create_task(told.wait()), *(asyncio.create_task(w.run()) for w in started)]
    # Also of tiers that others serve: who looks at a run may be answered by this process.
    keeping = (served.gate.keep, served.lookout.keep)
    ends += [
        asyncio.create_task(keep(client, target.task_queue, get_args(Tier))) for keep in keeping
    ]
    ends.append(asyncio.create_task(keep_clean(settings, target, client)))
    attending = None
    if target.embedded:
        attending = asyncio.create_task(attend(settings, target, client, started))
        ends.append(attending)
    log.info("serving %s at %s", target.task_queue, target.address)
    done, waiting = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    if attending and not told.is_set():
        # It drains the workers itself, and then stops the server.
        await attending
    log.info("draining")
    await drain(started)
    await served.close()
    for task in waiting:
        task.cancel()
    log.info("ended")


async def attend(settings: Settings, target: Target, client: Client, started: list[Worker]) -> None:
    """The embedded worker's duties beside its work."""

    async def open_runs() -> int:
        # Another program may have the server's port by now, and never answer.
        patience = timedelta(seconds=5)
        query = 'ExecutionStatus="Running"'
        return (await client.count_workflows(query, rpc_timeout=patience)).count

    try:
        await attendance.attend(settings, target, open_runs, partial(drain, started))
    except attendance.Moved as moved:
        log.warning("the server moved to %s: connecting anew", moved)
        # The same process under a new address, at once: nothing in flight can be delivered to the
        # old one, where a stranger may listen who never answers the pollers' goodbye.
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


async def drain(started: list[Worker]) -> None:
    """Take no more work, let what is in flight finish. All together: one that waits for its last
    call must not leave the others taking new work.
    """
    await asyncio.gather(*(each.shutdown() for each in started))


def embedded_target(settings: Settings) -> Target:
    """The embedded server of this state directory. ValueError if none was ever started."""
    endpoint = StateDir.of(settings).endpoint()
    if endpoint is None:
        raise ValueError(f"{settings.state_dir}: nothing was started there; use starter.py up")
    return endpoint.target


def own_target(settings: Settings) -> Target:
    """The server that Temporal's variables or profile name. ValueError without a store."""
    config = configured()
    address = config.get("target_host", "localhost:7233")
    if not settings.store_url:
        raise ValueError(
            f"STORE_URL is not set: with a server of your own ({address}) worker and starter need "
            "one store for big payloads; set STORE_URL=file:///PATH to a folder both can reach"
        )
    return Target(
        address=address,
        namespace=config.get("namespace", "default"),
        task_queue=settings.task_queue,
        store_url=settings.store_url,
        embedded=False,
    )


def main(
    arguments: list[str] | None = None,
    make_tools: MakeTools = shipped_tools,
    make_journal: MakeJournal = FileJournal,
) -> int:
    """The exit code. `make_…` is what another worker of this project may bring along."""
    parser = argparse.ArgumentParser(description="The worker process.")
    parser.add_argument("--embedded", metavar="STATE_DIR", type=Path, help="of the embedded server")
    place: Path | None = parser.parse_args(arguments).embedded
    try:
        settings = Settings(state_dir=place) if place else Settings()
        target = embedded_target(settings) if place else own_target(settings)
        _log(settings, embedded=target.embedded)
        served = build(settings, target, make_tools, make_journal)
    # Temporal's profiles fail with RuntimeError.
    except (ValueError, OSError, RuntimeError, EmbeddedError) as error:
        return _refused(error, 2)
    try:
        asyncio.run(serve(settings, target, served))
    except Unreachable as error:
        return _refused(error, 5)
    return 0


def _log(settings: Settings, *, embedded: bool) -> None:
    path = StateDir.of(settings).logs / "worker.jsonl" if embedded else None
    configure_logging(path, settings.log_level, settings.secrets)
    Runtime.set_default(runtime())


def _refused(error: Exception, code: int) -> int:
    sys.stderr.write(" ".join(str(error).split()) + "\n")
    return code


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The SDK can crash while the interpreter shuts down, after all work is done.
    os._exit(code)
