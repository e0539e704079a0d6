"""The parts of a run's state: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from holdfast.calls.critique import Issue
from holdfast.calls.fix import Edit
from holdfast.calls.judge import Judgement
from holdfast.calls.prove import Script, Tried
from holdfast.calls.rows import MapResume, MapTable, RowOrder
from holdfast.calls.turn import Decision, Resume, ToolUse
from holdfast.contracts import (
    Bill,
    Draft,
    Finding,
    FindingStatus,
    Fix,
    MadeFile,
    NoAnswer,
    Plan,
    Remark,
    Revision,
    RoleTier,
    Subtask,
    Synthesis,
    Tier,
    Try,
    Unreached,
    Usage,
)
from holdfast.contracts.notices import Notice
from holdfast.contracts.policies import Options
from holdfast.ledger.ledger import Amount
from holdfast.state.choices import Choice
from holdfast.state.moves import Ask, Flying, StartAgent

Stage = Literal["work", "review", "refine", "person", "approval", "decision"]
"""The last three wait for a person: for an answer, for a decision on each call of a tool, or on
what becomes of the subtask.
"""


@dataclass(frozen=True)
class CallAsked:
    """A call of a tool that a person is asked to approve."""

    number: int
    """Unique within the run, from 1."""
    use: ToolUse
    decision: Decision | None = None

    @property
    def text(self) -> str:
        return f"{self.use.name} {self.use.shown}"


@dataclass(frozen=True)
class Mapped:
    """How a map stands between two segments."""

    resume: MapResume = field(default_factory=MapResume)
    orders: tuple[RowOrder, ...] = ()
    """What people decided about its rows, and no segment has carried out yet."""
    tolerated: bool = False
    """True if a person lets it go on although more rows fail than it tolerates."""
    needs: Amount = field(default_factory=Amount)
    """The worst case of its next rows, where they could not be paid."""
    table: MapTable | None = None
    """What stands of its rows, once it has ended."""
    text: str = ""


@dataclass(frozen=True)
class Progress:
    subtask: Subtask
    tier: RoleTier
    """Tier that the next or current try is due on; `called` is the one that the money allowed."""
    called: RoleTier = "none"
    stage: Stage = "work"
    tries: tuple[Try, ...] = ()
    unanswered: tuple[NoAnswer, ...] = ()
    why: str = ""
    """Why the last try was not accepted, or what a person answered."""
    partial: str = ""
    """What a try found that ran out of turns or time."""
    flight: str = ""
    answers: tuple[str, ...] = ()
    """Answers of people, which are sources of its finding."""
    asked: datetime | None = None
    """When a person was asked, or would have been."""
    calls: tuple[CallAsked, ...] = ()
    """Calls of its agent's last message that need a person's approval."""
    calls_since: datetime | None = None
    """When the person was asked about them."""
    outcome: FindingStatus = "failed"
    """What it ends as, for its `why`, unless a person decides otherwise: while one is asked."""
    ending: str = ""
    """Why a person ended it while its activity was in flight."""
    former: tuple[str, ...] = ()
    """Roles that had it before; none gets it again."""
    relieved: bool = False
    """True if the present role has it for one last try."""
    resume: Resume = field(default_factory=Resume)
    mapped: Mapped = field(default_factory=Mapped)
    turns: int = 0
    tool_calls: int = 0
    failed_calls: int = 0
    files: tuple[MadeFile, ...] = ()
    """Files that the agent of the present try, or a team, has made."""
    unread: tuple[str, ...] = ()
    """Inputs that the agent of the present try should read with tools and has not opened."""
    last: Draft | None = None
    finding: Finding | None = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    paid: Bill = field(default_factory=Bill)
    started: datetime | None = None
    waited_at_start: float = 0.0
    """Seconds that the run had waited when it started."""

    @property
    def lost(self) -> bool:
        """True if it has ended with nothing that others can build on."""
        return self.finding is not None and not passes_on(self.finding)

    @property
    def waits(self) -> bool:
        """True if it goes on only after a person has acted."""
        return self.finding is None and self.stage in ("person", "approval", "decision")

    @property
    def undecided(self) -> bool:
        """True if a person is asked what becomes of it."""
        return self.finding is None and self.stage == "decision"

    @property
    def waits_since(self) -> datetime | None:
        """Since when a person is asked; None if nobody is."""
        if not self.waits:
            return None
        return self.calls_since if self.stage == "approval" else self.asked


@dataclass(frozen=True)
class Went:
    """How one call of a role, or one segment of its agent, went."""

    lost: float = 0.0
    """Seconds without effect: in the queue, or all of them where no answer came."""
    worked: float = 0.0
    failed: bool = False
    """True if it brought no answer."""


@dataclass(frozen=True)
class Flight:
    move: Flying
    started: datetime
    options: Options | None = None
    """Timeouts and retries of its activity; None for a workflow below."""
    cut: int = 0
    """The number of the cut that it has to answer; 0: it was not cut."""
    cut_at: datetime | None = None
    half_over: bool = False
    """True once half of the grace has passed and a worker has seen it."""
    held: bool = False
    """True if the agent's segment was told that the run is paused."""

    @property
    def timeouts(self) -> Options:
        """Options of a flight that is an activity."""
        assert self.options is not None, "a run of its own has no timeouts"
        return self.options


