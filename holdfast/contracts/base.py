"""The base of all contracts, and the values that they are made of."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MICRODOLLAR = Decimal("0.000001")


def dollars(amount: Decimal | int | str) -> Decimal:
    """Quantise dollars to a millionth, rounded up. ValueError for what is not an amount."""
    try:
        # Plus nothing: -0 is 0.
        return Decimal(amount).quantize(MICRODOLLAR, rounding=ROUND_UP) + 0
    except InvalidOperation as error:
        raise ValueError("is not an amount of dollars") from error


ProjectName = Annotated[str, Field(exclude_if=lambda name: not name)]
"""Name of the project whose roles and tools a run has; empty: those of any run. An
empty one is not written: calls of runs from before there were names keep their keys in the journal.
"""
Money = Annotated[Decimal, AfterValidator(dollars)]
Percent = Annotated[int, Field(ge=0, le=100)]

Tier = Literal["haiku", "sonnet", "opus"]
RoleTier = Literal["none", "haiku", "sonnet", "opus"]
Effort = Literal["low", "medium", "high"]
Urgency = Literal["urgent", "normal", "bulk"]
Strategy = Literal["merge", "select", "reduce"]
InputKind = Literal["text", "file", "repository", "folder"]
InputForm = Literal["folder", "repository", "change", "document", "table"]
"""What an input is to the tools that read it; a change: a repository that is compared with a
revision.
"""
FileKind = Literal[
    "production", "tests", "docs", "examples", "generated", "vendored", "minified", "built"
]
"""Purpose of a file in a repository; people do not edit the last four."""
FindingStatus = Literal["complete", "failed", "escalated", "skipped", "cancelled"]
EscalationReason = Literal[
    "out_of_scope", "not_in_material", "ambiguous_input", "confidence_too_low", "timeout"
]
"""Why an agent gives a subtask back: it belongs to another role, its material does not hold what is
asked, it has two readings, nothing sure came of it, or it is too large.
"""
AnswerKind = Literal["", "markdown", "json", "table"]
ReportStatus = Literal[
    "complete", "complete_with_gaps", "budget_stopped", "deadline_partial", "declined",
    "cancelled", "failed"
]  # fmt: skip
Severity = Literal["critical", "warning", "info"]
Verdict = Literal["confirmed", "refuted", "open"]
"""What became of a remark that somebody verified; `open`: what there is to see does not tell."""
CheckKind = Literal[
    "valid_json", "keys", "regex", "contains", "min_words", "max_words", "cites_sources",
    "number_between", "adds_up", "acyclic"
]  # fmt: skip

HARD_SUBTASK_LIMIT = 1_000
"""Most subtasks of a plan that people write: so many surely fit into one history."""
PLANNED_SUBTASK_LIMIT = 30
"""Subtasks of a plan that a model makes."""
LONGEST_CALL_SECONDS = 3_600
"""The most for one call of a model or tool, and so for draining a worker."""


class Contract(BaseModel):
    """Base of every durable shape."""

    # Built at first use: a command uses few of the shapes that it imports.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Span(Contract):
    """When an activity ran: its last attempt's start by the server's clock, and that start plus
    what the worker measured. So no two clocks are compared.
    """

    started: datetime
    ended: datetime
