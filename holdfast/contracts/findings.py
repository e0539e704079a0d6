"""What a subtask produced, and what became of it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import Field, JsonValue

from holdfast.contracts.base import (
    Contract,
    EscalationReason,
    FileKind,
    FindingStatus,
    Money,
    Percent,
    RoleTier,
    Severity,
    Tier,
    Verdict,
)
from holdfast.contracts.calls import MadeFile, Usage


class Deleted(Contract):
    """Lines that a change deleted, without secrets and cut to a bound."""

    first: int
    """1-based, in the base."""
    lines: tuple[str, ...]
    before: int
    """The line of the head before which they stood."""


class Excerpt(Contract):
    """The lines of code around a place, without secrets and cut to a bound."""

    first: int
    lines: tuple[str, ...]
    letter: int = 0
    """Column of the place in the remark's line, 1-based; 0: the whole line."""
    deleted: Deleted | None = None
    """What a remark about deleted lines is about; None: it is about a line of the head."""


ProofVerdict = Literal["proved", "shown", "not proved", "not tried"]


class Proof(Contract):
    """A script or a test that fails where a remark is right, and how it ended. It takes no remark
    away.
    """

    verdict: ProofVerdict
    """`proved`: it fails as the remark says, and passes on the base. `shown`: it fails so, and the
    base cannot run it or does not exist.
    """
    why: str
    """How it ended, or why there is nothing to run; one sentence."""
    shows: str = ""
    """What it shows, in the words of the model that wrote it."""
    script: str = ""
    """Its text, without secrets; empty: there is none."""
    path: str = ""
    """File of the test, relative to the repository; empty: a script for the sandbox."""
    output: str = ""
    """The first lines that it ended with, without secrets."""


class Fix(Contract):
    """A patch that a model proposes for a remark. Nobody but the user applies it."""

    why: str
    """What spoke for it, or why none is proposed; one sentence."""
    diff: str = ""
    """Unified, as `git apply` takes it; empty: none is proposed."""
    first: int = 0
    last: int = 0
    """The lines that it replaces, 1-based."""
    lines: tuple[str, ...] = ()
    """What stands in their place."""


class Remark(Contract):
    """One defect that a lens reports."""

    severity: Severity
    file: str
    line: int = 0
    """1-based; 0: the whole file."""
    column: int = 0
    """1-based, in characters; 0: not known."""
    last_line: int = 0
    """1-based, of a statement of several lines; 0: it is about one line."""
    message: str
    matters: str = ""
    """Why it matters, in a sentence; empty where nobody has written that of its rule."""
    suggestion: str = ""
    rule: str = ""
    confidence: Percent
    lens: str = ""
    by_agent: bool = False
    """True if a model reports it, which nobody takes at its word."""
    code: str = ""
    """The line of code at its place, without secrets, of an agent's remark; empty: what the agent
    quotes does not stand there, or the remark is about the whole file.
    """
    deleted: bool = False
    """True if the change deleted that line: `line` is the first of those that replace it, else the
    one before; of a deleted file its number in the base.
    """
    base_line: int = 0
    """Its number in the base, 1-based; 0: it was not deleted, or nobody knows."""
    gone: bool = False
    """True if the head has no such file: it is in the base alone."""
    also: tuple[str, ...] = ()
    """Other lenses and rules that saw the same defect, as `lens:rule`."""
    verdict: Verdict | Literal[""] = ""
    """Verdict of a model that looked at its code; empty: none did."""
    why: str = ""
    kind: FileKind = "production"
    fingerprint: str = ""
    """Stays the same for the same defect when lines move; may be empty."""
    hidden: str = ""
    """Why it is counted and not listed: `known`, `threshold`, `rule NAME` or `path PATTERN`."""
    summed: bool = False
    """True if a paragraph tells it together with others of its lens, as for mere complexity."""
    weight: int = 0
    """Breaks ties of severity and confidence, the heavier first; 0: not measured."""
    excerpt: Excerpt | None = None
    """The code at its place; None if it has no line, or nothing may be shown."""
    proof: Proof | None = None
    """None: nobody was to prove it."""
    fix: Fix | None = None
    """None: nobody was to mend it."""
    new_since: str = ""
    """The base, if the remark is new since then and the change did not touch its line; empty: the
    change touched it, or there is no base.
    """


