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
from holdfast.state.events import CutAsked, HoldAsked, Trouble


@dataclass(frozen=True)
class TakeTurn:
    call: Call
    material: Material
    amount: Amount

    @property
    def id(self) -> str:
        return self.call.id


@dataclass(frozen=True)
class UseTool:
    use: ToolUse
    turn: int
    place: int
    """The place of the call in its turn, from 1."""
    approved: bool = False

    @property
    def id(self) -> str:
        """Activity id: from the place of the call in the run, not from the model."""
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
    """A call of a tool ended without a result."""

    move: UseTool
    why: str
    at: datetime | None = None
    unsent: bool = False
    """True if it was cut before any worker was given it: then it surely did not run."""


Event = TurnEnded | TurnLost | ToolEnded | ToolLost | CutAsked | HoldAsked


@dataclass(frozen=True)
class Flight:
    move: Flying
    started: datetime
    options: Options


@dataclass(frozen=True)
class AgentState:
    goal: AgentGoal
    now: datetime
    """The latest recorded moment."""
    ledger: Ledger
    resume: Resume
    uses: tuple[ToolUse, ...] = ()
    """Calls of the last turn whose results are not in the transcript yet."""
    results: Mapping[int, ToolResult] = field(default_factory=dict)
    """Results of the calls so far, by place, from 1."""
    approved: tuple[int, ...] = ()
    """The places of those that a person has approved."""
    flights: Mapping[str, Flight] = field(default_factory=dict)
    unpaid_calls: int = 0
    anew: bool = False
    """True if anything was paid that had not been paid before the run above was reset."""
    notes: tuple[str, ...] = ()
    """Notes on its bills."""
    served: str = ""
    """The model that the endpoint named with its last answer."""
    held: bool = False
    """True if it is to start nothing more, and go on later."""
    may_have_run: tuple[ToolUse, ...] = ()
    """Calls of tools with effects of which nobody knows whether they ran."""
    unanswered: tuple[NoAnswer, ...] = ()
    unasked: tuple[str, ...] = ()
    """Tools of calls that were not made because nobody could be asked, once per call."""
    repeated: tuple[str, ...] = ()
    """Tools of calls that were not made because their result was known, once per call."""
    cut: str = ""
    """Reason to end the agent; empty while there is none."""
    cut_at: datetime | None = None
    ending: AgentReport | None = None
