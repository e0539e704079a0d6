"""What a result rests on, for whoever judges it: the inputs of its subtask, as far as they fit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.calls.envelopes import envelope
from holdfast.contracts import Contract, PinnedInput

Contents = Mapping[str, str]
"""The text of inputs by their name."""
NOTHING: Contents = MappingProxyType({})


class Sources(Contract):
    """Inputs that are enclosed for a judge, and the names of those that are not."""

    inputs: tuple[PinnedInput, ...] = ()
    unseen: tuple[str, ...] = ()
    """Inputs that only tools read, or that are too long: a judge may not hold them against a
    result.
    """

    @property
    def size(self) -> int:
        """Bytes of what is enclosed."""
        return sum(each.size for each in self.inputs)


def choose_sources(inputs: tuple[PinnedInput, ...], room: int) -> Sources:
    """Return what a judge can read in so many bytes: whole inputs in their order, as they fit."""
    shown: list[PinnedInput] = []
    for each in inputs:
        if each.enclosed and each.size <= room:
            shown.append(each)
            room -= each.size
    unseen = tuple(each.name for each in inputs if each not in shown)
    return Sources(inputs=tuple(shown), unseen=unseen)


def enclose_sources(sources: Sources, contents: Contents) -> list[str]:
    """Return each input in an envelope, and a line on those that are not shown."""
    parts = [envelope(f"input {name}", text) for name, text in contents.items()]
    if sources.unseen:
        names = ", ".join(sources.unseen)
        parts.append(
            f"Inputs that you are not shown: {names}. What rests on them alone you cannot check."
        )
    return parts