class Unread(Contract):
    path: str
    why: str


class Narrowing(Contract):
    """What a repository's settings, and a baseline, take out of its review."""

    source: str = ""
    """The file of the settings, in words; empty without one."""
    paths_out: tuple[str, ...] = ()
    """Patterns of files."""
    rules_off: dict[str, str] = Field(default_factory=dict)
    """Rules, each with the reason given for it."""
    threshold: Percent = 0
    """Remarks below this confidence are not listed."""
    not_obeyed: tuple[str, ...] = ()
    """Settings and baseline entries without effect, and why."""
    changed: tuple[str, ...] = ()
    """Settings files that are part of the change under review, and which version counts instead."""
    baselines: tuple[str, ...] = ()
    """Places that list the known remarks, in words."""


class LanguageShare(Contract):
    """One language of the files in scope, and its lenses."""

    name: str
    kind: Literal["code", "prose", "data", "other"] = "code"
    """Only code can hold defects; of `other` files the kind is not known."""
    files: int
    percent: Percent
    """Share of all text files in scope."""
    lenses: tuple[str, ...] = ()
    """Lenses for this language; without any, only lenses for every file look at it."""


class Use(Contract):
    """A place that uses what a change has changed."""

    file: str
    line: int
    code: str = ""
    """Its line, of a call all its lines in one, without secrets and cut to a bound; empty: nothing
    may be shown.
    """
    sure: bool = True
    """False if it may be something else of the same name."""


class ChangedDefinition(Contract):
    """What a change has changed, at its place in the head; what it removed, where it stood."""

    file: str
    line: int
    name: str
    change: str
    """`removed`, `signature` or `body`."""
    kind: str = ""
    uses: tuple[Use, ...] = ()
    """The first of them, the sure ones before the others."""
    uses_in_all: int = 0


