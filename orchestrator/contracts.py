"""Every shape that crosses a durable boundary: workflow input and output, activity arguments and
results.

Contracts are frozen, hold tuples instead of lists and ignore fields they do not know, so that an
old history
still decodes after a field was added. They only gain fields, and the default of a new field means
"as before".
Money is dollars, quantised to 0.000001, rounded up, a string in JSON.
"""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_UP, Decimal
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

MICRODOLLAR = Decimal("0.000001")


def dollars(amount: Decimal | int | str) -> Decimal:
    """Quantise an amount of dollars to a millionth, rounded up: a price is never understated."""
    return Decimal(amount).quantize(MICRODOLLAR, rounding=ROUND_UP)


Money = Annotated[Decimal, AfterValidator(dollars)]
Percent = Annotated[int, Field(ge=0, le=100)]

Tier = Literal["haiku", "sonnet", "opus"]
RoleTier = Literal["none", "haiku", "sonnet", "opus"]
Effort = Literal["low", "medium", "high"]
Strategy = Literal["merge", "select"]
InputKind = Literal["text", "file", "repository"]
CallKind = Literal[
    "plan", "work", "review", "refine", "replan", "judge", "digest", "verify", "synthesize",
    "critique", "reach"
]  # fmt: skip
FindingStatus = Literal["complete", "failed", "escalated", "skipped", "cancelled"]
EscalationReason = Literal["out_of_scope", "ambiguous_input", "confidence_too_low", "timeout"]
ReportStatus = Literal[
    "complete", "complete_with_gaps", "budget_stopped", "deadline_partial", "declined",
    "cancelled", "failed"
]  # fmt: skip
Severity = Literal["critical", "warning", "info"]
CheckKind = Literal[
    "valid_json", "keys", "regex", "contains", "min_words", "max_words", "cites_sources",
    "number_between"
]  # fmt: skip

HARD_SUBTASK_LIMIT = 30
LONGEST_CALL_SECONDS = 3_600
"""No call of a model or a tool takes longer: so long may a worker that drains have to wait."""


class Contract(BaseModel):
    """Base of every durable shape."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# ---------------------------------------------------------------- what the caller wants


class Limits(Contract):
    """What one run may spend, chosen by the caller and recorded in history."""

    dollars: Money = Field(Decimal(2), ge=0, le=10_000)
    model_calls: int = Field(60, ge=0, le=2_000)
    tokens: int = Field(5_000_000, ge=0)
    """Input and output tokens of all calls together: the bound that holds for models without a
    price.
    """
    subtasks: int = Field(6, ge=1, le=HARD_SUBTASK_LIMIT)
    concurrency: int = Field(5, ge=1, le=100)
    tries_per_subtask: int = Field(3, ge=1, le=5)
    replans: int = Field(2, ge=0, le=10)
    depth: int = Field(5, ge=1, le=10)
    deadline_seconds: int = Field(900, ge=1, le=7 * 86_400)
    """Working time, from the first paid call; it stands still while the run waits for a person or
    is paused.
    """
    subtask_timeout_seconds: int = Field(300, ge=1, le=LONGEST_CALL_SECONDS)
    """Start-to-close of one try at a subtask, by a tool or by one call of a model (twice that when
    an answer gets twice the room); time in a queue is not in it.
    """
    outage_seconds: int = Field(3_600, ge=0, le=7 * 86_400)
    """How long a run waits for an endpoint that cannot be reached; its deadline stands still
    meanwhile. 0: it does not wait.
    """
    supervisor_context_tokens: int = Field(50_000, ge=1_000)
    digest_above_tokens: int = Field(2_000, ge=100)
    min_confidence: Percent | None = None
    """A finding below it is tried again, and a remark of a review below it is counted, not shown.
    None: 60 for findings, and for remarks what the playbook says.
    """


class GoalInput(Contract):
    """One named input: literal text, or the path of a file or repository below an allowed root."""

    name: str
    kind: InputKind
    value: str


class PinnedInput(Contract):
    """A goal input as `prepare` found it: its content is the blob `digest` of the store."""

    name: str
    kind: InputKind
    size: int
    """Bytes of the content; for a repository, of the snapshot's files."""
    digest: str = ""
    """SHA-256 of the content; for a repository, of the snapshot's manifest."""
    preview: str = ""
    """The first 500 tokens, for the planner."""
    path: str = ""
    """Of a file or repository, as the worker found it; for people, no model sees it."""
    commit: str = ""
    """Of a repository: what is checked out; empty: nothing is committed yet."""
    base: str = ""
    """Of a repository: the commit that it is compared with; empty: none, the whole tree counts."""
    base_name: str = ""
    """The base as the caller named it."""
    changed: int | None = None
    """Of a repository: files that are not as the commit has them; None: that is not known."""


