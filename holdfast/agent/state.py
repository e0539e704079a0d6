"""The state of one segment of an agent, its moves and its events: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.calls.turn import AgentGoal, AgentReport, Resume, ToolResult, ToolUse, Turn
from holdfast.calls.turn import TurnMaterial as Material
from holdfast.contracts import Call, NoAnswer, Reply
from holdfast.contracts.policies import Options
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.state.events import Trouble, cancel_event


@dataclass(frozen=True)
class TakeTurn:
    """Schedule one exchange with the model."""

    call: Call
    material: Material
    amount: Amount

    @property
    def id(self) -> str:
        return self.call.id


@dataclass(frozen=True)
class UseTool:
    """Schedule one call of a tool."""

    use: ToolUse
    turn: int
    place: int
    """Which of the calls of its turn it is, from 1."""
    approved: bool = False
    """Whether a person has approved it."""

    @property
    def id(self) -> str:
        """The activity id: it comes from the place of the call in the run, not from the model."""
        return f"tool-{self.turn}-{self.place}"


@dataclass(frozen=True)
class End:
    """The segment is over."""

    report: AgentReport


Flying = TakeTurn | UseTool
Move = Flying | End


@dataclass(frozen=True)
class TurnEnded:
    """A turn brought something, or what is wrong with it."""

    move: TakeTurn
    reply: Reply[Turn]

    @property
    def at(self) -> datetime | None:
        return self.reply.span.ended if self.reply.span else None


@dataclass(frozen=True)
class TurnLost:
    """A turn ended without a result."""

    move: TakeTurn
    trouble: Trouble

    @property
    def at(self) -> datetime | None:
        return self.trouble.at


@dataclass(frozen=True)
class ToolEnded:
    """A call of a tool is over; its result may be an error."""

    move: UseTool
    result: ToolResult

    @property
    def at(self) -> datetime | None:
        return self.result.span.ended if self.result.span else None


@dataclass(frozen=True)
class ToolLost:
    """A call of a tool ended without a result that could be kept."""

    move: UseTool
    why: str
    at: datetime | None = None
    unsent: bool = False
    """Whether it was cut before any worker was given it: then it surely did not run."""


@dataclass(frozen=True)
class CutAsked:
    """No more of it is wanted."""

    why: str
    at: datetime


def cut_event(by: str, at: datetime) -> CutAsked:
    """A cancel of the segment, taken in at this recorded moment. `by` is what Temporal calls its
    reason: who asked, or nothing where the run above did, which says itself why.
    """
    who = cancel_event(by, at).by
    return CutAsked(f"cancelled by {who}" if who else "cut by the run above", at)


@dataclass(frozen=True)
class HoldAsked:
    """The run above is paused: the segment ends once what flies has landed, and another one goes on
    when the run does.
    """

    at: None = None


Event = TurnEnded | TurnLost | ToolEnded | ToolLost | CutAsked | HoldAsked


@dataclass(frozen=True)
class Flight:
    """One activity in flight."""

    move: Flying
    started: datetime
    options: Options


@dataclass(frozen=True)
class AgentState:
    """Everything that a segment knows."""

    goal: AgentGoal
    now: datetime
    """The latest recorded moment."""
    ledger: Ledger
    resume: Resume
    uses: tuple[ToolUse, ...] = ()
    """Of the last turn, those whose results are not in the transcript yet."""
    results: Mapping[int, ToolResult] = field(default_factory=dict)
    """Of these, what has come back, by the place of the call, from 1."""
    approved: tuple[int, ...] = ()
    """Of these, the places of those that a person has approved."""
    flights: Mapping[str, Flight] = field(default_factory=dict)
    unpaid_calls: int = 0
    anew: bool = False
    """Whether anything was paid that had not been before the run above was reset."""
    notes: tuple[str, ...] = ()
    """What is to be known of its bills."""
    served: str = ""
    """The model that the endpoint named with its last answer."""
    held: bool = False
    """Whether it is to start nothing more, so that it can go on later."""
    may_have_run: tuple[ToolUse, ...] = ()
    """Calls of tools with effects of which nobody knows whether they ran."""
    unanswered: tuple[NoAnswer, ...] = ()
    """Turns that brought no answer, with what each counts at."""
    unasked: tuple[str, ...] = ()
    """The tools of calls that were not made because nobody could be asked, one for each call."""
    cut: str = ""
    """Why no more is wanted of it."""
    cut_at: datetime | None = None
    ending: AgentReport | None = None
    """How it ends, once nothing is in flight."""
