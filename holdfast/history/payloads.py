"""Decodes the payloads and the failures of a history's events, into values and into the errors that
the SDK hands to a workflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import (
    ActivityError,
    CancelledError,
    ChildWorkflowError,
    TerminatedError,
    TimeoutError,
    TimeoutType,
)

from holdfast.history.executions import Execution, attributes_of
from holdfast.text.mistakes import mistakes


async def decode(converter: DataConverter, payloads: Sequence[Payload], kind: Any) -> Any:
    """Return the only value of an event; the converter's error if it cannot be read."""
    (value,) = await converter.decode(list(payloads), [kind])
    return value


async def try_decode(converter: DataConverter, payloads: Sequence[Payload], kind: Any) -> Any:
    """Return the first value of an event; None where there is none that can be read."""
    try:
        return await decode(converter, payloads[:1], kind)
    except Exception:
        return None


def describe_unreadable(error: Exception) -> str:
    """Return, on one line, why a payload could not be decoded."""
    said = str(error)
    if isinstance(error, ValidationError):
        said = "; ".join(each.removeprefix(": ") for each in mistakes(error))
    return " ".join(said.split())[:300] or type(error).__name__


async def failure_message(converter: DataConverter, failure: Failure) -> str:
    """Return what a failure says, on one line; where that is encrypted and cannot be read, why."""
    said = failure.message
    if failure.HasField("encoded_attributes"):
        try:
            told = await decode(converter, [failure.encoded_attributes], dict[str, str])
            said = told.get("message", "")
        except Exception as error:
            said = describe_unreadable(error)
    return " ".join(said.split())


async def decode_cause(converter: DataConverter, execution: Execution) -> BaseException:
    """Return why an activity or a workflow ended without a result, as the SDK tells it to whoever
    waits; the converter's error if its details cannot be read.
    """
    if execution.failure is not None:
        return await converter.decode_failure(execution.failure)
    if execution.ended and execution.end == "terminated":
        return TerminatedError(getattr(attributes_of(execution.ended), "reason", ""))
    if execution.end == "timed_out":
        return TimeoutError("timed out", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[])
    return CancelledError("cancelled")


def activity_error(id: str, scheduled: int, started: int, cause: BaseException) -> ActivityError:
    """Return the error by which the workflow learnt of the end of an activity; `scheduled` and
    `started` are ids of events, 0 where there is none.
    """
    error = ActivityError(
        "activity ended",
        scheduled_event_id=scheduled,
        started_event_id=started,
        identity="",
        activity_type="",
        activity_id=id,
        retry_state=None,
    )
    error.__cause__ = cause
    return error


def child_error(initiated: int, cause: BaseException) -> ChildWorkflowError:
    """Return the error by which the workflow learnt of the end of a child."""
    error = ChildWorkflowError(
        "child workflow ended",
        namespace="",
        workflow_id="",
        run_id="",
        workflow_type="",
        initiated_event_id=initiated,
        started_event_id=0,
        retry_state=None,
    )
    error.__cause__ = cause
    return error
