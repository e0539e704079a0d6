"""What the executor is told to do, and what can happen to a run: moves and events, plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.contracts import (
    Bill,
    Briefing,
    Call,
    Draft,
    Goal,
    Order,
    Plan,
    Reply,
    Report,
    Synthesis,
)
from orchestrator.ledger import Amount
from orchestrator.materials import Critique, Digest, Judgement, Patch, Refined, Review

StopReason = Literal["budget", "deadline", "cancelled", "endpoint", "declined"]
TroubleKind = Literal[
    "not_billed", "possibly_billed", "over_reservation", "refused", "stopping", "cancelled"
]


# ---------------------------------------------------------------- what the executor is told to do


@dataclass(frozen=True)
class Ask:
    """Schedule one model activity."""

    call: Call
    amount: Amount
    """What the ledger reserves for it."""
    keep: bool = True
    """Whether what is kept for the synthesis stays untouched by it."""


@dataclass(frozen=True)
class UseTool:
    """Schedule the tool of a role without a model."""

    id: str
    subtask_id: str
    tool: str


@dataclass(frozen=True)
class StartTeam:
    """Start a run of its own for the subtask of a role that is a team."""

    id: str
    subtask_id: str
    goal: Goal
    amount: Amount
    """Its slice: what the ledger reserves for it, and its whole cap."""


@dataclass(frozen=True)
class AskPerson:
    """Wait, durably, for a person to answer an escalation."""

    subtask_id: str
    question: str


@dataclass(frozen=True)
class AskRaise:
    """Wait, durably, for a person to raise the cap."""

    why: str


@dataclass(frozen=True)
class Stop:
    """No more work starts; what exists is synthesized."""

    reason: StopReason
    why: str


@dataclass(frozen=True)
class Cut:
    """Cancel these activities; each answers or counts at its reservation."""

    ids: tuple[str, ...]


Move = Ask | UseTool | StartTeam | AskPerson | AskRaise | Stop | Cut
Result = Plan | Draft | Synthesis | Review | Refined | Patch | Judgement | Digest | Critique
AnyReply = (
    Reply[Plan]
    | Reply[Draft]
    | Reply[Synthesis]
    | Reply[Review]
    | Reply[Refined]
    | Reply[Patch]
    | Reply[Judgement]
    | Reply[Digest]
    | Reply[Critique]
)


# ---------------------------------------------------------------- what can happen


@dataclass(frozen=True)
class Trouble:
    """An activity that ended without a result: what is known of it."""

    kind: TroubleKind
    message: str
    bill: Bill = field(default_factory=Bill)


@dataclass(frozen=True)
class Prepared:
    briefing: Briefing


@dataclass(frozen=True)
class Started:
    """The executor carried out a move."""

    move: Move


@dataclass(frozen=True)
class Answered:
    """A model activity returned."""

    call: Call
    reply: AnyReply


@dataclass(frozen=True)
class Unanswered:
    """A model activity ended without a result."""

    call: Call
    trouble: Trouble


@dataclass(frozen=True)
class ToolEnded:
    """A tool returned a draft, or failed with a reason."""

    move: UseTool
    draft: Draft


@dataclass(frozen=True)
class TeamEnded:
    """A team's run closed: with a report, or without one and a reason."""

    move: StartTeam
    report: Report | None
    why: str = ""
    refused: bool = False
    """Whether it was refused before it could spend anything."""


@dataclass(frozen=True)
class Steered:
    """A person gave an order that was not refused."""

    number: int
    """Tells two equal orders apart."""
    command: str
    order: Order


@dataclass(frozen=True)
class NobodyCame:
    """The time for a person ran out: of a subtask's question, or of the run's (`approval`,
    `raise`).
    """

    about: str


@dataclass(frozen=True)
class CancelAsked:
    why: str = "the run was cancelled"


@dataclass(frozen=True)
class Abandoned:
    """What was cut has not answered within the grace: it counts at its reservation."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class DeadlineReached:
    """The deadline timer fired; what that means, `next_moves` reads from the clock."""


Event = (
    Prepared
    | Started
    | Answered
    | Unanswered
    | ToolEnded
    | TeamEnded
    | Steered
    | NobodyCame
    | CancelAsked
    | Abandoned
    | DeadlineReached
)
