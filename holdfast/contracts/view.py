"""What readers see of a run. Board, terminal and HTML are functions of a `RunView`."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import Field

from holdfast.contracts import Contract, Money, Plan, ReportStatus

Phase = Literal["preparing", "planning", "approval", "working", "synthesizing", "closed"]
RowStatus = Literal[
    "waiting", "running", "paused", "complete", "failed", "escalated", "skipped", "cancelled"
]  # fmt: skip
"""`paused`: by an operator, in Temporal. Only readers know it; to the run it is running."""


class Row(Contract):
    """One subtask as it stands."""

    id: str
    title: str
    role: str
    """The role that has it now, which may be a fallback."""
    tier: str
    status: RowStatus
    try_number: int = 0
    seconds: float = 0.0
    """Running time, so far or in all."""
    dollars: Money | None = Decimal(0)
    assumed: Money = Decimal(0)
    """The part of `dollars` that is the worst case of calls whose answers were lost."""
    depends_on: tuple[str, ...] = ()
    note: str = ""
    """Why it is not complete, or how many remarks it made."""
    turns: int = 0
    """Turns of an agent with tools, up to its last report."""
    tool_calls: int = 0
    failed_calls: int = 0
    doing: str = ""
    """The turn and tool that such an agent is at, and its price so far. Readers know it from the
    agent's own history: the run's history would grow with each turn.
    """
    why: str = ""
    """Why it is in the plan and why its role does it, in the planner's words."""
    planned_role: str = ""
    """The plan's own role, where a fallback has the subtask; else empty."""

    @property
    def who(self) -> str:
        """The role that does it, and whose fallback it is, which explains a try too many."""
        return f"{self.role} for {self.planned_role}" if self.planned_role else self.role


RowKind = Literal[
    "planning",
    "subtask",
    "team",
    "agent",
    "map",
    "verification",
    "proof",
    "digest",
    "judge",
    "synthesis",
    "reading",
]


class LanePrice(Contract):
    """What the rows of a map are expected to cost in one lane, and how long they take."""

    lane: Literal["now", "batch"]
    low: Money | None = Decimal(0)
    expected: Money | None = Decimal(0)
    high: Money | None = Decimal(0)
    uncached: Money | None = None
    """Expected, were what all rows begin with read anew for each; None: it is."""
    seconds: float = 0.0
    """Usual; of batches most end within an hour, and none takes more than a day."""


class MapPreview(Contract):
    """A map before it is paid."""

    items: int
    """Items found, broken ones included; 0: nobody has counted them."""
    whole: bool = True
    """False: there are more, but there was no time to count them."""
    asked: int = 0
    """Items that cost a call."""
    broken: int = 0
    """Items that cannot be asked, and cost nothing."""
    samples: tuple[str, ...] = ()
    """The first of these, each with its place and why."""
    note: str = ""
    """What is to be known of how the items were read."""
    barred: str = ""
    """Why nothing is asked at first, and what is to be done; empty: it is."""
    reused: int = 0
    """Items whose rows an earlier run has, which cost nothing."""
    reused_from: str = ""
    """That run; empty: none was named."""
    unused: str = ""
    """Why nothing of it is taken over; empty: something is."""
    at_once: int = 1
    """Calls in flight at most."""
    takes: Literal["now", "batch"] = "now"
    why: str = ""
    """Why it takes that lane, as the rest of a sentence."""
    written: int = 0
    """Tokens of a usual answer, where its plan states none: an assumption."""
    lanes: tuple[LanePrice, ...] = ()


class PreviewRow(Contract):
    """The expected cost and time of one part of a run. Dollars are whole hundredths of a cent, so
    that rows add up as they are shown; None for a model without a price.
    """

    id: str
    """Subtask id, or the kind for the supervisor's own calls."""
    title: str
    role: str
    tier: str
    """Tier of the model that is asked first; `none`: a tool."""
    kind: RowKind = "subtask"
    depends_on: tuple[str, ...] = ()
    low: Money | None = Decimal(0)
    expected: Money | None = Decimal(0)
    high: Money | None = Decimal(0)
    """The worst case of one try, which is reserved for it. For a team: its slice of the money. For
    an agent with tools: all its turns at their longest, or the cap; only `slice` is reserved at a
    time.
    """
    turns: int = 0
    """The most turns of an agent with tools."""
    tools: tuple[str, ...] = ()
    """The tools that it has for its inputs."""
    approval: tuple[str, ...] = ()
    """The tools of an agent of which a person must approve each call."""
    slice: Money | None = None
    """What is reserved at a time for an agent with tools."""
    max_output: int = 0
    """Tokens of one answer, where the plan sets them."""
    timeout_seconds: int = 0
    """Time limit of one call, where the plan sets it."""
    seconds: float = 0.0
    why: str = ""
    paid: bool = False
    """True if the three prices have been paid already."""
    reused: bool = False
    """True if its finding comes from another run: nothing is asked for it."""
    tokens: int = 0
    """Input tokens that it is expected to read at first; of a map, those of one item."""
    past: int = 0
    """Such rows of closed runs whose prices `low`, `expected` and `high` are: 5 % cost less and 5 %
    more than the outer two, which stand further apart while they are few. 0: by sizes alone.
    """
    worst: Money | None = None
    """What `high` would be by sizes alone, where it is by the past."""
    map: MapPreview | None = None
    """Of a subtask that is done once for each item of an input."""
    warms: tuple[str, ...] = ()
    """Subtasks that wait for it, as their calls begin alike, and read that from the cache."""
    begins: int = 0
    """Tokens that each of these will read there, as they are expected."""

    @property
    def of_plan(self) -> bool:
        """True if it is a subtask of the plan, and not the supervisor's own work."""
        return self.kind in ("subtask", "team", "agent", "map")

    @property
    def asks(self) -> bool:
        return not (self.paid or self.reused or self.tier == "none")