class Sightings(Contract):
    """The `data` of a lens. Lists are cut to a bound; the counts beside them are not."""

    remarks: tuple[Remark, ...] = ()
    """The most severe first."""
    remarks_in_all: int = 0
    files_read: int = 0
    files_in_scope: int = 0
    nothing_to_look_at: str = ""
    """Why there was no file for it; empty: there was one."""
    suppressed: int = 0
    """Remarks that a comment in the code hides."""
    old: int = 0
    """Remarks in lines that the change touched which the base has, too."""
    not_parsed: tuple[str, ...] = ()
    not_parsed_in_all: int = 0
    not_reached: tuple[str, ...] = ()
    """Files that it did not look at because its time was over."""
    not_reached_in_all: int = 0
    unread: int = 0
    unread_why: dict[str, int] = Field(default_factory=dict)
    """Number of unread files by reason."""
    unread_files: tuple[Unread, ...] = ()
    missed: int = 0
    """Unread files that probably are text of code, tests, examples or docs."""
    missed_files: tuple[Unread, ...] = ()
    base: str = ""
    """The commit that the files are compared with; empty: the whole tree is in scope."""
    scope: str = ""
    """How much of the repository was taken and why, in words; empty where there was no choice."""
    narrowing: Narrowing = Narrowing()
    notes: tuple[str, ...] = ()
    languages: tuple[LanguageShare, ...] = ()
    """The most common first; the same for each lens of a review."""
    changed: tuple[ChangedDefinition, ...] = ()
    """Of the lens that looks for them: what is gone or called otherwise comes first."""
    changed_in_all: int = 0
    tests: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The tests of a changed file, by its path: those named after it or that use it."""


class LensSum(Contract):
    """What one lens saw that is told in a paragraph, and not remark by remark."""

    remarks: int = 0
    worst: tuple[Remark, ...] = ()


class ReviewData(Contract):
    """What a review came to: the `data` of its report."""

    verdict: str = ""
    """What counts, or in what there was nothing, and what was not looked at, in a line."""
    lacks: tuple[str, ...] = ()
    """What of it came to nothing, each as the rest of a sentence; none if it is whole."""
    remarks: tuple[Remark, ...] = ()
    """All that are listed, by rank."""
    by_kind: dict[str, int] = Field(default_factory=dict)
    """Remarks by the kind of their file."""
    hidden: dict[str, int] = Field(default_factory=dict)
    """Remarks that settings or a baseline take out, by `Remark.hidden`."""
    summed: dict[str, LensSum] = Field(default_factory=dict)
    """Sums by lens."""
    by_severity: dict[str, int] = Field(default_factory=dict)
    """Remarks that may hold up a change."""
    by_verdict: dict[str, int] = Field(default_factory=dict)
    below_confidence: int = 0
    """Remarks that are not listed because they are below `min_confidence`."""
    min_confidence: int = 0
    not_listed: tuple[Remark, ...] = ()
    """The first, by rank, of the remarks that are counted and not listed: below `min_confidence`,
    or taken out, as `Remark.hidden` says.
    """
    suppressed: int = 0
    """Remarks that comments in the code hide."""
    old: int = 0
    """Remarks in lines that the change touched which the base has, too."""
    cut: int = 0
    """Remarks beyond what one lens hands on."""
    cut_of_agents: dict[str, int] = Field(default_factory=dict)
    unconfirmed: tuple[Remark, ...] = ()
    """Remarks that only an agent makes and no model has confirmed."""
    unread_in_all: int = 0
    unread: tuple[Unread, ...] = ()
    """The first of the files that were not read."""
    missed_in_all: int = 0
    missed: tuple[Unread, ...] = ()
    """The first of the texts, links and submodules that were to be read and could not be."""
    not_parsed: tuple[str, ...] = ()
    """Files that some lens could not parse."""
    not_parsed_by: dict[str, int] = Field(default_factory=dict)
    """Number of them, by lens."""
    not_reached: tuple[str, ...] = ()
    """Files that some lens did not look at because its time was over."""
    not_reached_by: dict[str, int] = Field(default_factory=dict)
    """Number of them, by lens."""
    files_read: int = 0
    looked_at: dict[str, int] = Field(default_factory=dict)
    """Files read, by lens."""
    agents: dict[str, int] = Field(default_factory=dict)
    """Tool calls of each agent that read the code."""
    unsure: dict[str, int] = Field(default_factory=dict, exclude_if=lambda found: not found)
    """Percent by which those are sure of what they found, or did not find, that are less sure than
    an answer is accepted at elsewhere.
    """
    failed: tuple[str, ...] = ()
    """Titles of lenses and agents that came to no end; the report's gaps say why."""
    nothing_differs: bool = False
    """True if no text differs from the base, line ends apart, and nothing was left unread."""
    nothing_to_look_at: dict[str, str] = Field(default_factory=dict)
    """Why a lens had no file to look at, by lens."""
    languages: tuple[LanguageShare, ...] = ()
    unread_languages: tuple[str, ...] = ()
    """Languages of code in which nobody looked for defects."""
    base: str = ""
    """The commit that the files are compared with; empty: the whole tree was reviewed."""
    scope: str = ""
    notes: tuple[str, ...] = ()
    """What else a reader must know of how it was reviewed, as lines of text."""


class Escalation(Contract):
    """Why an agent gave a subtask back, and what it has so far."""

    reason: EscalationReason
    why: str
    partial: str = ""


class Draft(Contract):
    """What one try of an agent or tool produced, before the supervisor judges it."""

    status: Literal["complete", "failed", "escalated"] = "complete"
    content: str = ""
    data: dict[str, JsonValue] = Field(default_factory=dict)
    confidence: Percent | None = None
    """Stated by its author; None if there was no statement, as for a lens or a person."""
    sources: tuple[str, ...] = ()
    why: str = ""
    escalation: Escalation | None = None
    verdicts: tuple[str, ...] = ()
    """One sentence for each check that failed."""


class Try(Contract):
    """One semantic go at a subtask."""

    number: int
    tier: RoleTier
    verdict: str
    """`accepted`, or the kind of problem."""
    why: str = ""
    dollars: Money | None = None
    """Price of its answered calls, reviews and repairs included; None: not known, or no model."""
    assumed: Money = Decimal(0)
    role: str = ""
    """The fallback that did it; empty: the subtask's own role."""


