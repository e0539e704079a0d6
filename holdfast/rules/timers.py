"""The timers that a run in this state needs: what is waited for, until when, and what happens then.
Pure.

The executor keeps exactly these running: one that is not needed any more is cancelled, one whose
due time has moved is set anew. A timer is known by its name, which the Web UI shows as well.

Timers fire even while no worker serves a run. So a deadline, and the grace of what was cut, run in
parts: the next part begins when a worker has taken in the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from holdfast.contracts import policies
from holdfast.state.events import Abandoned, Event, NobodyCame, TimePassed
from holdfast.state.moves import StartAgent, StartMap, StartTeam
from holdfast.state.run import State

Meant = TypeVar("Meant", covariant=True)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_datetime(nanoseconds: int) -> datetime:
    """Convert recorded nanoseconds, in whole microseconds and without rounding a float."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1_000)


class Wanted(Protocol[Meant]):
    """A timer of any workflow: known by its name and its due time."""

    @property
    def name(self) -> str: ...

    @property
    def then(self) -> Meant: ...

    def left(self, now: datetime) -> timedelta: ...


@dataclass(frozen=True)
class Timer:
    """`then` carries `due` as its moment, whenever the timer really fires."""

    name: str
    due: datetime
    then: Event = field(compare=False)

    def left(self, now: datetime) -> timedelta:
        return max(self.due - now, policies.SHORTEST_SLEEP)


def timers(state: State) -> dict[str, Timer]:
    return {timer.name: timer for timer in _timers(state)} if state.phase != "closed" else {}


def time_unserved(state: State, at: datetime) -> timedelta:
    """Return how long no worker has served a run that now hears of this moment: a timer was due
    long before, and nobody has taken it in.
    """
    due = min((timer.due for timer in timers(state).values()), default=at)
    late = at - max(due, state.now)
    return late if late > policies.UNSERVED else timedelta()


def _timers(state: State) -> Iterator[Timer]:
    yield from _deadline(state)
    yield from _people(state)
    yield from _graces(state, "what was cut", policies.CANCEL_GRACE, ())
    # A team waits as long for what it has cut itself, and then for its report to be carried here.
    below = state.goal.limits.depth - state.goal.depth
    grace = policies.CANCEL_GRACE + max(below, 1) * policies.HAND_UP
    yield from _graces(state, "the teams that were cut", grace, (StartTeam, StartAgent))
    # A map's open batches are cancelled, and what they have done is read.
    yield from _graces(state, "the maps that were cut", grace + policies.BATCH_CUT, (StartMap,))


def _graces(state: State, what: str, grace: timedelta, below: tuple[type, ...]) -> Iterator[Timer]:
    """Yield the timers of flights that were cut: of workflows below of these types; none: of
    activities.
    """
    if not state.cuts:
        return
    cuts: dict[int, list[str]] = {}
    for key, flight in state.flights.items():
        own = isinstance(flight.move, below) if below else flight.options is not None
        if flight.cut and own:
            cuts.setdefault(flight.cut, []).append(key)
    for number, ids in cuts.items():
        cut_at = state.flights[ids[0]].cut_at
        assert cut_at is not None
        due, half = cut_at + grace, cut_at + grace / 2
        name = f"grace for {what} ({number})"
        if state.flights[ids[0]].half_over:
            yield Timer(name, due, Abandoned(tuple(ids), due))
        else:
            yield Timer(name, half, TimePassed(half, tuple(ids)))


def _deadline(state: State) -> Iterator[Timer]:
    """Yield the next of the two deadlines. Once one has come, `next_moves` deals with it."""
    working = state.phase in ("planning", "working")
    due, began = state.work_deadline if working else state.deadline, state.counts_from
    if due is None or began is None or due <= state.now or state.stopped_by("cancelled"):
        return
    whole = timedelta(seconds=state.goal.limits.deadline_seconds)
    beat = max(whole / policies.DEADLINE_BEATS, policies.SHORTEST_BEAT)
    part = began + ((state.now - began) // beat + 1) * beat
    part = min(part, due)
    # One name for both: where the next part ends before either, its timer runs on.
    yield Timer("deadline", part, TimePassed(part))


def _people(state: State) -> Iterator[Timer]:
    if state.phase == "approval" and state.proposed:
        yield _person("approval", state.proposed)
    if state.short and state.short_since:
        yield _person("raise", state.short_since)
    for key in state.work.asking:
        if since := state.work[key].waits_since:
            yield _person(key, since)


def _person(about: str, since: datetime) -> Timer:
    due = since + policies.patience(about)
    return Timer(f"{about} waits for a person", due, NobodyCame(about, due))
