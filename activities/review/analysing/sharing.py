"""Give each owner a share: what is many does not hide what is rare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

# The program can import nothing of ours: so what both need is there.
from holdfast.activities.review.analysing.scripts.sift import share

Each = TypeVar("Each")


def fair_share(items: Sequence[Each], most: int, owner: Callable[[Each], Hashable]) -> list[Each]:
    """Return at most `most` of the items, in their order: of each owner its first ones, as many of
    every owner as fit; what room is left goes to the first of the rest.
    """
    if len(items) <= most:
        return list(items)
    owners = [owner(each) for each in items]
    fits = share(list(Counter(owners).values()), most)
    taken: Counter[Hashable] = Counter()
    chosen: list[int] = []
    rest: list[int] = []
    for index, name in enumerate(owners):
        taken[name] += 1
        (chosen if taken[name] <= fits else rest).append(index)
    chosen = sorted([*chosen, *rest[: max(most - len(chosen), 0)]])
    return [items[index] for index in chosen[:most]]
