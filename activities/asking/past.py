"""What one attempt of a call tells the next one, through its heartbeats."""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass, replace

from holdfast.activities.asking import senders
from holdfast.activities.asking.heartbeat import Notes, read_notes


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
    """Where it left from, by `senders.this_machine`."""
    process: int = 0

    @classmethod
    def read(cls) -> Past:
        """Return what was noted last."""
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
