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
)
from holdfast.contracts.calls import MadeFile, Usage


class Excerpt(Contract):
    """The lines of code around a place, without secrets and cut to a bound."""

    first: int
    """The number of the first line."""
    lines: tuple[str, ...]
    letter: int = 0
    """Where in the line of the remark the place begins, 1-based; 0: the line as a whole."""


class Remark(Contract):
    """One defect that a lens reports."""

    severity: Severity
    file: str
    line: int = 0
    """1-based; 0: the file as a whole."""
    column: int = 0
    """1-based, in characters; 0: not known."""
    message: str
    matters: str = ""
    """Why it matters, in a sentence; empty: nobody has written that of its rule."""
    suggestion: str = ""
    """What to do."""
    rule: str = ""
    confidence: Percent
    lens: str = ""
    also: tuple[str, ...] = ()
    """Other lenses and rules that saw the same defect, as `lens:rule`."""
    verdict: Literal["", "confirmed", "refuted", "undecided"] = ""
    """Of a model that looked at the code around it; empty: none did."""
    why: str = ""
    """Of the verdict."""
    kind: FileKind = "production"
    """Of the file."""
    fingerprint: str = ""
    """The same for the same defect when lines move; empty: there is none."""
    hidden: str = ""
    """Why it is counted and not listed: `known`, `threshold`, `rule NAME` or `path PATTERN`."""
    summed: bool = False
    """Whether it is told in a paragraph with others of its lens, as what is only complex is."""
    weight: int = 0
    """Of two that are as severe and as sure, the heavier is worse; 0: nothing was measured."""
    excerpt: Excerpt | None = None
    """The code at its place; None: it is about no line, or nothing of it may be shown."""


class Unread(Contract):
    """A file that is in scope and was not read."""

    path: str
    why: str


class Narrowing(Contract):
    """What the settings of a repository, and a baseline, take out of its review."""

    source: str = ""
    """The file they come from, in words; empty: there are none."""
    paths_out: tuple[str, ...] = ()
    """Patterns of files."""
    rules_off: dict[str, str] = Field(default_factory=dict)
    """Each with the reason that is given for it."""
    threshold: Percent = 0
    """Remarks below this confidence are not listed."""
    not_obeyed: tuple[str, ...] = ()
    """What of the settings or of a baseline has no effect, and why."""
    changed: tuple[str, ...] = ()
    """Files of settings that are part of what is reviewed, and which word counts instead."""
    baselines: tuple[str, ...] = ()
    """Where the known remarks are listed, in words."""


class LanguageShare(Contract):
    """One language of the files in scope, and who looks for what is wrong in it."""

    name: str
    kind: Literal["code", "prose", "data", "other"] = "code"
    """What could hold defects is code; of `other` files nothing tells what they are."""
    files: int
    percent: Percent
    """Of all text files in scope."""
    lenses: tuple[str, ...] = ()
    """The lenses for this language; none: only those look at it that read every file."""


class Sightings(Contract):
    """What one lens hands on of what its tool said: the `data` of its draft and its finding. Lists
    are cut to a bound; what is counted beside them is all there is.
    """

    remarks: tuple[Remark, ...] = ()
    """The most severe first."""
    remarks_in_all: int = 0
    files_read: int = 0
    files_in_scope: int = 0
    nothing_to_look_at: str = ""
    """Why there was no file for it; empty: there was one."""
    suppressed: int = 0
    """Remarks that a comment in the code hides."""
    not_parsed: tuple[str, ...] = ()
    not_parsed_in_all: int = 0
    unread: int = 0
    unread_why: dict[str, int] = Field(default_factory=dict)
    """How many files were not read for each reason."""
    unread_files: tuple[Unread, ...] = ()
    missed: int = 0
    """Of these, how many are text of production code, tests, examples or docs as far as anybody can
    tell: what they hold nobody knows.
    """
    missed_files: tuple[Unread, ...] = ()
    base: str = ""
    """The commit that the files are compared with; empty: the whole tree is in scope."""
    scope: str = ""
    """How much of the repository was taken and why, in words; empty: nobody had a choice."""
    narrowing: Narrowing = Narrowing()
    notes: tuple[str, ...] = ()
    languages: tuple[LanguageShare, ...] = ()
    """The most common first; the same for each lens of a review."""


class LensSum(Contract):
    """What one lens saw that is told in a paragraph, and not remark by remark."""

    remarks: int = 0
    worst: tuple[Remark, ...] = ()


