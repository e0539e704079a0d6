"""What the caller wants, and what it may cost."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import PurePath
from typing import Literal

from pydantic import Field, JsonValue

from holdfast.contracts.base import (
    LONGEST_CALL_SECONDS,
    PLANNED_SUBTASK_LIMIT,
    AnswerKind,
    Contract,
    Effort,
    InputForm,
    InputKind,
    Money,
    Percent,
    ProjectName,
    Tier,
    Urgency,
)
from holdfast.contracts.findings import Finding
from holdfast.contracts.notices import Notify
from holdfast.contracts.plans import Lane, MapUnit, Plan
from holdfast.text import one_line


class Limits(Contract):
    """What one run may spend, chosen by the caller and recorded in history."""

    dollars: Money = Field(default=Decimal(2), ge=0, le=10_000)
    model_calls: int = Field(default=60, ge=0, le=3_000)
    tokens: int = Field(default=5_000_000, ge=0)
    """Input and output tokens of all calls: the bound for models without a price."""
    subtasks: int = Field(default=6, ge=1, le=PLANNED_SUBTASK_LIMIT)
    """Subtasks of a plan that a model makes, and subtasks that it may add at a time."""
    concurrency: int = Field(default=5, ge=1, le=500)
    early: int = Field(default=0, ge=0, le=PLANNED_SUBTASK_LIMIT)
    """Subtasks that may start while the rest of their plan is being written, where nobody is to
    approve it. What the whole plan does not have is taken back, and was paid. A run that is started
    by command, request or program has 5.
    """
    tries_per_subtask: int = Field(default=3, ge=1, le=5)
    turns_per_agent: int = Field(default=10, ge=1, le=100)
    """Exchanges of an agent with tools with its model, for one subtask."""
    replans: int = Field(default=2, ge=0, le=10)
    depth: int = Field(default=5, ge=1, le=10)
    deadline_seconds: int = Field(default=900, ge=1, le=7 * 86_400)
    """Working time from the first paid call; it stands still while a person lets the run wait."""
    subtask_timeout_seconds: int = Field(default=300, ge=1, le=LONGEST_CALL_SECONDS)
    """Start-to-close of one try at a subtask, by a tool or one call of a model (twice that for an
    answer with twice the room); time in a queue excluded.
    """
    outage_seconds: int = Field(default=3_600, ge=0, le=7 * 86_400)
    """How long a run waits for an endpoint, while its deadline stands still."""
    supervisor_context_tokens: int = Field(default=50_000, ge=1_000)
    digest_above_tokens: int = Field(default=2_000, ge=100)
    min_confidence: Percent | None = None
    """A finding below it is tried again, and a remark of a review below it is counted, not shown.
    None: 60 for findings, and the playbook's value for remarks.
    """


class GoalInput(Contract):
    """One named input: literal text, or the path of a file or folder below an allowed root."""

    name: str
    kind: InputKind
    value: str


FILE_NAME = 100
"""Characters of a file's name that are shown."""


TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xlsx")
"""How the names of files end that can be asked as tables."""


class PinnedChange(Contract):
    """What of a repository differs from its base."""

    files: int
    """Text files that were changed, renamed or deleted, or are new."""
    added: int
    deleted: int
    """Lines."""
    diff: str = ""
    """Digest of the unified diff as a model may see it, without secrets."""
    diff_bytes: int = 0
    messages: str = ""
    """Digest of the messages of its commits, newest first, without secrets; empty: it has none."""
    messages_bytes: int = 0
    nothing: bool = False
    """True if nothing differs, line ends apart: no text, and nothing that was not read."""


class KeptItems(Contract):
    """Items whose rows an earlier run has, if the same is asked of them."""

    rows: int = 0
    """Of those that would be asked."""
    mended: int = 0
    """Of those that cannot be asked, and that a person has given a result."""
    bytes: int = 0
    """What these show a model, together."""
    asked: str = ""
    """Fingerprint of what was asked of them there."""
    unused: str = ""
    """Why nothing can be taken over; empty: it can, if the same is asked."""


