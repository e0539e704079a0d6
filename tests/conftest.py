"""Fixtures: a real dev server that skips time, and `Runs`, which replays each run it starts."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import re
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio.pytest_plugin
import hypothesis
import pytest
from temporalio.api.enums.v1 import EventType, IndexedValueType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.runtime import Runtime
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle

from conversing import conversing_here
from ending import end_all_of, end_hanging
from holdfast.activities.asking import heartbeat, sending
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.model_endpoint import ModelEndpoint
from holdfast.activities.wiring import build
from holdfast.calls.turn import READS_ON
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Capabilities, Goal, Report
from holdfast.contracts.policies import tools_queue
from holdfast.contracts.search import SEARCH_ATTRIBUTES
from holdfast.contracts.view import RunView
from holdfast.deployment.settings import Settings
from holdfast.history.fold import Fold
from holdfast.intake.connection import Connection
from holdfast.ports import Lens, Model
from holdfast.rendering.running import run_view
from holdfast.replaying.replay import play
from holdfast.serving.evaluating import with_evals
from holdfast.serving.schedules import with_schedules
from holdfast.serving.worker import deployment_of, treasurers_worker, workers
from holdfast.state.run import State
from holdfast.storage import DirectoryStore
from holdfast.storage.keys import Keyring, keyring
from holdfast.telemetry.logs import runtime
from holdfast.temporal.connection import Target, plugin
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.supervisor import SupervisorWorkflow
from searching import searching_here
from shipped import shipped_catalogue

# Reading all tests only makes what stays: to look again and again for garbage is a third of it.
gc.disable()
# Tests start many processes; where no bytecode may be kept, each of them would compile the whole
# project anew, which is two fifths of what its start costs.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A blow falls on one process, and calls are counted by it, however many cores there are; tests of
# several ask for them.
os.environ["HOLDFAST_WORKERS"] = "1"
# Workers of tests say that they live as often as those of a deployment.
Runtime.set_default(runtime())
# A server of tests is small, and has no need to tidy its memory as often as a large one.
os.environ.setdefault("GOGC", "400")
# Several test processes share two cores: slow is not a defect of a strategy.
hypothesis.settings.register_profile(
    "shared",
    deadline=None,
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("shared")

TEMPORAL = Path(sys.executable).parent / "temporal"
LONGEST = (
    "test_pythons",
    "test_schedule_survival",
    "test_docs_run",
    "test_wheel",
    "test_certify",
    "test_map_survival",
    "test_rolling",
    "test_two_machines",
    "test_treasurer",
    "test_manifests",
    "test_siblings",
    "test_hooks_survival",
    "test_embedded",
    "test_outage_survival",
    "test_release",
    "test_approval_survival",
    "test_overhead",
    "test_terminals",
    "test_several_projects",
    "test_eval_survival",
    "test_mcp_killed",
    "test_survival",
    "test_loop_survival",
    "test_journal_survival",
    "test_takeover",
    "test_served",
    "test_proof_survival",
    "test_spans_survival",
    # Its cost grows with the runs that a server already has.
    "test_cleaning",
    "test_never_left",
    "test_reset",
    "test_html_in_browser",
    "test_live_page",
    "test_live_page_away",
)
"""Files that take long and mostly wait, in this order before all others: so that none is left at
the end, when nothing else can be done meanwhile.
"""
MARKS_LONG = re.compile(r"\bmark\.long\b|\brest_long\b")
"""What stands in each file that has a long test."""
ALL_LONG = re.compile(r"^pytestmark = (?:pytest\.|\[[^\]]*\b)mark\.long\b", re.MULTILINE)
"""What stands in a file that has no others."""
Handle = WorkflowHandle[SupervisorWorkflow, Report]
FAILED = pytest.StashKey[bool]()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which nothing is wanted: each tester imports all the others."""
    wanted = config.option.markexpr
    if wanted not in ("long", "not long") or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text("utf-8")
    idle = ALL_LONG.search(text) if wanted == "not long" else not MARKS_LONG.search(text)
    return True if idle else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, and last those that wait for nobody: while they are left, each core
    has something to do.
    """
    long = {each.path for each in items if each.get_closest_marker("long")}
    unmarked = [str(each) for each in long if not MARKS_LONG.search(each.read_text("utf-8"))]
    if unmarked:
        raise pytest.UsageError(f"-m long would not find the long tests of {', '.join(unmarked)}")
    places = {name: place for place, name in enumerate(LONGEST)}
    waiting = {item.path for item in items if "env" in getattr(item, "fixturenames", ())}
    items.sort(
        key=lambda item: (places.get(item.path.stem, len(LONGEST)), item.path not in waiting)
    )


def pytest_collection_finish() -> None:
    """What is there now stays: the collector goes through what comes."""
    gc.freeze()
    gc.set_threshold(10_000, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, Any]:
    """Remember that a test failed, for its teardown."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """End a test that took longer than it may. Its coroutine stands in anyio's runner, and its
    fixtures, which are ended there, would wait for it for ever.
    """
    try:
        return (yield)
    except pytest.fail.Exception as error:
        if str(error).startswith("Timeout") and (runner := anyio.pytest_plugin._current_runner):
            end_hanging(runner)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Leave no server and no worker of a test that failed before it had ended them."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    try:
        return (yield)
    finally:
        if folder is not None and item.stash.get(FAILED, False):
            end_all_of(folder)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def hears_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is cut hears of it within a second or two: with the pauses of long work, up to 4.5 s,
    a busy machine leaves nothing of what a short deadline keeps for the synthesis.
    """
    monkeypatch.setattr(heartbeat, "BEATS", (0.5,))