class Approval(Contract):
    """When a person must approve the plan: never, always, or above an amount of dollars."""

    when: Literal["auto", "always", "above"] = "auto"
    dollars: Money = Decimal(0)


class Check(Contract):
    """A criterion that code can decide; `argument` is written as in a plan, for example `250` or
    `name,date`.
    """

    kind: CheckKind
    argument: str = ""


class Subtask(Contract):
    """A node of the plan: what one agent does."""

    id: str
    title: str
    instruction: str
    inputs: tuple[str, ...] = ()
    role: str
    tier: Tier | None = None
    """None: the tier of the role."""
    depends_on: tuple[str, ...] = ()
    acceptance_criteria: str = ""
    checks: tuple[Check, ...] = ()


class Plan(Contract):
    """The graph of subtasks that answers a goal."""

    goal: str
    strategy: Strategy = "merge"
    synthesis_instruction: str = ""
    subtasks: tuple[Subtask, ...]


class Fork(Contract):
    """What a run takes over from a finished one: findings that its change does not touch."""

    run_id: str
    findings: tuple[Finding, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    """As the finished run pinned them; a finding is taken over only if they are the same."""


class Goal(Contract):
    """What the caller wants: the input of a run."""

    text: str
    inputs: tuple[GoalInput, ...] = ()
    playbook: str = ""
    plan: Plan | None = None
    limits: Limits = Limits()
    approval: Approval = Approval()
    requester: str = ""
    depth: int = 0
    use_models: bool = False
    ask_people: bool = False
    """Whether an ambiguous input may wait for a person, durably; else the best guess is made."""
    wait_for_raise: bool = False
    """Whether a run out of budget waits, durably, for a higher cap; else it stops and
    synthesizes.
    """
    fork: Fork | None = None
    pinned: tuple[PinnedInput, ...] = ()
    """Inputs that a parent run has pinned already."""
    unpriced: bool = False
    """Whether the caller accepts models without a known price (bounded by calls and tokens
    alone).
    """
    probe: str = ""
    """Digest of a blob that the starter wrote to its store; `prepare` reads it back."""
    search_attributes: tuple[str, ...] = ()
    """The project's search attributes that the namespace has."""
    heard: bool = False
    """Whether the endpoint has answered this run's parent: then a name that is gone comes back."""
    asked: tuple[str, ...] = ()
    """Of a team's run: fingerprints of what the runs above it have planned; none is planned
    again.
    """


# ---------------------------------------------------------------- when things happened


class Span(Contract):
    """When an activity ran: the last attempt's start by the server's clock, and its end, which is
    that start plus what the worker measured, so that no two clocks are ever compared.
    """

    started: datetime
    ended: datetime


# ---------------------------------------------------------------- what the deployment knows


class PriceStep(Contract):
    """Dollars per token for prompts of more than `above` tokens."""

    above: int = 0
    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal


class ModelCard(Contract):
    """The model that serves a tier and what it costs; no steps: unpriced."""

    tier: Tier
    id: str
    prices: tuple[PriceStep, ...] = ()


class RoleCard(Contract):
    """What the planner and the supervisor need to know of a role; its prompt stays with the
    worker.
    """

    name: str
    description: str
    tier: RoleTier = "sonnet"
    tools: tuple[str, ...] = ()
    effort: Effort = "medium"
    fallback: str = ""
    team: bool = False
    """True: the role is itself a team; its subtask is a run of its own, one level deeper."""
    fixed_tier: bool = False
    """True: neither climbs to a stronger tier nor falls to a cheaper one."""
    prompt_bytes: int = 0


class PlaybookCard(Contract):
    """A domain variant as the supervisor needs it."""

    name: str
    description: str = ""
    guidance: str = ""
    title: str = ""
    """What a run is about where the caller says nothing else; `{name}` stands for an input."""
    template: str = "merge"
    """Which deterministic synthesis serves without a model."""
    min_confidence: Percent = 0
    verify: int = 0
    """So many of the first remarks by rank a model verifies, in a run with models; then the
    template writes the answer, and no synthesis is paid.
    """
    plan: Plan | None = None


class Omission(Contract):
    """Something that was not planned or not read, and why; no gap."""

    what: str
    why: str


class Capabilities(Contract):
    """What the model endpoint understands: decides what a request may carry."""

    schema_mode: Literal["native", "prompt"] = "native"
    effort: bool = True
    token_counting: bool = True


class Briefing(Contract):
    """What the deployment decides, resolved once at the start of a run."""

    roles: tuple[RoleCard, ...]
    playbook: PlaybookCard | None = None
    inputs: tuple[PinnedInput, ...] = ()
    models: tuple[ModelCard, ...] = ()
    capabilities: Capabilities = Capabilities()
    not_run: tuple[Omission, ...] = ()
    version: str = ""
    span: Span | None = None
    endpoint: str = ""
    """The address that models are asked at; never user, password or query. Empty: none is asked."""
    most_dollars: Money | None = None
    """What this deployment lets a run spend, whatever its Goal says. None: what the Goal says."""

    def within(self, limits: Limits) -> Limits:
        """The limits of a goal, no higher than this deployment allows."""
        if self.most_dollars is None or limits.dollars <= self.most_dollars:
            return limits
        return limits.model_copy(update={"dollars": self.most_dollars})

    def role(self, name: str) -> RoleCard:
        """The card of a role; KeyError if there is none."""
        for card in self.roles:
            if card.name == name:
                return card
        raise KeyError(name)

    def model(self, tier: Tier) -> ModelCard:
        """The model of a tier; KeyError if none serves it."""
        for card in self.models:
            if card.tier == tier:
                return card
        raise KeyError(tier)


# ---------------------------------------------------------------- what a call costs and returns


class Usage(Contract):
    """Tokens of one or more calls, as the endpoint counted them; `input_tokens` excludes the
    cached ones.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields}
        )

    @property
    def total(self) -> int:
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )


class Bill(Contract):
    """What one activity paid: 0 or 1 calls. `dollars` is None when the model has no known price, or
    when nobody knows what the call cost.
    """

    model: str = ""
    calls: int = 0
    usage: Usage = Usage()
    dollars: Money | None = Decimal(0)
    final: bool = True
    """Whether the endpoint's own final count arrived and can be believed; else the call counts at
    its full reservation, or at this bill where that is more.
    """
    note: str = ""
    """What a reader of the report must know of this bill; empty: nothing."""
    assumed: Money = Decimal(0)
    """Of `dollars`, what is the worst case of a call whose answer was lost; 0: all is known."""
    earlier: bool = False
    """Whether it was paid before the run was reset: the journal had the answer, or had the call as
    sent, before this activity did anything.
    """


class Unreached(Contract):
    """An endpoint that could not be reached: nothing was sent, nothing was paid."""

    address: str
    """Scheme, host, port and path; never user, password or query."""
    why: str
    """One line, fit to be shown."""
    unknown_host: bool = False
    """The name does not exist at all; a resolver that does not answer, as in a lost network, is
    False.
    """


class Call(Contract):
    """One model call as the workflow schedules it: the facts that do not depend on its material."""

    id: str
    """The activity id, for example `work-t3-2`."""
    kind: CallKind
    subtask_id: str = ""
    number: int = 1
    tier: Tier = "sonnet"
    model: ModelCard | None = None
    """None: no model may be asked; the activity answers from what it was given (ready plan,
    template merge).
    """
    role: str = ""
    max_output: int = 0
    effort: Effort = "medium"
    ceiling: Money = Decimal(0)
    """Dollars reserved for this call; the worker refuses to send what could cost more."""
    token_ceiling: int = 0
    """Tokens reserved; the bound that counts for an unpriced model."""
    capabilities: Capabilities = Capabilities()
    run: str = ""
    """Temporal's id of the run's first execution: what the journal knows the run by."""


ProblemKind = Literal["refusal", "malformed", "truncated", "invalid", "failed_checks"]


class Problem(Contract):
    """What is wrong with an answer that did arrive: data for the supervisor, never an exception."""

    kind: ProblemKind
    message: str
    answer: str = ""
    """Of a malformed answer, its first 20,000 characters: what a repair works from."""


Value = TypeVar("Value", bound=Contract)


class Reply(Contract, Generic[Value]):
    """What a model activity returns: a value or a problem, and always the bill."""

    value: Value | None = None
    problem: Problem | None = None
    bill: Bill = Bill()
    span: Span | None = None


# ---------------------------------------------------------------- what a subtask produced


class Remark(Contract):
    """One defect that a lens reports."""

    severity: Severity
    file: str
    line: int = 0
    """1-based; 0: the file as a whole."""
    message: str
    suggestion: str = ""
    rule: str = ""
    confidence: Percent
    lens: str = ""
    also: tuple[str, ...] = ()
    """Other lenses and rules that saw the same defect, as `lens:rule`."""
    verdict: Literal["", "confirmed", "refuted", "undecided"] = ""
    """Of a model that looked at the code around it; empty: none did."""
    reason: str = ""
    """Of the verdict."""


class Escalation(Contract):
    """Why an agent gave a subtask back, and what it has so far."""

    reason: EscalationReason
    message: str
    partial: str = ""


class Draft(Contract):
    """What one try of an agent or tool produced, before the supervisor judges it."""

    status: Literal["complete", "failed", "escalated"] = "complete"
    content: str = ""
    data: dict[str, JsonValue] = {}
    confidence: Percent = 100
    sources: tuple[str, ...] = ()
    reason: str = ""
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
    data: dict[str, JsonValue] = {}
    confidence: Percent = 0
    sources: tuple[str, ...] = ()
    reason: str = ""
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
    reused_from: str = ""
    """The run that this finding was taken over from; empty: this run's own."""


class Synthesis(Contract):
    """The run's answer, from a model or a template."""

    answer: str
    data: dict[str, JsonValue] = {}
    confidence: Percent | None = None
    """None: nobody judged the answer as a whole."""
    conflicts: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    by_template: bool = False
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """What the answer cites, counts or links without support in any finding."""


class Gap(Contract):
    """A planned subtask without a complete finding; or the answer, where a template had to write
    it.
    """

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
    """The longest chain of dependent subtasks, each from its start to its end, with what it waited
    in between.
    """


class Revision(Contract):
    """A change of the plan while it ran."""

    number: int
    why: str
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


# ---------------------------------------------------------------- what a person may say to a run


class Order(Contract):
    """One steering command: the argument of every Update. Which fields count, its kind says."""

    subtask_id: str = ""
    text: str = ""
    """An answer, a finding supplied by hand, a new instruction, or why."""
    tier: Tier | None = None
    plan: Plan | None = None
    limits: Limits | None = None
    by: str = ""
    """Who gave it, for the record."""


class Given(Contract):
    """An order of a person whose turn has come, and whether the run could follow it."""

    number: int
    """Of the run's orders, from 1; 0: it was told to the server, as the cancel of a run is."""
    command: str
    order: Order
    at: datetime
    refused: str = ""
    """Why it made no sense any more; empty: it was carried out."""
    before: Plan | None = None
    """Of an edit: the plan as it was."""


# ---------------------------------------------------------------- how a run went


class Report(Contract):
    """The run's final answer with its gaps, price and timings."""

    status: ReportStatus
    run_id: str
    goal: str
    title: str = ""
    """What the run is about, in a line: the goal's words, or of a playbook's own which input."""
    plan: Plan | None = None
    revisions: tuple[Revision, ...] = ()
    findings: tuple[Finding, ...] = ()
    answer: str = ""
    data: dict[str, JsonValue] = {}
    gaps: tuple[Gap, ...] = ()
    not_run: tuple[Omission, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know of how the answer came about, for example that a template wrote
    it.
    """
    flags: tuple[str, ...] = ()
    """What the answer cites, counts or links without support in any finding."""
    confidence: Percent | None = None
    """Of the answer; None: nobody judged it, as in a review without a model."""
    usage: Usage = Usage()
    model_calls: int = 0
    unpaid_calls: int = 0
    """Calls that brought no answer and surely cost nothing; they are not in `model_calls`."""
    dollars_estimated: Money | None = Decimal(0)
    dollars: Money | None = Decimal(0)
    """None: a model without a known price was used."""
    assumed: Money = Decimal(0)
    """Of `dollars`, what is the worst case of calls whose answers were lost."""
    timings: Timings = Timings()
    orders: tuple[Given, ...] = ()
    """What people said to the run, in the order of their turns."""
    version: str = ""
    started: datetime | None = None
    finished: datetime | None = None


# ---------------------------------------------------------------- what a reset undid


class Lost(Contract):
    """A call that was paid, or may have been, and that the run knows nothing of since it was
    reset.
    """

    id: str
    """Of its activity."""
    bill: Bill


class Standstill(Contract):
    """What a team tells the run above it: that it waits, or that it goes on."""

    team: str
    """The team's run."""
    number: int
    """Of what it tells, from 1: the latest counts."""
    why: str = Field("", max_length=500)
    """What it waits for; empty: it goes on."""
    at: AwareDatetime


class Undone(Contract):
    """What a reset undid: told by whoever resets a run, to the run as it goes on."""

    execution: str
    """Temporal's id of the execution that was left."""
    at: AwareDatetime
    """When it was reset: until then, from the point it was reset to, the deadline stood still."""
    lost: tuple[Lost, ...] = ()
    withdrawn: bool = False
    """Whether the server refused the reset after it was told: then nothing was undone."""
    by: str = ""
