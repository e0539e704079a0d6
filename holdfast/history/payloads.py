"""What stands in the payloads and the failures of a history's events, as values and as the errors
that the SDK hands to a workflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter
from temporalio.exceptions import ActivityError, CancelledError, ChildWorkflowError

from holdfast.state.parts import Flight
from holdfast.text.mistakes import mistakes


class Unreadable(Exception):
    """Not the history of a run, or one with payloads that cannot be read; the message says why."""


@dataclass(frozen=True)
class Payloads:
    """How the payloads of one run are read."""

    run_id: str
    converter: DataConverter

    async def decoded(self, payloads: Sequence[Payload], kind: Any, event: HistoryEvent) -> Any:
        """The one value of an event. Unreadable when it is no such value."""
        try:
            (value,) = await self.converter.decode(list(payloads), [kind])
        except Exception as error:
            raise self._unreadable(event, error) from error
        return value

    async def failure(self, failure: Failure, event: HistoryEvent) -> BaseException:
        """The error with which a run closed. Unreadable when its details cannot be read."""
        try:
            return await self.converter.decode_failure(failure)
        except Exception as error:
            raise self._unreadable(event, error) from error

    async def cause(self, attributes: Any) -> BaseException:
        """Why an activity or a child ended without a result, from the attributes of its event."""
        if "failure" not in attributes.DESCRIPTOR.fields_by_name:
            return CancelledError("cancelled")
        return await self.converter.decode_failure(attributes.failure)

    def _unreadable(self, event: HistoryEvent, error: Exception) -> Unreadable:
        said = str(error)
        if isinstance(error, ValidationError):
            said = "; ".join(each.removeprefix(": ") for each in mistakes(error))
        why = " ".join(said.split())[:300] or type(error).__name__
        return Unreadable(f"event {event.event_id} of {self.run_id}: {why}")


def activity_error(
    flight: Flight, scheduled: int, started: int, cause: BaseException
) -> ActivityError:
    """As the workflow was told of the end of an activity; the numbers are of its events."""
    error = ActivityError(
        "activity ended",
        scheduled_event_id=scheduled,
        started_event_id=started,
        identity="",
        activity_type="",
        activity_id=flight.move.id,
        retry_state=None,
    )
    error.__cause__ = cause
    return error


def child_error(initiated: int, cause: BaseException) -> ChildWorkflowError:
    """As the workflow was told of the end of a child."""
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