@pytest.fixture(scope="session")
async def env(anyio_backend: str) -> AsyncIterator[WorkflowEnvironment]:
    """The real server, with per-workflow time skipping that costs no second a skip."""
    flags = [
        "frontend.WorkflowTimeSkippingEnabled=true",
        "frontend.WorkflowPauseEnabled=true",
        'history.timerProcessorMaxTimeShift="1ms"',
        # A run is deleted once its last tasks are noted as done, by default every 30 s.
        'history.transferProcessorUpdateAckInterval="1s"',
        'history.visibilityProcessorUpdateAckInterval="1s"',
        # As in a deployment; and each queue of each test costs the server a quarter less.
        "matching.numTaskqueueReadPartitions=1",
        "matching.numTaskqueueWritePartitions=1",
        "matching.enableFairness=true",
    ]
    environment = await WorkflowEnvironment.start_time_skipping_v2(
        dev_server_existing_path=str(TEMPORAL),
        dev_server_log_level="never",
        dev_server_startup_timeout=timedelta(seconds=60),
        dev_server_extra_args=[part for flag in flags for part in ("--dynamic-config-value", flag)],
    )
    async with environment:
        yield environment


class _Asked(Interceptor):
    """Starts the worker of a queue once a run asks something of it. Few runs of tests do, and each
    worker costs a sixth of what a run does.
    """

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.once = asyncio.Event()

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        queue, ask = self.queue, self.once.set
        tell = asyncio.get_running_loop().call_soon_threadsafe

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:
                if input.task_queue == queue:
                    tell(ask)
                return super().start_activity(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound

    async def serve(self, make: Callable[[], Sequence[Worker]]) -> None:
        """Make the worker when it is wanted: one that is made is known to the server's client."""
        await self.once.wait()
        (worker,) = make()
        async with worker:
            await asyncio.Future()


@dataclass
class Runs:
    """Starts runs against a worker with this model and these tools; each is replayed strictly."""

    env: WorkflowEnvironment
    folder: Path
    handles: list[Handle] = field(default_factory=list)
    kept: int = 100
    """Runs that a worker keeps in memory. At 0 each workflow task replays its run from the start:
    twice the CPU, for tests of what only a replay in the middle of a run meets.
    """
    keys: Keyring = field(default_factory=functools.partial(keyring, ""))
    """What encrypts all that is kept."""
    task_timeout: timedelta | None = None
    """A workflow task that failed twice is tried again only after this long, by default 10 s."""
    served: bool = False
    """True once it has had a worker."""

    def __post_init__(self) -> None:
        self.store = DirectoryStore(self.folder / "store", self.keys)
        self.journal = FileJournal(self.folder / "journal", keys=self.keys)
        config = self.env.client.config()
        config["plugins"] = [plugin(self.store, self.keys)]
        self.client = Client(**config)
        self.queue = f"test-{uuid.uuid4().hex[:8]}"

    @asynccontextmanager
    async def worker(
        self,
        model: Model | None = None,
        tools: Mapping[str, Lens] | None = None,
        catalogue: Catalogue | None = None,
        **more: Any,
    ) -> AsyncIterator[None]:
        """Workers for the main queue and each tier."""
        projects = more.get("projects", ())
        own = ("PYTEST_CURRENT_TEST", "HOLDFAST_STATE_DIR")
        read = _settings_of(
            frozenset(each for each in os.environ.items() if each[0] not in own),
            projects=projects,
            endpoint_web=more.get("endpoint_web", False),
            model_planner=more.get("model_planner"),
            webhook_secret=more.get("webhook_secret"),
            webhook_private=more.get("webhook_private", False),
            most_dollars_day=more.get("most_dollars_day"),
        )
        places = {
            "state_dir": self.folder,
            "allowed_roots": (self.folder,),
            "mcp_file": more.get("mcp_file", self.folder / "no.json"),
        }
        settings = read.model_copy(update=places)
        target = Target(
            "",
            task_queue=self.queue,
            store_url=self.store.root.as_uri(),
            embedded=False,
            key_file=self.keys.file,
        )
        served = build(
            settings,
            target,
            make_lenses=lambda *_: tools or {},
            make_journal=lambda _: self.journal,
            gate=more.get("gate"),
            store=self.store,
            catalogue=catalogue if catalogue or projects else _shipped(),
            endpoint=ModelEndpoint(
                model,
                capabilities=more.get("capabilities", _plain),
                batches=more.get("batches"),
            ),
        )
        served = with_evals(with_schedules(served, settings, target), settings, target)
        if "maps" in more:
            served = more["maps"].instead_of_shipped(served)
        served = replace(served, tiers=more.get("tiers", served.tiers))
        options: dict[str, Any] = {
            "workflows": more.get("workflows", WORKFLOWS),
            "max_cached_workflows": self.kept,
            # A test ends when it has seen what it waited for, whatever is still in flight.
            "graceful_shutdown_timeout": timedelta(),
            # One run at a time needs no five of each, which cost as much as the run itself.
            "max_concurrent_activity_task_polls": 2,
            "max_concurrent_workflow_task_polls": 2,
        }
        asked = _Asked(tools_queue(self.queue))
        make = functools.partial(
            workers,
            self.client,
            self.queue,
            served,
            deployment_of(self.queue, "test", pinned=False),
            (*more.get("interceptors", ()), asked),
            **options,
        )
        # What was asked of an earlier worker is not asked again.
        if self.served or more.get("tools_at_once"):
            asked.once.set()
        self.served = True
        (of_runs,) = make(serves="runs")
        counts = settings.most_dollars_day or more.get("treasurer")
        chief: Any = nullcontext()
        if counts:
            chief = treasurers_worker(self.client, self.queue, "test")
        async with of_runs, chief:
            using_tools = asyncio.create_task(asked.serve(functools.partial(make, serves="tools")))
            try:
                yield
            finally:
                using_tools.cancel()
                with suppress(asyncio.CancelledError):
                    await using_tools

    async def start(self, goal: Goal, *, skipping: bool = True) -> Handle:
        """`skipping` False: time runs as usual, because a person is about to act."""
        off = nullcontext() if skipping else self.env.with_time_skipping_disabled()
        with off:
            handle = await self.client.start_workflow(
                SupervisorWorkflow.run,
                goal,
                id=f"run-{uuid.uuid4().hex[:8]}",
                task_queue=self.queue,
                task_timeout=self.task_timeout,
            )
        self.handles.append(handle)
        return handle

    async def run(self, goal: Goal, model: Model | None = None, **worker: Any) -> Report:
        async with self.worker(model, **worker), asyncio.timeout(60):
            report = await outcome(await self.start(goal))
        assert getattr(model, "missed", []) == []
        return report

    async def register(self, names: Sequence[str]) -> None:
        """Give the namespace some of the project's search attributes; it may have them already."""
        kinds = {name: f"INDEXED_VALUE_TYPE_{SEARCH_ATTRIBUTES[name].upper()}" for name in names}
        request = AddSearchAttributesRequest(
            namespace=self.client.namespace,
            search_attributes={name: IndexedValueType.Value(kind) for name, kind in kinds.items()},
        )
        with suppress(RPCError):
            await self.client.operator_service.add_search_attributes(request)

    async def activities(self) -> list[str]:
        """The ids of the activities of the last run, as scheduled."""
        history = await self.handles[-1].fetch_history()
        return [
            event.activity_task_scheduled_event_attributes.activity_id
            for event in history.events
            if event.HasField("activity_task_scheduled_event_attributes")
        ]


async def seen(handle: Handle, condition: Callable[[RunView], object]) -> RunView:
    """Follow a run until a reader would see what the test waits for."""
    # Whoever waits for long looks less often: each look asks for the whole history.
    pause = 0.02
    fold, taken = Fold(handle.id, handle._client.data_converter), list[HistoryEvent]()
    async with asyncio.timeout(120):
        while True:
            events = list((await handle.fetch_history()).events)
            # After a reset it is another history.
            if events[len(taken) - 1 : len(taken)] != taken[-1:]:
                fold, taken = Fold(handle.id, handle._client.data_converter), []
            for event in events[len(taken) :]:
                await fold.take(event)
            taken = events
            if fold.state is not None and condition(view := run_view(fold.state)):
                return view
            await asyncio.sleep(pause)
            pause = min(0.1, 1.1 * pause)


async def folded(handle: Handle) -> State | None:
    """The state of a run, as its history tells it."""
    fold = Fold(handle.id, handle._client.data_converter)
    async for event in handle.fetch_history_events():
        await fold.take(event)
    return fold.state


async def _plain() -> Capabilities:
    """An endpoint that understands no more than all do."""
    return Capabilities()


@functools.cache
def _settings_of(_environment: frozenset[tuple[str, str]], **given: Any) -> Settings:
    """Read settings: once for each environment, as it takes 20 ms."""
    return Settings(_env_file=None, project=None, **given)


@functools.cache
def _shipped() -> Catalogue:
    return asking_once(shipped_catalogue())


def asking_once(catalogue: Catalogue) -> Catalogue:
    """Return the roles, the common ones with no tools but those that read inputs: most tests are
    about calls, and begin no agent where there is nothing to read.
    """
    roles = dict(catalogue.roles)
    for name, role in roles.items():
        reading = [each.tool for each in role.card.reads if each.inputs]
        tools = tuple(each for each in role.card.tools if each in (*reading, READS_ON))
        if reading and not role.playbook:
            roles[name] = replace(role, card=role.card.model_copy(update={"tools": tools}))
    return replace(catalogue, roles=roles)


@pytest.fixture
def payload_keys() -> Keyring:
    """What runs encrypt with: nothing, unless a test says otherwise."""
    return keyring("")


@pytest.fixture
async def runs(
    env: WorkflowEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    payload_keys: Keyring,
) -> AsyncIterator[Runs]:
    """Behaviour under test; on the way out every run's history is replayed, arguments compared."""
    # What a call does by itself for some seconds is tried by its own tests.
    monkeypatch.setattr(sending, "BLIP_SECONDS", 0.0)
    started = Runs(env, tmp_path, keys=payload_keys)
    yield started
    for handle in started.handles:
        events = until_unanswered(list((await handle.fetch_history()).events))
        history = WorkflowHistory(handle.id, events)
        replayed = await play(history, WORKFLOWS, started.store, started.keys)
        assert replayed.differences == ()
        fold = Fold(handle.id, handle._client.data_converter)
        for event in events:
            await fold.take(event)
        assert fold.state == replayed.state, "a reader's state is the workflow's own"


def until_unanswered(events: list[HistoryEvent]) -> list[HistoryEvent]:
    """Return the events before a workflow task that was begun and never answered, as its worker had
    ended: a replay would answer it, of which a reader cannot know.
    """
    for event in reversed(events):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            break
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED:
            begun = event.workflow_task_started_event_attributes.scheduled_event_id
            return [each for each in events if each.event_id < begun]
    return events


@pytest.fixture
def secrets_found_here() -> Iterator[None]:
    """For tests of what else a review says: the search for secrets starts no programs."""
    with searching_here():
        yield


@pytest.fixture
def servers_asked_here() -> Iterator[None]:
    """For tests of what else is done with MCP servers: asking one loads no client anew."""
    with conversing_here():
        yield


# ---------------------------------------------------------------- the command line


@pytest.fixture
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No key, no server, no .env; and the state directory, which no refusal may create."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "STORE_URL", "HOLDFAST_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(Settings.model_config, "env_file", None)
    state = tmp_path / "state"
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(state))
    monkeypatch.chdir(tmp_path)
    return state


@pytest.fixture
def connection(runs: Runs, bare_environment: Path) -> Connection:
    """The command line's view of the test server; its store is the worker's."""
    target = Target(
        address=runs.client.service_client.config.target_host,
        task_queue=runs.queue,
        store_url=(runs.folder / "store").as_uri(),
        ui_url="http://127.0.0.1:8233",
        embedded=False,
        key_file=runs.keys.file,
    )
    return Connection(Settings(state_dir=bare_environment), target, runs.client)