class ItemsFound(Contract):
    """What a look at an input found that can be mapped: nothing was paid for it."""

    by: MapUnit
    count: int
    """Items, broken ones included; without `whole` there are at least so many."""
    whole: bool = True
    """False: there was no time to look at all of it."""
    fields: tuple[str, ...] = ()
    """Names of the fields, in their order."""
    bytes: dict[str, int] = Field(default_factory=dict)
    """UTF-8 bytes of what all items to be asked have in a field together, as a model is shown it.
    """
    most: dict[str, int] = Field(default_factory=dict)
    """The same, of the item that has the most."""
    longest: int = 0
    """Bytes of the longest item, all of its fields together."""
    around: int = 0
    """Bytes around the fields of each item in its prompt."""
    broken: int = 0
    """Items that cannot be asked, each of which fails by itself."""
    samples: tuple[str, ...] = ()
    """The first few of them, each with its place and why."""
    repeated: int = 0
    """Items equal to an earlier one in what the map shows, which are not asked again."""
    note: str = ""
    """What is to be known of how they were read, as the rest of a sentence about the input."""
    kept: dict[str, KeptItems] = Field(default_factory=dict)
    """What the maps over them may take over of an earlier run, by subtask."""

    @property
    def asked(self) -> int:
        """Items that cost a call, unless others are equal that nobody has compared."""
        return self.count - self.broken - self.repeated

    def shown(self, fields: Iterable[str] = ()) -> int:
        """Return the bytes that all items show a model of these fields; none: of all fields."""
        named = tuple(fields) or self.fields
        whole = sum(self.bytes.get(name, 0) for name in named)
        return whole + self.asked * self.around

    def most_shown(self, fields: Iterable[str] = ()) -> int:
        """Return the most bytes that one item shows a model of these fields; none: of all."""
        named = tuple(fields)
        most = sum(self.most.get(name, 0) for name in named) if named else self.longest
        return most + self.around


class PinnedInput(Contract):
    """A goal input as `prepare` found it: its content is the blob `digest` of the store."""

    name: str
    kind: InputKind
    size: int
    """Bytes of the content; for a repository or folder, of the snapshot's files."""
    digest: str = ""
    """SHA-256 of the content; for a repository or folder, of the snapshot's manifest."""
    preview: str = ""
    """The first 500 tokens, for the planner."""
    path: str = ""
    """Path at which the worker found it; empty for text. Models see at most a file's name."""
    commit: str = ""
    """Checked-out commit of a repository; empty: nothing is committed yet."""
    base: str = ""
    """Commit that a repository is compared with; empty: the whole tree counts."""
    base_name: str = ""
    """The base as the caller named it, or the main line that it was found on."""
    scope: str = ""
    """How much of a repository is taken and why, in words; empty where there was no choice."""
    changed: int | None = None
    """Files of a repository that differ from its commit; None: not known."""
    change: PinnedChange | None = None
    """What differs from the base; None: the whole tree counts."""
    around: int = 0
    """Bytes of the files of a repository that do not differ from the base, which agents may read,
    too.
    """
    rule_files: tuple[str, ...] = ()
    """Paths of files of a repository that say how its code is to be written, for agents."""
    reader: str = ""
    """The tool that reads a document; empty for text, repository and folder."""
    rows: int = Field(default=0, exclude_if=lambda rows: not rows)
    """Rows of a map's table; 0: it is none."""
    items: ItemsFound | None = Field(default=None, exclude_if=lambda found: found is None)
    """What it has that can be mapped; None: nothing, or nobody looked."""

    @property
    def file_name(self) -> str:
        """A file's own name, harmless and short: what findings cite. May be empty."""
        name = one_line(PurePath(self.path).name) if self.kind == "file" else ""
        return name if len(name) <= FILE_NAME else f"{name[: FILE_NAME - 20]}…{name[-19:]}"

    @property
    def against(self) -> str:
        """The base by its name and its commit, as in `main (192768f00000)`."""
        name, commit = self.base_name, self.base[:12]
        return f"{name} ({commit})" if name and not self.base.startswith(name) else commit

    @property
    def is_folder(self) -> bool:
        return self.kind in ("repository", "folder")

    @property
    def forms(self) -> tuple[InputForm, ...]:
        """What it is to tools; empty: text, which stands in prompts and has no table in it."""
        if self.kind == "folder" or self.kind == "repository":
            return (self.kind, *(("change",) if self.base else ()))
        document = self.reader not in ("", "query_data")
        table = self.reader == "query_data" or PurePath(self.path).suffix.lower() in TABLES
        return (*(("document",) if document else ()), *(("table",) if table else ()))

    @property
    def enclosed(self) -> bool:
        """True if its text stands in the prompts of its subtasks; if not, only tools read it."""
        return not self.is_folder and not self.reader


