"""What happened in a run, event by event, as programs that follow it are told."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from holdfast.contracts.base import Contract, Money, ReportStatus
from holdfast.contracts.plans import Plan


class Price(Contract):
    """What a plan is expected to cost, in dollars; None where a model has no known price."""

    low: Money | None
    expected: Money | None
    high: Money | None


class RunEvent(Contract):
    """What all events have. They are read from the run's history, and never change."""

    id: str
    """Place in the history: its event number, as in `57`. Of several events at one place all but
    the last have a second number, as in `57.1`; behind `@` stands the execution after a reset.
    """
    run_id: str
    at: datetime
    dollars: Money | None = Decimal(0)
    """Paid by the run so far; None where a model has no known price."""


class RunStarted(RunEvent):
    kind: Literal["run_started"] = "run_started"
    goal: str


class PlanMade(RunEvent):
    """There is a plan, or another one after an edit."""

    kind: Literal["plan_made"] = "plan_made"
    plan: Plan
    price: Price


class PlanWaits(RunEvent):
    """A person must approve, edit or reject the plan."""

    kind: Literal["plan_waits"] = "plan_waits"
    plan: Plan
    price: Price


class SubtaskStarted(RunEvent):
    kind: Literal["subtask_started"] = "subtask_started"
    subtask: str
    title: str
    role: str
    tier: str
    try_number: int


class SubtaskEnded(RunEvent):
    kind: Literal["subtask_ended"] = "subtask_ended"
    subtask: str
    title: str
    role: str
    status: Literal["complete", "failed", "escalated", "skipped", "cancelled"]
    seconds: float
    price: Money | None
    note: str = ""
    """Why it is not complete, or how many remarks it made."""


class QuestionAsked(RunEvent):
    """A subtask waits for a person: it asks something, or nobody could complete it."""

    kind: Literal["question_asked"] = "question_asked"
    subtask: str
    text: str
    undecided: bool
    """True if it failed and a person says what becomes of it; False: its agent asks."""


class CallWaits(RunEvent):
    """A person must approve or decline the call of a tool."""

    kind: Literal["call_waits"] = "call_waits"
    subtask: str
    call: int
    text: str
    """The tool and its arguments."""


class BudgetReached(RunEvent):
    """The run waits for a higher cap."""

    kind: Literal["budget_reached"] = "budget_reached"
    text: str


class OrderTaken(RunEvent):
    """Somebody has told the run what to do."""

    kind: Literal["order_taken"] = "order_taken"
    command: str
    by: str
    subtask: str = ""
    call: int = 0
    refused: str = ""
    """Why it no longer made sense; empty: it was carried out."""


class EndpointAway(RunEvent):
    """No model answers; the run waits, and its deadline stands still."""

    kind: Literal["endpoint_away"] = "endpoint_away"
    text: str


class EndpointBack(RunEvent):
    kind: Literal["endpoint_back"] = "endpoint_back"


class RunReset(RunEvent):
    """The run was set back: what happened after that place of its history is undone."""

    kind: Literal["run_reset"] = "run_reset"


class RunEnded(RunEvent):
    kind: Literal["run_ended"] = "run_ended"
    status: ReportStatus | Literal["refused"]
    """`refused`: the run was told something wrong, and has no report."""
    verdict: str = ""
    """How a review came out; empty of other runs."""


AnyEvent = Annotated[
    RunStarted
    | PlanMade
    | PlanWaits
    | SubtaskStarted
    | SubtaskEnded
    | QuestionAsked
    | CallWaits
    | BudgetReached
    | OrderTaken
    | EndpointAway
    | EndpointBack
    | RunReset
    | RunEnded,
    Field(discriminator="kind"),
]
"""One of all, told apart by its `kind`."""
