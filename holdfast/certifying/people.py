"""What people say to a run that waits for them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio.client import (
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError

from holdfast.contracts import Limits, Order
from holdfast.contracts.view import Question

ANSWER = timedelta(seconds=5)


async def say(handle: WorkflowHandle[Any, Any], name: str, order: Order, seconds: float) -> str:
    """Give an order: "carried out", "refused", or "not answered" in this time, for example because
    the run was over first.
    """
    task = asyncio.current_task()
    try:
        await handle.execute_update(name, order, rpc_timeout=timedelta(seconds=seconds))
    except WorkflowUpdateFailedError:
        return "refused"
    except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError):
        if task is not None and task.cancelling():
            # The SDK makes an error of a cancellation.
            raise asyncio.CancelledError from None
        return "not answered"
    return "carried out"


async def waits_for(handle: WorkflowHandle[Any, Any]) -> list[Question]:
    """Return what a run asks people; nothing if it does not answer."""
    try:
        view: dict[str, Any] = await handle.query("view", rpc_timeout=ANSWER)
    except (RPCError, WorkflowQueryFailedError):
        return []
    return [Question.model_validate(each) for each in view["waiting"]]


def answer_to(question: Question, by: str) -> tuple[str, Order]:
    """Return the order, and what carries it, by which somebody lets a run go on."""
    match question.kind:
        case "plan":
            return "approve", Order(by=by)
        case "budget":
            return "raise_cap", Order(limits=Limits(dollars=1_000, model_calls=2_000), by=by)
        case "paused":
            return "resume", Order(by=by)
        case "call":
            return "approve", Order(call=question.call, by=by)
        case "subtask":
            said = "The first of the two."
            return "answer", Order(subtask_id=question.subtask_id, text=said, by=by)
        case "decision":
            return "skip", Order(subtask_id=question.subtask_id, by=by)
