"""The parts that the state of a run is made of: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from holdfast.calls.critique import Issue
from holdfast.calls.judge import Judgement
from holdfast.calls.turn import Decision, Resume, ToolUse
from holdfast.calls.verify import Verdicts
from holdfast.contracts import (
    Bill,
    Draft,
    Finding,
    MadeFile,
    NoAnswer,
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
from holdfast.contracts.policies import Options
from holdfast.ledger.ledger import Amount
from holdfast.state.moves import Flying

Stage = Literal["work", "review", "refine", "person", "approval"]
"""The last two wait for a person: for an answer, or until each call of a tool is decided on."""


@dataclass(frozen=True)
class CallAsked:
    """A call of a tool that a person is asked to approve."""

    number: int
    """Of all such calls of the run, from 1: no other one ever has it."""
    use: ToolUse
    decision: Decision | None = None

    @property
    def said(self) -> str:
        """The call as the person is shown it."""
        return f"{self.use.name} {self.use.shown}"


@dataclass(frozen=True)
class Progress:
    """How far one subtask is."""

    subtask: Subtask
    tier: RoleTier
    """Of the next or current try, as it is due; `called`: as the money allowed it."""
    called: RoleTier = "none"
    stage: Stage = "work"
    """What its next or current activity is for."""
    tries: tuple[Try, ...] = ()
    unanswered: tuple[NoAnswer, ...] = ()
    why: str = ""
    """Why the last try was not accepted, or what a person answered."""
    partial: str = ""
    """What a try had found that used up its turns or its time."""
    flight: str = ""
    """The id of the activity in flight."""
    answers: tuple[str, ...] = ()
    """What people answered it: sources of its finding."""
    asked: datetime | None = None
    """When a person was asked, or could have been."""
    calls: tuple[CallAsked, ...] = ()
    """Of its agent's last message, those that a person is or was asked to approve."""
    calls_since: datetime | None = None
    """When the person was asked about them."""
    ending: str = ""
    """Why a person ended it while its activity was in flight."""
    former: tuple[str, ...] = ()
    """Roles that have had it before: none gets it again."""
    relieved: bool = False
    """Whether the present role has it for one last try, after all of those before."""
    resume: Resume = field(default_factory=Resume)
    """Where an agent with tools goes on."""
    turns: int = 0
    """Of an agent with tools, in all its tries."""
    tool_calls: int = 0
    failed_calls: int = 0
    files: tuple[MadeFile, ...] = ()
    """That the agent of its present try, or a team, has made."""
    unread: tuple[str, ...] = ()
    """Inputs that the agent of its present try is to read with tools, and has not opened yet."""
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
        """Whether it has ended with nothing that others can build on."""
        return self.finding is not None and not passes_on(self.finding)

    @property
    def waits(self) -> bool:
        """Whether it goes on only when a person has said something."""
        return self.finding is None and self.stage in ("person", "approval")

    @property
    def waits_since(self) -> datetime | None:
        """Since when, for the time that a person has; None: nobody was asked."""
        if not self.waits:
            return None
        return self.asked if self.stage == "person" else self.calls_since


@dataclass(frozen=True)
class Went:
    """One call of a role's that came back, or one segment of its agent."""

    lost: float = 0.0
    """Seconds that brought nothing: in the queue, or all of them where no answer came."""
    worked: float = 0.0
    failed: bool = False
    """Whether it brought no answer."""


@dataclass(frozen=True)
class Flight:
    """One activity in flight."""

    move: Flying
    started: datetime
    options: Options | None = None
    """Timeouts and retries of its activity; None: a run of its own has none."""
    cut: int = 0
    """The number of the cut that it waits to come back from; 0: it was not cut."""
    cut_at: datetime | None = None
    half_over: bool = False
    """Whether the first half of the grace has passed, and a worker has taken note of it."""
    held: bool = False
    """Of an agent's segment: whether it was told that the run is paused."""

    @property
    def timeouts(self) -> Options:
        """Of what is carried out by an activity."""
        assert self.options is not None, "a run of its own has no timeouts"
        return self.options


@dataclass(frozen=True)
class Outage:
    """The endpoint cannot be reached, or loses calls: nothing is asked until it answers again."""

    since: datetime
    unreached: Unreached
    tier: Tier
    """Of the call that met it: whoever serves it knows the endpoint."""
    stage: Literal["looking", "asking", "found"] = "looking"
    """Whether somebody is looked for, at no cost; or found, and asked for a few tokens, because
    calls were lost; or found, and no call that was due has been answered yet.
    """
    number: int = 1
    """How many times in a row; the pause before the next look at the endpoint grows with it."""
    found: datetime | None = None
    """When it was found last."""
    before: float = 0.0
    """Seconds for which it was lost the times before: they count towards the limit, too."""
    loses: bool = False
    """Whether calls were lost, so that a look that finds somebody proves nothing."""
    sure: bool = False
    """Whether a look or a small call has failed since: the calls lost in it were not at fault."""
    lost: tuple[str, ...] = ()
    """The purposes of these calls."""
    price: Amount = field(default_factory=Amount)
    """What a small call costs at worst."""


@dataclass(frozen=True)
class Setback:
    """A subtask that ended badly and that the rest of the plan needs: a reason to replan."""

    subtask_id: str
    why: str


@dataclass(frozen=True)
class Replanning:
    """How the plan has been changed, and whether it is to be changed now."""

    count: int = 0
    """Calls made, raised before each one."""
    setbacks: tuple[Setback, ...] = ()
    """What waits to be dealt with."""
    covered: int = 0
    """How many of the setbacks the call in flight deals with."""
    errors: tuple[str, ...] = ()
    revisions: tuple[Revision, ...] = ()
    used_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finishing:
    """How far the answer is."""

    synthesis: Synthesis | None = None
    by_template: bool = False
    """Whether no model may write the synthesis any more."""
    unformed: Synthesis | None = None
    """The last complete answer that is not in its form: it is given as text if it is not mended."""
    unwritten: str = ""
    """Why the answer could not be written as it was to be; empty: it was, or nobody tried."""
    given_up: tuple[str, ...] = ()
    """Purposes of optional calls that will not be asked again."""
    to_verify: tuple[Remark, ...] = ()
    """The first remarks of a review by rank, for a model to verify."""
    verified: Mapping[int, Verdicts] = field(default_factory=dict)
    """What was said of them, by the place of their batch."""
    rolled: tuple[Finding, ...] = ()
    """Digests of batches of findings, when the findings do not fit into one context."""
    rolling: Mapping[int, Finding] = field(default_factory=dict)
    """Batches of the current round that are done, by their place."""
    round: int = 0
    cut: tuple[str, ...] = ()
    """Whose findings a model was shown the beginning of only."""
    judgement: Judgement | None = None
    """Which of several attempts at one question is best."""
    conflicts: tuple[str, ...] = ()
    """The synthesis's conflicts that were judged, with the verdict."""
    issues: tuple[Issue, ...] | None = None
    """What the critic found; None: not asked yet."""
    revised: bool = False


def passes_on(finding: Finding) -> bool:
    """Whether dependents run on this finding: it is complete, or escalated with a partial."""
    return bool(partial_of(finding)) or finding.status == "complete"


def partial_of(finding: Finding) -> str:
    """What a finding hands on: the content of a complete one, the partial of an escalation."""
    if finding.status == "complete":
        return finding.content
    escalated = finding.status == "escalated" and finding.escalation is not None
    return finding.escalation.partial if escalated and finding.escalation else ""