class ReviewData(Contract):
    """What a review came to: the `data` of its report."""

    remarks: tuple[Remark, ...] = ()
    """All that are listed, by rank."""
    by_kind: dict[str, int] = Field(default_factory=dict)
    """Remarks by the kind of their file."""
    hidden: dict[str, int] = Field(default_factory=dict)
    """Remarks that settings or a baseline take out, by `Remark.hidden`."""
    summed: dict[str, LensSum] = Field(default_factory=dict)
    """By lens."""
    by_severity: dict[str, int] = Field(default_factory=dict)
    """Remarks that may hold up a change."""
    by_verdict: dict[str, int] = Field(default_factory=dict)
    below_confidence: int = 0
    """Remarks that are not listed because they are below `min_confidence`."""
    min_confidence: int = 0
    suppressed: int = 0
    """Remarks that comments in the code hide."""
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
    """The first of the files of text that were to be read and could not be."""
    not_parsed: tuple[str, ...] = ()
    """Files that some lens could not parse."""
    files_read: int = 0
    looked_at: dict[str, int] = Field(default_factory=dict)
    """Files read, by lens."""
    nothing_to_look_at: dict[str, str] = Field(default_factory=dict)
    """Why a lens had no file to look at, by lens."""
    languages: tuple[LanguageShare, ...] = ()
    unread_languages: tuple[str, ...] = ()
    """Languages of code in which nobody looked for defects."""
    base: str = ""
    """The commit that the files are compared with; empty: the whole tree was reviewed."""
    scope: str = ""


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
    """Of whoever made it; None: nobody stated any, as of a lens or of what a person supplied."""
    sources: tuple[str, ...] = ()
    why: str = ""
    escalation: Escalation | None = None
    verdicts: tuple[str, ...] = ()
    """Failed checks, one sentence each; empty: all passed."""


class Try(Contract):
    """One semantic go at a subtask."""

    number: int
    tier: RoleTier
    verdict: str
    """`accepted`, or the kind of problem."""
    why: str = ""
    dollars: Money | None = None
    """Of its answered calls, reviews and repairs included; None: not known, or no model's."""
    assumed: Money = Decimal(0)
    """Of `dollars`, what is a worst case."""
    role: str = ""
    """Of the fallback that did it; empty: the subtask's own role did."""


class NoAnswer(Contract):
    """A call for a subtask that brought no answer: no try, as nothing came that could be judged."""

    id: str
    """Of its activity."""
    tier: Tier
    why: str
    dollars: Money | None = Decimal(0)
    """What it counts at; 0: it surely cost nothing. None: its model has no price."""
    assumed: Money = Decimal(0)
    """Of `dollars`, what is its worst case."""


class Finding(Contract):
    """What a subtask produced, or why it did not."""

    subtask_id: str
    status: FindingStatus
    content: str = ""
    digest: str = ""
    """The content in fewer words, for the synthesis; empty: it was short enough."""
    data: dict[str, JsonValue] = Field(default_factory=dict)
    confidence: Percent | None = 0
    """Of the agent that made it; None: nobody stated any."""
    sources: tuple[str, ...] = ()
    why: str = ""
    """Why there is no complete finding; empty when there is one."""
    escalation: Escalation | None = None
    tries: tuple[Try, ...] = ()
    unanswered: tuple[NoAnswer, ...] = ()
    model: str = ""
    usage: Usage = Usage()
    dollars: Money | None = Decimal(0)
    assumed: Money = Decimal(0)
    """Of `dollars`, what is the worst case of calls whose answers were lost."""
    started: datetime | None = None
    finished: datetime | None = None
    waited: float = 0.0
    """Seconds, start to end, in which nothing but a person or a lost endpoint kept the run."""
    turns: int = 0
    """Of an agent with tools, in all its tries; 0: it was asked without tools."""
    tool_calls: int = 0
    failed_calls: int = 0
    """Of these, how many brought an error, or were not made."""
    files: tuple[MadeFile, ...] = ()
    """That its agent made."""
    unread: tuple[str, ...] = ()
    """Names of the inputs that its agent was to read with tools, and of which it opened nothing."""
    reused_from: str = ""
    """The run that this finding was taken over from; empty: this run's own."""

    @property
    def seconds(self) -> float:
        """From its start to its end, less what the run waited meanwhile; 0: it never started."""
        if self.started is None or self.finished is None:
            return 0.0
        return max((self.finished - self.started).total_seconds() - self.waited, 0.0)


class Synthesis(Contract):
    """The run's answer, from a model or a template."""

    answer: str
    data: dict[str, JsonValue] = Field(default_factory=dict)
    confidence: Percent | None = None
    """None: nobody judged the answer as a whole."""
    conflicts: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    document: JsonValue = None
    """The answer as data, in the form that was asked for; None: it is text alone."""
    misfit: str = ""
    """Where the answer does not have the form that was asked for; empty: it has."""
    by_template: bool = False
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """What the answer cites, counts or links without support in any finding."""
    doubtful: tuple[str, ...] = ()
    """The words that the flags are about, in their order, as the answer has them; a citation in its
    brackets.
    """


class Gap(Contract):
    """A planned subtask without a complete finding, or an answer that a template had to write."""

    subtask_id: str = ""
    """Empty: the answer."""
    title: str
    status: FindingStatus
    why: str
    took_down: tuple[str, ...] = ()
    """Ids of the subtasks that were skipped because of it."""


class Timings(Contract):
    """Seconds, by the recorded moments. None of them says what another order of the subtasks would
    have taken: that was not measured.
    """

    makespan: float = 0.0
    """From the start of the run to its end."""
    waited: float = 0.0
    """Of the makespan, in which nothing but a person or a lost endpoint kept the run."""
    work: float = 0.0
    """From the first start to the last end of a subtask."""
    critical_path: float = 0.0
    """The longest chain of dependent subtasks, start to end, less what the run waited meanwhile."""


class Revision(Contract):
    """A change of the plan while it ran."""

    number: int
    why: str
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
