"""One paid call: recorded answers are returned, and a call that was sent is never sent again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from temporalio import activity

from holdfast.activities.asking.flights import Flights
from holdfast.activities.asking.heartbeat import Notes, Past, read_notes
from holdfast.activities.asking.patience import finish
from holdfast.activities.asking.replies import (
    HEAVY_LETTERS,
    Asked,
    Conversation,
    Shape,
    Value,
    make_reply,
)
from holdfast.activities.asking.sending import Sending
from holdfast.activities.asking.telling import telling_begun
from holdfast.activities.asking.trip import Trip, call_key, make_request
from holdfast.contracts import Call, Contract, Reply
from holdfast.ports import Batches, Budget, Gate, Journal, Model, ModelRequest, PriceOf, SoFar


@dataclass(frozen=True)
class Asking:
    """Takes a call to its reply: journal, ceiling, model, journal, validation."""

    model: Model | None
    journal: Journal
    price: PriceOf
    """Return the dollars of a call by the id of the model that served it; None if it has no price.
    """
    gate: Gate | None = None
    """Paces the calls; None: every call leaves at once."""
    chance: Callable[[], float] = random.random
    """Return a random number from 0 up to, but not including, 1."""
    flights: Flights = field(default_factory=Flights)
    """The calls that this process has under way."""
    budget: Budget | None = None
    """The spending caps of this deployment; None: there are none but the run's."""
    batches: Batches | None = None
    """The endpoint's batches; None: it has none."""

    async def ask(
        self,
        call: Call,
        material: Contract,
        shape: Shape[Asked, Value],
        system: str,
        prompt: str,
        common: int = 0,
        so_far: SoFar | None = None,
    ) -> Reply[Value]:
        """Ask once. What is wrong with a complete answer is returned as data, never raised. The
        first `common` characters of the prompt are those of other calls, too.
        """
        request = make_request(call, shape.asked, system, prompt, Past.read())
        request = replace(request, shared=call.caching, common=common, so_far=so_far or SoFar())
        if not call.warms:
            return await self._reply(call, material, shape, request)
        async with telling_begun(call.id) as begins:
            return await self._reply(call, material, shape, replace(request, begins=begins))

    async def converse(
        self, call: Call, material: Contract, talk: Conversation[Value], system: str
    ) -> Reply[Value]:
        """Ask for the next message of a conversation; otherwise as `ask`."""
        request = make_request(call, talk.asked, system, "", Past.read())
        request = replace(request, messages=talk.messages, tools=talk.tools)
        # Its batch may be done when the cache has long forgotten.
        request = replace(request, cached=not call.by_batch)
        return await self._reply(call, material, talk, request)

    async def _reply(
        self,
        call: Call,
        material: Contract,
        shape: Shape[Asked, Value] | Conversation[Value],
        request: ModelRequest,
    ) -> Reply[Value]:
        assert self.model is not None and call.model is not None, "prepare admits no such run"
        request = replace(request, price=self.price)
        key, past = call_key(call, material), Past.read()
        # On its first attempt only an execution that was reset can have sent it before.
        earlier = self.flights.under_way(key) and activity.info().attempt == 1
        held = ""
        sending = Sending(
            self.model, self.journal, self.gate, self.chance, self.budget, self.batches
        )

        async def fly(notes: Notes) -> str:
            nonlocal earlier, held
            trip = Trip(key, call, request, past, notes, alone=True)
            kept = await sending.fly(trip)
            earlier, held = earlier or trip.earlier, trip.held
            return kept

        kept = await self.flights.join(key, Notes(read_notes()), fly)
        if len(kept) < HEAVY_LETTERS:
            reply = make_reply(call, shape, kept, self.price)
        else:
            # An answer that is paid is handed on, even if the call was cut in the same moment.
            reply = await finish(asyncio.to_thread(make_reply, call, shape, kept, self.price))
        if not (earlier or held):
            return reply
        notes = "; ".join(filter(None, (reply.bill.note, held)))
        bill = reply.bill.model_copy(update={"earlier": earlier, "note": notes})
        return reply.model_copy(update={"bill": bill})
