"""What an attempt of a call tells the next one, through its heartbeats."""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass, replace

from holdfast.activities.asking import senders
from holdfast.activities.asking.heartbeat import Notes, read_notes


@dataclass(frozen=True)
class Past:
    """What the attempts before this one noted with their heartbeats.

    How often the call was refused: Temporal's attempt does not tell, because it also counts the
    times that a call was sent back before it left. And whether it is under way: the journal knows,
    but a worker on another machine has another journal.
    """

    throttled: int = 0
    faults: int = 0
    sent: int = 0
    """1: it left, and was not refused."""
    machine: int = 0
    """Where it left from, as `senders.this_machine` has it."""
    process: int = 0

    @classmethod
    def read(cls) -> Past:
        """What was noted last."""
        numbers = read_notes()
        return cls(*numbers) if len(numbers) == 5 else cls()

    def leaving(self) -> Past:
        """The same call as it leaves from here."""
        return replace(self, sent=1, machine=senders.this_machine(), process=os.getpid())

    def note(self, notes: Notes) -> None:
        """Keep for the next attempt. That it left is told a little later, as the journal knows."""
        tell = notes.take_soon if self.sent else notes.take
        tell(*astuple(self))
