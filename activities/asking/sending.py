"""Send one call once: what was sent is never sent again, and what was recorded is returned."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio import activity

from holdfast.activities.asking import senders
from holdfast.activities.asking.batch_of_one import BatchOfOne
from holdfast.activities.asking.patience import finish
from holdfast.activities.asking.replies import dump_answer, lost_call
from holdfast.activities.asking.trip import Trip, byte_bound
from holdfast.calls.ping import PING
from holdfast.contracts import Bill, Usage, policies
from holdfast.contracts.errors import (
    CallRefused,
    EndpointUnreachable,
    NoRoom,
    NotBilled,
    OrchestrationError,
    OverReservation,
    PossiblyBilled,
)
from holdfast.errors import Undecipherable
from holdfast.ledger.pricing import read_again, worst
from holdfast.ports import Batches, Budget, Gate, Journal, Model, ModelRequest
from holdfast.storage import StoreAway
from holdfast.text import visible
from holdfast.workers.noting import DIED, Sent, note_sent

SHORTEST_WAIT = timedelta(seconds=1)
"""How long a tier is closed if nobody says for how long, and when a throttled call is back at the
gate if the endpoint named no wait.
"""

OUTAGE_SHUT = timedelta(seconds=5)
"""How long a tier is closed by a call that was refused so often that its run waits."""

SPREAD = 0.25
"""Share by which the wait of a throttled call is lengthened at random, so that calls refused
together, on many machines, do not return together. The tier itself opens when the endpoint said.
"""

BLIP_SECONDS = 4.0
"""How long a call tries by itself to reach an endpoint that does not answer, before its run waits
for it: a blip costs no round trip.
"""
FIRST_PAUSE = 0.25
"""Seconds after the first of these tries; doubled from try to try, and up to a quarter longer."""

USUAL_BYTES = 3
"""Bytes of a token, rounded up: the gate's estimate where there is no count."""