class Approval(Contract):
    """When a person must approve the plan: never, always, or above an amount of dollars."""

    when: Literal["auto", "always", "above"] = "auto"
    dollars: Money = Decimal(0)


class AnswerForm(Contract):
    """The form of a run's answer."""

    kind: AnswerKind = ""
    """Empty: as the playbook says, else Markdown."""
    result: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON schema for `json`, closed objects only."""
    columns: tuple[str, ...] = ()
    """Column names of a `table`; empty: its author chooses them."""

    @property
    def is_data(self) -> bool:
        """True if the answer is data, which is checked, instead of text."""
        return self.kind in ("json", "table")


class RoleAsWas(Contract):
    """A role as a fork has it, whatever its file says by now."""

    name: str
    tier: Tier
    effort: Effort
    prompt: str
    """Digest of its system prompt in the store."""
    model: str = ""
    """Id of the model that serves its tier, for this role alone; empty: the deployment's."""


class Fork(Contract):
    """What a run takes over from a finished one: findings that its change does not touch."""

    run_id: str
    findings: tuple[Finding, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    """Inputs as the finished run pinned them; a finding is taken over only if they are the same."""
    roles: tuple[RoleAsWas, ...] = Field(default=(), exclude_if=lambda roles: not roles)
    """Roles that are not as their files are now; empty: all are."""


class Reuse(Contract):
    """An earlier run whose rows are taken over, where item and question are the same."""

    run: str
    tables: dict[str, str] = Field(default_factory=dict)
    """Blobs of the tables of its maps, by subtask: the starter finds them."""
    complete: dict[str, str] = Field(default_factory=dict)
    """How many rows of each are complete, in words: `9,400 of 10,000`."""


class Goal(Contract):
    """What the caller wants: the input of a run."""

    text: str
    inputs: tuple[GoalInput, ...] = ()
    playbook: str = ""
    project: ProjectName = ""
    plan: Plan | None = None
    limits: Limits = Limits()
    approval: Approval = Approval()
    plan_only: bool = False
    """True for a dry run: it closes as declined once it has a plan, so nobody can approve it."""
    requester: str = ""
    depth: int = 0
    use_models: bool = False
    ask_people: bool = False
    """True if an ambiguous input may wait for a person, durably; else the best guess is made."""
    wait_for_raise: bool = False
    """True if a run out of budget waits durably for a higher cap; else it ends with a synthesis."""
    fork: Fork | None = None
    pinned: tuple[PinnedInput, ...] = ()
    """Inputs that the parent run or the forked one has pinned; they are not read again."""
    unpriced: bool = False
    """True if models without a known price may be asked, bounded by calls and tokens alone."""
    probe: str = ""
    """Digest of a blob that the starter wrote to its store; `prepare` reads it back."""
    search_attributes: tuple[str, ...] = ()
    """The project's search attributes that the namespace has."""
    form: AnswerForm = AnswerForm()
    """Form of the answer; without a kind, as the playbook says."""
    heard: bool = False
    """True if the endpoint has answered a run above: a missing host will come back."""
    heard_json: bool = False
    """True if an answer to this run's parent held JSON: then the endpoint can produce it."""
    roles_of: str = ""
    """The playbook whose roles the agents of a team may have, without its plan and guidance."""
    asked: tuple[str, ...] = ()
    """Fingerprints of what the runs above a team have planned: none is planned again."""
    today: str = ""
    """The day that models are told, as in 2026-11-23; empty: that of the run's preparation."""
    path: tuple[str, ...] = ()
    """Roles of the teams from the root run down to this one."""
    roles: tuple[str, ...] = ()
    """The only roles that a planner is offered; empty: all that there are."""
    templates: bool = False
    """True if a template of the plan library may give the plan, where a planner would."""
    tier: Tier | None = Field(default=None, exclude_if=lambda tier: tier is None)
    """The tier whose model stands in for that of every tier; None: each has its own."""
    urgency: Urgency = Field(default="normal", exclude_if=lambda urgency: urgency == "normal")
    """Before or behind the work of other runs."""
    lane: Lane | None = None
    """The lane of all its maps; None: as each of them says."""
    by_batch: bool = Field(default=False, exclude_if=lambda yes: not yes)
    """True if each of its calls may wait a day, as a batch of its own at half the price."""
    reuse: Reuse | None = None
    """None: every row of its maps is asked."""
    notify: Notify | None = None
    """Addresses of the web that are told of the run; None: nobody is. A team tells nobody."""
