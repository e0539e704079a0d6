"""The workflows that tell addresses of the web of a run: started by it, and not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

from holdfast.state.events import NOTIFIER_ENDED, Event, Notified
from holdfast.state.moves import Notify
from holdfast.workflows import scheduling
from holdfast.workflows.notify import NotifyWorkflow


class Notifiers:
    """Starts them; `take` takes the event of one that has ended while the run goes on."""

    def __init__(self, take: Callable[[Event], None]) -> None:
        self._take = take
        self._starting: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, move: Notify) -> None:
        name = move.workflow_id
        self._starting.add(name)
        self._running[name] = asyncio.create_task(self._run(move), name=name)

    async def all_started(self) -> None:
        """Return once the server has each: from then on none needs the run."""
        late = False
        while self._starting:
            try:
                await workflow.wait_condition(lambda: not self._starting)
            except asyncio.CancelledError:
                if late or workflow.cancellation_reason() is None:
                    raise  # this worker only drops the run from its cache
                late = True  # a cancel, but the report is made

    async def _run(self, move: Notify) -> None:
        name = move.workflow_id
        try:
            child = await scheduling.start_notifier(NotifyWorkflow.run, move)
            self._starting.discard(name)
            self._take(Notified(move.notice.number, (await child).failures))
        except WorkflowAlreadyStartedError:
            # The same notice, from before a reset.
            pass
        except ChildWorkflowError:
            self._take(Notified(move.notice.number, (NOTIFIER_ENDED,)))
        finally:
            self._starting.discard(name)
            del self._running[name]
