"""Hands a workflow its events one at a time, and only those of a workflow task.

What the SDK hands over together, an activation, is not recorded: a worker that takes over a run and
is asked a query first is given results in another grouping, and at another time, than a replay will
be. Code that could notice would make a history that its own replay does not follow. So each result
is handed over by itself, in the order of the history, and the workflow comes to rest before the
next. An Update comes last, after all results of its activation: the SDK sorts it first, but a task
accepts it behind every result that came before or with it, so that last is its place however they
were grouped. So does the Signal that holds an agent, which the SDK sorts first as well. And results
that the SDK hands over only to answer a query are refused: the query fails, the run leaves this
worker's cache, and its next task reads all of the history.

Two signs tell such results. No workflow task began since the one before: they are refused at once.
Or one began that another worker was given, and died with: then the query comes right after the
first results that are not a replay, and is refused itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import SerializationContext, StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.workflow import Info

from holdfast.contracts.errors import BadGoal
from holdfast.contracts.signals import HOLD
from holdfast.contracts.treasury import TREASURER
from holdfast.text.mistakes import mistakes

RESULTS = (
    "signal_workflow",
    "resolve_activity",
    "resolve_child_workflow_execution_start",
    "resolve_child_workflow_execution",
    "fire_timer",
    "cancel_workflow",
)
"""Jobs that stand for an event of the history, whose order counts."""
ENDS = (
    "complete_workflow_execution",
    "fail_workflow_execution",
    "cancel_workflow_execution",
    "continue_as_new_workflow_execution",
)
UPDATE = "do_update"
QUERY = "legacy_query"
"""The SDK's id of a query that comes by itself, not with a workflow task."""
LONGEST_REFUSAL = 500
"""Characters of what is wrong with what a run was started with."""
_prepared = WeakSet[type]()
"""Workflow classes that the sandbox has imported: each worker, and each replay, would try again."""
REFUSED = "this run is being taken over by another worker; ask again in a moment"


@dataclass(frozen=True)
class OneAtATime(WorkflowRunner):
    """Wraps a workflow runner (the sandbox or none) so that its instances get one event at a
    time.
    """

    inner: WorkflowRunner

    def prepare_workflow(self, defn: Any) -> None:
        if defn.cls not in _prepared:
            self.inner.prepare_workflow(defn)
            _prepared.add(defn.cls)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = self.inner.create_instance(det)
        return _Instance(instance, det) if _is_driven(det) else instance

    def set_worker_level_failure_exception_types(
        self, types: Sequence[type[BaseException]]
    ) -> None:
        self.inner.set_worker_level_failure_exception_types(types)


def _is_driven(det: WorkflowInstanceDetails) -> bool:
    """True for runs of ours. Whoever has workflows of his own beside them has written those for the
    SDK's ways. So is the treasurer: it goes on in a new history after one of several Signals, and
    what came together with that one would be lost.
    """
    ours = det.defn.cls.__module__.split(".")[0] == __name__.split(".")[0]
    return ours and det.defn.name != TREASURER


@dataclass
class _Instance(WorkflowInstance):
    """Wraps the SDK's instance of one run."""

    inner: WorkflowInstance
    details: WorkflowInstanceDetails
    time_ns: int = 0
    """Time of the workflow task that was last handed over."""
    events: int = 0
    """How much of the history had been; too much by two where the server dropped the task, as it
    does when all that a task brought were Updates that were refused.
    """
    asked: bool = False
    """True if anything was asked for in answer: only then can the same task bring more."""
    fresh: bool = True
    """True until it is handed results outside a replay."""
    unsure: bool = False
    """True just after that happened first: a query may have brought them."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if self._is_outside_a_task(act) or self._brought_by(act):
            refused = WorkflowActivationCompletion()
            refused.failed.failure.message = REFUSED
            return refused
        self._look_at(act)
        self.time_ns, self.events = act.timestamp.ToNanoseconds(), act.history_length
        whole: WorkflowActivationCompletion | None = None
        for part in _parts(act):
            done = self._handed(part)
            if whole is None or not done.HasField("successful"):
                whole = done
            else:
                whole.successful.commands.extend(done.successful.commands)
                whole.successful.used_internal_flags.extend(done.successful.used_internal_flags)
            if not done.HasField("successful") or _ended(done):
                break
        assert whole is not None, "an activation has at least one part"
        self.asked = _asks(whole)
        return whole

    def _handed(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Hand one part to the run. A run that was started with something other than a Goal fails
        here; the SDK would retry its first workflow task for ever.
        """
        begins = [each.initialize_workflow for each in act.jobs if _begins(each)]
        # Ours all take one argument; what another workflow takes is its own business.
        begins = begins if len(self.details.defn.arg_types or ()) == 1 else []
        # Before the SDK makes a workflow of it, which it would leave half done.
        if begins and not _is_one_value(begins[0].arguments):
            return _failed(self.details, _unfit(self.details, begins[0].arguments))
        done = self.inner.activate(act)
        if begins and (_ended(done) or not done.HasField("successful")):
            why = _unfit(self.details, begins[0].arguments)
            return _failed(self.details, why) if why else done
        return done

    def _is_outside_a_task(self, act: WorkflowActivation) -> bool:
        """True if there are new results but no workflow task began after the one handed over
        before.
        """
        return (
            not act.is_replaying
            and act.timestamp.ToNanoseconds() == self.time_ns
            and (act.history_length > self.events or not self.asked)
            and any(job.WhichOneof("variant") in RESULTS for job in act.jobs)
        )

    def _brought_by(self, act: WorkflowActivation) -> bool:
        """True for a query that may have brought the results before it."""
        return self.unsure and any(job.query_workflow.query_id == QUERY for job in act.jobs)

    def _look_at(self, act: WorkflowActivation) -> None:
        variants = [job.WhichOneof("variant") for job in act.jobs]
        new = not act.is_replaying and "query_workflow" not in variants
        self.unsure = new and self.fresh and any(each in RESULTS for each in variants)
        if new and (self.unsure or "initialize_workflow" in variants):
            # A run that began here was never handed over by a query.
            self.fresh = False

    def get_serialization_context(self, _command_info: object) -> SerializationContext | None:
        # No converter of ours asks whom a payload is for, and the SDK asks several times for each,
        # inside the sandbox: a tenth of what a replay costs.
        return None

    def get_external_store_context(self, _command_info: object) -> StorageDriverStoreContext:
        # Nor does the storage.
        return StorageDriverStoreContext()

    def get_info(self) -> Info:
        return self.inner.get_info()

    def get_thread_id(self) -> int | None:
        return self.inner.get_thread_id()


