"""What happens to one tier in this process, and what that says about the endpoint. Times are
seconds of one clock, handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.activities.gate.flow import (
    FORGOTTEN,
    Borne,
    Flow,
    Throttled,
    enough,
    next_rate,
    regained,
)
from holdfast.activities.gate.known import ONE, Cost, Known
from holdfast.activities.gate.pace import SPACING, following, settling
from holdfast.activities.gate.refusals import Crowds, Doubt, Sent, is_news
from holdfast.ports import Head


@dataclass
class Lane(Known):
    """One tier as this process sees it."""

    def advance(self, now: float) -> float:
        """Take in that it is now."""
        self.quotas.workers = self.workers
        for sent in self.flying:
            # They stand in the order in which they left: those behind it are younger still.
            if sent.at > now - settling(self.back):
                break
            self._taken(sent, now)
        before, self.flow = self.flow, next_rate(self.flow, None, now)
        if before.rate == 0 and self.flow.rate != 0:
            self._open(before, now)
        if self.flow != before:
            self.borne = 0
            self._paced()
        if self.doubt and self.flow.rate != 0 and now >= self.decided:
            self._certain()
        return now

    def _paced(self) -> None:
        """Let the next call leave by the pace that holds now, not by one that was slower."""
        if self.measured.sent and self.flow.rate != 0:
            self.free = min(self.free, self.measured.sent[-1] + self.interval)

    def _open(self, before: Flow, now: float) -> None:
        self.measured.open(before, self.interval, now)
        self.at_once = regained(before) // self.workers
        if self.doubt and self.doubt.proven:
            self.doubt.opened()
        elif self.doubt:
            self._unproven(self.doubt, now)

    def _unproven(self, doubt: Doubt, now: float) -> None:
        """End a doubt though nothing left that could have shown a limit: all had left before."""
        if not doubt.others or doubt.before.rate is not None or self.luck.good():
            self._certain(doubt.before)
        elif doubt.settled or not doubt.crowd:
            self._certain()
        else:
            # What leaves at once is parted alike by a limit of the rate and by one in flight: the
            # second is tried, because a few calls show when it is wrong.
            crowd = self.crowds.limit() or doubt.crowd
            self.crowds = Crowds()
            self._limit(crowd, now)

    def shut(self, seconds: float, cause: str, now: float, sent: Sent | None = None) -> None:
        """Take in a refusal, and of which call. A limit where that is not known."""
        self.measured.refused.append(now)
        if sent:
            # A slow refusal counts at once, a fast one little by little: to take a call for taken
            # too early costs more than to wait.
            self.back = max(now - sent.at, 0.8 * self.back)
            self._gone(sent)
            self.quotas.refused(sent)
            if sent.stated:
                self._stated(Throttled(seconds, cause, sent.stated), now)
                return
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
        self.flow = next_rate(before, Throttled(seconds, cause, self.per_second(now)), now)
        lately = now < self.lifted + FORGOTTEN
        if before == Flow() and not lately:
            self.in_burst = sent.others if sent else 0
        if before.most or (lately and self.flow.burst):
            self.flow = replace(self.flow, burst=self.in_burst > 1)
        self._find_out(before, sent, now)

    def _stated(self, event: Throttled, now: float) -> None:
        """Take in a refusal of which the endpoint says why: there is nothing to find out."""
        self.at_once = 0
        self.flow = next_rate(self.flow, event, now)
        self._certain()

    def heard(self, sent: Sent, head: Head, now: float) -> None:
        """Take in the head of the answer to a call."""
        if head.taken:
            self.quotas.heard(sent, head.quotas, self.flying, now)
            self._taken(sent, now)
        elif head.quotas:
            self.quotas.heard(sent, head.quotas, self.flying, now)
            sent.stated = self.quotas.per_second(head.quotas, sent.cost)
        self.moved.set()

    def _find_out(self, before: Flow, sent: Sent | None, now: float) -> None:
        """Why this call was refused, `before` being what was allowed."""
        if sent is None:
            self._certain()
        elif self.doubt is None and before.rate != 0:
            self._suspect(before, sent, now)
        elif self.doubt and not sent.test:
            self.doubt.others += 1
        elif self.doubt:
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
        self._borne(sent, now)
        if sent.test and self.doubt:
            self._passed(self.doubt, sent, now)
        elif self.doubt and not self.doubt.proven and self.luck.good():
            # What left beside the refused ones was taken: so they were refused by chance.
            self._certain(self.doubt.before)
        elif sent.one_more and self.flow.most and not sent.freed:
            self._raise(now)
        elif self.flow.most and sent.others + 1 - sent.freed >= self.share:
            self.room.borne = True
        self.moved.set()

    def _borne(self, sent: Sent, now: float) -> None:
        """Take in that a call was taken, if that says something of the rate that is searched."""
        if self.doubt or sent.at < self.flow.changed or not enough(self.flow):
            return
        self.borne += self.workers
        if self.borne >= enough(self.flow):
            self.borne, self.flow = 0, next_rate(self.flow, Borne(), now)
            self._paced()

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

    def ended(self, sent: Sent, now: float, tokens: int = 0) -> None:
        """Take in that a call is over, and how many tokens its answer has."""
        if tokens:
            self.wrote = 0.8 * self.wrote + 0.2 * tokens if self.wrote else float(tokens)
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
        # What our own test is about to show is newer than what others decided; and who is searching
        # knows less than who has found a limit.
        searching = shared != Flow() and not (shared.measured or shared.most)
        if self.doubt or (searching and (self.flow.measured or self.flow.most)):
            return
        if not ours_is_news:
            self.flow = shared
            self._paced()
        elif shared.rate == 0:
            self.flow = replace(shared, until=max(shared.until, self.flow.until))

    def left(self, now: float, cost: Cost = ONE) -> Sent:
        """Take in that a call leaves."""
        self.measured.sent.append(now)
        sent = Sent(now, len(self.flying), test=self.doubt is not None, cost=cost)
        self.quotas.left(sent)
        if self.doubt:
            self.doubt.left()
        elif len(self.flying) >= self.share:
            sent.one_more = True
            self.room.left(now)
        in_flight = bool(self.flying) and self.flying[-1] is self.luck.previous
        self.luck.left(sent, in_flight, self.flow.measured or self.per_second(now))
        self.flying.append(sent)
        if self.at_once:
            self.at_once -= 1
            self.free = now + SPACING
        else:
            self.free = following(self.free, now, self.interval)
        return sent
