"""Shows a run's board to whoever asks for it, as the Web UI does. It is drawn when it is asked for:
what a workflow tells the SDK of itself it would have to draw at every event, for nobody as a rule.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from temporalio import workflow
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.worker import (
    HandleQueryInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)


@runtime_checkable
class Drawn(Protocol):
    """A workflow that draws its board when asked."""

    def details(self) -> str: ...


class ShowBoards(Interceptor):
    """Sets the board as current details of every workflow that draws one; commands and state stay
    untouched.
    """

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: ARG002 - the SDK passes it by name
    ) -> type[WorkflowInboundInterceptor]:
        """Return the interceptor that the SDK makes for each run."""
        return _Shows


class _Shows(WorkflowInboundInterceptor):
    async def handle_query(self, input: HandleQueryInput) -> Any:
        answer = await super().handle_query(input)
        run = workflow.instance()
        if isinstance(answer, WorkflowMetadata) and isinstance(run, Drawn):
            answer.current_details = run.details()
        return answer
