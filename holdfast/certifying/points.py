"""At which events of a run it is struck, and what is killed there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest

from holdfast.certifying.board import Moment, Noted, Place
from holdfast.text import pluralize

VICTIMS = (("worker",), ("server",), ("server", "worker"))
WORDS: dict[Moment, str] = {
    "begins": "as {} begins",
    "sent": "before the request of {} leaves",
    "kept": "once the answer of {} is kept",
    "ends": "before the server knows that {} has ended",
    "called": "as {} calls its tool",
    "done": "once the tool of {} is done",
}


@dataclass(frozen=True)
class Point:
    """One blow: what is killed, and when."""

    place: Place
    victims: tuple[str, ...]
    holds: bool = True
    """True if the worker stops there; False: it goes on, and the blow falls a little later."""

    @property
    def what(self) -> str:
        return f"{' and '.join(self.victims)} killed"

    @property
    def when(self) -> str:
        step = f"{self.place.part} {self.place.step}".strip()
        if not self.holds:
            return f"while {step} is answered"
        return WORDS[self.place.moment].format(step)


@dataclass(frozen=True)
class Chosen:
    """The points of a certificate, of how many."""

    points: tuple[Point, ...]
    kinds: int
    kinds_in_all: int
    in_all: int

    def __str__(self) -> str:
        if len(self.points) == self.in_all:
            return f"all {pluralize(self.in_all, 'point')}"
        return (
            f"{len(self.points)} of {pluralize(self.in_all, 'point')}, {self.kinds} of"
            f" {self.kinds_in_all} kinds of events"
        )


def choose(
    noted: Iterable[Noted],
    most: int | None,
    *,
    answers_take_time: bool,
    only: Callable[[str], bool] = lambda _name: True,
) -> Chosen:
    """Return at most this many points of a run (None: all), spread over all kinds of events and
    over what is killed.
    """
    kinds: dict[tuple[str, str, bool], list[Point]] = {}
    places = dict.fromkeys(each.place for each in noted if each.place.moment in WORDS)
    for place in places:
        both = place.moment == "sent" and place.kind != "use_tool" and answers_take_time
        for holds in (True, False) if both else (True,):
            found = kinds.setdefault((place.moment, place.kind, holds), [])
            # Another victim first each time, so that each is met whatever the bound is.
            turn = (len(kinds) + len(found) // len(VICTIMS)) % len(VICTIMS)
            victims = (*VICTIMS[turn:], *VICTIMS[:turn])
            points = (Point(place, each, holds) for each in victims)
            found += [each for each in points if only(f"{each.what} {each.when}")]
    kinds = {kind: found for kind, found in kinds.items() if found}
    by_turn = chain.from_iterable(zip_longest(*kinds.values()))
    every = [each for each in by_turn if each is not None]
    if most is None or most >= len(every):
        chosen = every
    elif most >= len(kinds):
        chosen = every[:most]
    else:
        chosen = [every[number * len(kinds) // most] for number in range(most)]
    met = {(each.place.moment, each.place.kind, each.holds) for each in chosen}
    return Chosen(tuple(chosen), len(met), len(kinds), len(every))
