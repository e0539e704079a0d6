"""Runs beside workflows of one's own: on a foreign client, worker, queue and replayer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import activity, workflow
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentVersionRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from holdfast import Goal, HoldfastPlugin, OrderFor, Refused, Report, RunRequest, Runs
from holdfast.contracts.policies import tools_queue
from holdfast.serving.worker import deployment_of
from holdfast.simulator.server import Simulator

pytestmark = pytest.mark.anyio

QUEUE = "theirs"
UNSANDBOXED = UnsandboxedWorkflowRunner()
FINDING = "The rate rose to 2.5 %."


@activity.defn
async def price_of(name: str) -> int:
    return len(name)


@workflow.defn
class Theirs:
    """A workflow that knows of runs no more than a name and a contract."""

    @workflow.run
    async def run(self, text: str) -> str:
        price = await workflow.execute_activity(
            price_of, "abc", start_to_close_timeout=timedelta(seconds=5)
        )
        report = await workflow.execute_child_workflow(
            "SupervisorWorkflow", Goal(text=text, use_models=True), result_type=Report
        )
        return f"{price}: {report.status}, ${report.dollars}"


@workflow.defn
class Elsewhere:
    """A workflow on another queue, which reaches runs through Nexus alone."""

    @workflow.run
    async def run(self, text: str) -> list[str]:
        runs = workflow.create_nexus_client(service=Runs, endpoint="holdfast")
        request = RunRequest(goal=text, approval="always", id="by-nexus")
        started = await runs.start_operation(Runs.start, request)
        while not (await runs.execute_operation(Runs.look, "by-nexus")).waiting:
            await workflow.sleep(0.1)
        said = await runs.execute_operation(
            Runs.order, OrderFor(run_id="by-nexus", command="approve")
        )
        report = await started
        return [said, report.status]


def rate_of(day: int) -> str:
    """Return the base rate on a day of November 2026.

    Args:
        day: Day of the month.
    """
    return f"{FINDING} ({day})"


@pytest.fixture
async def endpoint(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Simulator]:
    async with Simulator() as simulator:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", simulator.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "scripted-key")
        monkeypatch.setenv("HOLDFAST_STATE_DIR", str(bare_environment / "state"))
        # So that each call waits for the treasurer, which has a queue of its own.
        monkeypatch.setenv("HOLDFAST_MOST_DOLLARS_DAY", "50")
        yield simulator


@pytest.fixture
async def client(env: WorkflowEnvironment, endpoint: Simulator) -> Client:
    target = env.client.service_client.config.target_host
    return await Client.connect(target, plugins=[HoldfastPlugin(tools=[rate_of])])


async def test_a_workflow_of_ones_own_has_a_run_as_its_child_and_both_replay(
    client: Client, env: WorkflowEnvironment
) -> None:
    with env.with_time_skipping_disabled():
        worker = Worker(client, task_queue=QUEUE, workflows=[Theirs], activities=[price_of])
        async with worker, asyncio.timeout(60):
            handle = await client.start_workflow(
                Theirs.run, "Which rates changed?", id="theirs", task_queue=QUEUE
            )
            said = await handle.result()
    assert said.startswith("3: complete, $0.0")
    replayer = Replayer(workflows=[Theirs], plugins=[HoldfastPlugin()])
    await replayer.replay_workflow(await handle.fetch_history())


@pytest.mark.long
async def test_the_tools_of_runs_stay_on_the_build_of_a_worker_of_ones_own(client: Client) -> None:
    config = deployment_of("built", "one", pinned=True)
    request = DescribeWorkerDeploymentVersionRequest(
        namespace=client.namespace,
        deployment_version=WorkerDeploymentVersion(deployment_name="built", build_id="one"),
    )
    queues: set[str] = set()
    async with Worker(client, task_queue="built", workflows=[Theirs], deployment_config=config):
        async with asyncio.timeout(30):
            while queues != {"built", tools_queue("built")}:
                await asyncio.sleep(0.2)
                with suppress(RPCError):
                    service = client.workflow_service
                    answer = await service.describe_worker_deployment_version(request)
                    queues = {each.name for each in answer.version_task_queues}


async def test_a_workflow_elsewhere_starts_looks_and_orders_through_nexus(
    client: Client, env: WorkflowEnvironment
) -> None:
    await env.create_nexus_endpoint("holdfast", QUEUE)
    target = env.client.service_client.config.target_host
    plain = await Client.connect(target, data_converter=pydantic_data_converter)
    with env.with_time_skipping_disabled():
        serving = Worker(client, task_queue=QUEUE, workflows=[Theirs], activities=[price_of])
        asking = Worker(
            plain, task_queue="elsewhere", workflows=[Elsewhere], workflow_runner=UNSANDBOXED
        )
        async with serving, asking, asyncio.timeout(60):
            said = await plain.execute_workflow(
                Elsewhere.run, "Which rates changed?", id="elsewhere", task_queue="elsewhere"
            )
    assert said == ["the plan is approved", "complete"]


async def test_a_setting_or_tool_that_cannot_be_used_is_refused_in_a_line(
    endpoint: Simulator, tmp_path: Path
) -> None:
    def untyped(day):  # type: ignore[no-untyped-def]
        """Return a rate."""

    for wrong in ({"tools": [untyped]}, {"tools": [5]}, {"tools": [rate_of, rate_of]},
                  {"roles": tmp_path / "none"}, {"project": tmp_path / "none"}):  # fmt: skip
        with pytest.raises(Refused) as refused:
            HoldfastPlugin(**wrong)
        assert "\n" not in str(refused.value)


async def test_a_plugin_that_is_not_given_to_the_client_alone_is_refused(
    endpoint: Simulator, env: WorkflowEnvironment
) -> None:
    plugin = HoldfastPlugin()
    target = env.client.service_client.config.target_host
    with pytest.raises(Refused, match="to the client alone"):
        Worker(await Client.connect(target), task_queue=QUEUE, plugins=[plugin])
    with pytest.raises(Refused, match="given twice to one client"):
        await Client.connect(target, plugins=[plugin, HoldfastPlugin()])
    client = await Client.connect(target, plugins=[plugin])
    with pytest.raises(Refused, match="to the client alone"), pytest.warns(UserWarning):
        Worker(client, task_queue=QUEUE, plugins=[plugin])
