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
    started: datetime
    now: datetime
    deadline: datetime | None = None
    waiting: tuple[str, ...] = ()
    """What a person is asked, one `subtask: question` each."""
    notes: tuple[str, ...] = ()
    """What a reader must know now: waiting for a person, throttled, paused, cutting."""
