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


class Report(Contract):
    """The run's final answer with its gaps, price and timings."""

    status: ReportStatus
    run_id: str
    stopped: str = ""
    """What ended the work before it was done, as `deadline`; empty: nothing did."""
    more: tuple[str, ...] = ()
    """The limits that ran out, doubled, as `--limits` takes them: what a fork should be given."""
    goal: str
    title: str = ""
    """What the run is about, in a line: the goal's words, or of a playbook's own which input."""
    plan: Plan | None = None
    revisions: tuple[Revision, ...] = ()
    findings: tuple[Finding, ...] = ()
    answer: str = ""
    form: AnswerForm = AnswerForm()
    """How the answer was to look."""
    document: JsonValue = None
    """The answer as data in that form: a value by the schema, or `columns` and `rows` of a table.
    None: it is text alone.
    """
    data: dict[str, JsonValue] = Field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    not_run: tuple[Omission, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know of how the answer came about, as that a template wrote it."""
    flags: tuple[str, ...] = ()
    """What the answer cites, counts or links without support in any finding."""
    doubtful: tuple[str, ...] = ()
    """The words that the flags are about, in their order, as the answer has them; a citation in its
    brackets.
    """
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
