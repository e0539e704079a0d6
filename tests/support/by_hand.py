"""A run led by hand, without a server: the SDK's own workflow instance, handed activations that a
test puts together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.common import Priority, TypedSearchAttributes
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from driving import START
from holdfast.calls.turn import AgentGoal
from holdfast.contracts import Goal, Order
from holdfast.temporal.activations import ENDS, OneAtATime
from holdfast.temporal.connection import PURE_MODULES, data_converter
from holdfast.workflows.agent import AgentWorkflow
from holdfast.workflows.supervisor import SupervisorWorkflow

CONVERTER = data_converter(None)
SECOND = 1_000_000_000
BEGAN = int(START.timestamp()) * SECOND
PASSED_THROUGH = SandboxRestrictions.default.with_passthrough_modules(*PURE_MODULES)
PLAIN = SandboxedWorkflowRunner(restrictions=PASSED_THROUGH)
ONE_AT_A_TIME = OneAtATime(PLAIN)
"""The SDK's own: what has arrived together is handed over together."""


def payload(value: Any) -> Payload:
    """As a worker of this project writes it."""
    (written,) = CONVERTER.payload_converter.to_payloads([value])
    return written


def failure(error: BaseException) -> Failure:
    """As a worker of this project writes it."""
    written = Failure()
    CONVERTER.failure_converter.to_failure(error, CONVERTER.payload_converter, written)
    return written


# ---------------------------------------------------------------- jobs


def begins(goal: Goal | AgentGoal) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    began = job.initialize_workflow
    began.workflow_type, began.workflow_id = _definition(goal).name or "", "run"
    began.arguments.append(payload(goal))
    began.randomness_seed, began.attempt = 7, 1
    began.first_execution_run_id = "first"
    began.start_time.FromNanoseconds(BEGAN)
    return job


def returns(seq: int, result: Any) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_activity.seq = seq
    job.resolve_activity.result.completed.result.CopyFrom(payload(result))
    return job


def fails(seq: int, cause: Failure, *, started: bool = True) -> WorkflowActivationJob:
    """`cause`: what the activity said, or its timeout."""
    job = WorkflowActivationJob()
    job.resolve_activity.seq = seq
    said = job.resolve_activity.result.failed.failure
    said.message = "Activity task failed"
    said.activity_failure_info.scheduled_event_id = 5
    said.activity_failure_info.started_event_id = 6 if started else 0
    said.cause.CopyFrom(cause)
    return job


def times_out(seq: int, kind: int, *, started: bool = True) -> WorkflowActivationJob:
    cause = Failure(message="activity timeout")
    cause.timeout_failure_info.timeout_type = kind  # type: ignore[assignment]
    return fails(seq, cause, started=started)


def is_cut(seq: int, *, sent: bool = True) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_activity.seq = seq
    said = job.resolve_activity.result.cancelled.failure
    said.message = "Activity cancelled"
    said.activity_failure_info.scheduled_event_id = 5 if sent else 0
    said.cause.CopyFrom(failure(CancelledError("CANCELED")))
    return job


def team_starts(seq: int) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_child_workflow_execution_start.seq = seq
    job.resolve_child_workflow_execution_start.succeeded.run_id = "team"
    return job


def team_is_never_started(seq: int) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_child_workflow_execution_start.seq = seq
    said = job.resolve_child_workflow_execution_start.cancelled.failure
    said.message = "Child Workflow cancelled"
    said.child_workflow_execution_failure_info.initiated_event_id = 0
    said.cause.CopyFrom(failure(CancelledError("CANCELED")))
    return job


def team_returns(seq: int, report: Any) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_child_workflow_execution.seq = seq
    job.resolve_child_workflow_execution.result.completed.result.CopyFrom(payload(report))
    return job


def team_fails(seq: int, cause: BaseException) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_child_workflow_execution.seq = seq
    said = job.resolve_child_workflow_execution.result.failed.failure
    said.message = "Child Workflow execution failed"
    said.child_workflow_execution_failure_info.initiated_event_id = 5
    said.cause.CopyFrom(failure(cause))
    return job


def fires(seq: int) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.fire_timer.seq = seq
    return job


