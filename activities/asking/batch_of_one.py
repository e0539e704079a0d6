"""A call as a batch of one, where it may wait: half the price, and an answer within a day.

Its batch is recorded in the journal as soon as it is made. Whoever comes after a worker that died,
or that is ending, goes on waiting for it, so a restart costs nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import ClassVar

from temporalio import activity

from holdfast.activities.asking import senders
from holdfast.activities.asking.patience import finish
from holdfast.activities.asking.replies import dump_answer, lost_call
from holdfast.activities.asking.trip import Trip
from holdfast.contracts.errors import (
    BlobLost,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
)
from holdfast.ledger.pricing import LANE_SHARE
from holdfast.ports import Batches, BatchResult, Budget, Journal, ModelAnswer, ModelRequest

ID_LETTERS = 40
LONGEST_PAUSE = 60.0
"""Seconds between two looks at a batch that takes long."""
CUT_SECONDS = 8.0
"""How long a batch that was cancelled may take to say what became of it."""
SIBLING_SECONDS = 0.5
HANDED_ON = timedelta(seconds=1)
GONE = "gone"
"""Stands in the journal for the batch of a call that was not billed, and is made anew."""


def owner_name(batch: str) -> str:
    """Return the name in the journal under which it says whose batch it is."""
    return f"batch/{batch}"


@dataclass(frozen=True)
class BatchOfOne:
    """Takes a trip to its recorded answer by a batch of its own."""

    batches: Batches
    journal: Journal
    check: Callable[[Trip], Awaitable[None]]
    """Raises OverReservation if the prompt could cost more than was reserved."""
    budget: Budget | None = None
    first_pause: ClassVar[float] = 1.0

    async def fly(self, trip: Trip) -> str:
        """Return the answer, as recorded. Raises as `Model.ask`; NotBilled where this worker ends,
        so that the next one goes on.
        """
        found = await self.journal.answer(trip.key)
        here = found is not None or await self.journal.sent(trip.key)
        trip.earlier = here and activity.info().attempt == 1
        if found is not None:
            return found
        batch = await self._made_before(trip, here=here) if here or trip.past.sent else ""
        if not batch:
            await self.check(trip)
            batch = await finish(self._make(trip))
        trip.left = True
        try:
            answer = await self._wait(trip, batch)
        except asyncio.CancelledError:
            if _is_ending():
                raise NotBilled("handed on: this worker ends", retry_after=HANDED_ON) from None
            answer = await finish(self._cut(trip, batch))
        kept = dump_answer(answer)
        with suppress(Exception):
            await finish(self.journal.record(trip.key, kept))
        if self.budget is not None:
            await finish(self.budget.settle_batch(trip.key, _cost(trip, answer)))
        return kept

    # ---------------------------------------------------------------- making it

    def _record_name(self, trip: Trip) -> str:
        return f"{trip.key}/batch"

    async def _made_before(self, trip: Trip, *, here: bool) -> str:
        """Return the batch that an earlier attempt made; empty if that may be done. Raise
        PossiblyBilled if it was made and nobody knows which it is.
        """
        while True:
            batch = await self.journal.answer(self._record_name(trip))
            if batch and batch != GONE:
                return batch
            if here and not await self.journal.sent(trip.key):
                return ""
            if not (here and senders.is_alive(trip.past.machine, trip.past.process)):
                break
            await asyncio.sleep(SIBLING_SECONDS)
        why = "its batch was being made, and was not recorded"
        raise lost_call(trip.call, why, earlier=trip.earlier)

    async def _make(self, trip: Trip) -> str:
        await self.journal.mark_sent(trip.key)
        try:
            await self._hold(trip)
            trip.left = True
            trip.past.leaving().note(trip.notes)
            batch = await self.batches.create([(_id_of(trip), trip.request)])
        except PossiblyBilled as error:
            raise lost_call(trip.call, error.message) from None
        except BaseException:
            await self._withdraw(trip)
            raise
        with suppress(Exception):
            await self.journal.record(self._record_name(trip), batch)
            # So that no map takes it for one of its own that is missing.
            await self.journal.record(owner_name(batch), trip.key)
        return batch

    async def _hold(self, trip: Trip) -> None:
        call = trip.call
        if self.budget is not None and call.model is not None:
            await self.budget.hold_batch(trip.key, call.model.id, [trip.tokens], call.max_output)

    async def _withdraw(self, trip: Trip) -> None:
        """Allow the call to be made anew: nothing was paid."""
        if self.budget is not None:
            await self.budget.release(trip.key)
        with suppress(Exception):
            await self.journal.record(self._record_name(trip), GONE)
        await self.journal.withdraw(trip.key)
        trip.left = False
        trip.past = replace(trip.past, sent=0)
        trip.past.note(trip.notes)

    # ---------------------------------------------------------------- waiting for it

    async def _wait(self, trip: Trip, batch: str) -> ModelAnswer:
        """Return its answer; without one nothing was paid."""
        result = await self._read(trip, batch, LONGEST_PAUSE)
        if result is not None and result.answer is not None:
            return result.answer
        await finish(self._withdraw(trip))
        why = result.why if result is not None else "it was not in its batch"
        if result is not None and result.invalid:
            raise CallRefused(f"batch {batch}: {why}")
        raise NotBilled(f"batch {batch}: {why}", retry_after=HANDED_ON)

    async def _read(self, trip: Trip, batch: str, longest: float) -> BatchResult | None:
        """Return what became of the call once its batch has ended, however long that takes. Raise
        NotBilled where this worker ends before.
        """
        pause = self.first_pause
        while True:
            with suppress(NotBilled, EndpointUnreachable):
                if await self._has_ended(trip, batch):
                    return await self._result(trip, batch)
            if activity.is_worker_shutdown():
                raise NotBilled("handed on: this worker ends", retry_after=HANDED_ON)
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

    async def _has_ended(self, trip: Trip, batch: str) -> bool:
        """True if its result can be read. NotBilled or EndpointUnreachable if nobody says."""
        for pause in (1.0, 3.0, 0.0):
            try:
                state = await self.batches.look(batch)
            except (NotBilled, EndpointUnreachable):
                raise
            except OrchestrationError as error:
                raise lost_call(trip.call, error.message, earlier=trip.earlier) from None
            if state is not None:
                return state.ended
            await asyncio.sleep(pause)
        why = f"the endpoint knows no batch {batch}"
        raise lost_call(trip.call, why, earlier=trip.earlier)

    async def _result(self, trip: Trip, batch: str) -> BatchResult | None:
        own = _id_of(trip)

        def request_of(id: str) -> ModelRequest | None:
            return trip.request if id == own else None

        try:
            async with aclosing(self.batches.results(batch, request_of)) as results:
                return next(each for each in [each async for each in results] if each.id == own)
        except StopIteration:
            return None
        except BlobLost as error:
            raise lost_call(trip.call, error.message, earlier=trip.earlier) from None

    async def _cut(self, trip: Trip, batch: str) -> ModelAnswer:
        """Cancel the batch. Return its answer if it was faster; raise CancelledError if surely
        nothing was paid, and PossiblyBilled where that is not known in time.
        """
        with suppress(OrchestrationError, TimeoutError):
            async with asyncio.timeout(CUT_SECONDS):
                await self.batches.cancel(batch)
                result = await self._read(trip, batch, SIBLING_SECONDS)
                if result is not None and result.answer is not None:
                    return result.answer
                await self._withdraw(trip)
                raise asyncio.CancelledError
        raise lost_call(trip.call, "cut; its batch had not ended", earlier=trip.earlier)


def _cost(trip: Trip, answer: ModelAnswer) -> Decimal | None:
    """Return what an answer cost at this worker's own prices, not at those that the call names: the
    dearer of the model that was asked and the one that served. None: not known.
    """
    price = trip.request.price
    if price is None or not answer.counted:
        return None
    costs = [price(each, answer.usage) for each in (trip.request.model, answer.model)]
    known = [each for each in costs if each is not None]
    return max(known) * LANE_SHARE["batch"] if len(known) == len(costs) else None


def _id_of(trip: Trip) -> str:
    """Return the id of the call in its batch."""
    return hashlib.sha256(trip.key.encode()).hexdigest()[:ID_LETTERS]


def _is_ending() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown
