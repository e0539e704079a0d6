"""Runs on a Temporal client, worker and replayer of your own.

client = await Client.connect("temporal.example:7233", plugins=[HoldfastPlugin(tools=[lookup])])
async with Worker(client, task_queue="mine", workflows=[Mine]):
    ...   # in Mine: await workflow.execute_child_workflow("SupervisorWorkflow", Goal(text=...))
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from temporalio.client import ClientConfig
from temporalio.plugin import SimplePlugin
from temporalio.service import ConnectConfig, ServiceClient
from temporalio.worker import ReplayerConfig, Worker, WorkerConfig

from holdfast.activities.model_endpoint import ModelEndpoint
from holdfast.activities.wiring import Served, build
from holdfast.contracts.policies import tools_queue
from holdfast.contracts.treasury import treasurers_queue
from holdfast.deployment.build import build_of
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.errors import Refused
from holdfast.serving.evaluating import with_evals
from holdfast.serving.nexus import RunsHandler
from holdfast.serving.own_tools import Given, Own, gate_of
from holdfast.serving.schedules import with_schedules
from holdfast.serving.worker import treasurers_worker
from holdfast.telemetry.logs import offer_runtime
from holdfast.temporal.connection import Target, plugin
from holdfast.workflows import WORKFLOWS


class HoldfastPlugin(SimplePlugin):
    """What a client, a worker and a replayer need for runs beside workflows of your own: converter,
    workflows, activities, the Nexus service. Give it to the client alone: its workers have it, too.

    `tools`: functions that agents may call, in this process. `roles`: a folder of role files.
    `project`: a folder with both, and playbooks. Other settings are those of a worker:
    `HOLDFAST_...`, `STORE_URL`, `ANTHROPIC_...`. Raise Refused for a setting that cannot be used.
    """

    def __init__(
        self,
        *,
        tools: Iterable[Given] = (),
        roles: str | Path | None = None,
        project: str | Path | None = None,
    ) -> None:
        self._settings = Settings.of(project)
        self._own = Own.of(tools, roles, self._settings)
        self._queues: set[str] = set()
        """What is served beside the queues of workers of yours."""
        self._made: defaultdict[str, list[Served]] = defaultdict(list)
        """Activities of workers that were made and have not ended, by queue."""
        state = StateDir.of(self._settings)
        self._store_url = self._settings.store_url or state.store.as_uri()
        shared = plugin(self._target("").store, self._target("").keys)
        super().__init__(
            shared.name(),
            data_converter=shared.data_converter,
            workflow_runner=shared.workflow_runner,
            interceptors=shared.interceptors,
        )

    async def connect_service_client(
        self, config: ConnectConfig, next: Callable[[ConnectConfig], Awaitable[ServiceClient]]
    ) -> ServiceClient:
        if config.runtime is None:
            offer_runtime()
        return await super().connect_service_client(config, next)

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        if sum(isinstance(each, HoldfastPlugin) for each in config["plugins"]) > 1:
            raise Refused("HoldfastPlugin is given twice to one client; give one, with all of it")
        return super().configure_client(config)

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        config = super().configure_worker(config)
        queue = config["task_queue"]
        if queue in self._queues:
            return config
        beside = {*WORKFLOWS} & {*config.get("workflows", ())}
        if beside or self not in config["client"].config()["plugins"]:
            raise Refused(
                "HoldfastPlugin is given to the client alone, as"
                " `Client.connect(..., plugins=[HoldfastPlugin()])`; its workers have it, too"
            )
        served = self._build(queue)
        self._made[queue].append(served)
        asking = [*served.preparing, *served.asking] if served.tiers else []
        config["workflows"] = [*config.get("workflows", ()), *WORKFLOWS]
        config["activities"] = [*config.get("activities", ()), *asking]
        handlers = config.get("nexus_service_handlers", ())
        runs = RunsHandler(self._target(queue), self._settings)
        config["nexus_service_handlers"] = [*handlers, runs]
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        config = super().configure_replayer(config)
        config["workflows"] = [*config.get("workflows", ()), *WORKFLOWS]
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """Run a worker of yours, and beside it one for the tools of its runs and one for the
        treasurer.
        """
        queue = worker.task_queue
        if queue in self._queues:
            await super().run_worker(worker, next)
            return
        served = self._made[queue].pop()
        self._queues |= {tools_queue(queue), treasurers_queue(queue)}
        beside = Worker(
            worker.client,
            task_queue=tools_queue(queue),
            activities=[*served.preparing, *served.free, *served.asking],
            # Where runs stay on a build, their tools do.
            deployment_config=worker.config().get("deployment_config"),
        )
        treasurer = treasurers_worker(worker.client, queue, build_of(self._settings))
        try:
            async with beside, treasurer:
                await super().run_worker(worker, next)
        finally:
            await served.close()

    def _target(self, queue: str) -> Target:
        return Target(
            "",
            task_queue=queue,
            store_url=self._store_url,
            embedded=False,
            key_file=self._settings.key_file,
        )

    def _build(self, queue: str) -> Served:
        gate, endpoint = gate_of(self._settings), self._endpoint()
        target = self._target(queue)
        served = build(self._settings, target, gate, endpoint=endpoint, **self._own.parts)
        served = with_schedules(served, self._settings, target)
        return with_evals(served, self._settings, target)

    def _endpoint(self) -> ModelEndpoint | None:
        """Return where models are asked; None: where the settings say."""
        return None
