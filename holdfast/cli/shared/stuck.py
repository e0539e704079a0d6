"""An open run that does not go on by itself: why, from where it would, and what that undoes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from temporalio.client import (
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHistory,
)

from holdfast.cli.screen.exits import Exit
from holdfast.cli.screen.streams import say
from holdfast.client.reading import STUCK_ATTEMPTS, describe_run
from holdfast.deployment.invocation import to_type
from holdfast.history.fold import last_failure
from holdfast.intake.connection import Connection
from holdfast.replaying import faults, undoing
from holdfast.replaying.faults import Fault
from holdfast.replaying.undoing import Undoing
from holdfast.workflows import WORKFLOWS


@dataclass(frozen=True)
class Stuck:
    """An open run, why it does not go on, and where it would go on from."""

    run_id: str
    execution: str
    history: WorkflowHistory
    point: int
    undone: tuple[Undoing, ...]


async def examine(connection: Connection, run_id: str, event: int) -> Stuck:
    """Return why a run is stuck and the point to reset it to. Exit if there is nothing to free."""
    description, history = await _open(connection, run_id)
    keys, converter = connection.target.keys, connection.client.data_converter
    fault = await faults.find_fault(history, WORKFLOWS, connection.store, keys)
    why = await last_failure(history.events, converter)
    failed = _failures(description, why)
    say(_state(run_id, failed, why))
    if fault is not None:
        say(f"Why: {fault.why}")
    point = _by_hand(history, event) if event else _found(run_id, failed, fault)
    undone = await _undone(connection, description, history, point)
    return Stuck(run_id, description.run_id or "", history, point, undone)


async def examine_again(connection: Connection, stuck: Stuck) -> Stuck:
    """Return the same as it stands now. Exit if the run has closed, or somebody else has reset
    it.
    """
    description, history = await _open(connection, stuck.run_id)
    if description.run_id != stuck.execution:
        raise Exit(f"{stuck.run_id}: somebody else has reset it meanwhile")
    undone = await _undone(connection, description, history, stuck.point)
    return replace(stuck, history=history, undone=undone)


async def _undone(
    connection: Connection,
    description: WorkflowExecutionDescription,
    history: WorkflowHistory,
    point: int,
) -> tuple[Undoing, ...]:
    converter = connection.client.data_converter
    return await undoing.find_undone(history.events, point, converter, _under_way(description))


async def _open(
    connection: Connection, run_id: str
) -> tuple[WorkflowExecutionDescription, WorkflowHistory]:
    description = await describe_run(connection, run_id)
    if description.status is not WorkflowExecutionStatus.RUNNING:
        raise Exit(f"run {run_id} is over; a new run goes on from it: {to_type('fork', run_id)}")
    teams = [each.workflow_id for each in description.raw_description.pending_children]
    if teams:
        raise Exit(
            f"{run_id}: its team {teams[0]} is at work, and a reset would start another of that"
            f" name; end it first: {to_type('cancel', teams[0])}"
        )
    handle = connection.client.get_workflow_handle(run_id, run_id=description.run_id)
    return description, await handle.fetch_history()


def _state(run_id: str, failed: int, why: str) -> str:
    if not failed:
        return f"{run_id} is not stuck: no step of it has failed."
    often = f"{failed} time{'s' * (failed != 1)}"
    return f"{run_id}: its next step failed {often}{f'; the first time: {why}' * bool(why)}"


def _failures(description: WorkflowExecutionDescription, why: str) -> int:
    """Return how often the present workflow task has failed; the server restarts the count when
    something comes in meanwhile.
    """
    tried = description.raw_description.pending_workflow_task.attempt - 1
    return max(tried, 1 if why else 0)


def _found(run_id: str, failed: int, fault: Fault | None) -> int:
    if fault is None and failed < STUCK_ATTEMPTS:
        raise Exit(f"{run_id}: nothing to free; today's code follows its history")
    if fault is None:
        raise Exit(
            f"{run_id}: today's code follows all that is recorded, so a reset would not help:"
            " its next step fails until a worker with a fixed version takes it;"
            f" going back by hand all the same: {to_type('reset', run_id)} --event N"
        )
    if not fault.point:
        raise Exit(f"{run_id}: no workflow task was completed before that; start the run anew")
    if not failed:
        raise Exit(
            f"{run_id}: not stuck yet, but whoever takes it over will be; free it with:"
            f" {to_type('reset', run_id)} --event {fault.point}"
        )
    return fault.point


def _by_hand(history: WorkflowHistory, event: int) -> int:
    known = faults.reset_points(history.events)
    if event not in known:
        listed = ", ".join(str(each) for each in known[-20:])
        raise Exit(f"--event {event}: no WorkflowTaskCompleted event; the latest: {listed}")
    return event


def _under_way(description: WorkflowExecutionDescription) -> frozenset[str]:
    pending = description.raw_description.pending_activities
    return frozenset(each.activity_id for each in pending if each.HasField("last_started_time"))
