"""What the executor is to do next: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Generic, Literal, TypeVar

from holdfast.calls.rows import MapGoal
from holdfast.calls.turn import AgentGoal
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, Contract, Goal, Standstill
from holdfast.contracts.notices import Notice
from holdfast.ledger.ledger import Amount

Told = TypeVar("Told")
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
    kind: ClassVar[str] = "prepare"
    tier: ClassVar[str] = ""
    id: str = "prepare"
    purpose: str = "prepare"
    subtask_id: str = ""


@dataclass(frozen=True)
class Ask:
    call: Call
    material: Contract
    amount: Amount
    keep: bool = True
    """True if it may not touch what is kept for the synthesis."""
    subject: str = ""
    """The subtask whose finding it is about, where it is not a call for that subtask."""
    place: int | None = None
    """The batch or contradiction that it is about, counted from 0."""

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def purpose(self) -> str:
        return self.call.purpose

    @property
    def subtask_id(self) -> str:
        return self.call.subtask_id

    @property
    def kind(self) -> str:
        return self.call.kind

    @property
    def tier(self) -> str:
        """Return the tier of the model that is asked; empty: none is."""
        return self.call.tier if self.call.model else ""


@dataclass(frozen=True)
class _ForSubtask:
    """What is scheduled for a subtask, with an id that comes from it: `examine-t3-1`."""

    kind: ClassVar[str]
    subtask_id: str
    number: int

    @property
    def tier(self) -> str:
        """Return the tier of the model that is asked; empty: none is, or a team asks its own."""
        return ""

    @property
    def purpose(self) -> str:
        return f"{self.kind}-{self.subtask_id}"

    @property
    def id(self) -> str:
        return f"{self.purpose}-{self.number}"


@dataclass(frozen=True)
class Examine(_ForSubtask):
    """Schedule the lens of a role without a model."""

    kind = "examine"
    material: WorkMaterial


@dataclass(frozen=True)
class _StartBelow(_ForSubtask, Generic[Told]):
    """Start a workflow below this run."""

    goal: Told
    amount: Amount
    """Slice that the ledger reserves for it: its whole cap."""

    def run_of(self, parent: str) -> str:
        """Return its workflow id."""
        return f"{parent}.{self.subtask_id}.{self.number}"


class StartTeam(_StartBelow[Goal]):
    """Start a run of its own for the subtask of a role that is a team."""

    kind = "team"


class StartAgent(_StartBelow[AgentGoal]):
    """Start the next segment of an agent with tools."""

    kind = "agent"

    @property
    def tier(self) -> str:
        return self.goal.model.tier


class StartMap(_StartBelow[MapGoal]):
    """Start the next segment of a subtask that is done once for each item of an input."""

    kind = "map"

    @property
    def tier(self) -> str:
        return self.goal.models[0].tier


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
    least: Decimal | None = None
    """The least cap in dollars under which it goes on, where known."""


@dataclass(frozen=True)
class PassOver:
    """Give a subtask that has not begun to its second role."""

    subtask_id: str
    why: str


@dataclass(frozen=True)
class Stop:
    """Start no more work; synthesize what exists."""

    reason: StopReason
    why: str
    short_of: tuple[str, ...] = ()
    """The limits that ran out, where known."""
    least: Decimal | None = None
    """The least cap in dollars under which it would have gone on, where known."""


@dataclass(frozen=True)
class Cut:
    """Cancel these activities: each answers, or counts at its reservation."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Hold:
    """Tell these agents and maps to start nothing more, and to report where they stand."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class TellAbove:
    """Tell the run above, if there is one, that this team waits or goes on."""

    word: Standstill


@dataclass(frozen=True)
class Notify:
    """Tell addresses of the web what has happened, by a workflow that outlives this one."""

    notice: Notice

    @property
    def workflow_id(self) -> str:
        return f"{self.notice.run_id}.notice-{self.notice.id.removeprefix('msg_')[:12]}"


Flying = Prepare | Ask | Examine | StartTeam | StartAgent | StartMap
"""Everything that is in flight until it returns."""


Move = Flying | AskPerson | AskRaise | PassOver | Stop | Cut | Hold | TellAbove | Notify
