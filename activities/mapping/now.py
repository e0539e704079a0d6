"""The rows of a map one by one, several in flight: each is paid once, whatever worker dies."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from temporalio import activity

from holdfast.activities.asking import senders
from holdfast.activities.asking.flights import Flights, is_unwanted
from holdfast.activities.asking.heartbeat import Notes, Past, beating_with
from holdfast.activities.asking.patience import finish
from holdfast.activities.asking.replies import lost_call
from holdfast.activities.asking.sending import Sending
from holdfast.activities.asking.trip import Trip
from holdfast.activities.mapping.tally import Tally, row_call
from holdfast.activities.mapping.wanted import Row
from holdfast.calls.rows import RowsBeat
from holdfast.contracts import Unreached
from holdfast.contracts.errors import (
    AllowanceReached,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    OverReservation,
    PossiblyBilled,
    RunStopping,
)
from holdfast.contracts.policies import CALL_MARGIN_SECONDS
from holdfast.ledger.ledger import Amount

GRACE_SECONDS = 6.0
"""How long rows in flight may still take to end once nobody wants more: they are paid."""
LOSSES = 3
"""Answers lost in a row, behind an endpoint that does not answer, after which no more is asked."""
USUAL_WAIT = timedelta(seconds=1)
"""How long a row waits that was refused, where nobody says for how long."""
NO_TIME = "the time of this activity is over"


@dataclass
class NowLane:
    """Asks the rows of one activity. Call `run` once."""

    tally: Tally
    sending: Sending
    flights: Flights
    at_once: int
    waiting: deque[Row] = field(default_factory=deque)
    closing: str = ""
    """Why no more rows are asked; empty: they are."""
    held: Amount = field(default_factory=Amount)
    """The most that the rows in flight can use."""
    losses: int = 0
    sent: int = 0
    """A bit for each row, in order, that may have been sent."""
    earlier: set[int] = field(default_factory=set)
    """Rows that were sent before the run was reset."""

    async def run(self) -> None:
        """Ask all rows as far as time, money and the endpoint allow. Raise CancelledError if only
        this attempt is unwanted: then its calls go on, and the next one joins them.
        """
        rows = self.tally.wanted.rows
        self.waiting.extend(rows)
        self._places = {row.n: place for place, row in enumerate(rows)}
        self._past = _read_past()
        self.sent = int(self._past.sent or "0", 16)
        self._freed = asyncio.Event()
        self._clock = asyncio.get_running_loop().time
        info = activity.info()
        limit = info.start_to_close_timeout or timedelta(hours=1)
        each = self.tally.material.work.timeout_seconds
        self._end = self._clock() + max(limit.total_seconds() - CALL_MARGIN_SECONDS, 1.0)
        # Whoever begins has all its time.
        self._last_start = max(self._end - each, self._clock() + limit.total_seconds() / 2)
        count = max(1, min(self.at_once, len(rows)))
        async with beating_with(self._tell), self._watching_shutdown():
            await self._finish([asyncio.create_task(self._work()) for _ in range(count)])
        for row in self.waiting:
            self.tally.leave(row, self.closing or NO_TIME)

    async def _finish(self, workers: list[asyncio.Task[None]]) -> None:
        try:
            await asyncio.wait(workers)
        except asyncio.CancelledError:
            wanted = not is_unwanted()
            self._close("cut")
            if not wanted:
                await finish(_wait(workers, GRACE_SECONDS))
            for worker in workers:
                worker.cancel()
            await finish(_wait(workers))
            if wanted:
                raise
        for worker in workers:
            # What nobody thought of ends the attempt: the next one finds what was paid.
            if not worker.cancelled():
                worker.result()

    async def _work(self) -> None:
        while self.waiting and not self.closing:
            if self._clock() > self._last_start:
                self._close(NO_TIME)
                return
            row = self.waiting[0]
            most = self.tally.most_of(row)
            if self.held.dollars + self.held.tokens and not self._fits(most):
                self._freed.clear()
                await self._freed.wait()
                continue
            rest = self._rest()
            if rest.tokens <= 0 or rest.dollars < 0:
                self._close("what was reserved is used up")
                return
            self.waiting.popleft()
            # The largest of all may be counted by the endpoint instead.
            most = most if self._fits(most) else self._rest()
            self.held += most
            try:
                await self._ask(row, most)
            finally:
                self.held -= most
                self._freed.set()

    def _rest(self) -> Amount:
        """Return what is reserved for the activity, not spent and not held."""
        tally = self.tally
        return tally.reserved - Amount(tally.dollars, 0, tally.usage.total) - self.held

    def _fits(self, most: Amount) -> bool:
        return most <= self._rest()

    async def _ask(self, row: Row, most: Amount) -> None:
        """Ask for one row until it has an answer, or will have none."""
        tally = self.tally
        try:
            kept = await self._fly(row, most)
            if kept is not None:
                tally.take(row, kept, earlier=row.n in self.earlier)
                self.losses = 0
        except EndpointUnreachable as error:
            self._stop(row, error.message, error.unreached)
        except NotBilled as error:
            self._stop(row, error.message, error.unreached)
        except AllowanceReached as error:
            tally.stopping = "allowance"
            self._stop(row, error.message)
        except RunStopping as error:
            tally.stopping = "endpoint"
            self._stop(row, error.message)
        except OverReservation as error:
            # With the whole reservation for itself it will never fit.
            (tally.leave if tally.calls or self.held != most else tally.refuse)(row, error.message)
        except PossiblyBilled as error:
            self._lose(row, error)
        except OrchestrationError as error:
            tally.refuse(row, error.message)
        except asyncio.CancelledError:
            await finish(self._settle_cut(row))
            raise

    async def _fly(self, row: Row, most: Amount) -> str | None:
        """Return the recorded answer of a row; None if it was left."""
        tally, notes = self.tally, Notes()
        request = tally.wanted.request(row, tally.material, tally.price)
        call = row_call(tally.wanted.call, most)

        async def fly(notes: Notes) -> str:
            past = Past(*notes.numbers) if len(notes.numbers) == 5 else self._past_of(row)
            seconds = min(tally.material.work.timeout_seconds, self._end - self._clock())
            told = replace(request, deadline_seconds=max(seconds, 1.0), attempt=1 + past.throttled)
            trip = Trip(row.key, call, told, past, notes)
            kept = await self.sending.fly(trip)
            self.earlier |= {row.n} if trip.earlier else set()
            return kept

        # On its first attempt only an execution that was reset can have sent it before.
        if self.flights.under_way(row.key) and activity.info().attempt == 1:
            self.earlier.add(row.n)
        self.sent |= 1 << self._places[row.n]
        while True:
            try:
                return await self.flights.join_quietly(row.key, notes, fly)
            except NotBilled as error:
                if error.non_retryable:
                    raise
                wait = (error.next_retry_delay or USUAL_WAIT).total_seconds()
                if self.closing or self._clock() + wait > self._last_start:
                    tally.leave(row, error.message)
                    return None
            await asyncio.sleep(wait)
            if self.closing:
                tally.leave(row, self.closing)
                return None

    async def _settle_cut(self, row: Row) -> None:
        """Settle a row whose task was cut: it may have been answered in the same moment."""
        journal = self.sending.journal
        kept = await journal.answer(row.key)
        if kept is not None:
            self.tally.take(row, kept)
        elif await journal.sent(row.key):
            self.tally.lose(row, lost_call(self.tally.wanted.call, "cut"))
        else:
            self.tally.leave(row, "cut")

    def _lose(self, row: Row, error: PossiblyBilled) -> None:
        self.tally.lose(row, error)
        away = [each for each in error.details if isinstance(each, Unreached)]
        self.losses += 1 if away else 0
        if away and self.losses >= LOSSES:
            self.tally.unreached = away[0]
            self._close(error.message)

    def _stop(self, row: Row, why: str, unreached: Unreached | None = None) -> None:
        """Leave a row and all that wait: they would fare alike."""
        self.tally.leave(row, why)
        self.tally.unreached = self.tally.unreached or unreached
        self._close(why)

    def _close(self, why: str) -> None:
        self.closing = self.closing or why
        self._freed.set()

    def _tell(self) -> None:
        tally = self.tally
        activity.heartbeat(
            RowsBeat(
                done=len(tally.outcomes),
                failed=tally.failed,
                dollars=tally.dollars,
                machine=senders.this_machine(),
                process=os.getpid(),
                journal=self.sending.journal.place,
                sent=f"{self.sent:x}",
            )
        )

    def _past_of(self, row: Row) -> Past:
        """Return what the attempt before this one noted of a row. A journal in which that one had
        marked it knows by itself whether it was sent.
        """
        past = self._past
        elsewhere = bool(past.machine) and past.journal != self.sending.journal.place
        sent = elsewhere and int(past.sent or "0", 16) >> self._places[row.n] & 1
        return Past(sent=int(sent), machine=past.machine, process=past.process)

    @asynccontextmanager
    async def _watching_shutdown(self) -> AsyncIterator[None]:
        """Ask no more once this worker is to end: another one goes on."""

        async def watch() -> None:
            await activity.wait_for_worker_shutdown()
            self._close("its worker ends")

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()


async def _wait(tasks: list[asyncio.Task[None]], seconds: float | None = None) -> None:
    await asyncio.wait(tasks, timeout=seconds)


def _read_past() -> RowsBeat:
    """Return what the attempt before this one told last; nothing if there is none."""
    details = activity.info().heartbeat_details
    try:
        return RowsBeat.model_validate(details[0]) if details else RowsBeat()
    except ValueError:
        return RowsBeat()
