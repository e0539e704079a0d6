"""The treasurer, as workers and commands reach it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from holdfast.contracts.treasury import (
    TREASURER,
    Asked,
    Books,
    Caps,
    Given,
    Statement,
    treasurer_of,
    treasurers_queue,
)
from holdfast.deployment.settings import Settings

PATIENCE = timedelta(seconds=10)
Result = TypeVar("Result")


def caps_of(settings: Settings) -> Caps:
    """Return what a treasurer is told of a worker's settings."""
    return Caps(day=settings.most_dollars_day, month=settings.most_dollars_month)


class Unanswered(Exception):
    """The treasurer does not answer now."""


@dataclass(frozen=True)
class Treasurer:
    """The treasurer of the workers of a task queue."""

    client: Callable[[], Client]
    queue: str
    settings: Caps
    """What one begins with that is not there yet."""

    async def ask(self, asked: Sequence[Asked]) -> list[Given]:
        """Settle and lease slices; start the treasurer if there is none. Raise Unanswered."""
        return await self._update("ask", [*asked], list[Given])

    async def is_there(self) -> bool:
        """True if there is one. Raise Unanswered."""
        try:
            found = await self._handle().describe(rpc_timeout=PATIENCE)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise Unanswered(error.message) from error
        return found.status is WorkflowExecutionStatus.RUNNING

    async def give_back(self, asked: Sequence[Asked]) -> None:
        """Settle slices for good, with no worker needed to answer. Raise Unanswered."""
        try:
            await self._handle().signal("give_back", [*asked], rpc_timeout=PATIENCE)
        except RPCError as error:
            raise Unanswered(error.message) from error

    async def tell(self) -> None:
        """Tell it what this worker's settings are, once it has started. Raise Unanswered."""
        await self._update("tell", self.settings, type(None))

    async def set_caps(self, caps: Caps) -> None:
        """Raise Unanswered."""
        await self._update("set_caps", caps, type(None))

    async def look(self) -> Statement | None:
        """Return how its books stand; None if there is no treasurer. Raise Unanswered."""
        try:
            found: Statement = await self._handle().query(
                "look", datetime.now(UTC), result_type=Statement, rpc_timeout=PATIENCE
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise Unanswered(error.message) from error
        return found

    async def _update(self, name: str, argument: object, kind: type[Result]) -> Result:
        try:
            return await self._once(name, argument, kind)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise Unanswered(error.message) from error
        except WorkflowUpdateFailedError:
            # Its books were just going on in a new history.
            pass
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            raise _unanswered() from error
        try:
            await self._start()
            return await self._once(name, argument, kind)
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            raise _unanswered() from error
        except (RPCError, WorkflowUpdateFailedError) as error:
            raise Unanswered(str(error)) from error

    async def _once(self, name: str, argument: object, kind: type[Result]) -> Result:
        result: Result = await self._handle().execute_update(
            name, argument, result_type=kind, rpc_timeout=PATIENCE
        )
        return result

    async def _start(self) -> None:
        await self.client().start_workflow(
            TREASURER,
            Books(caps=self.settings, told=self.settings),
            id=treasurer_of(self.queue),
            task_queue=treasurers_queue(self.queue),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary="what this deployment may spend, and has spent",
        )

    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self.client().get_workflow_handle(treasurer_of(self.queue))


def _unanswered() -> BaseException:
    """Return what an update that was given up means: the SDK says the same of a task that is
    cancelled, which has to end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        return asyncio.CancelledError()
    return Unanswered("no worker answers for it")
