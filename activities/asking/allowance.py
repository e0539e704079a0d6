"""What this deployment may spend, whatever a goal says: dollars a run, a day and a month.

A run is held to its share by the ledger, from the Briefing. Here every single call is, just before
it leaves, also one that no run of ours has asked for: at this worker's own prices, never at those
that the call names. It takes its worst case out of a slice that the deployment's treasurer leased
to this process, until its price is known.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from temporalio import activity

from holdfast.activities.asking.purses import Purses, Refused
from holdfast.contracts import Usage
from holdfast.contracts.errors import AllowanceReached, NoRoom, SpendLimitReached
from holdfast.contracts.policies import MOST_DAY, MOST_RUN
from holdfast.contracts.treasury import Asked
from holdfast.ledger.pricing import LANE_SHARE
from holdfast.ports import PriceOf
from holdfast.temporal.treasury import Unanswered

BACK = timedelta(seconds=3)
"""When a call comes back that waits for what others have set aside, or for the treasurer."""
BATCH_LASTS = timedelta(hours=36)
"""How long a batch may take, and its results lie unread, until it counts in full."""
_ZERO = Decimal(0)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Allowance:
    """The spending caps of a deployment, at the prices of one project."""

    price: PriceOf
    """This worker's own prices."""
    run: Decimal | None = None
    purses: Purses | None = None
    """None: days and months have no cap."""

    async def hold(
        self, key: str, model: str, input_tokens: int, max_output: int, searches: int = 0
    ) -> None:
        """Set aside the most that a call can cost, in dollars.

        Raise AllowanceReached if that is above what a run, a day or a month may cost,
        SpendLimitReached if it cannot be computed, and NoRoom, so that the call comes back, if
        it fits only when others turn out cheaper or if the treasurer does not answer. Call it while
        holding the journal's mark: then only one attempt does so for a key.
        """
        purses = await self._needed()
        if purses is None and self.run is None:
            return
        dollars = self._worst(model, input_tokens, max_output, searches)
        self._check_run(dollars, "call")
        if purses is None:
            return
        try:
            await purses.take(key, dollars, _requester())
        except Refused as error:
            raise _refusal(str(error), over=error.over) from None
        except Unanswered as error:
            raise _silent(error) from None

    async def hold_batch(self, key: str, model: str, prompts: Sequence[int], room: int) -> None:
        """Do as `hold` for all requests of a batch. Their dollars stay set aside until it is
        settled, at the latest for as long as its endpoint may take, whatever process ends.
        """
        purses = await self._needed()
        if purses is None and self.run is None:
            return
        most = sum((self._worst(model, each, room, 0, hour=True) for each in prompts), _ZERO)
        most *= LANE_SHARE["batch"]
        self._check_run(most, "batch")
        if purses is None:
            return
        asked = Asked(
            slice=_batch(key),
            requester=_requester(),
            began=False,
            needs=most,
            likes=most,
            seconds=int(BATCH_LASTS.total_seconds()),
        )
        try:
            (given,) = await purses.treasurer.ask([asked])
        except Unanswered as error:
            raise _silent(error) from None
        if given.refused:
            raise _refusal(given.refused, over=given.over)

    async def settle_batch(self, key: str, dollars: Decimal | None) -> None:
        """Replace what was set aside for a batch by what it cost. Never raises."""
        if self.purses is None:
            return
        try:
            if await self.purses.are_needed():
                settled = Asked(slice=_batch(key), paid=dollars, seconds=1)
                await self.purses.treasurer.give_back([settled])
        except Unanswered as error:
            logger.warning("a batch counts in full towards %s: %s", MOST_DAY, error)

    async def settle(self, key: str, model: str, served: str, usage: Usage | None) -> None:
        """Replace what was set aside by what was paid, at the dearer of the model that was asked
        and the one that served. Without usage or a price the full amount counts.
        """
        costs = [self.price(each, usage) for each in (model, served)] if usage else [None]
        known = [each for each in costs if each is not None]
        if self.purses is not None:
            # A served model without a price counts in full, as it does in the ledger.
            self.purses.give(key, max(known) if len(known) == len(costs) else None)

    async def release(self, key: str) -> None:
        """Give back what was set aside: nothing was paid. Never raises."""
        if self.purses is not None and not self.purses.give(key, _ZERO):
            await self.settle_batch(key, _ZERO)

    async def _needed(self) -> Purses | None:
        """Return what calls take from; None: days and months have no cap. Raise NoRoom if nobody
        can tell.
        """
        try:
            return self.purses if self.purses and await self.purses.are_needed() else None
        except Unanswered as error:
            raise _silent(error) from None

    def _check_run(self, dollars: Decimal, what: str) -> None:
        if self.run is not None and dollars > self.run:
            raise AllowanceReached(
                f"one {what} may cost ${dollars}; this deployment allows ${self.run:f} a run,"
                f" whoever starts it: its operator can raise {MOST_RUN}"
            )

    def _worst(
        self, model: str, tokens: int, output: int, searches: int, *, hour: bool = False
    ) -> Decimal:
        kept = tokens if hour else 0
        ways = (
            Usage(input_tokens=tokens, output_tokens=output, searches=searches),
            Usage(
                cache_write_tokens=tokens,
                cache_hour_tokens=kept,
                output_tokens=output,
                searches=searches,
            ),
        )
        costs = [self.price(model, each) for each in ways]
        known = [each for each in costs if each is not None]
        if len(known) < len(costs):
            name = MOST_DAY if self.purses is not None and self.purses.bind else MOST_RUN
            raise SpendLimitReached(
                f"{name} is set, and no price is known for {model!r:.100}:"
                " give one in HOLDFAST_PRICE_FILE"
            )
        return max(known)


def _requester() -> str:
    """Return who asks for the activity that this is a part of."""
    if not activity.in_activity():
        return ""
    return activity.info().priority.fairness_key or ""


def _refusal(why: str, *, over: bool) -> AllowanceReached | NoRoom:
    return AllowanceReached(why) if over else NoRoom(why, retry_after=BACK)


def _silent(error: Unanswered) -> NoRoom:
    why = f"nothing was sent: the treasurer of this deployment does not answer: {error}"
    return NoRoom(why, retry_after=BACK)


def _batch(key: str) -> str:
    return f"batch-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
