"""The state of a run and what can happen to it: plain values. `reducer.apply` is the only way it
changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from orchestrator import policies
from orchestrator.contracts import (
    Bill,
    Briefing,
    Draft,
    Finding,
    Goal,
    Plan,
    Problem,
    Revision,
    RoleTier,
    Subtask,
    Synthesis,
    Try,
    Usage,
)
from orchestrator.events import Ask, StartTeam, Stop, StopReason, UseTool
from orchestrator.ledger import Amount, Ledger
from orchestrator.materials import Issue, Judgement
from orchestrator.view import Phase, Preview

Stage = Literal["work", "review", "refine", "person"]


# ---------------------------------------------------------------- what a run is


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
    reason: str = ""
    """Why the last try was not accepted, or what a person answered."""
    doubled: bool = False
    """Whether the current try has its output cap doubled after a truncated answer."""
    flight: str = ""
    """The id of the activity in flight."""
    asked: bool = False
    """Whether a person is being asked, or has been."""
    ending: str = ""
    """Why a person ended it while its activity was in flight."""
    last: Draft | None = None
    finding: Finding | None = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    paid: Bill = field(default_factory=Bill)
    started: datetime | None = None


@dataclass(frozen=True)
class Flight:
    """One activity in flight."""

    move: Ask | UseTool | StartTeam
    started: datetime
    cut: bool = False


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
    given_up: tuple[str, ...] = ()
    """Purposes of optional calls that will not be asked again."""
    rolled: tuple[Finding, ...] = ()
    """Digests of batches of findings, when the findings do not fit into one context."""
    rolling: Mapping[str, Finding] = field(default_factory=dict)
    """Batches of the current round that are done, by their place."""
    round: int = 0
    judgement: Judgement | None = None
    """Which of several attempts at one question is best."""
    conflicts: tuple[str, ...] = ()
    """The synthesis's conflicts that were judged, with the verdict."""
    issues: tuple[Issue, ...] | None = None
    """What the critic found; None: not asked yet."""
    revised: bool = False


@dataclass(frozen=True)
class State:
    """Everything the supervisor knows."""

    run_id: str
    goal: Goal
    started: datetime
    ledger: Ledger
    phase: Phase = "preparing"
    briefing: Briefing | None = None
    plan: Plan | None = None
    plan_errors: tuple[str, ...] = ()
    plan_tries: int = 0
    work: Mapping[str, Progress] = field(default_factory=dict)
    """By subtask id, in plan order."""
    flights: Mapping[str, Flight] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    """How many activities each purpose (`work-t3`) has had: the next id's number."""
    transport: Mapping[str, int] = field(default_factory=dict)
    """How many calls of a purpose ended without an answer since its last answer."""
    needed: Mapping[str, Amount] = field(default_factory=dict)
    """By purpose and tier, what the worker said a call needs when it refused its reservation."""
    broken: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    """Malformed answers by purpose, to be mended."""
    replanning: Replanning = field(default_factory=Replanning)
    finishing: Finishing = field(default_factory=Finishing)
    first_paid: datetime | None = None
    waited: float = 0.0
    """Seconds in which nothing but a person kept the run: the deadline stood still."""
    waiting_since: datetime | None = None
    estimate: Preview | None = None
    """What the plan was expected to cost and take, before it ran."""
    paused: bool = False
    short: str = ""
    """Why the run waits for a higher cap."""
    stop: Stop | None = None
    notes: tuple[str, ...] = ()
    finished: datetime | None = None

    @property
    def brief(self) -> Briefing:
        """The Briefing, once `prepare` has returned."""
        assert self.briefing is not None, "no Briefing before prepare has returned"
        return self.briefing

    def settled(self, subtask_id: str) -> bool:
        return self.work[subtask_id].finding is not None

    @property
    def all_settled(self) -> bool:
        return all(progress.finding is not None for progress in self.work.values())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of the settled subtasks, in plan order."""
        return tuple(each.finding for each in self.work.values() if each.finding is not None)

    @property
    def usable(self) -> tuple[Finding, ...]:
        """Findings an answer can be made of: complete ones, and escalations with a partial."""
        return tuple(finding for finding in self.findings if passes_on(finding))

    @property
    def work_deadline(self) -> datetime | None:
        """When work is cut so that the synthesis still fits. None: the clock does not run, because
        nothing was paid yet or the run waits for a person.
        """
        total = self.goal.limits.deadline_seconds
        kept = max(total * policies.SYNTHESIS_SHARE, policies.MIN_SYNTHESIS_SECONDS)
        return self._after(total - min(kept, total / 2))

    @property
    def deadline(self) -> datetime | None:
        """When the synthesis is cut, too, and a template answers. None as above."""
        return self._after(self.goal.limits.deadline_seconds)

    def _after(self, seconds: float) -> datetime | None:
        if self.first_paid is None or self.waiting_since is not None:
            return None
        return self.first_paid + timedelta(seconds=seconds + self.waited)

    def stopped_by(self, *reasons: StopReason) -> bool:
        return self.stop is not None and self.stop.reason in reasons


def passes_on(finding: Finding) -> bool:
    """Whether dependents run on this finding: it is complete, or escalated with a partial."""
    if finding.status == "complete":
        return True
    partial = finding.escalation.partial if finding.escalation else ""
    return finding.status == "escalated" and bool(partial)
