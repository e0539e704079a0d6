"""Heartbeats on a timer of their own: they show that a worker lives, however silent its model or
busy its tool.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import astuple, dataclass, field, replace
from itertools import chain, repeat

from temporalio import activity

from holdfast.activities.asking import senders
from holdfast.contracts.policies import BEATS, BILLED_BEATS
from holdfast.history.actions import bills_actions

SOON = BEATS[0]
"""Seconds after sending until the server is told that a call left. Until then only the journal
knows: a call may be paid twice if its machine is lost in that time and another one tries again.
"""


@dataclass
class Notes:
    """Numbers that each beat carries; the server hands the last ones to the next attempt. Attempts
    that wait for one call share them.
    """

    numbers: tuple[int, ...] = ()
    tellers: list[Callable[[], None]] = field(default_factory=list)
    """Each makes one attempt beat now."""

    def take(self, *numbers: int) -> None:
        """Replace the numbers, and tell the server at once."""
        self.numbers = numbers
        self._tell()

    def take_soon(self, *numbers: int) -> None:
        """Replace the numbers, and tell the server after SOON: most calls are over sooner. One that
        bills what it is told hears it with the next beat.
        """
        self.numbers = numbers
        if not is_billed():
            asyncio.get_running_loop().call_later(SOON, self._tell)

    def _tell(self) -> None:
        for tell in self.tellers:
            tell()


@asynccontextmanager
async def beating(notes: Notes | None = None) -> AsyncIterator[Notes]:
    """Beat while the block runs. An activity that never beats never sees that it was cancelled."""
    carried = Notes(read_notes()) if notes is None else notes
    # A call that others wait for, too, notes from a task of its own.
    context = copy_context()

    def tell() -> None:
        context.run(activity.heartbeat, *carried.numbers)

    carried.tellers.append(tell)
    try:
        async with beating_with(tell):
            yield carried
    finally:
        carried.tellers.remove(tell)


@asynccontextmanager
async def beating_with(tell: Callable[[], None]) -> AsyncIterator[None]:
    """Call `tell`, which beats, again and again while the block runs."""
    beats = asyncio.create_task(_beat(tell))
    try:
        yield
    finally:
        beats.cancel()
        with suppress(asyncio.CancelledError):
            await beats


def read_notes() -> tuple[int, ...]:
    """Return the numbers that the attempt before this one noted last; empty if there are none."""
    return tuple(each for each in activity.info().heartbeat_details if isinstance(each, int))


def is_billed() -> bool:
    """True where the server of this attempt bills each heartbeat."""
    try:
        return bills_actions(activity.client().service_client.config.target_host)
    except RuntimeError:
        # An activity of a test, which has no server.
        return False


async def _beat(tell: Callable[[], None]) -> None:
    beats = BILLED_BEATS if is_billed() else BEATS
    for pause in chain(beats, repeat(beats[-1])):
        await asyncio.sleep(pause)
        tell()


@dataclass(frozen=True)
class Past:
    """What earlier attempts noted with their heartbeats.

    How often the call was refused: Temporal's attempt number does not tell, because it also counts
    calls that were sent back before they left. And whether the call is under way: the journal
    knows, but a worker on another machine has another journal.
    """

    throttled: int = 0
    faults: int = 0
    sent: int = 0
    """1 if it left and was not refused."""
    machine: int = 0
    """The machine that it left from, by `senders.this_machine`."""
    process: int = 0

    @classmethod
    def read(cls) -> Past:
        numbers = read_notes()
        return cls(*numbers) if len(numbers) == 5 else cls()

    def leaving(self) -> Past:
        """Return this with the call on its way from this process."""
        return replace(self, sent=1, machine=senders.this_machine(), process=os.getpid())

    def note(self, notes: Notes) -> None:
        """Keep this for the next attempt. That the call left is told a little later, as the journal
        knows it already.
        """
        tell = notes.take_soon if self.sent else notes.take
        tell(*astuple(self))
