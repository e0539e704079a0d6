"""What the executor is told to do next: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.calls.turn import AgentGoal
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, Contract, Goal, Standstill
from holdfast.ledger.ledger import Amount

StopReason = Literal[
    "budget",
    "allowance",
    "deadline",
    "cancelled",
    "endpoint",
    "no json",
    "declined",
    "refused",
    "small cap",
    "unprepared",
]


@dataclass(frozen=True)
class Prepare:
    """Schedule `prepare`, the first activity of every run."""

    id: str = "prepare"
    purpose: str = "prepare"
    subtask_id: str = ""


@dataclass(frozen=True)
class Ask:
    """Schedule one model activity."""

    call: Call
    material: Contract
    """What it works from."""
    amount: Amount
    """What the ledger reserves for it."""
    keep: bool = True
    """Whether what is kept for the synthesis stays untouched by it."""
    subject: str = ""
    """The subtask whose finding it is about, where it is no call for that subtask."""
    place: int | None = None
    """Which batch or contradiction it is about, counted from 0; None: it is about none."""

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def purpose(self) -> str:
        return self.call.purpose

    @property
    def subtask_id(self) -> str:
        return self.call.subtask_id


@dataclass(frozen=True)
class Examine:
    """Schedule the lens of a role without a model."""

    subtask_id: str
    number: int
    material: WorkMaterial

    @property
    def purpose(self) -> str:
        return f"examine-{self.subtask_id}"

    @property
    def id(self) -> str:
        return f"{self.purpose}-{self.number}"


@dataclass(frozen=True)
class StartTeam:
    """Start a run of its own for the subtask of a role that is a team."""

    subtask_id: str
    number: int
    goal: Goal
    amount: Amount
    """Its slice: what the ledger reserves for it, and its whole cap."""

    @property
    def purpose(self) -> str:
        return f"team-{self.subtask_id}"

    @property
    def id(self) -> str:
        return f"{self.purpose}-{self.number}"

    def run_of(self, parent: str) -> str:
        """The workflow id of the team's run."""
        return f"{parent}.{self.subtask_id}.{self.number}"


@dataclass(frozen=True)
class StartAgent:
    """Start the next segment of an agent with tools."""

    subtask_id: str
    number: int
    goal: AgentGoal
    amount: Amount
    """Its slice: what the ledger reserves for it, and its whole cap."""

    @property
    def purpose(self) -> str:
        return f"agent-{self.subtask_id}"

    @property
    def id(self) -> str:
        return f"{self.purpose}-{self.number}"

    def run_of(self, parent: str) -> str:
        """The workflow id of the segment."""
        return f"{parent}.{self.subtask_id}.{self.number}"


@dataclass(frozen=True)
class AskPerson:
    """Wait, durably, for a person to answer an escalation."""

    subtask_id: str
    question: str


@dataclass(frozen=True)
class AskRaise:
    """Wait, durably, for a person to raise the cap."""

    why: str
    short_of: tuple[str, ...] = ()
    """The limits that are too small."""


@dataclass(frozen=True)
class PassOver:
    """Give a subtask that has not begun to its second role."""

    subtask_id: str
    why: str


@dataclass(frozen=True)
class Stop:
    """No more work starts; what exists is synthesized."""

    reason: StopReason
    why: str
    short_of: tuple[str, ...] = ()
    """The limits that ran out, where it is known which."""


@dataclass(frozen=True)
class Cut:
    """Cancel these activities; each answers or counts at its reservation."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Hold:
    """Tell these agents to start nothing more: each hands back where it stands, and goes on from
    there when the run does.
    """

    ids: tuple[str, ...]


@dataclass(frozen=True)
class TellAbove:
    """Tell the run above, if there is one, that this team waits, or that it goes on."""

    word: Standstill


Flying = Prepare | Ask | Examine | StartTeam | StartAgent
"""What is in flight until it returns."""


Move = Flying | AskPerson | AskRaise | PassOver | Stop | Cut | Hold | TellAbove