class Preview(Contract):
    """A plan before it is paid: an estimate, never a promise; the cap is the promise.

    Tries that are not accepted, changes of the plan and a revision of the answer are in no row.
    """

    rows: tuple[PreviewRow, ...]
    """Planning as it was paid, the subtasks in plan order, and what makes the answer of them."""
    low: Money | None = Decimal(0)
    expected: Money | None = Decimal(0)
    high: Money | None = Decimal(0)
    """Each is the sum of its rows; `high` may exceed the cap, which holds all the same."""
    critical_path: tuple[str, ...] = ()
    makespan: float = 0.0
    """Seconds of the work under the concurrency limit, at the expected speed."""
    leaves: tuple[str, ...] = ()
    """What is sent to the endpoint from here on; empty: no model is asked any more."""
    reached: tuple[str, ...] = ()
    """Other places to which tools send agents' words, each with the roles and subtasks that may."""
    endpoint: str = ""
    taken: tuple[str, ...] = ()
    """How much of each repository is read, and why, where there was a choice."""
    without: tuple[str, ...] = ()
    """What this deployment cannot give the run, and why."""
    composed: tuple[str, ...] = ()
    """The roles that the plan composes, a line each."""
    brought: tuple[str, ...] = ()
    """Playbook, roles and tools of the plan that are not shipped."""
    prices: tuple[str, ...] = ()
    """Where the prices come from, and of when they are, in sentences."""
    lowered: tuple[str, ...] = ()
    """What the cap takes down a tier, or leaves out."""
    enough: Money | None = None
    """A cap under which the plan is carried out as it stands, where the run's own is too small for
    that; None: it is not, or no allowed cap would do.
    """
    choice: str = ""
    """Which of many roles the planner was shown, and why; empty: all, of few."""
    template: str = ""
    """Says which template of the plan library the plan is from and what that saves, or why one is
    not used whose words fit; empty: neither.
    """
    single: str = ""
    """Says that the only subtask's finding is the answer, and why one is enough; else empty."""
    alone: PreviewRow | None = None
    """The whole goal by one agent, beside a team of several; None: there is no such team."""
    by_tier: dict[str, Money | None] = Field(default_factory=dict)
    """The expected price of the same plan by tier, were each call that is still to come asked of
    that tier's model under an ample cap; empty: nothing is asked, all tiers cost the same, or the
    plan has more than a hundred subtasks.
    """
    overstaffed: str = ""
    """Why the plan seems to have more agents than work; empty if it does not."""
    plan: Plan | None = None
    """Everything that is asked: instructions, criteria, checks and inputs of each subtask."""

    @property
    def subtasks(self) -> tuple[PreviewRow, ...]:
        return tuple(row for row in self.rows if row.of_plan)

    @property
    def asks(self) -> bool:
        return any(row.asks for row in self.rows)


QuestionKind = Literal["subtask", "decision", "call", "plan", "budget", "paused"]


class Question(Contract):
    """What a run asks a person: about its plan, cap, pause, an agent's question or tool call, or
    what becomes of a subtask that is not complete.
    """

    kind: QuestionKind
    subtask_id: str = ""
    """The subtask whose agent asks; empty where the run itself does."""
    text: str = ""
    """The question, the call with all its arguments, or what there is no money for."""
    call: int = 0
    """Number of the call to approve; 0 if it is not about one."""
    roles: tuple[str, ...] = ()
    """The roles that the subtask may be handed to."""
    rows: bool = False
    """True if too many rows of a map have failed: it goes on, stops, or has some tried again."""
    least: Money | None = None
    """The least cap in dollars under which the run goes on, where it waits for a higher one."""


class RunView(Contract):
    """The state of a run, for readers."""

    run_id: str
    goal: str
    title: str = ""
    project: str = ""
    """Name of the run's project; empty if it has none."""
    phase: Phase
    status: ReportStatus | None = None
    rows: tuple[Row, ...] = ()
    dollars_spent: Money | None = Decimal(0)
    assumed: Money = Decimal(0)
    """The part of `dollars_spent` that is the worst case of calls whose answers were lost."""
    dollars_reserved: Money = Decimal(0)
    dollars_cap: Money = Decimal(0)
    use_models: bool = False
    model_calls: int = 0
    model_calls_cap: int = 0
    tokens_cap: int = 0
    started: datetime
    now: datetime
    waiting_since: datetime | None = None
    """Since when only a person or a lost endpoint keeps the run."""
    outage: str = ""
    """Since when the endpoint is away, and what is tried next. Also a note."""
    held: str = ""
    """What holds the whole run from outside of it, as its reader knows."""
    tiers: tuple[str, ...] = ()
    """Tiers of the model calls in flight."""
    waiting: tuple[Question, ...] = ()
    """Questions to people."""
    preview: Preview | None = None
    """The plan with its expected price and time; None before there is one."""
    notes: tuple[str, ...] = ()
    """What a reader must know now: waiting for a person, throttled, paused, cutting."""
    answer: str = ""
    """Markdown, once the run is over."""
    verdict: str = ""
    """How a review came out, and what it lacks; empty of other runs, and until it is over."""
    flags: tuple[str, ...] = ()
    """Statements, citations and links of the answer without support in any finding."""
    doubtful: tuple[str, ...] = ()
    """Same as in the report."""
