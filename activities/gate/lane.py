"""One tier as this process sees it: what may leave when, and what that says about the endpoint.
Times are seconds of one clock, handed in.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field, replace

from activities.gate.flow import FORGOTTEN, Flow, Throttled, next_rate, regained
from activities.gate.measured import Measured
from activities.gate.pace import SPACING, following, settling, spacing
from activities.gate.queue_rates import QueueRate
from activities.gate.refusals import Crowds, Doubt, Luck, Sent, is_news
from activities.gate.room import ENOUGH_WAITING, Room


@dataclass
class Lane:
    """One tier as this process sees it."""

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
    room: Room = field(default_factory=Room)
    back: float = 0.0
    """Seconds that a refusal lately took to come back."""
    lasted: float = 0.0
    """Seconds that a call lately took."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to tell the other workers."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the next call may be able to leave sooner than it seemed."""

    def advance(self, now: float) -> float:
        """Take in that it is now."""
        for sent in self.flying:
            # They stand in the order in which they left: those behind it are younger still.
            if sent.at > now - settling(self.back):
                break
            self._taken(sent, now)
        before, self.flow = self.flow, next_rate(self.flow, None, now)
        if before.rate == 0 and self.flow.rate != 0:
            self._open(before, now)
        if self.doubt and self.flow.rate != 0 and now >= self._decided:
            self._certain()
        return now

    def _open(self, before: Flow, now: float) -> None:
        self.measured.open(before, self.interval, now)
        self.at_once = regained(before) // self.workers
        if self.doubt and self.doubt.proven:
            self.doubt.opened()
        elif self.doubt:
            # Nothing left that could have shown a limit.
            self._certain(self.doubt.before)

    def shut(self, seconds: float, cause: str, now: float, sent: Sent | None = None) -> None:
        """Take in a refusal, and of which call. A limit where that is not known."""
        self.measured.refused.append(now)
        if sent:
            # A slow refusal counts at once, a fast one little by little: to take a call for taken
            # too early costs more than to wait.
            self.back = max(now - sent.at, 0.8 * self.back)
            self._gone(sent)
            # It left to try the limit, and that holds: there is nothing to find out.
            if sent.one_more and self.flow.most:
                self.room.refused(now)
                self.flow = replace(self.flow, refused=now)
                return
            self.luck.refused(sent, now)
            self.crowds.refused(sent)
            if self.luck.good():
                return
        self.at_once = 0
        before = self.flow
        self.flow = next_rate(before, Throttled(seconds, cause, self._per_second(now)), now)
        lately = now < self.lifted + FORGOTTEN
        if before == Flow() and not lately:
            self.in_burst = sent.others if sent else 0
        if before.most or (lately and self.flow.burst):
            self.flow = replace(self.flow, burst=self.in_burst > 1)
        self._find_out(before, sent, now)

    def _find_out(self, before: Flow, sent: Sent | None, now: float) -> None:
        """Why this call was refused, `before` being what was allowed."""
        if sent is None:
            self._certain()
        elif self.doubt is None and before.rate != 0:
            self._suspect(before, sent, now)
        elif self.doubt and sent.test:
            crowd = self.doubt.refused(sent)
            if crowd is None:
                crowd = self.crowds.limit()
                if not crowd:
                    self._certain()
            if crowd:
                self._limit(crowd, now)
        self.moved.set()

    def _suspect(self, before: Flow, sent: Sent, now: float) -> None:
        """Begin to find out why this call was refused, if it comes as a surprise."""
        if not is_news(before):
            self._certain()
            return
        # As many in flight were taken before, but never at once: the rate is limited.
        borne = bool(before.most) and self.room.borne and self.in_burst <= self.workers == 1
        settled = borne or before.rate is not None or now < self.lifted + FORGOTTEN
        self.doubt = Doubt(before, now, sent.others, settled)
        self.free = min(self.free, now)

    def _certain(self, flow: Flow | None = None) -> None:
        """End the doubt, with this flow."""
        self.doubt = None
        self.flow = flow or self.flow
        self.woken.set()
        self.moved.set()

    def _limit(self, crowd: int, now: float) -> None:
        """Let no more be in flight."""
        self.room.limited(now, crowd)
        most, cause = crowd * self.workers, self.flow.cause
        self._certain(Flow(most=most, cause=cause, changed=now, refused=now))

    def _taken(self, sent: Sent, now: float) -> None:
        """Take in that a call was not refused."""
        if sent.taken:
            return
        sent.taken = True
        self.luck.taken(sent)
        self.crowds.taken(sent)
        if sent.test and self.doubt:
            self._passed(self.doubt, sent, now)
        elif sent.one_more and self.flow.most and not sent.freed:
            self._raise(now)
        elif self.flow.most and sent.others + 1 - sent.freed >= self.share:
            self.room.borne = True
        self.moved.set()

    def _passed(self, doubt: Doubt, sent: Sent, now: float) -> None:
        """Take in that a test was taken."""
        crowd = doubt.taken(sent)
        if crowd and self.flow.rate == 0 and not doubt.settled:
            self._limit(crowd, now)
        elif self.luck.good() and not (doubt.before.most and self.room.firm):
            if doubt.before.rate:
                self.lifted = now
            self._certain(Flow())
        else:
            self._certain(self.flow if doubt.proven else doubt.before)

    def _raise(self, now: float) -> None:
        """Let more be in flight."""
        most = self.flow.most
        self.room.taken(now)
        if most == self.workers and self.lasted:
            # It bears two calls, but not at once: the rate is limited.
            self.measured.bears_bursts = False
            self.flow = Flow(2 * most / self.lasted, changed=now, refused=self.flow.refused)
        else:
            self.flow = replace(self.flow, most=most + max(most // 4, self.workers))
        self.woken.set()

    def ended(self, sent: Sent, now: float) -> None:
        """Take in that a call is over."""
        if sent not in self.flying:
            return
        self._taken(sent, now)
        self._gone(sent)
        for other in reversed(self.flying):
            if other.at <= now - self.back:
                break
            # The place may have been free when it arrived.
            other.freed += 1
        lasted = now - sent.at
        self.lasted = 0.8 * self.lasted + 0.2 * lasted if self.lasted else lasted
        if self.doubt:
            self.doubt.ended()
        self.moved.set()

    def _gone(self, sent: Sent) -> None:
        if sent in self.flying:
            self.flying.remove(sent)

    def adopt(self, shared: Flow) -> None:
        """Take over what another worker decided, and keep what it cannot know yet."""
        ours_is_news = self.flow.rate == 0 and self.flow != self.told
        self.told = shared
        # What our own test is about to show is newer than what others decided.
        if self.doubt:
            return
        if not ours_is_news:
            self.flow = shared
        elif shared.rate == 0:
            self.flow = replace(shared, until=max(shared.until, self.flow.until))

    @property
    def certain(self) -> Flow:
        """What is allowed but for a doubt."""
        return self.doubt.before if self.doubt and not self.doubt.proven else self.flow

    def expected(self, now: float) -> float:
        """When a call that comes now may leave, behind those that wait."""
        ready = self.ready(now)
        if self.flow.most:
            pace = self.lasted * self.workers / self.flow.most
            return now + self.waiting * max(pace, self.interval)
        return max(now, ready) + self.waiting * self.interval

    def ready(self, now: float) -> float:
        """When the next call may leave; infinite: when another one has ended."""
        if self.flow.rate == 0:
            tests = self.doubt and self.doubt.allows(now)
            return max(self.free, now if tests else self.flow.until)
        if self.doubt:
            return max(self.free, now if self.doubt.tests else self._decided)
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
    def _decided(self) -> float:
        """When a call that left as the tier opened was refused or taken."""
        return self.measured.opened + 2 * settling(self.back)

    def left(self, now: float) -> Sent:
        """Take in that a call leaves."""
        self.measured.sent.append(now)
        sent = Sent(now, len(self.flying), test=self.doubt is not None)
        if self.doubt:
            self.doubt.left()
        elif len(self.flying) >= self.share:
            sent.one_more = True
            self.room.left(now)
        in_flight = bool(self.flying) and self.flying[-1] is self.luck.previous
        self.luck.left(sent, in_flight, self.flow.measured or self._per_second(now))
        self.flying.append(sent)
        if self.at_once:
            self.at_once -= 1
            self.free = now + SPACING
        else:
            gap = max(self.interval, spacing(self.measured.sent, now))
            self.free = following(self.free, now, gap)
        return sent

    @property
    def interval(self) -> float:
        """Seconds between two calls of this process."""
        if self.doubt:
            return SPACING
        rate = self.flow.after if self.flow.rate == 0 else self.flow.rate
        return max(SPACING, self.workers / rate if rate else 0.0)

    def _per_second(self, now: float) -> float:
        """What the endpoint took, of all workers together; 0: too few to tell."""
        end = self.flow.changed if self.flow.rate == 0 else now
        return self.workers * self.measured.per_second(end, self.interval)
