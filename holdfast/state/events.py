"""What can happen to a run: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from holdfast.calls.rows import MapReport
from holdfast.calls.turn import AgentReport
from holdfast.contracts import (
    Bill,
    Briefing,
    Draft,
    Order,
    Plan,
    Reply,
    Report,
    Standstill,
    Undone,
    Unreached,
)
from holdfast.contracts.errors import TroubleKind
from holdfast.state.moves import Ask, Examine, Move, StartAgent, StartMap, StartTeam, StopReason
from holdfast.text import one_line

Begun = TypeVar("Begun", StartTeam, StartAgent, StartMap)
Reported = TypeVar("Reported", Report, AgentReport, MapReport)
RUN_FAILED = "RunFailed"
"""Type of the error that closes a failed run; its detail is the Report."""
NOTIFIER_ENDED = "somebody ended the workflow that was to deliver it"


# Each event that has a recorded moment carries it as `at`: the end of an activity, the due time of
# a timer, the moment at which an order was accepted. No decision is made by any other clock.


@dataclass(frozen=True)
class Trouble:
    """What is known of an activity that ended without a result."""

    kind: TroubleKind
    why: str
    bill: Bill = field(default_factory=Bill)
    at: datetime | None = None
    """When it ended; None: not recorded."""
    unreached: Unreached | None = None
    """The endpoint that could not be reached."""
    too_long: bool = False
    """True if a worker had it for all the time that one call may take."""


@dataclass(frozen=True)
class Prepared:
    briefing: Briefing

    @property
    def at(self) -> datetime | None:
        return self.briefing.span.ended if self.briefing.span else None


@dataclass(frozen=True)
class NotPrepared:
    """`prepare` refused the goal or failed: the run closes as failed."""

    why: str
    reason: StopReason = "unprepared"
    at: datetime | None = None


@dataclass(frozen=True)
class Started:
    move: Move
    at: datetime | None = None


@dataclass(frozen=True)
class Answered:
    """A model activity returned."""

    move: Ask
    reply: Reply[Any]

    @property
    def at(self) -> datetime | None:
        return self.reply.span.ended if self.reply.span else None


@dataclass(frozen=True)
class Unanswered:
    """A model activity ended without a result."""

    move: Ask
    trouble: Trouble

    @property
    def at(self) -> datetime | None:
        return self.trouble.at


@dataclass(frozen=True)
class Examined:
    """A lens returned a draft, which may be a failure with its reason."""

    move: Examine
    draft: Draft
    at: datetime | None = None


@dataclass(frozen=True)
class _BelowEnded(Generic[Begun, Reported]):
    """A workflow below the run closed: with a report, or without one and a reason."""

    move: Begun
    report: Reported | None
    why: str = ""
    unpaid: bool = False
    """True if it ended before it could spend anything."""

    @property
    def at(self) -> datetime | None:
        return self.report.finished if self.report else None


class TeamEnded(_BelowEnded[StartTeam, Report]):
    """A team's run closed."""


class AgentEnded(_BelowEnded[StartAgent, AgentReport]):
    """A segment of an agent closed."""


class MapEnded(_BelowEnded[StartMap, MapReport]):
    """A segment of a map closed."""


@dataclass(frozen=True)
class Steered:
    """A person gave an order, and its turn has come."""

    number: int
    """Distinguishes two equal orders."""
    command: str
    order: Order
    at: datetime | None = None

    @property
    def name(self) -> str:
        """The name of the timer that gives it its turn."""
        return f"order {self.number}: {self.command}"


@dataclass(frozen=True)
class NobodyCame:
    """A person's time ran out."""

    about: str
    """The id of a subtask with a question, or `approval` or `raise` for the run's own."""
    at: datetime | None = None


@dataclass(frozen=True)
class CancelAsked:
    """Somebody asked the server to cancel the run."""

    by: str = ""
    """Name that the sender gave; may be empty."""
    at: datetime | None = None

    @property
    def why(self) -> str:
        return f"the run was cancelled by {self.by}" if self.by else "the run was cancelled"


LONGEST_NAME = 100
"""Characters kept of the name of who cancelled a run: anybody may write anything there."""


def cancel_event(by: str, at: datetime) -> CancelAsked:
    """Return the event of a cancel at a recorded moment. `by` is Temporal's reason of a cancel,
    into which the starter puts the person's login name.
    """
    return CancelAsked(one_line(by[: 2 * LONGEST_NAME])[:LONGEST_NAME], at)


@dataclass(frozen=True)
class CutAsked:
    """A segment of an agent or a map is to end."""

    why: str
    at: datetime


def cut_event(by: str, at: datetime) -> CutAsked:
    """Return the event of a cancel at a recorded moment. `by` is Temporal's reason of it: who
    asked, or nothing where the run above did, which knows why.
    """
    who = cancel_event(by, at).by
    return CutAsked(f"cancelled by {who}" if who else "cut by the run above", at)


@dataclass(frozen=True)
class HoldAsked:
    """A segment is to end once everything in flight has landed: to go on later."""

    at: None = None


@dataclass(frozen=True)
class WasReset:
    """The run goes on from an earlier point of its history."""

    undone: Undone

    @property
    def at(self) -> datetime:
        return self.undone.at


@dataclass(frozen=True)
class TeamWaits:
    """A team only waits, or goes on again."""

    word: Standstill

    @property
    def at(self) -> datetime:
        return self.word.at


@dataclass(frozen=True)
class AnswerBegun:
    """The answer to a call has begun, so the endpoint's cache has what its prompt begins with."""

    call_id: str
    at: datetime


@dataclass(frozen=True)
class PlanGrew:
    """Subtasks of a plan that is being written stand complete."""

    call: str
    plan: Plan
    at: datetime


@dataclass(frozen=True)
class Abandoned:
    """Cut activities did not answer within the grace: they count at their reservations."""

    ids: tuple[str, ...]
    at: datetime | None = None


@dataclass(frozen=True)
class TimePassed:
    """One part of a wait is over; `next_moves` decides by its moment what that means."""

    at: datetime | None = None
    ids: tuple[str, ...] = ()
    """Activities that were cut and whose grace is half over; empty: it was a part of the deadline.
    """


@dataclass(frozen=True)
class Notified:
    """A notice was delivered, or given up. It has no moment: the run does not hang on it."""

    number: int
    failures: tuple[str, ...] = ()
    at: datetime | None = None


Event = (
    Prepared
    | NotPrepared
    | Started
    | Answered
    | Unanswered
    | Examined
    | TeamEnded
    | AgentEnded
    | MapEnded
    | Steered
    | NobodyCame
    | CancelAsked
    | WasReset
    | TeamWaits
    | AnswerBegun
    | PlanGrew
    | Abandoned
    | TimePassed
    | Notified
)