def cancels() -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.cancel_workflow.reason = "asked"
    return job


def signals(name: str, *told: Any) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.signal_workflow.signal_name = name
    job.signal_workflow.input.extend(payload(each) for each in told)
    return job


def nobody_hears(seq: int) -> WorkflowActivationJob:
    """A Signal to another run: that one has ended."""
    job = WorkflowActivationJob()
    job.resolve_signal_external_workflow.seq = seq
    job.resolve_signal_external_workflow.failure.CopyFrom(
        failure(ApplicationError("not found", type="ExternalWorkflowExecutionNotFound"))
    )
    return job


def orders(number: int, name: str, order: Order) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.do_update.id = job.do_update.protocol_instance_id = f"order-{number}"
    job.do_update.name = name
    job.do_update.input.append(payload(order))
    job.do_update.run_validator = True
    return job


# ---------------------------------------------------------------- one incarnation of a run


class Run:
    """One instance in a worker's cache, of what this is the goal of. `commands` is everything it
    asked for, in order.
    """

    def __init__(self, runner: WorkflowRunner, goal: Goal | AgentGoal | None = None) -> None:
        self.instance = asyncio.run(_made(runner, _definition(goal)))
        self.commands: list[WorkflowCommand] = []
        self.flags: set[int] = set()
        self.refused = ""

    @property
    def over(self) -> bool:
        return any(each.WhichOneof("variant") in ENDS for each in self.commands)

    def take(
        self,
        jobs: Sequence[WorkflowActivationJob],
        time_ns: int,
        *,
        replaying: bool = False,
        length: int = 3,
    ) -> list[WorkflowCommand]:
        """Hand over one activation; what the run asks for in answer to it."""
        act = WorkflowActivation(run_id="first", is_replaying=replaying, history_length=length)
        act.timestamp.FromNanoseconds(time_ns)
        act.available_internal_flags.extend(sorted(self.flags))
        act.jobs.extend(jobs)
        done: WorkflowActivationCompletion = self.instance.activate(act)
        self.refused = done.failed.failure.message
        self.flags.update(done.successful.used_internal_flags)
        commands = list(done.successful.commands)
        self.commands += commands
        return commands

    def drop(self) -> None:
        """As a worker that needs the room in its cache."""
        job = WorkflowActivationJob()
        job.remove_from_cache.message = "dropped"
        self.take([job], BEGAN)


def _definition(goal: Goal | AgentGoal | None) -> workflow._Definition:
    kind = AgentWorkflow if isinstance(goal, AgentGoal) else SupervisorWorkflow
    return workflow._Definition.must_from_class(kind)


async def _made(runner: WorkflowRunner, definition: workflow._Definition) -> WorkflowInstance:
    """An instance is made inside a loop, as in a worker; it runs in its own."""
    return runner.create_instance(_details(definition))


def _details(definition: workflow._Definition) -> WorkflowInstanceDetails:
    info = workflow.Info(
        attempt=1,
        continued_run_id=None,
        cron_schedule=None,
        execution_timeout=None,
        first_execution_run_id="first",
        headers={},
        namespace="default",
        original_execution_run_id="first",
        parent=None,
        root=None,
        priority=Priority.default,
        raw_memo={},
        retry_policy=None,
        run_id="first",
        run_timeout=None,
        search_attributes={},
        start_time=START,
        workflow_start_time=START,
        task_queue="holdfast",
        task_timeout=timedelta(seconds=10),
        # The SDK writes into it; `empty` is one for the whole process, of its clients, too.
        typed_search_attributes=TypedSearchAttributes([]),
        workflow_id="run",
        workflow_type=definition.name or "",
    )
    return WorkflowInstanceDetails(
        payload_converter_factory=CONVERTER._new_payload_converter,
        failure_converter_class=CONVERTER.failure_converter_class,
        interceptor_classes=[],
        defn=definition,
        info=info,
        randomness_seed=7,
        extern_functions={},
        disable_eager_activity_execution=False,
        worker_level_failure_exception_types=[],
        patch_activation_callback=None,
        last_completion_result=Payloads(),
        last_failure=None,
    )
