"""What a measurement does to runs from outside, by wire names: orders, and constant queries."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

# Reading the Web UI's query needs its message to be known.
import temporalio.api.sdk.v1  # noqa: F401
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError

from holdfast.contracts import Order, Report
from holdfast.contracts.view import Question
from holdfast.history.troubles import find_report

QUERIES = ("view", "__temporal_workflow_metadata")
"""Ours, and the one that Temporal's Web UI asks by itself."""
ANSWER = timedelta(seconds=5)
PAUSE_SECONDS = 0.02
"""How long a client pauses between two queries for one run."""


def silence() -> None:
    """Before any client is made: the SDK's native part prints each request that it repeats, and
    asyncio each process that ended while it was being killed.
    """
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="OFF"))))


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
    """What a run asks people; nothing if it does not answer."""
    try:
        view: dict[str, Any] = await handle.query("view", rpc_timeout=ANSWER)
    except (RPCError, WorkflowQueryFailedError):
        return []
    return [Question.model_validate(each) for each in view["waiting"]]


async def ask(
    client: Client, query: str, run_id: str, answers: Counter[str], pause: float = PAUSE_SECONDS
) -> None:
    """Query a run constantly, forever; count the answers. `pause` is seconds."""
    handle = client.get_workflow_handle(run_id)
    while True:
        with suppress(RPCError, WorkflowQueryFailedError):
            await handle.query(query, rpc_timeout=ANSWER)
            answers[query] += 1
        await asyncio.sleep(pause)


async def outcome(handle: WorkflowHandle[Any, Report], patience: timedelta | None = None) -> Report:
    """The report of a run, also of one that failed: then it is in the failure's details."""
    try:
        return await handle.result(rpc_timeout=patience)
    except WorkflowFailureError as error:
        report = find_report(error.cause)
        if report is None:
            raise
        return report


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
