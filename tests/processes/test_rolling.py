"""A release that breaks determinism is rolled out under twenty open runs: the old build finishes
its own, also when its worker is killed in between, and the new one takes the rest. Real server,
real processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    ScheduleSpec,
    WorkflowHandle,
)
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from bench.instruments.deployment import part, planned
from changed_worker import change
from conftest import TEMPORAL
from holdfast.certifying.people import waits_for
from holdfast.cli.main import main
from holdfast.client.reading import Reader
from holdfast.contracts import Approval, Goal, Order, Report
from holdfast.contracts.treasury import treasurer_of
from holdfast.deployment.settings import HOME, PREFIX, Settings
from holdfast.intake.connection import Connection
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.storage import store_at
from holdfast.temporal.connection import Target, connect, plugin
from holdfast.workers.versions import Version, read_versions
from holdfast.workflows import WORKFLOWS

pytestmark = [pytest.mark.long, pytest.mark.anyio]

QUEUE = "rolled.out"
CHANGED = Path("tests", "support", "changed_worker.py")
SOON = "1s"
DRAINAGE = (
    f'matching.wv.VersionDrainageStatusRefreshInterval="{SOON}"',
    f'matching.wv.VersionDrainageStatusVisibilityGracePeriod="{SOON}"',
)
"""How often the server looks whether a build is drained: three minutes by default."""
TOOL = {"call": "take_turn", "turn": 1, "tools": [{"name": "format_data", "input": {}}]}
SCRIPT = Script.model_validate(
    # Longer than it takes to roll, so that calls are under way on the old build.
    {"rules": [TOOL], "latencies": {"work": [6, 9], "take_turn": [6, 9]}}
)


@dataclass
class Stand:
    """A server, an endpoint, and what a worker or a command is told of them."""

    client: Client
    target: Target
    environment: dict[str, str]
    folder: Path

    @contextmanager
    def worker(self, program: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        """A worker process; its log is `NAME.log`."""
        build = more["HOLDFAST_BUILD_ID"]
        given = {**self.environment, "HOLDFAST_STATE_DIR": str(self.folder / build), **more}
        with (self.folder / f"{build}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(HOME / program)], cwd=HOME, env=given, stderr=log
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    async def start(self, goal: Goal) -> WorkflowHandle[Any, Report]:
        probe = await store_at(self.target.store_url).put(b"rolling")
        return await self.client.start_workflow(
            "SupervisorWorkflow",
            goal.model_copy(update={"probe": probe}),
            id=f"roll-{uuid.uuid4().hex[:8]}",
            task_queue=QUEUE,
            result_type=Report,
        )

    async def schedule(self, goal: Goal) -> ScheduleHandle:
        """A schedule without a time: what it starts is started by hand."""
        probe = await store_at(self.target.store_url).put(b"rolling")
        action = ScheduleActionStartWorkflow(
            "SupervisorWorkflow",
            goal.model_copy(update={"probe": probe}),
            id="of-a-schedule",
            task_queue=QUEUE,
        )
        return await self.client.create_schedule(
            "rolled", Schedule(action=action, spec=ScheduleSpec())
        )

    async def triggered(self, schedule: ScheduleHandle) -> WorkflowHandle[Any, Report]:
        """The run that the schedule has started now."""
        await schedule.trigger()
        async with asyncio.timeout(30):
            while True:
                found = (await schedule.describe()).info.recent_actions
                if found and isinstance(found[0].action, ScheduleActionExecutionStartWorkflow):
                    name = found[0].action.workflow_id
                    return self.client.get_workflow_handle(name, result_type=Report)
                await asyncio.sleep(0.3)

    async def held_up(self, run: str) -> tuple[str, ...]:
        """What somebody who watches the run is told."""
        settings = Settings(_env_file=None, state_dir=self.folder / "watcher")
        reader = Reader(Connection(settings, self.target, self.client), run)
        await reader.look()
        await reader.find_held_up()
        return reader.held_up

    async def builds(self) -> dict[str, Version]:
        return {each.build: each for each in await read_versions(self.client, QUEUE)}

    async def build_of(self, run: str) -> str:
        info = (await self.client.get_workflow_handle(run).describe()).raw_info
        return info.versioning_info.deployment_version.build_id

    async def until_status(self, build: str, status: str) -> None:
        async def holds() -> bool:
            found = (await self.builds()).get(build)
            return found is not None and found.status == status

        await until(holds)


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.3)


@pytest.fixture
async def stand(
    anyio_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stand]:
    started = WorkflowEnvironment.start_local(
        dev_server_existing_path=str(TEMPORAL),
        dev_server_log_level="never",
        dev_server_extra_args=[
            part for each in DRAINAGE for part in ("--dynamic-config-value", each)
        ],
    )
    async with await started as server, Simulator(SCRIPT) as simulator:
        address = server.client.service_client.config.target_host
        target = Target(
            address, task_queue=QUEUE, store_url=(tmp_path / "store").as_uri(), embedded=False
        )
        told = {
            "TEMPORAL_ADDRESS": address,
            "STORE_URL": target.store_url,
            "HOLDFAST_TASK_QUEUE": QUEUE,
            "HOLDFAST_PIN_RUNS": "true",
            "HOLDFAST_WORKERS": "1",
            # So there is a treasurer.
            "HOLDFAST_MOST_DOLLARS_DAY": "100000",
            "ANTHROPIC_BASE_URL": simulator.url,
            "ANTHROPIC_API_KEY": "scripted",
        }
        ours = (PREFIX, "TEMPORAL_", "ANTHROPIC_", "STORE_")
        for name in [name for name in os.environ if name.startswith(ours)]:
            monkeypatch.delenv(name)
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        yield Stand(await connect(target), target, dict(os.environ), tmp_path)


async def deploy(*arguments: str) -> None:
    assert await asyncio.to_thread(main, ["deploy", *arguments]) == 0


async def approve(run: WorkflowHandle[Any, Report]) -> None:
    """Approve its plan; this waits until a worker of its build is there."""
    await run.execute_update("approve", Order(by="ann"), id=f"approve-{run.id}")


async def until_logged(stand: Stand, build: str, line: str) -> None:
    async def holds() -> bool:
        return line in (stand.folder / f"{build}.log").read_text()

    await until(holds)


async def until_shown(capsys: pytest.CaptureFixture[str], words: str) -> None:
    """Until `deploy` says this."""

    async def holds() -> bool:
        await deploy()
        said = capsys.readouterr()
        return words in said.out + said.err

    await until(holds)


async def replays_changed(stand: Stand, run: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the changed code replays what the unchanged code has begun."""
    history = await stand.client.get_workflow_handle(run).fetch_history()
    with monkeypatch.context() as patched:
        changed = change(workflow.execute_activity_method)
        patched.setattr(workflow, "execute_activity_method", changed)
        replayer = Replayer(
            workflows=WORKFLOWS,
            plugins=[plugin(store_at(stand.target.store_url))],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        found = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    return found.replay_failure is None


@pytest.mark.timeout(600)
async def test_a_release_that_breaks_determinism_is_rolled_out_under_twenty_runs_and_none_is_stuck(
    stand: Stand, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, agent = (part(1), part(2, "t1")), (part(1).model_copy(update={"role": "writer"}),)
    asking = planned(plain).model_copy(update={"approval": Approval(when="always")})
    goals = [*[asking] * 10, *[planned(plain)] * 5, *[planned(agent)] * 5]
    old, new = {"HOLDFAST_BUILD_ID": "one"}, {"HOLDFAST_BUILD_ID": "two"}
    with ExitStack() as processes:
        first = processes.enter_context(stand.worker(Path("worker.py"), **old))
        second = processes.enter_context(stand.worker(CHANGED, **new))
        await asyncio.gather(*(stand.until_status(each, "inactive") for each in ("one", "two")))
        await deploy("one")
        schedule = await stand.schedule(planned(plain))
        runs = [await stand.start(goal) for goal in goals]

        async def under_way() -> bool:
            waiting = [bool(await waits_for(each)) for each in runs[:10]]
            # An agent is a workflow beside its run.
            return all(waiting) and (await stand.builds())["one"].open == 25

        await until(under_way)
        assert not await replays_changed(stand, runs[0].id, monkeypatch), (
            "the change breaks nothing"
        )
        await deploy("two", "--percent", "10")
        assert {each.build: each.percent for each in (await stand.builds()).values()} == {
            "one": 90,
            "two": 10,
        }
        await deploy("two")
        later = [await stand.start(planned(plain)) for _ in range(3)]
        later.append(await stand.triggered(schedule))
        first.send_signal(signal.SIGKILL)
        first.wait()
        approving = [asyncio.create_task(approve(each)) for each in runs[:10]]
        await until_shown(capsys, "and no worker; start one of it again")
        assert await stand.held_up(runs[0].id) == (
            "it stays on build one, and no worker of that asks for work; start one again",
        )
        assert await stand.held_up(later[0].id) == ()
        first = processes.enter_context(stand.worker(Path("worker.py"), **old))
        await asyncio.gather(*approving)
        async with asyncio.timeout(150):
            reports = await asyncio.gather(*(each.result() for each in (*runs, *later)))
        assert {each.status for each in reports} == {"complete"}
        assert {await stand.build_of(each.id) for each in runs} == {"one"}
        assert {await stand.build_of(each.id) for each in later} == {"two"}
        assert await stand.build_of(treasurer_of(QUEUE)) == "", "any build carries it on"
        await stand.until_status("one", "drained")
        await until_logged(stand, "one", "is drained: no open run needs it")
        await until_shown(capsys, "drained")
        for process in (first, second):
            process.terminate()
            assert process.wait(30) == 0
