"""How a run went."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from pydantic import Field, JsonValue

from holdfast.contracts.base import Contract, Money, Percent, ReportStatus
from holdfast.contracts.briefing import Omission
from holdfast.contracts.calls import Usage
from holdfast.contracts.findings import Finding, Gap, Revision, Timings
from holdfast.contracts.goals import AnswerForm, PinnedInput
from holdfast.contracts.orders import Given
from holdfast.contracts.plans import Plan


class Share(Contract):
    """What a run paid for its calls of one kind to one tier, or what a team of it paid for them."""

    kind: str
    """`work`, `plan`, `agent` and so on; `team`: a team that told no kinds; `lost`: paid before the
    run was reset; `taken_back`: for what had begun before the plan was whole and is not in it.
    """
    tier: str = ""
    """Empty: not known."""
    team: str = ""
    """Subtask whose team asked, at any depth; empty: the run itself."""
    calls: int = 0
    usage: Usage = Usage()
    dollars: Money | None = Decimal(0)
    """None: the model has no known price."""
    assumed: Money = Decimal(0)
    """The part of `dollars` that is the worst case of calls whose answers were lost."""
    percent: float | None = None
    """Its part of the report's price, to a tenth; None: the price is not known, or is nothing."""


class Report(Contract):
    """The run's final answer with its gaps, price and timings."""

    status: ReportStatus
    run_id: str
    stopped: str = ""
    """What ended the work early, for example `deadline`; empty: nothing did."""
    more: tuple[str, ...] = ()
    """The limits that ran out, doubled, as `--limits` takes them: what to give a fork."""
    goal: str
    title: str = ""
    project: str = ""
    """Name of the run's project; empty if it has none."""
    plan: Plan | None = None
    revisions: tuple[Revision, ...] = ()
    findings: tuple[Finding, ...] = ()
    answer: str = ""
    form: AnswerForm = AnswerForm()
    document: JsonValue = None
    """The answer as data: a value by the schema, or `columns` and `rows`. None: text only."""
    data: dict[str, JsonValue] = Field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    not_run: tuple[Omission, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Statements, citations and links of the answer without support in any finding."""
    doubtful: tuple[str, ...] = ()
    """The words that the flags are about, in order; a citation in its brackets."""
    confidence: Percent | None = None
    """Confidence in the answer; None if nobody judged it, as in a review without a model."""
    usage: Usage = Usage()
    model_calls: int = 0
    unpaid_calls: int = 0
    """Calls without an answer that surely cost nothing; not in `model_calls`."""
    dollars_estimated: Money | None = Decimal(0)
    dollars: Money | None = Decimal(0)
    """None: a model without a known price was used."""
    assumed: Money = Decimal(0)
    """The part of `dollars` that is the worst case of calls whose answers were lost."""
    prices: tuple[str, ...] = ()
    """Where the prices come from, and of when they are, in sentences."""
    shares: tuple[Share, ...] = ()
    """What the price was paid for, dearest first; they add up to it. Empty: nothing was paid, or
    the report is from before there were shares.
    """
    timings: Timings = Timings()
    orders: tuple[Given, ...] = ()
    version: str = ""
    started: datetime | None = None
    finished: datetime | None = None
