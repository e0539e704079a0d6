"""The timers that a run in this state needs: what is waited for, until when, and what happens then.

The executor keeps exactly these running: one that is not needed any more is cancelled, one whose
due time has moved is set anew. A timer is known by its name, which the Web UI shows as well. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from orchestrator import policies
from orchestrator.events import Abandoned, DeadlineReached, Event, NobodyCame
from orchestrator.moves import StartAgent, StartTeam
from orchestrator.rules.state import State

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(nanoseconds: int) -> datetime:
    """A recorded time, in whole microseconds, without the rounding of a float."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1_000)


@dataclass(frozen=True)
class Timer:
    """`then` carries `due` as its moment, whenever the timer really fires."""

    name: str
    due: datetime
    then: Event = field(compare=False)

    def left(self, now: datetime) -> timedelta:
        """How long it has to sleep."""
        return max(self.due - now, policies.SHORTEST_SLEEP)


def timers(state: State) -> dict[str, Timer]:
    """By name, in a stable order."""
    return {timer.name: timer for timer in _timers(state)} if state.phase != "closed" else {}


def _timers(state: State) -> Iterator[Timer]:
    yield from _deadline(state)
    yield from _people(state)
    yield from _graces(state, "what was cut", policies.CANCEL_GRACE, teams=False)
    # A team waits as long for what it has cut itself, and then for its report to be carried here.
    below = state.goal.limits.depth - state.goal.depth
    grace = policies.CANCEL_GRACE + max(below, 1) * policies.HAND_UP
    yield from _graces(state, "the teams that were cut", grace, teams=True)


def _graces(state: State, what: str, grace: timedelta, *, teams: bool) -> Iterator[Timer]:
    if not state.cuts:
        return
    cuts: dict[int, list[str]] = {}
    for key, flight in state.flights.items():
        if flight.cut and isinstance(flight.move, StartTeam | StartAgent) == teams:
            cuts.setdefault(flight.cut, []).append(key)
    for number, ids in cuts.items():
        cut_at = state.flights[ids[0]].cut_at
        assert cut_at is not None
        due = cut_at + grace
        yield Timer(f"grace for {what} ({number})", due, Abandoned(tuple(ids), due))


def _deadline(state: State) -> Iterator[Timer]:
    """The next of the two deadlines. Once one has come, `next_moves` deals with it."""
    working = state.phase in ("planning", "working")
    due = state.work_deadline if working else state.deadline
    if due is not None and due > state.now:
        yield Timer("deadline of the work" if working else "deadline", due, DeadlineReached(due))


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