SIBLING_SECONDS = 0.5
"""Seconds between two looks into the journal for a call that another process sent."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sending:
    """Takes a trip to its recorded answer: journal, ceiling, gate, model, journal."""

    model: Model | None
    journal: Journal
    gate: Gate | None = None
    """Paces the calls; None: every call leaves at once."""
    chance: Callable[[], float] = random.random
    """Return a random number from 0 up to, but not including, 1."""
    budget: Budget | None = None
    """The spending caps of this deployment; None: there are none but the run's."""
    batches: Batches | None = None
    """The endpoint's batches; None: it has none."""

    async def fly(self, trip: Trip) -> str:
        """Return the answer, as recorded. Anything unforeseen ends here: what may have been paid is
        never sent again, and what cannot be sent is not tried for an hour.
        """
        try:
            if trip.call.by_batch:
                return await self._by_batch(trip)
            found = await self._find_recorded(trip)
            return await self._send(trip) if found is None else found
        except OrchestrationError:
            raise
        except asyncio.CancelledError:
            # Of this attempt nothing has left; an earlier one may have been paid.
            found = await finish(self.journal.answer(trip.key))
            if found is not None:
                return found
            if trip.past.sent or await finish(self.journal.sent(trip.key)):
                why = "cut; an attempt before this one had sent it"
                raise lost_call(trip.call, why, earlier=trip.earlier) from None
            raise
        except Exception as error:
            if isinstance(error, StoreAway | Undecipherable) and not trip.left:
                # A store comes back, a key is at another worker: the call waits, for as long as it
                # may take.
                raise
            logger.exception("a call failed in a way that nobody thought of")
            said = visible(f"{type(error).__name__}: {error}"[:300])
            if trip.left:
                raise lost_call(trip.call, f"it was sent, and then: {said}") from None
            if isinstance(error, OSError):
                # A disk, or too many open files: that may pass.
                raise await self._note_refusal(
                    trip, NotBilled(f"nothing was sent: {said}")
                ) from None
            raise CallRefused(f"nothing was sent: {said}") from None

    async def _by_batch(self, trip: Trip) -> str:
        if self.batches is None:
            raise CallRefused("this endpoint takes no batches")
        lane = BatchOfOne(self.batches, self.journal, self._check_ceiling, self.budget)
        try:
            return await lane.fly(trip)
        except NotBilled as error:
            # Still out, its next attempt goes on waiting; that batches are throttled says nothing
            # of the calls of its tier.
            if trip.left or error.throttled or isinstance(error, NoRoom):
                raise
            raise await self._note_refusal(trip, error) from None

    async def _find_recorded(self, trip: Trip) -> str | None:
        """Return the answer that is recorded already; None if the call may be sent. Raise
        PossiblyBilled if it was sent and no answer will come.
        """
        try:
            found = await self.journal.answer(trip.key)
            here = found is not None or await self.journal.sent(trip.key)
            # On its first attempt only an execution that was reset can have sent it before.
            trip.earlier = here and activity.info().attempt == 1
            if found is not None:
                return found
            if not (here or trip.past.sent):
                return None
            return await self._wait_for_sibling(trip, here)
        except ValueError as error:
            raise lost_call(trip.call, f"its recorded answer is damaged: {error}") from None

    async def _wait_for_sibling(self, trip: Trip, here: bool) -> str | None:
        """Wait for a call that another attempt sent. Its process may have been frozen for a while:
        as long as it lives, it will record its answer or take the mark back.
        """
        past, clock = trip.past, asyncio.get_running_loop().time
        end = clock() + trip.request.deadline_seconds
        waiting = here and senders.is_alive(past.machine, past.process)
        while waiting and clock() < end:
            # Asked before the look: one that dies after it may have recorded its answer just so.
            waiting = senders.is_alive(past.machine, past.process)
            await asyncio.sleep(SIBLING_SECONDS)
            found = await self.journal.answer(trip.key)
            if found is not None:
                return found
            if not await self.journal.sent(trip.key):
                trip.past = replace(past, sent=0)
                return None
        lives = senders.is_alive(past.machine, past.process)
        why = "the call was sent, and its answer was not recorded" if lives else DIED
        raise lost_call(trip.call, why, earlier=trip.earlier)

    async def _send(self, trip: Trip) -> str:
        await self._check_ceiling(trip)
        clock = asyncio.get_running_loop().time
        await self._wait_turn(trip)
        pause, reaching = FIRST_PAUSE, clock()
        while True:
            request = replace(trip.request, deadline_seconds=trip.seconds_left)
            try:
                return await self._once(trip, request)
            except EndpointUnreachable:
                if clock() + pause - reaching > BLIP_SECONDS:
                    raise
            await asyncio.sleep(pause * (1 + SPREAD * self.chance()))
            pause *= 2

    async def _once(self, trip: Trip, request: ModelRequest) -> str:
        assert self.model is not None
        await finish(self.journal.mark_sent(trip.key))
        if trip.alone:
            note_sent(Sent(trip.key, request.model))
        await self._hold(trip)
        # For a worker on another machine, which has no such mark.
        trip.left = True
        trip.past.leaving().note(trip.notes)
        if self.gate is not None:
            request = replace(request, heard=self.gate.heard)
        try:
            _stop_if_cancelled()
            answer = await self.model.ask(request)
        except PossiblyBilled:
            await self._settle_unknown(trip)
            raise
        except NotBilled as error:
            await self._withdraw(trip)
            raise await self._note_refusal(trip, error) from None
        except (OrchestrationError, asyncio.CancelledError):
            await self._withdraw(trip)
            raise
        except Exception:
            await self._settle_unknown(trip)
            raise
        if self.gate is not None:
            self.gate.ended(answer.usage.output_tokens if answer.counted else 0)
        if self.budget is not None:
            asked, usage = request.model, answer.usage if answer.counted else None
            await finish(self.budget.settle(trip.key, asked, answer.model, usage))
        kept = dump_answer(answer)
        # A journal that fails now costs nothing: the caller still gets the answer.
        with suppress(Exception):
            await finish(self.journal.record(trip.key, kept))
        return kept

    async def _hold(self, trip: Trip) -> None:
        """Set aside what the call may cost. Runs while the call is marked as sent, which only one
        attempt can do for a key.
        """
        call = trip.call
        if self.budget is None or call.model is None:
            return
        try:
            room = (call.max_output, call.searches)
            await finish(self.budget.hold(trip.key, call.model.id, trip.tokens, *room))
        except BaseException:
            await finish(self.journal.withdraw(trip.key))
            trip.past.note(trip.notes)
            raise

    async def _settle_unknown(self, trip: Trip) -> None:
        """Count a call in full, of which nobody knows what it cost."""
        if self.budget is not None:
            model = trip.request.model
            await finish(self.budget.settle(trip.key, model, model, None))

    async def _withdraw(self, trip: Trip) -> None:
        """Allow the call to be sent again: nothing was paid."""
        if self.budget is not None:
            # While the mark still keeps others from the key.
            await finish(self.budget.release(trip.key))
        await finish(self.journal.withdraw(trip.key))
        trip.left = False
        trip.past.note(trip.notes)

    async def _wait_turn(self, trip: Trip) -> None:
        """Wait until the call may leave."""
        if self.gate is None:
            return
        try:
            trip.held = await self.gate.turn(trip.call.tier, trip.likely, trip.call.max_output)
        except NotBilled:
            trip.past.note(trip.notes)
            raise

    async def _note_refusal(self, trip: Trip, error: NotBilled) -> NotBilled:
        """Return what a call that was not billed ends with. A throttle slows its tier, and the call
        is tried again for as long as it may take; anything else a few times.
        """
        past, away = trip.past, error.unreached
        once = trip.call.kind == PING.name
        if not error.throttled:
            faults = past.faults + 1
            replace(past, faults=faults).note(trip.notes)
            if faults < policies.FAULT_TRIES and not once:
                return error
            said = f"{error.message} (the last of {faults} tries)"
            return NotBilled(said, final=True, unreached=away)
        refused = past.throttled + 1
        replace(past, throttled=refused).note(trip.notes)
        wait = error.next_retry_delay or SHORTEST_WAIT
        over = away is not None and (once or refused >= policies.OVERLOAD_TRIES)
        if self.gate is not None:
            # Of an outage its run keeps the time: the tier is not shut for longer than that needs.
            shut = min(wait, OUTAGE_SHUT) if over else wait
            await self.gate.throttled(trip.call.tier, shut.total_seconds(), error.message)
        if over:
            said = f"{error.message} (the last of {refused} tries)"
            return NotBilled(said, throttled=True, final=True, unreached=away)
        if self.gate is not None and not error.named:
            # For how long the tier is shut, and whether it was chance, is the gate's business.
            wait = SHORTEST_WAIT
        later = wait * (1 + SPREAD * self.chance())
        return NotBilled(error.message, retry_after=later, throttled=True)

    async def _check_ceiling(self, trip: Trip) -> None:
        """Raise OverReservation if the worst case of the real prompt is above what was reserved."""
        call = trip.call
        assert self.model is not None and call.model is not None
        # Two steps: bytes bound the tokens for nothing; only a prompt that seems too big is
        # counted.
        for count in (byte_bound, self.model.count_tokens):
            tokens = await count(trip.request)
            # What the endpoint reads again by itself is paid as the prompt is.
            most = read_again(tokens, call.rounds)
            cost = worst(call.model, most, call.max_output, call.searches)
            total = most + call.max_output
            if total <= call.token_ceiling and (cost is None or cost <= call.ceiling):
                trip.tokens = most
                trip.likely = tokens // USUAL_BYTES if count is byte_bound else tokens
                return
        usage = Usage(input_tokens=tokens, output_tokens=call.max_output)
        needed = Bill(model=call.model.id, calls=0, usage=usage, dollars=cost)
        raise OverReservation(f"the prompt has {tokens} tokens; ${cost} is needed", needed)


def _stop_if_cancelled() -> None:
    """Send nothing for a call that was cut while its mark was being written."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
