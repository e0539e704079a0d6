"""What an attempt says of itself to whoever notes, in its process, what it holds."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

DIED = "the call was sent, and its worker died before the answer"


@dataclass(frozen=True)
class Sent:
    """A call that left: its key in the journal, and the id of the model that it asks."""

    key: str
    model: str


noting: ContextVar[Callable[[Sent], None] | None] = ContextVar("noting", default=None)
"""Notes what the attempt of this context sends; None: nobody does."""


def note_sent(sent: Sent) -> None:
    """Note the one call that this attempt makes, as it leaves."""
    note = noting.get()
    if note is not None:
        note(sent)