class NoAnswer(Contract):
    """A call for a subtask that brought no answer, and so was no try."""

    id: str
    tier: Tier
    why: str
    dollars: Money | None = Decimal(0)
    """What it counts at; 0: it surely cost nothing. None: its model has no price."""
    assumed: Money = Decimal(0)


class Claim(Contract):
    """One statement of a digest."""

    claim: str
    sources: tuple[str, ...] = ()
    """What the finding cites for it."""


class Finding(Contract):
    """What a subtask produced, or why it did not."""

    subtask_id: str
    status: FindingStatus
    content: str = ""
    digest: str = ""
    """The content in fewer words, for whoever reads on; empty if it was short enough."""
    claims: tuple[Claim, ...] = ()
    """What the digest is made of."""
    data: dict[str, JsonValue] = Field(default_factory=dict)
    confidence: Percent | None = 0
    """Stated by its author; None if there was no statement."""
    sources: tuple[str, ...] = ()
    why: str = ""
    """Why it is not complete; empty if it is."""
    escalation: Escalation | None = None
    tries: tuple[Try, ...] = ()
    unanswered: tuple[NoAnswer, ...] = ()
    model: str = ""
    usage: Usage = Usage()
    dollars: Money | None = Decimal(0)
    assumed: Money = Decimal(0)
    """The part of `dollars` that is the worst case of calls whose answers were lost."""
    started: datetime | None = None
    finished: datetime | None = None
    waited: float = 0.0
    """Seconds between start and end in which only a person or a lost endpoint kept the run."""
    turns: int = 0
    """Turns of an agent with tools, over all tries; 0 without tools."""
    tool_calls: int = 0
    failed_calls: int = 0
    """Tool calls that brought an error, or were not made."""
    files: tuple[MadeFile, ...] = ()
    unread: tuple[str, ...] = ()
    """Inputs that its agent should have read with tools, and of which it opened nothing."""
    reused_from: str = ""
    """The run that it was taken over from; empty: this run's own."""
    chosen_over: tuple[str, ...] = Field(default=(), exclude_if=lambda others: not others)
    """Subtasks that attempted the same, whose findings a judge put aside for this one."""

    @property
    def seconds(self) -> float:
        """Seconds from start to end, without those that the run waited; 0: it never started."""
        if self.started is None or self.finished is None:
            return 0.0
        return max((self.finished - self.started).total_seconds() - self.waited, 0.0)


class Checked(Contract):
    """What of an answer code has checked: all of its figures and citations."""

    figures: int
    citations: int


class Synthesis(Contract):
    """The run's answer, from a model or a template."""

    answer: str
    data: dict[str, JsonValue] = Field(default_factory=dict)
    confidence: Percent | None = None
    """None if nobody judged the answer as a whole."""
    conflicts: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    document: JsonValue = None
    """The answer as data in the form that was asked for; None: text only."""
    misfit: str = ""
    """Faults of the answer against the form that was asked for; empty if none."""
    by_template: bool = False
    finding: str = ""
    """The only subtask, whose finding it is as it stands; empty: it was written from findings."""
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Statements, citations and links of the answer without support in any finding."""
    doubtful: tuple[str, ...] = ()
    """The words that the flags are about, in order; a citation in its brackets."""
    checked: Checked | None = Field(default=None, exclude_if=lambda found: found is None)
    """None: code could not check all figures and citations, or the plan did not ask."""


class Gap(Contract):
    """A planned subtask without a complete finding, or an answer that a template had to write."""

    subtask_id: str = ""
    """Empty for the answer."""
    title: str
    status: FindingStatus
    why: str
    took_down: tuple[str, ...] = ()
    """Subtasks that were skipped because of it."""


class Timings(Contract):
    """Measured seconds. What another order of the subtasks would take is not known."""

    makespan: float = 0.0
    """Seconds from the start of the run to its end."""
    waited: float = 0.0
    """The part of the makespan in which only a person or a lost endpoint kept the run."""
    work: float = 0.0
    """Seconds from the first start to the last end of a subtask."""
    critical_path: float = 0.0
    """The longest chain of dependent subtasks, without what the run waited meanwhile."""
    early: int = 0
    """Subtasks that began while the plan was being written, and are in it."""


class Revision(Contract):
    number: int
    why: str
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
