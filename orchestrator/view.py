"""What a reader sees of a run. One `RunView` is the only query; board, terminal and HTML are
functions of it.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from orchestrator.contracts import Contract, Money, ReportStatus

Phase = Literal["preparing", "planning", "approval", "working", "synthesizing", "closed"]
RowStatus = Literal["waiting", "running", "complete", "failed", "escalated", "skipped", "cancelled"]


class Row(Contract):
    """One subtask as it stands."""

    id: str
    title: str
    role: str
    tier: str
    status: RowStatus
    try_number: int = 0
    seconds: float = 0.0
    """Running time so far, or the whole of it."""
    dollars: Money | None = Decimal(0)
    depends_on: tuple[str, ...] = ()
    note: str = ""
    """Why it is not complete, or how many remarks it made."""


class PreviewRow(Contract):
    """What one subtask is expected to cost and take. Dollars are None for a model without a
    price.
    """

    id: str
    title: str
    role: str
    tier: str
    depends_on: tuple[str, ...] = ()
    low: Money | None = Decimal(0)
    expected: Money | None = Decimal(0)
    high: Money | None = Decimal(0)
    """The worst case of one call: what is reserved for it."""
    seconds: float = 0.0


class Preview(Contract):
    """A plan before it is paid: an estimate, never a promise; the cap is the promise."""

    rows: tuple[PreviewRow, ...]
    low: Money | None = Decimal(0)
    expected: Money | None = Decimal(0)
    high: Money | None = Decimal(0)
    """One call per subtask at its worst, planning and finishing included; never above the cap."""
    critical_path: tuple[str, ...] = ()
    makespan: float = 0.0
    """Seconds of the work under the concurrency limit, at the expected speed."""
    leaves: tuple[str, ...] = ()
    """Inputs whose content is sent to a model endpoint, with their sizes."""


class RunView(Contract):
    """The state of a run, for readers."""

    run_id: str
    goal: str
    phase: Phase
    status: ReportStatus | None = None
    rows: tuple[Row, ...] = ()
    dollars_spent: Money | None = Decimal(0)
    dollars_reserved: Money = Decimal(0)
    dollars_cap: Money = Decimal(0)
    model_calls: int = 0
    model_calls_cap: int = 0
    tokens_cap: int = 0
    started: datetime
    now: datetime
    deadline: datetime | None = None
    tiers: tuple[str, ...] = ()
    """Of the model calls in flight."""
    waiting: tuple[str, ...] = ()
    """What a person is asked, one `what: question` each."""
    preview: Preview | None = None
    """The plan's price and time, while it waits for approval."""
    notes: tuple[str, ...] = ()
    """What a reader must know now: waiting for a person, throttled, paused, cutting."""
    answer: str = ""
    """Markdown, once there is one and the run is over."""
