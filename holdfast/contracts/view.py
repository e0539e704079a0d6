"""What a reader sees of a run. One `RunView` is the only query; board, terminal and HTML are
functions of it.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from holdfast.contracts import Contract, Money, Plan, ReportStatus

Phase = Literal["preparing", "planning", "approval", "working", "synthesizing", "closed"]
RowStatus = Literal[
    "waiting", "running", "paused", "complete", "failed", "escalated", "skipped", "cancelled"
]  # fmt: skip
"""`paused`: by an operator, in Temporal. Readers alone know it: to the run itself it is running."""


class Row(Contract):
    """One subtask as it stands."""

    id: str
    title: str
    role: str
    """Who does it: after the plan's own role, its fallback."""
    tier: str
    status: RowStatus
    try_number: int = 0
    seconds: float = 0.0
    """Running time so far, or the whole of it."""
    dollars: Money | None = Decimal(0)
    assumed: Money = Decimal(0)
    """Of `dollars`, what is the worst case of calls whose answers were lost."""
    depends_on: tuple[str, ...] = ()
    note: str = ""
    """Why it is not complete, or how many remarks it made."""
    turns: int = 0
    """Of an agent with tools, up to the last time that it came back for money."""
    tool_calls: int = 0
    failed_calls: int = 0
    doing: str = ""
    """The turn and the tool that such an agent is at, and what it cost so far. While it works,
    readers alone know it, from its own history: the run's would grow by it with each turn.
    """
    why: str = ""
    """What it is in the plan for, and why its role does it, as the planner says it."""
    planned_role: str = ""
    """The plan's own role, where a fallback has taken the subtask over; else empty."""

    @property
    def who(self) -> str:
        """Who does it, and as whose fallback: what explains a try more than the limits allow."""
        return f"{self.role} for {self.planned_role}" if self.planned_role else self.role


RowKind = Literal[
    "planning",
    "subtask",
    "team",
    "agent",
    "verification",
    "digest",
    "judge",
    "synthesis",
    "reading",
]


class PreviewRow(Contract):
    """What one part of a run is expected to cost and take. Dollars are whole hundredths of a cent,
    so that rows add up as they are shown; None for a model without a price.
    """

    id: str
    """Of the subtask; for what the supervisor itself asks, the kind."""
    title: str
    role: str
    tier: str
    """Of the model that is asked first; `none`: a tool."""
    kind: RowKind = "subtask"
    depends_on: tuple[str, ...] = ()
    low: Money | None = Decimal(0)
    expected: Money | None = Decimal(0)
    high: Money | None = Decimal(0)
    """The worst case of one try, which is reserved for it. Of a team: its slice of the money. Of an
    agent with tools: all its turns at their longest, or the cap; no more than `slice` is reserved.
    """
    turns: int = 0
    """Of an agent with tools: the most that it may take."""
    approval: tuple[str, ...] = ()
    """Of an agent with tools: those of which a person must approve each call."""
    slice: Money | None = None
    """Of an agent with tools: what is reserved for it at a time."""
    max_output: int = 0
    """Tokens of one answer, where the plan sets them."""
    timeout_seconds: int = 0
    """Of one call, where the plan sets it."""
    seconds: float = 0.0
    why: str = ""
    """As in the plan."""
    paid: bool = False
    """Whether the three prices are what was paid already."""
    reused: bool = False
    """Whether its finding is taken over from another run: nothing is asked for it."""

    @property
    def of_plan(self) -> bool:
        """Whether it is a subtask of the plan, and no part of the supervisor's own work."""
        return self.kind in ("subtask", "team", "agent")

    @property
    def asks(self) -> bool:
        """Whether a model will be asked for it."""
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
    """Each of these is the sum of its rows; `high` may exceed the cap, which holds all the same."""
    critical_path: tuple[str, ...] = ()
    makespan: float = 0.0
    """Seconds of the work under the concurrency limit, at the expected speed."""
    leaves: tuple[str, ...] = ()
    """What is sent to the model endpoint from here on; of inputs, with their sizes. Empty: no model
    is asked any more.
    """
    reached: tuple[str, ...] = ()
    """Where tools send words of agents besides: each with the roles and subtasks that may."""
    endpoint: str = ""
    """Where to: the address of the worker's endpoint."""
    taken: tuple[str, ...] = ()
    """How much of each repository is read, and why, where that was chosen."""
    without: tuple[str, ...] = ()
    """What this deployment cannot give the run, and why; the rest goes on without."""
    composed: tuple[str, ...] = ()
    """The roles that the plan composes, a line each."""
    brought: tuple[str, ...] = ()
    """The playbook and the roles of the plan that do not ship, a line each."""
    lowered: tuple[str, ...] = ()
    """What the cap takes down a tier, or leaves out."""
    enough: Money | None = None
    """The cap under which the plan is carried out as it stands, where the run's own is too small
    for that; None: it is not, or no cap that is allowed would do.
    """
    plan: Plan | None = None
    """All that is asked: instructions, criteria, checks and inputs of each subtask."""

    @property
    def subtasks(self) -> tuple[PreviewRow, ...]:
        """The rows of the plan."""
        return tuple(row for row in self.rows if row.of_plan)

    @property
    def asks(self) -> bool:
        """Whether any model will be asked."""
        return any(row.asks for row in self.rows)


QuestionKind = Literal["subtask", "call", "plan", "budget", "paused"]


class Question(Contract):
    """What a run asks of a person: whether its plan is good, more money, to go on, what an agent
    wants to know, or whether it may make a call of a tool.
    """

    kind: QuestionKind
    subtask_id: str = ""
    """Of the subtask whose agent asks; empty where the run itself does."""
    text: str = ""
    """What the agent asks, the call that it wants to make with all its arguments, or what there is
    no money for; empty where the kind says it all.
    """
    call: int = 0
    """The number of the call that is to be approved; 0: it is about none."""


class RunView(Contract):
    """The state of a run, for readers."""

    run_id: str
    goal: str
    title: str = ""
    """What the run is about, in a line."""
    phase: Phase
    status: ReportStatus | None = None
    rows: tuple[Row, ...] = ()
    dollars_spent: Money | None = Decimal(0)
    assumed: Money = Decimal(0)
    """Of the dollars spent, what is the worst case of calls whose answers were lost."""
    dollars_reserved: Money = Decimal(0)
    dollars_cap: Money = Decimal(0)
    use_models: bool = False
    """Whether any model may be asked."""
    model_calls: int = 0
    model_calls_cap: int = 0
    tokens_cap: int = 0
    started: datetime
    now: datetime
    """The moment of what was heard last."""
    waiting_since: datetime | None = None
    """Since when nothing but a person or a lost endpoint keeps the run; None: something else does,
    or it is over.
    """
    outage: str = ""
    """That the endpoint of the models is away, since when, and what is tried next; empty: it is
    there, or not needed now. Also a note.
    """
    tiers: tuple[str, ...] = ()
    """Of the model calls in flight."""
    waiting: tuple[Question, ...] = ()
    """What a person is asked."""
    preview: Preview | None = None
    """The plan with its price and time as they were expected; None before there is one."""
    notes: tuple[str, ...] = ()
    """What a reader must know now: waiting for a person, throttled, paused, cutting."""
    answer: str = ""
    """Markdown, once there is one and the run is over."""
    flags: tuple[str, ...] = ()
    """What that answer cites, counts or links without support in any finding."""
    doubtful: tuple[str, ...] = ()
    """As in the report."""
