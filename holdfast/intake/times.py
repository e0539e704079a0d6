"""When a schedule starts runs, from what was typed. Refused names the option; nothing asks a
server.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import cast, get_args
from zoneinfo import ZoneInfo, available_timezones

from holdfast.contracts.schedules import Overlap, Times
from holdfast.errors import Refused
from holdfast.text.mistakes import suggest

OVERLAPS = get_args(Overlap)
LEAST_EVERY, LEAST_CATCH_UP, MOST_SECONDS = 60, 10, 366 * 86_400
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
MONTHS = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())  # noqa: SIM905
WEEKDAYS = tuple("sun mon tue wed thu fri sat".split())  # noqa: SIM905
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("weekday", 0, 7, WEEKDAYS),
)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Of each month, in the longest year."""


@dataclass(frozen=True)
class TypedTimes:
    """Options as they were typed; empty: left out."""

    cron: str = ""
    every: str = ""
    once: str = ""
    zone: str = ""
    jitter: str = ""
    catch_up: str = ""
    overlap: str = ""


def times_of(typed: TypedTimes, before: Times | None = None) -> Times:
    """Return when runs start. `before`: of a schedule that is edited, of which stays what was not
    typed.
    """
    said = [each for each in (typed.cron, typed.every, typed.once) if each]
    if len(said) > 1 or (before is None and not said):
        raise Refused("give one of --cron, --every and --once: it says when runs start")
    times = before or Times()
    zone = typed.zone or times.zone
    known = zone_of(zone)
    when = {"cron": times.cron, "every_seconds": times.every_seconds, "once": times.once}
    if said:
        when = {
            "cron": _cron(typed.cron) if typed.cron else "",
            "every_seconds": duration(typed.every, "--every", LEAST_EVERY) if typed.every else 0,
            "once": _once(typed.once, known) if typed.once else None,
        }
    if typed.overlap and typed.overlap not in OVERLAPS:
        hint = suggest(typed.overlap, OVERLAPS)
        raise Refused(f"--overlap {typed.overlap!r:.60}{hint}; known: {', '.join(OVERLAPS)}")
    more: dict[str, object] = {"zone": zone}
    if typed.jitter:
        more["jitter_seconds"] = duration(typed.jitter, "--jitter", 0)
        every = when["every_seconds"]
        if isinstance(every, int) and 0 < every < cast(int, more["jitter_seconds"]):
            raise Refused(f"--jitter {typed.jitter}: longer than --every; give at most that")
    if typed.catch_up:
        more["catch_up_seconds"] = duration(typed.catch_up, "--catch-up", LEAST_CATCH_UP)
    if typed.overlap:
        more["overlap"] = cast(Overlap, typed.overlap)
    return times.model_copy(update={**when, **more})


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name, as `Europe/Berlin`."""
    try:
        return ZoneInfo(name)
    # ZoneInfoNotFoundError is a KeyError; a folder of zones, as `Europe`, is an OSError.
    except (KeyError, ValueError, OSError) as error:
        known = available_timezones()
        if not known:
            raise Refused("--zone: this machine knows no time zones; install tzdata") from error
        hint = suggest(name, sorted(known))
        raise Refused(f"--zone {name!r:.60}: there is no such time zone{hint}") from error


def duration(text: str, option: str, least: int) -> int:
    """Return seconds from `30s`, `15m`, `6h` or `1d`."""
    found = _DURATION.fullmatch(text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else -1
    if not least <= seconds <= MOST_SECONDS:
        raise Refused(
            f"{option} {text!r:.60}: write a number and s, m, h or d, as 30m or 6h,"
            f" from {least}s to 366d"
        )
    return seconds


def _once(text: str, zone: tzinfo) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(
            f"--once {text!r:.60}: write a time as 2027-01-31T06:00, in the zone of --zone"
        ) from error
    local = at if at.tzinfo else at.replace(tzinfo=zone)
    try:
        at = local.astimezone(UTC).replace(microsecond=0)
    except OverflowError as error:
        raise Refused(f"--once {text}: no calendar has that; give a time to come") from error
    if at.astimezone(local.tzinfo).time() != local.replace(microsecond=0).time():
        raise Refused(f"--once {text}: clocks leave that time out that day; give one that comes")
    if at <= datetime.now(UTC):
        raise Refused(f"--once {text}: that is over; give a time to come")
    return at


# ---------------------------------------------------------------- cron


def _cron(line: str) -> str:
    """Return a cron line of five fields, one that comes some day."""
    given = line.lower().split()
    if len(given) != len(_FIELDS):
        raise Refused(
            f"--cron {line!r:.60}: write five fields: minute, hour, day, month, weekday, as"
            ' "0 6 * * 1-5"'
        )
    _, _, days, months, _ = _sets(line)
    if all(_DAYS[month - 1] < min(days) for month in months):
        raise Refused(f"--cron {line!r:.60}: that day never comes: no such month has it")
    return " ".join(given)


def notes_of(times: Times) -> tuple[str, ...]:
    """Return what a cron line means that somebody might not expect."""
    if not times.cron:
        return ()
    minutes, hours, days, _, weekdays = _sets(times.cron)
    notes = []
    if len(days) < 31 and len({each % 7 for each in weekdays}) < 7:
        notes.append("day and weekday must both fit")
    if len(hours) == 24 or (left_out := _left_out(times, minutes, hours)) is None:
        return (*notes,)
    said = f"{left_out:%Y-%m-%d} has no {left_out:%H:%M} in {times.zone}: no run then"
    return (*notes, said)


def clock_of(times: Times) -> str:
    """Return the zone by which the server reads the times. A line that names every hour of every
    day means the same in UTC, where no hour is left out or comes twice.
    """
    if not times.cron:
        return times.zone
    _, hours, days, months, weekdays = _sets(times.cron)
    always = len(hours) == 24 and len(days) == 31 and len(months) == 12
    zone, now = zone_of(times.zone), datetime.now(UTC)
    whole = all(
        (now + timedelta(days=each)).astimezone(zone).minute == now.minute for each in (0, 91, 182)
    )
    return "UTC" if always and len({each % 7 for each in weekdays}) == 7 and whole else times.zone


def _left_out(times: Times, minutes: set[int], hours: set[int]) -> datetime | None:
    """Return the first local time of the next year that the clocks leave out."""
    zone, today = zone_of(times.zone), datetime.now(UTC).replace(tzinfo=None)
    for day in (today + timedelta(days=number) for number in range(366)):
        midnight = day.replace(hour=0, minute=0, second=0, microsecond=0)
        before, after = (
            each.replace(tzinfo=zone).utcoffset() for each in (midnight, midnight + timedelta(1))
        )
        if before is None or after is None or after <= before or not _fits(times.cron, day):
            continue
        for hour, minute in itertools.product(sorted(hours), sorted(minutes)):
            local = midnight.replace(hour=hour, minute=minute, tzinfo=zone)
            if local.astimezone(UTC).astimezone(zone).time() != local.time():
                return local
    return None


def _fits(line: str, day: datetime) -> bool:
    _, _, days, months, weekdays = _sets(line)
    named = {each % 7 for each in weekdays}
    return day.day in days and day.month in months and day.isoweekday() % 7 in named


def _sets(line: str) -> list[set[int]]:
    """Return the values that each field of a cron line names. Refused for what is none."""
    given = zip(line.lower().split(), _FIELDS, strict=True)
    return [_field(text, field, line) for text, field in given]


@dataclass(frozen=True)
class _Bounds:
    low: int
    high: int
    step: int = 1


def _field(text: str, field: tuple[str, int, int, tuple[str, ...]], line: str) -> set[int]:
    """Return the values that a field names."""
    name, low, high, words = field
    found: set[int] = set()
    for part in text.split(","):
        try:
            bounds = _bounds(part, low, high, words)
        except ValueError as error:
            raise Refused(
                f"--cron {line!r:.60}: {part!r:.30} is no {name}; it takes {low} to {high}, lists,"
                " ranges as 1-5, and steps as */15"
            ) from error
        found |= {*range(bounds.low, bounds.high + 1, bounds.step)}
    return found


def _bounds(part: str, low: int, high: int, words: tuple[str, ...]) -> _Bounds:
    """Return the range of a part of a field. ValueError if it is none."""
    span, stepped, step = part.partition("/")
    begin, ranged, end = span.partition("-")
    if span == "*":
        bounds = _Bounds(low, high)
    else:
        first = _number(begin, low, words)
        last = _number(end, low, words) if ranged else (high if stepped else first)
        bounds = _Bounds(first, last)
    if stepped:
        bounds = replace(bounds, step=_number(step, 1, ()))
    if not low <= bounds.low <= bounds.high <= high or not 1 <= bounds.step <= high + 1:
        raise ValueError(part)
    return bounds


def _number(text: str, low: int, words: tuple[str, ...]) -> int:
    if text in words:
        return low + words.index(text)
    if not (text.isascii() and text.isdigit() and len(text) < 3):
        raise ValueError(text)
    return int(text)
