"""Shows whoever looks at a run which of the tiers that it waits for are slowed just now, or served
by nobody.

Both belong to the deployment and pass; they are in no run's history. So the worker that answers a
query adds them to the answer: to the view, and to the board that the Web UI asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from temporalio import workflow
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.worker import (
    HandleQueryInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from holdfast.contracts.view import RunView
from holdfast.rendering.board import board

Slowed = Callable[[], Mapping[str, str]]
"""() -> tier -> a line that says how fast it goes and why, of the tiers not at full speed; one line
may be that of several.
"""


@runtime_checkable
class _Run(Protocol):
    """What of a workflow is looked at, if it has it."""

    def view(self) -> RunView: ...


class ShowThrottles(Interceptor):
    """Adds them to the answers of queries; commands and state of the run stay untouched."""

    def __init__(self, slowed: Slowed) -> None:
        self._slowed = slowed

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: ARG002 - the SDK passes it by name
    ) -> type[WorkflowInboundInterceptor]:
        """The SDK makes one of these for each run."""
        slowed = self._slowed

        class Shows(WorkflowInboundInterceptor):
            async def handle_query(self, input: HandleQueryInput) -> Any:
                answer = await super().handle_query(input)
                if isinstance(answer, RunView):
                    return with_throttles(answer, slowed())
                run = workflow.instance()
                if isinstance(answer, WorkflowMetadata) and isinstance(run, _Run):
                    view = run.view()
                    shown = with_throttles(view, slowed())
                    if shown != view:
                        answer.current_details = board(shown)
                return answer

        return Shows


def with_throttles(view: RunView, slowed: Mapping[str, str]) -> RunView:
    """The view with a note for each slowed tier that a call in flight belongs to."""
    notes = tuple(dict.fromkeys(slowed[tier] for tier in view.tiers if tier in slowed))
    return view.model_copy(update={"notes": (*notes, *view.notes)}) if notes else view
