"""A share for each: what is many does not hide what is rare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Each = TypeVar("Each")


def fair_share(items: Sequence[Each], most: int, owner: Callable[[Each], Hashable]) -> list[Each]:
    """At most `most` of the items, in their order: of each owner its first ones, as many of every
    owner as fit; what room is left goes to the first of the rest.
    """
    if len(items) <= most:
        return list(items)
    owners = [owner(each) for each in items]
    share = _share(list(Counter(owners).values()), most)
    taken: Counter[Hashable] = Counter()
    chosen: list[int] = []
    rest: list[int] = []
    for index, name in enumerate(owners):
        taken[name] += 1
        (chosen if taken[name] <= share else rest).append(index)
    chosen = sorted([*chosen, *rest[: max(most - len(chosen), 0)]])
    return [items[index] for index in chosen[:most]]


def _share(counts: list[int], most: int) -> int:
    """How many of each may be kept, so that all fit."""
    left = most
    for index, count in enumerate(sorted(counts)):
        fair = left // (len(counts) - index)
        if count > fair:
            return max(fair, 1)
        left -= count
    return max(counts, default=0)
