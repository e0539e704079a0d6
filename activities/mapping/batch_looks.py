"""Look at the batches of a map, and end them early."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.calls.rows import BatchesLooked, BatchLook
from holdfast.contracts.errors import EndpointUnreachable, NotBilled
from holdfast.ports import Batches

AT_ONCE = 4
AGAIN = (0.5, 1.0, 3.0)
"""Seconds before each further look for a batch that the endpoint does not know: just after it was
made it may not.
"""


async def look(batches: Batches, ids: Sequence[str]) -> BatchesLooked:
    """Return how batches stand; without those that could not be looked at."""
    door = asyncio.Semaphore(AT_ONCE)

    async def one(batch: str) -> BatchLook | EndpointUnreachable | None:
        async with door:
            try:
                return await _look(batches, batch)
            except EndpointUnreachable as error:
                return error
            except NotBilled:
                return None

    found = await asyncio.gather(*map(one, ids))
    away = [each.unreached for each in found if isinstance(each, EndpointUnreachable)]
    return BatchesLooked(
        looks=tuple(each for each in found if isinstance(each, BatchLook)),
        unreached=away[0] if away else None,
    )


async def cancel(batches: Batches, ids: Sequence[str]) -> BatchesLooked:
    """Cancel batches, and return how they stand. Raise NotBilled, so that it is tried again, if one
    could not be cancelled.
    """
    for batch in ids:
        try:
            await batches.cancel(batch)
        except EndpointUnreachable as error:
            raise NotBilled(error.message) from None
    return await look(batches, ids)


async def _look(batches: Batches, batch: str) -> BatchLook:
    state = await batches.look(batch)
    for pause in AGAIN:
        if state is not None:
            break
        await asyncio.sleep(pause)
        state = await batches.look(batch)
    if state is None:
        return BatchLook(batch=batch, lost=True)
    return BatchLook(batch=batch, ended=state.ended)
