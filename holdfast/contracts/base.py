"""Values that every shape is made of, and the base of all."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MICRODOLLAR = Decimal("0.000001")


def dollars(amount: Decimal | int | str) -> Decimal:
    """Quantise an amount of dollars to a millionth, rounded up: a price is never understated.
    ValueError where the amount has no such form.
    """
    try:
        # Plus nothing: -0 is 0.
        return Decimal(amount).quantize(MICRODOLLAR, rounding=ROUND_UP) + 0
    except InvalidOperation as error:
        raise ValueError("is no amount of dollars") from error


Money = Annotated[Decimal, AfterValidator(dollars)]
Percent = Annotated[int, Field(ge=0, le=100)]

Tier = Literal["haiku", "sonnet", "opus"]
RoleTier = Literal["none", "haiku", "sonnet", "opus"]
Effort = Literal["low", "medium", "high"]
Strategy = Literal["merge", "select"]
InputKind = Literal["text", "file", "repository", "folder"]
FileKind = Literal[
    "production", "tests", "docs", "examples", "generated", "vendored", "minified", "built"
]
"""What a file of a repository is for; the last four are not what people edit."""
FindingStatus = Literal["complete", "failed", "escalated", "skipped", "cancelled"]
EscalationReason = Literal[
    "out_of_scope", "not_in_material", "ambiguous_input", "confidence_too_low", "timeout"
]
"""Why an agent gives a subtask back: it is another role's, what it asks for stands in nothing that
the agent was given, it can be read in two ways, nothing sure came of it, or it is too large.
"""
AnswerKind = Literal["", "markdown", "json", "table"]
ReportStatus = Literal[
    "complete", "complete_with_gaps", "budget_stopped", "deadline_partial", "declined",
    "cancelled", "failed"
]  # fmt: skip
Severity = Literal["critical", "warning", "info"]
CheckKind = Literal[
    "valid_json", "keys", "regex", "contains", "min_words", "max_words", "cites_sources",
    "number_between"
]  # fmt: skip

HARD_SUBTASK_LIMIT = 1_000
"""Of a plan that somebody wrote: what a history of 51,200 events and 50 MB surely holds."""
PLANNED_SUBTASK_LIMIT = 30
"""Of a plan that a model makes."""
LONGEST_CALL_SECONDS = 3_600
"""No call of a model or a tool takes longer, and no worker that drains has to wait longer."""


class Contract(BaseModel):
    """Base of every durable shape."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Span(Contract):
    """When an activity ran: the last attempt's start by the server's clock, and its end, which is
    that start plus what the worker measured, so that no two clocks are ever compared.
    """

    started: datetime
    ended: datetime
