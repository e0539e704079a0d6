"""Tell a run that the answer to one of its calls has begun: others wait for no more than that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from temporalio import activity

from holdfast.contracts.signals import BEGUN


@asynccontextmanager
async def telling_begun(call_id: str) -> AsyncIterator[Callable[[], None]]:
    """Yield what is to be called when the answer begins. That the run is not told costs time alone:
    the end of the answer says the same.
    """
    begun = asyncio.Event()
    telling = asyncio.create_task(_tell(begun, call_id))
    try:
        yield begun.set
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling


async def _tell(begun: asyncio.Event, call_id: str) -> None:
    await begun.wait()
    with suppress(Exception):
        info = activity.info()
        run = activity.client().get_workflow_handle(
            info.workflow_id or "", run_id=info.workflow_run_id
        )
        await run.signal(BEGUN, call_id)