def _begins(job: WorkflowActivationJob) -> bool:
    return job.HasField("initialize_workflow")


def _is_one_value(given: Sequence[Payload]) -> bool:
    """True if these arguments are a single value, neither null nor raw bytes."""
    return len(given) == 1 and not given[0].metadata.get("encoding", b"").startswith(b"binary/")


def _unfit(details: WorkflowInstanceDetails, given: Sequence[Payload]) -> str:
    """Return why a run cannot begin with these arguments, in one line; empty if it can."""
    (kind,) = details.defn.arg_types or [object]
    takes = f"{details.defn.name} takes one argument, its {kind.__name__}"
    if len(given) != 1:
        return f"{takes}; it was given {len(given) or 'none'}"
    try:
        (value,) = details.payload_converter_factory().from_payloads(given, [kind])
    except ValidationError as error:
        return f"{takes}: {'; '.join(mistakes(error, 'it'))[:LONGEST_REFUSAL]}"
    except Exception as error:
        said = " ".join(str(error).split())[:LONGEST_REFUSAL]
        return f"{takes}, and what it was given cannot be read: {said}"
    return "" if isinstance(value, kind) else f"{takes}; what it was given is none"


def _failed(details: WorkflowInstanceDetails, why: str) -> WorkflowActivationCompletion:
    done = WorkflowActivationCompletion()
    failure = done.successful.commands.add().fail_workflow_execution.failure
    # It quotes what the run was started with, which may have to be encrypted.
    details.failure_converter_class().to_failure(
        BadGoal(why), details.payload_converter_factory(), failure
    )
    return done


def _parts(act: WorkflowActivation) -> Iterator[WorkflowActivation]:
    """Yield one activation for each result, in order; everything else goes first, Updates last."""
    results = [job for job in act.jobs if job.WhichOneof("variant") in RESULTS]
    updates = [job for job in act.jobs if job.WhichOneof("variant") == UPDATE]
    others = [job for job in act.jobs if job.WhichOneof("variant") not in (*RESULTS, UPDATE)]
    head = _head(act)
    if others or not act.jobs:
        yield _with(head, others)
    for job in sorted(results, key=_comes_last):
        yield _with(head, [job])
    if updates:
        yield _with(head, updates)


def _comes_last(job: WorkflowActivationJob) -> bool:
    """True for a Signal that has no place among results because it asks to start nothing."""
    return job.signal_workflow.signal_name == HOLD


def _head(act: WorkflowActivation) -> WorkflowActivation:
    """Return the activation without its jobs. They hold all results: copying them for each part
    would cost the square of their size.
    """
    head = WorkflowActivation()
    for descriptor, value in act.ListFields():
        if descriptor.name == "jobs":
            continue
        if descriptor.is_repeated:
            getattr(head, descriptor.name).extend(value)
        elif descriptor.message_type is not None:
            getattr(head, descriptor.name).CopyFrom(value)
        else:
            setattr(head, descriptor.name, value)
    return head


def _with(head: WorkflowActivation, jobs: Sequence[WorkflowActivationJob]) -> WorkflowActivation:
    part = WorkflowActivation()
    part.CopyFrom(head)
    part.jobs.extend(jobs)
    return part


def _asks(done: WorkflowActivationCompletion) -> bool:
    """True if this completion holds anything that the server records: not for an answer to a query
    or a refusal.
    """
    return any(
        command.WhichOneof("variant") != "respond_to_query"
        and not command.update_response.HasField("rejected")
        for command in done.successful.commands
    )


def _ended(done: WorkflowActivationCompletion) -> bool:
    return any(command.WhichOneof("variant") in ENDS for command in done.successful.commands)