@dataclass(frozen=True)
class Outage:
    """The endpoint cannot be reached, or loses calls: nothing is asked until it answers again."""

    since: datetime
    unreached: Unreached
    tier: Tier
    """Tier of the call that met it: a worker that serves this tier knows the endpoint."""
    stage: Literal["looking", "asking", "found"] = "looking"
    """`looking`: for free, whether somebody is there. `asking`: with a small call, because calls
    were lost. `found`: somebody is there, and no call that was due has been answered yet.
    """
    number: int = 1
    """How many times in a row; the pause before the next look grows with it."""
    found: datetime | None = None
    before: float = 0.0
    """Seconds of the outages before, which count towards the limit."""
    loses: bool = False
    """True if calls were lost, so that finding somebody proves nothing."""
    sure: bool = False
    """True if a look or a small call has failed since: the lost calls were not at fault."""
    lost: tuple[str, ...] = ()
    """Purposes of the lost calls."""
    price: Amount = field(default_factory=Amount)


@dataclass(frozen=True)
class Setback:
    """A subtask that ended badly and that the rest of the plan needs: a reason to replan."""

    subtask_id: str
    why: str


@dataclass(frozen=True)
class Replanning:
    """How the plan has been changed, and whether it has to be changed now."""

    count: int = 0
    """Calls made, raised before each one."""
    setbacks: tuple[Setback, ...] = ()
    covered: int = 0
    """How many of the setbacks the call in flight deals with."""
    errors: tuple[str, ...] = ()
    refused: str = ""
    """The last changes, as far as they may be shown, if those have these errors."""
    revisions: tuple[Revision, ...] = ()
    used_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finishing:
    synthesis: Synthesis | None = None
    by_template: bool = False
    """True if no model may write the synthesis any more."""
    unformed: Synthesis | None = None
    """The last complete answer that is not in its form: used as text if it is not mended."""
    unwritten: str = ""
    """Why a model could not write the answer; empty if one did, or was not to."""
    given_up: tuple[str, ...] = ()
    """Purposes of optional calls that will not be asked again."""
    to_verify: Mapping[str, tuple[Remark, ...]] = field(default_factory=dict)
    """The first remarks of a review by rank, by the subtask whose agent verifies them."""
    proofs: Mapping[str, Script | Tried | Edit | Fix] = field(default_factory=dict)
    """What a model wrote to prove or to mend a remark, and how it ended, by the purpose of the
    call.
    """
    rolled: tuple[Finding, ...] = ()
    """Digests of batches of findings, when the findings do not fit into one context."""
    rolling: Mapping[int, Finding] = field(default_factory=dict)
    """Finished batches of the current round, by place."""
    round: int = 0
    cut: tuple[str, ...] = ()
    """Subtasks of whose findings a model read only the beginning."""
    chosen: Mapping[Choice, Judgement] = field(default_factory=dict)
    """Which of several attempts at one question is best."""
    conflicts: tuple[str, ...] = ()
    """Contradictions of the synthesis that were judged, with the verdict."""
    issues: tuple[Issue, ...] | None = None
    """What the critic found; None: not asked yet."""
    revised: bool = False


@dataclass(frozen=True)
class Early:
    """Subtasks that were started while the rest of their plan was being written."""

    call: str = ""
    """The planner's call that is writing it."""
    plan: Plan | None = None
    """What stands of it; None: it is whole, or nothing stands yet."""
    begun: Mapping[str, Ask | StartAgent] = field(default_factory=dict)
    """What was started, by subtask, until the plan is whole."""
    kept: int = 0
    """Subtasks that went on as the plan has them."""
    taken: tuple[str, ...] = ()
    """Subtasks that were taken back."""
    titles: tuple[str, ...] = ()
    """Their ids with their titles: another one may have the id."""
    moves: tuple[str, ...] = ()
    """The calls and agents that these had, also those that had ended."""
    why: str = ""
    """Why the plan has them otherwise."""
    back: tuple[str, ...] = ()
    """Flights that were taken back and have not landed."""
    dollars: Decimal = Decimal(0)
    """What was paid for what was taken back."""


@dataclass(frozen=True)
class Noticed:
    """A notice that was sent off."""

    notice: Notice
    failures: tuple[str, ...] = ()
    """Why it was not delivered, once it was given up."""


def passes_on(finding: Finding) -> bool:
    """True if dependents can run on this finding: it is complete, or escalated with a partial."""
    return bool(partial_of(finding)) or finding.status == "complete"


def partial_of(finding: Finding) -> str:
    """Return a complete finding's content, or an escalated one's partial."""
    if finding.status == "complete":
        return finding.content
    escalated = finding.status == "escalated" and finding.escalation is not None
    return finding.escalation.partial if escalated and finding.escalation else ""
