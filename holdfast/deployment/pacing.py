"""How fast a deployment lets calls of a tier leave, as its settings are written. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast.text.mistakes import suggest

TIERS = ("haiku", "sonnet", "opus")
SECONDS = {"s": 1, "min": 60, "h": 3_600}
MOST = 1_000
"""The highest limit in flight; no machine has so many calls under way."""
_RATE = re.compile(r"(\d{1,6})/(s|min|h)", re.ASCII)
_IN_FLIGHT = re.compile(r"\d{1,6}", re.ASCII)


@dataclass(frozen=True)
class Pace:
    """What one tier is held to; 0: no such limit."""

    per_second: float = 0.0
    rate: str = ""
    """The rate as the setting has it."""
    in_flight: int = 0

    def __str__(self) -> str:
        places = f"{self.in_flight} in flight" if self.in_flight else ""
        return " and ".join(filter(None, (self.rate, places)))


def read_rates(value: str) -> str:
    """Return the rates of tiers, `haiku=60/min, sonnet=20/min`. ValueError saying what is wrong."""
    for tier, said in _pairs(value, "haiku=60/min"):
        found = _RATE.fullmatch(said)
        if found is None:
            raise ValueError(f"{tier}={said:.60} is no rate; give calls in a time, as haiku=60/min")
        if not int(found[1]):
            raise ValueError(f"{tier}={said} lets no call leave; give at least 1, or leave it out")
    return value


def read_in_flight(value: str) -> str:
    """Return limits in flight, `haiku=5, opus=1`. ValueError saying what is wrong."""
    for tier, said in _pairs(value, "haiku=5"):
        if not _IN_FLIGHT.fullmatch(said) or not 1 <= int(said) <= MOST:
            raise ValueError(f"{tier}={said}: give 1 to {MOST} calls, or leave it out")
    return value


def paces(rates: str, in_flight: str) -> Mapping[str, Pace]:
    """Return what each tier that two valid settings name is held to."""
    by_rate, by_place = dict(_pairs(rates, "")), dict(_pairs(in_flight, ""))
    found = {}
    for tier in (*by_rate, *(each for each in by_place if each not in by_rate)):
        count, _, unit = by_rate.get(tier, "").partition("/")
        per_second = int(count) / SECONDS[unit] if count else 0.0
        found[tier] = Pace(per_second, by_rate.get(tier, ""), int(by_place.get(tier, "0")))
    return found


def _pairs(value: str, example: str) -> Iterator[tuple[str, str]]:
    """Yield tier and limit of each pair. ValueError for anything else, or a tier twice."""
    seen = set[str]()
    for pair in filter(None, (each.strip() for each in value.split(","))):
        tier, equals, said = (each.strip() for each in pair.partition("="))
        if not equals:
            raise ValueError(f"{pair!r:.60}: give pairs of tier and limit, as {example}")
        if tier not in TIERS:
            meant = suggest(tier, TIERS)
            raise ValueError(f"there is no tier {tier!r:.60}{meant}; there are: {', '.join(TIERS)}")
        if tier in seen:
            raise ValueError(f"{tier} is given twice; give it once")
        seen.add(tier)
        yield tier, said
