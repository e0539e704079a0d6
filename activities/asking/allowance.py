"""What this deployment may spend, whatever a goal says: dollars a run and dollars a day.

A run is held to its share by the ledger, from the Briefing. Here every single call is, just before
it leaves, also one that no run of ours has asked for: at this worker's own prices, never at those
that the call names. `spent.json`, in the state directory beside the journal, adds up what all
workers of that directory have set aside and paid on each day (UTC), below a lock, and is on the
disk before a call leaves. A call counts in full until its price is known; what a worker that died
had set aside stays paid.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter

from holdfast.activities.asking import senders
from holdfast.contracts import Usage
from holdfast.contracts.errors import AllowanceReached, NotBilled, SpendLimitReached
from holdfast.contracts.policies import MOST_DAY, MOST_RUN
from holdfast.embedded import private
from holdfast.errors import EmbeddedError
from holdfast.ledger.pricing import LANE_SHARE
from holdfast.ports import PriceOf
from holdfast.storage.files import to_disk

FILE_BYTES = 4 * 2**20
LOCK_SECONDS = 10.0
"""How long a call waits for the lock; then it goes back to the server."""
LOOK_SECONDS = 0.01
BACK = timedelta(seconds=3)
"""When a call comes back that waits for what others have set aside."""
KEPT_DAYS = 2
BATCH_LASTS = timedelta(hours=36)
"""How long a batch may take, and its results lie unread, until it counts in full."""

logger = logging.getLogger(__name__)


class _Held(BaseModel):
    """Dollars set aside for a call under way, and the process that did it."""

    dollars: Decimal = Field(ge=0)
    machine: int
    process: int
    until: datetime | None = None
    """When nobody will tell any more what a batch cost; None: it is no batch."""

    @property
    def lives(self) -> bool:
        """True while its process can still tell what it paid; of a batch, any process."""
        if self.until is not None:
            return datetime.now(UTC) < self.until
        own = self.machine == senders.this_machine() and self.process == os.getpid()
        return own or senders.is_alive(self.machine, self.process)


class _Day(BaseModel):
    paid: Decimal = Field(Decimal(0), ge=0)
    held: dict[str, _Held] = {}


_DAYS = TypeAdapter(dict[date, _Day])


class Unreadable(Exception):
    """The file of what was spent cannot be read."""


def utc_today() -> date:
    return datetime.now(UTC).date()


def spent_today(path: Path, today: date) -> tuple[Decimal, Decimal]:
    """Return the dollars paid and the dollars set aside today. Raise Unreadable if the file is
    damaged. Blocking.
    """
    day = _read(path).get(today, _Day())
    return day.paid, sum((each.dollars for each in day.held.values()), Decimal(0))


@dataclass(frozen=True)
class Allowance:
    """The spending caps of a deployment; one instance per worker process."""

    path: Path
    """The file that adds up what was spent; its lock lies beside it."""
    price: PriceOf
    """This worker's own prices."""
    run: Decimal | None = None
    day: Decimal | None = None
    today: Callable[[], date] = utc_today
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by one thread of this process at a time."""

    async def hold(
        self, key: str, model: str, input_tokens: int, max_output: int, searches: int = 0
    ) -> None:
        """Set aside the most that a call can cost, in dollars.

        Raise AllowanceReached if that is above what a run or a day may cost, SpendLimitReached if
        it cannot be computed, and NotBilled, so that the call comes back, if it fits only when
        others turn out cheaper or if nothing can be written. Call it while holding the journal's
        mark: then only one attempt does so for a key.
        """
        await self._set_aside(key, self._worst(model, input_tokens, max_output, searches), "call")

    async def hold_batch(self, key: str, model: str, prompts: Sequence[int], room: int) -> None:
        """Do as `hold` for all requests of a batch. Their dollars stay set aside until it is
        settled, at the latest for as long as its endpoint may take.
        """
        most = sum((self._worst(model, each, room, 0, hour=True) for each in prompts), _ZERO)
        until = datetime.now(UTC) + BATCH_LASTS
        await self._set_aside(key, most * LANE_SHARE["batch"], "batch", until)

    async def settle_batch(self, key: str, dollars: Decimal | None) -> None:
        """Replace what was set aside for a batch by what it cost. Never raises."""
        await self._replace(key, dollars, "a batch counts in full")

    async def _set_aside(
        self, key: str, dollars: Decimal, what: str, until: datetime | None = None
    ) -> None:
        if self.run is not None and dollars > self.run:
            raise AllowanceReached(
                f"one {what} may cost ${dollars}; this deployment allows ${self.run:f} a run,"
                f" whoever starts it: its operator can raise {MOST_RUN}"
            )
        if self.day is not None:
            await asyncio.to_thread(self._hold, _name(key), dollars, self.day, until)

    async def settle(self, key: str, model: str, served: str, usage: Usage | None) -> None:
        """Replace what was set aside by what was paid, at the dearer of the model that was asked
        and the one that served. Without usage or a price the full amount counts. Never raises: what
        cannot be written stays set aside.
        """
        costs = [self.price(each, usage) for each in (model, served)] if usage else [None]
        known = [each for each in costs if each is not None]
        # A served model without a price counts in full, as it does in the ledger.
        paid = max(known) if len(known) == len(costs) else None
        await self._replace(key, paid, "a call counts in full")

    async def release(self, key: str) -> None:
        """Give back what was set aside: nothing was paid. Never raises."""
        await self._replace(key, Decimal(0), "what was not paid counts")

    async def _replace(self, key: str, paid: Decimal | None, otherwise: str) -> None:
        if self.day is None:
            return
        try:
            await asyncio.to_thread(self._settle, _name(key), paid)
        except (OSError, EmbeddedError, NotBilled, Unreadable) as error:
            logger.warning("%s towards %s: %s", otherwise, MOST_DAY, error)

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
            name = MOST_RUN if self.day is None else MOST_DAY
            raise SpendLimitReached(
                f"{name} is set, and no price is known for {model!r:.100}:"
                " give one in HOLDFAST_PRICE_FILE"
            )
        return max(known)

    def _hold(self, name: str, dollars: Decimal, most: Decimal, until: datetime | None) -> None:
        try:
            with self._lock():
                days, today = _read(self.path), self.today()
                day = _settle_dead(days.get(today, _Day()))
                held = sum((each.dollars for key, each in day.held.items() if key != name), _ZERO)
                if day.paid + dollars > most:
                    raise AllowanceReached(_explain_reached(most, day.paid, dollars, today))
                if day.paid + held + dollars > most:
                    raise NotBilled(
                        f"this deployment allows ${most:f} a day ({MOST_DAY}); ${day.paid:f} are"
                        f" spent and ${held:f} set aside for calls under way",
                        retry_after=BACK,
                    )
                machine, process = senders.this_machine(), os.getpid()
                mine = _Held(dollars=dollars, machine=machine, process=process, until=until)
                day = _Day(paid=day.paid, held={**day.held, name: mine})
                self._write({**days, today: day})
        except Unreadable as error:
            raise SpendLimitReached(
                f"what was spent today cannot be told, so {MOST_DAY} lets nothing pass: {error};"
                " move the file away to begin at nothing"
            ) from None
        except (OSError, EmbeddedError) as error:
            raise NotBilled(f"nothing was sent: {str(self.path)!r}: {error}") from None

    def _settle(self, name: str, paid: Decimal | None) -> None:
        with self._lock():
            days = _read(self.path)
            # The day on which it was sent, also after midnight.
            for when, day in days.items():
                if name in day.held:
                    held = dict(day.held)
                    full = held.pop(name).dollars
                    spent = day.paid + (full if paid is None else paid)
                    self._write({**days, when: _Day(paid=spent, held=held)})
                    return

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock among threads and processes. Raise NotBilled after LOCK_SECONDS, as when a
        process was stopped while it wrote.
        """
        end = time.monotonic() + LOCK_SECONDS
        busy = NotBilled(f"nothing was sent: another process holds {str(self.path)!r}")
        if not self.lock.acquire(timeout=LOCK_SECONDS):
            raise busy
        try:
            handle = private.open_file(self.path.with_suffix(".lock"))
            try:
                while True:
                    try:
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        if time.monotonic() > end:
                            raise busy from None
                    time.sleep(LOOK_SECONDS)
                yield
            finally:
                # Closing ends the lock.
                os.close(handle)
        finally:
            self.lock.release()

    def _write(self, days: Mapping[date, _Day]) -> None:
        # A clock that was set to the future and back must not hide what today has cost.
        oldest = self.today() - timedelta(days=KEPT_DAYS)
        kept = {when: day for when, day in days.items() if when >= oldest}
        private.write(self.path, _DAYS.dump_json(kept).decode())
        to_disk(self.path.parent)


_ZERO = Decimal(0)


def _explain_reached(most: Decimal, paid: Decimal, dollars: Decimal, today: date) -> str:
    """Return which cap a call is above, whose it is, and when there is room again."""
    raised = f"its operator can raise {MOST_DAY}"
    if dollars > most:
        again = f"more than a whole day has: {raised}"
    else:
        again = f"there is room again from {today + timedelta(days=1)} 0:00 UTC, or {raised}"
    return (
        f"this deployment allows ${most:f} a day, for all runs together ({MOST_DAY});"
        f" ${paid:f} of it are spent since 0:00 UTC, and this call may cost ${dollars:f}; {again}"
    )


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _settle_dead(day: _Day) -> _Day:
    """Count what dead processes had set aside as paid: nobody will say what it cost."""
    held = {key: each for key, each in day.held.items() if each.lives}
    gone = sum((each.dollars for key, each in day.held.items() if key not in held), _ZERO)
    return _Day(paid=day.paid + gone, held=held)


def _read(path: Path) -> dict[date, _Day]:
    try:
        return _DAYS.validate_json(private.read(path, FILE_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise Unreadable(f"{path}: {why or error}") from None
