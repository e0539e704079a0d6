"""What can happen to a run: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.calls.turn import AgentReport
from holdfast.contracts import (
    Bill,
    Briefing,
    Draft,
    Order,
    Reply,
    Report,
    Standstill,
    Undone,
    Unreached,
)
from holdfast.contracts.errors import TroubleKind
from holdfast.state.moves import Ask, Examine, Move, StartAgent, StartTeam, StopReason
from holdfast.text import one_line

RUN_FAILED = "RunFailed"
"""The type of the error that closes a run that failed; its detail is the Report."""


# ---------------------------------------------------------------- what the executor is told to do


# ---------------------------------------------------------------- what can happen
#
# Each event that has a recorded moment tells it as `at`: the end of an activity, the due time of a
# timer, the moment at which an order was accepted. No decision is made by any other clock.


@dataclass(frozen=True)
class Trouble:
    """An activity that ended without a result: what is known of it."""

    kind: TroubleKind
    why: str
    bill: Bill = field(default_factory=Bill)
    at: datetime | None = None
    """When it ended; None: nobody recorded it."""
    unreached: Unreached | None = None
    """Of an endpoint that could not be reached."""
    too_long: bool = False
    """Whether a worker had it for all the time that one call may take."""


@dataclass(frozen=True)
class Prepared:
    briefing: Briefing

    @property
    def at(self) -> datetime | None:
        return self.briefing.span.ended if self.briefing.span else None


@dataclass(frozen=True)
class NotPrepared:
    """`prepare` refused the goal, or could not do its work: the run closes as failed."""

    why: str
    reason: StopReason = "unprepared"
    """Or, where the goal is at fault, how."""
    at: datetime | None = None


@dataclass(frozen=True)
class Started:
    """The executor carried out a move."""

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
    """A lens handed in a draft, or failed and said why."""

    move: Examine
    draft: Draft
    at: datetime | None = None


@dataclass(frozen=True)
class TeamEnded:
    """A team's run closed: with a report, or without one and a reason."""

    move: StartTeam
    report: Report | None
    why: str = ""
    unpaid: bool = False
    """Whether it ended before it could spend anything."""

    @property
    def at(self) -> datetime | None:
        return self.report.finished if self.report else None


@dataclass(frozen=True)
class AgentEnded:
    """A segment of an agent closed: with a report, or without one and why."""

    move: StartAgent
    report: AgentReport | None
    why: str = ""
    unpaid: bool = False
    """Whether it ended before it could spend anything."""

    @property
    def at(self) -> datetime | None:
        return self.report.finished if self.report else None


@dataclass(frozen=True)
class Steered:
    """A person gave an order, and its turn has come."""

    number: int
    """Tells two equal orders apart."""
    command: str
    order: Order
    at: datetime | None = None

    @property
    def name(self) -> str:
        """Of the timer that gives it its turn."""
        return f"order {self.number}: {self.command}"


@dataclass(frozen=True)
class NobodyCame:
    """A person's time ran out: for a subtask's question, or the run's (`approval`, `raise`)."""

    about: str
    at: datetime | None = None


@dataclass(frozen=True)
class CancelAsked:
    """Somebody asked the server to cancel the run."""

    by: str = ""
    """Whoever asked, as they named themselves; empty: they did not."""
    at: datetime | None = None

    @property
    def why(self) -> str:
        return f"the run was cancelled by {self.by}" if self.by else "the run was cancelled"


LONGEST_NAME = 100
"""Characters of who cancelled a run: anybody may write anything there."""


def cancel_event(by: str, at: datetime) -> CancelAsked:
    """A cancel of the run, taken in at this moment, which is recorded. `by` is what Temporal calls
    the reason of a cancel, where the starter puts a person's login name.
    """
    return CancelAsked(one_line(by[: 2 * LONGEST_NAME])[:LONGEST_NAME], at)


@dataclass(frozen=True)
class WasReset:
    """The run goes on from an earlier point of its history."""

    undone: Undone

    @property
    def at(self) -> datetime:
        return self.undone.at


@dataclass(frozen=True)
class TeamWaits:
    """A team does nothing but wait, or it goes on again."""

    word: Standstill

    @property
    def at(self) -> datetime:
        return self.word.at


@dataclass(frozen=True)
class Abandoned:
    """What was cut has not answered within the grace: it counts at its reservation."""

    ids: tuple[str, ...]
    at: datetime | None = None


@dataclass(frozen=True)
class TimePassed:
    """A part of a wait is over; what that means, `next_moves` reads from its moment."""

    at: datetime | None = None
    ids: tuple[str, ...] = ()
    """Of what was cut, whose grace is half over; empty: it was a part of the deadline."""


Event = (
    Prepared
    | NotPrepared
    | Started
    | Answered
    | Unanswered
    | Examined
    | TeamEnded
    | AgentEnded
    | Steered
    | NobodyCame
    | CancelAsked
    | WasReset
    | TeamWaits
    | Abandoned
    | TimePassed
)
