"""What is known of one tier in this process, and what may leave by it. Times are seconds of one
clock, handed in.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.activities.gate.flow import FORGOTTEN, Flow
from holdfast.activities.gate.measured import Measured
from holdfast.activities.gate.pace import SPACING, settling
from holdfast.activities.gate.queue_rates import QueueRate
from holdfast.activities.gate.quotas import Quotas, cost_of
from holdfast.activities.gate.refusals import Crowds, Doubt, Luck, Sent
from holdfast.activities.gate.room import ENOUGH_WAITING, Room
from holdfast.ports import Resource

Cost = Mapping[Resource, float]
ONE: Cost = cost_of()


@dataclass
class Known:
    """What is known of one tier."""

    flow: Flow = field(default_factory=Flow)
    told: Flow = field(default_factory=Flow)
    """What the server holds, as far as known."""
    newest: QueueRate = field(default_factory=QueueRate)
    """What was last read or written there."""
    by_hand: QueueRate | None = None
    """The limit at the server, when it is a person's: it is left alone."""
    workers: int = 1
    free: float = 0.0
    """When the next call may leave."""
    waiting: int = 0
    door: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the call whose turn is next; the others queue for it in order."""
    at_once: int = 0
    """How many calls may leave one right after the other, because the tier was shut before."""
    borne: int = 0
    """How many calls were taken at the rate that is searched."""
    measured: Measured = field(default_factory=Measured)
    flying: list[Sent] = field(default_factory=list)
    """Calls that left and have not come back, in the order in which they left."""
    lifted: float = -FORGOTTEN
    """When a limit of the rate was, because refusals seemed to be chance: they may not be."""
    in_burst: int = 0
    """How many that were when the endpoint first refused one."""
    luck: Luck = field(default_factory=Luck)
    crowds: Crowds = field(default_factory=Crowds)
    doubt: Doubt | None = None
    quotas: Quotas = field(default_factory=Quotas)
    wrote: float = 0.0
    """Tokens that an answer lately had; 0: not known."""
    room: Room = field(default_factory=Room)
    back: float = 0.0
    """Seconds that a refusal lately took to come back."""
    lasted: float = 0.0
    """Seconds that a call lately took."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to tell the other workers."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the next call may be able to leave sooner than it seemed."""

    @property
    def certain(self) -> Flow:
        """What is allowed but for a doubt."""
        return self.doubt.before if self.doubt and not self.doubt.proven else self.flow

    def expected(self, now: float, cost: Cost = ONE) -> float:
        """When a call that comes now may leave, behind those that wait."""
        stated = self.waiting * self.quotas.interval(cost) + self.quotas.ready(cost)
        if self.flow.most:
            pace = self.lasted * self.workers / self.flow.most
            return max(now + self.waiting * max(pace, self.interval), stated)
        return max(max(now, self._allowed(now)) + self.waiting * self.interval, stated)

    def ready(self, now: float, cost: Cost = ONE) -> float:
        """When the next call may leave; infinite: when another one has ended."""
        return max(self._allowed(now), self.quotas.ready(cost))

    def _allowed(self, now: float) -> float:
        """The same by what was learned from refusals alone."""
        if self.flow.rate == 0:
            tests = self.doubt and self.doubt.allows(now)
            return max(self.free, now if tests else self.flow.until)
        if self.doubt:
            return max(self.free, now if self.doubt.tests else self.decided)
        if len(self.flying) < self.share:
            return self.free
        wait = self.waiting * self.lasted / len(self.flying)
        if len(self.flying) > self.share or wait < ENOUGH_WAITING:
            return math.inf
        # Between those in flight, because the rate may be limited after all.
        spaced = self.measured.sent[-1] + self.room.between * self.lasted / len(self.flying)
        return max(self.free, self.room.one_more, spaced)

    @property
    def share(self) -> float:
        """How many calls of this process may be in flight."""
        return math.ceil(self.flow.most / self.workers) if self.flow.most else math.inf

    @property
    def decided(self) -> float:
        """When a call that left as the tier opened was refused or taken."""
        return self.measured.opened + 2 * settling(self.back)

    @property
    def interval(self) -> float:
        """Seconds between two calls of this process; none where nothing limits the tier."""
        if self.doubt:
            return SPACING
        if self.flow.rate is None and not self.flow.most:
            return 0.0
        rate = self.flow.after if self.flow.rate == 0 else self.flow.rate
        return max(SPACING, self.workers / rate if rate else 0.0)

    def per_second(self, now: float) -> float:
        """What the endpoint took, of all workers together; 0: too few to tell."""
        end = self.flow.changed if self.flow.rate == 0 else now
        return self.workers * self.measured.per_second(end, self.interval)
