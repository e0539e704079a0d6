"""Notes with each result when its activity ran, so that a run's decisions and its report rest on
what is recorded, never on the moment at which a worker happens to look.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from holdfast.calls.turn import ToolResult
from holdfast.contracts import Briefing, Reply, Span
from holdfast.contracts.errors import OrchestrationError


class NoteSpans(Interceptor):
    """Notes a span for every activity that returns or ends with an error of its own."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return the interceptor that the SDK makes for each worker."""
        return _Timed(next)


class _Timed(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        began = time.monotonic()
        try:
            result = await super().execute_activity(input)
        except OrchestrationError as error:
            raise _with(error, _span(began)) from error.__cause__
        if isinstance(result, Reply | Briefing | ToolResult):
            return result.model_copy(update={"span": _span(began)})
        return result


def _span(began: float) -> Span:
    started = activity.info().started_time
    return Span(started=started, ended=started + timedelta(seconds=time.monotonic() - began))


def _with(error: ApplicationError, span: Span) -> ApplicationError:
    return ApplicationError(
        error.message,
        *error.details,
        span,
        type=error.type,
        non_retryable=error.non_retryable,
        next_retry_delay=error.next_retry_delay,
        category=error.category,
    )
