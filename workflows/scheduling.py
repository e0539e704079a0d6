"""Scheduling activities and child workflows: queue, id, and words in the timeline. What they may
cost has been reserved before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypedDict, TypeVar

from temporalio import workflow
from temporalio.common import Priority, WorkflowIDReusePolicy
from temporalio.exceptions import FailureError
from temporalio.workflow import (
    ChildWorkflowCancellationType,
    ChildWorkflowHandle,
    ParentClosePolicy,
)

from holdfast.activities.agents import Agents
from holdfast.activities.examine import Lenses
from holdfast.activities.notify import Notices
from holdfast.activities.preparation import Preparation
from holdfast.activities.schedules import Schedules
from holdfast.activities.use_tool import Tools
from holdfast.agent.state import UseTool
from holdfast.calls import KINDS
from holdfast.calls.rows import BatchesLooked, Items, MapTable, RowsDone, Submitted
from holdfast.calls.turn import ToolResult, UseMaterial
from holdfast.contracts import (
    Briefing,
    Call,
    Contract,
    Draft,
    Goal,
    Reply,
    Report,
    Standstill,
    policies,
)
from holdfast.contracts.evals import Asked, Grading, Mark, Opened, Priced, Scored, Trial
from holdfast.contracts.notices import Delivery, Notice
from holdfast.contracts.policies import Options
from holdfast.contracts.schedules import Due, Outcome, Scheduled
from holdfast.contracts.signals import STANDSTILL
from holdfast.maps.state import (
    AskRows,
    CancelBatches,
    CloseMap,
    CollectRows,
    LookAtBatches,
    OpenMap,
    SubmitRows,
)
from holdfast.maps.state import Flying as OfMap
from holdfast.maps.state import Result as OfMapResult
from holdfast.rendering.board import call_summary, lens_summary
from holdfast.state.moves import Examine, Notify, Prepare

Told = TypeVar("Told")
Ended = TypeVar("Ended")
Kept = TypeVar("Kept", bound=Contract)
ACTIVITIES = {name: getattr(Agents, name) for name in KINDS}
"""The activity of each kind of call."""


class _Where(TypedDict):
    task_queue: str
    priority: Priority


async def ask(
    call: Call, material: Contract, options: Options, *, anew: bool = False
) -> Reply[Any]:
    """Schedule a call, after a reducer has reserved its worst case. No other function does. `anew`:
    what its subtask had begun with was taken back.
    """
    return await workflow.execute_activity_method(
        ACTIVITIES[call.kind],
        args=[call, material],
        activity_id=call.id,
        **_where(asks=call.model is not None or call.kind == "reach"),
        summary=call_summary(call, material, anew=anew),
        **options,
    )


async def prepare(move: Prepare, goal: Goal, options: Options) -> Briefing:
    return await workflow.execute_activity_method(
        Preparation.prepare,
        goal,
        activity_id=move.id,
        **_where(asks=goal.use_models),
        summary="resolve roles, inputs, prices",
        **options,
    )


async def pin_inputs(move: Prepare, goal: Goal, options: Options) -> Briefing:
    return await workflow.execute_activity_method(
        Preparation.pin_inputs,
        goal,
        activity_id=move.id,
        **_where(asks=False),
        summary="resolve inputs",
        **options,
    )


async def examine(move: Examine, options: Options) -> Reply[Draft]:
    return await workflow.execute_activity_method(
        Lenses.examine,
        move.material,
        activity_id=move.id,
        **_where(asks=False),
        summary=lens_summary(move.material.subtask),
        **options,
    )


async def use_tool(move: UseTool, material: UseMaterial, options: Options) -> ToolResult:
    return await workflow.execute_activity_method(
        Tools.use_tool,
        material,
        activity_id=move.id,
        **_where(asks=False),
        summary=f"{move.use.name} {move.use.says}".strip(),
        **options,
    )


MAPPING: Mapping[type, tuple[str, type]] = {
    OpenMap: ("open_map", Items),
    CloseMap: ("close_map", MapTable),
    AskRows: ("ask_rows", RowsDone),
    SubmitRows: ("submit_rows", Submitted),
    LookAtBatches: ("look_at_batches", BatchesLooked),
    CancelBatches: ("cancel_batches", BatchesLooked),
    CollectRows: ("collect_rows", RowsDone),
}
"""The activity of each move of a map, by name, and what it brings: importing `Maps` would load what
reads files.
"""


async def do_for_map(move: OfMap, summary: str, options: Options) -> OfMapResult:
    """Schedule an activity of a map; what its rows may cost was reserved before."""
    name, kind = MAPPING[type(move)]
    result: OfMapResult = await workflow.execute_activity(
        name,
        move.material,
        activity_id=move.id,
        **_where(asks=not isinstance(move, OpenMap | CloseMap)),
        result_type=kind,
        summary=summary,
        **options,
    )
    return result


def send(notice: Notice, place: int) -> workflow.ActivityHandle[None]:
    return workflow.start_activity_method(
        Notices.send_notice,
        args=[notice, place],
        activity_id=f"send-{place + 1}",
        **_where(asks=False),
        summary=f"{notice.type} to {place + 1} of {len(notice.urls)}",
        **policies.SEND_NOTICE,
    )


async def start_notifier(
    run: Callable[[Any, Notice], Awaitable[Delivery]], move: Notify
) -> ChildWorkflowHandle[Any, Delivery]:
    """Start the workflow that delivers a notice, which outlives this one."""
    return await workflow.start_child_workflow(
        run,
        move.notice,
        id=move.workflow_id,
        parent_close_policy=ParentClosePolicy.ABANDON,
        cancellation_type=ChildWorkflowCancellationType.ABANDON,
        static_summary=f"tell of {move.notice.type}",
    )


async def start_below(
    run: Callable[[Any, Told], Awaitable[Ended]], told: Told, run_id: str, summary: str
) -> ChildWorkflowHandle[Any, Ended]:
    """Start a workflow below this one, which is cancelled if this one is closed."""
    return await workflow.start_child_workflow(
        run,
        told,
        id=run_id,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        static_summary=summary,
    )


async def prepare_scheduled(scheduled: Scheduled) -> Due:
    return await workflow.execute_activity_method(
        Schedules.prepare_scheduled,
        scheduled,
        activity_id="prepare-scheduled",
        **_where(asks=False),
        summary="what to start now",
        **policies.SCHEDULED,
    )


async def start_scheduled(
    run: Callable[[Any, Goal], Awaitable[Report]], due: Due
) -> ChildWorkflowHandle[Any, Report]:
    """Start the run of a time of a schedule. It goes on if that time's workflow is terminated, and
    is cancelled with it.
    """
    assert due.goal is not None
    return await workflow.start_child_workflow(
        run,
        due.goal,
        id=due.outcome.run,
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        parent_close_policy=ParentClosePolicy.ABANDON,
        cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        memo=due.memo,
        static_summary=due.summary,
        static_details=due.details,
    )


async def _do_for_eval(
    name: str, material: Contract, kind: type[Kept], run: str, said: str, *, asks: bool = False
) -> Kept:
    result: Kept = await workflow.execute_activity(
        name,
        material,
        activity_id=f"{name}-{run}",
        **_where(asks=asks),
        result_type=kind,
        summary=said,
        **policies.SCHEDULED,
    )
    return result


async def open_trial(trial: Trial) -> Opened:
    return await _do_for_eval("open_trial", trial, Opened, trial.run, f"open {trial.case}")


async def price_trial(trial: Trial) -> Priced:
    said = f"price {trial.case}"
    return await _do_for_eval("price_trial", trial, Priced, trial.run, said, asks=bool(trial.cap))


async def score_trial(trial: Trial) -> Scored:
    return await _do_for_eval("score_trial", trial, Scored, trial.run, f"mark {trial.case}")


async def grade_trial(grading: Grading) -> Mark:
    mark = grading.mark
    return await _do_for_eval("grade_trial", grading, Mark, mark.run, f"grade {mark.case}")


async def start_trial(
    run: Callable[[Any, Told], Awaitable[Ended]], told: Told, run_id: str, asked: Asked
) -> ChildWorkflowHandle[Any, Ended]:
    """Start a run of an eval, which is cancelled if the eval is closed. One that was cancelled or
    terminated before is started anew.
    """
    return await workflow.start_child_workflow(
        run,
        told,
        id=run_id,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        memo=asked.memo,
        static_summary=asked.summary or asked.case.name,
        static_details=asked.details,
    )


async def use_one(material: UseMaterial, options: Options) -> ToolResult:
    """Schedule the only call of a tool that a trial makes."""
    return await workflow.execute_activity_method(
        Tools.use_tool,
        material,
        activity_id=material.use.id,
        **_where(asks=False),
        summary=material.use.name,
        **options,
    )


async def read_outcome(started: Outcome) -> Outcome:
    return await workflow.execute_activity_method(
        Schedules.read_outcome,
        started,
        activity_id="read-outcome",
        **_where(asks=False),
        summary="how it ended",
        **policies.SCHEDULED,
    )


async def tell_above(word: Standstill) -> None:
    """Tell the run above, if there is one, that this one waits or goes on."""
    above = workflow.info().parent
    if above is not None:
        handle = workflow.get_external_workflow_handle(above.workflow_id)
        await tell(handle.signal(STANDSTILL, word))


async def tell(signal: Awaitable[None]) -> None:
    """Send a Signal to another run, which may have ended meanwhile."""
    with suppress(FailureError):
        await signal


def _where(*, asks: bool) -> _Where:
    """Return queue and priority of an activity. A run that asks models is also prepared by a worker
    that has them: only that one knows their ids, prices and capabilities. The priority is that of
    the run: said, so that the worker sees it, too.
    """
    info = workflow.info()
    queue = info.task_queue if asks else policies.tools_queue(info.task_queue)
    return {"task_queue": queue, "priority": info.priority}
