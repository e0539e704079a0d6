"""The shapes of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import JsonValue

from holdfast.contracts import Contract, Money, Usage
from holdfast.history.losses import Loss
from holdfast.tracing.context import SpanContext

TITLE_LETTERS = 80
"""The most of a goal that stands for it as a title."""
StepKind = Literal[
    "run", "subtask", "team", "agent", "map", "call", "tool", "lens", "prepare", "order"
]
StepStatus = Literal["ok", "error", "cancelled", "skipped", "running", "unfinished"]
"""`unfinished`: the run was closed from outside while it was under way."""


class TraceStep(Contract):
    """One thing that a run did: an activity, a run below it, a subtask, a person's order, or the
    run as a whole. An activity is one step however often it was attempted.
    """

    session: str
    """The run that a person started, whatever team or agent below it did this."""
    id: str
    """Unique in the session, and the same whenever the trace is made."""
    parent: str = ""
    """The step that it is a part of; empty: it is the whole."""
    kind: StepKind
    name: str
    """An activity's id, a run's workflow id, a subtask's id, or an order's command."""
    run: str
    """The workflow in whose history it stands."""
    subtask: str = ""
    title: str = ""
    agent: str = ""
    """The role that did it."""
    secondary: str = ""
    """Second role of a subtask."""
    task: str = ""
    """A hash of role and instruction: the same for equal work, in whatever run."""
    because: str = ""
    """Planner's reason for a subtask and its role."""
    call: str = ""
    """Kind of a model call."""
    tool: str = ""
    arguments: str = ""
    """Arguments of a tool call in a few harmless words; for an order about such a call,
    its subtask, tool and all arguments.
    """
    size: int = 0
    """Bytes of what a tool brought."""
    rows: int = 0
    """Calls about rows of a map, which are made together."""
    outcomes: str = ""
    """SHA-256 of what came of each of them, which is in the store."""
    by: str = ""
    """The person who approved a call of a tool, or gave an order; empty: there was none."""
    tier: str = ""
    model: str = ""
    try_number: int = 0
    """Number of its try at the subtask, from 1; 0: none."""
    attempt: int = 0
    """How often Temporal had begun it; 0: never."""
    lost: Loss = ""
    """How its last attempt, or the one before it, was lost with its worker; empty: it was not."""
    status: StepStatus = "running"
    verdict: str = ""
    """The supervisor's: `accepted`, or the kind of problem."""
    why: str = ""
    """The reason for the verdict."""
    started: datetime | None = None
    """Start by the server's clock; None while it waits in its queue."""
    ended: datetime | None = None
    seconds: float = 0.0
    queued: float = 0.0
    """Seconds that it waited in its queue before its last attempt began."""
    tokens: Usage = Usage()
    dollars: Money | None = Decimal(0)
    """None: nobody knows, or the model has no price."""
    assumed: Money = Decimal(0)
    """The part of `dollars` that is a worst case."""
    input: JsonValue = None
    """Arguments, where content was asked for."""
    output: JsonValue = None


@dataclass(frozen=True)
class Trace:
    """The steps of a run and of all runs below it."""

    run_id: str
    first_run: str
    """Temporal's id of the run's first execution: it tells runs of one name apart."""
    steps: tuple[TraceStep, ...]
    caller: SpanContext | None = None
    """The span that the run hangs under; None: it begins a trace of its own."""
    unreadable: str = ""
    """Why verdicts and subtasks are not in it; empty: they are."""


def place_steps(steps: Sequence[TraceStep]) -> tuple[TraceStep, ...]:
    """Return the steps in the order of their beginnings, each below a step that there is."""
    known = {each.id for each in steps}
    root = next((each.id for each in steps if not each.parent), "")
    put = [
        each
        if not each.parent or each.parent in known
        else each.model_copy(update={"parent": root if each.id != root else ""})
        for each in steps
    ]
    late = max((each.ended or each.started for each in put if each.started), default=None)
    return tuple(
        sorted(put, key=lambda each: (each.started or late, bool(each.parent)))
        if late is not None
        else put
    )


def last_moment(steps: Sequence[TraceStep]) -> datetime | None:
    """Return the latest moment that a trace knows: what has not ended is drawn until then."""
    moments = [moment for each in steps for moment in (each.started, each.ended) if moment]
    return max(moments, default=None)
