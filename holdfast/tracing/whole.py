"""Makes the steps that only a run's state has: subtasks and orders of people; and sums. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from holdfast.contracts import FindingStatus
from holdfast.rules.one_agent import SINGLE
from holdfast.rules.reporting import status_of
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.tracing.facts import Facts, describe_subtask
from holdfast.tracing.steps import StepStatus, TraceStep

_STATUS: Mapping[FindingStatus, StepStatus] = {
    "complete": "ok",
    "failed": "error",
    "escalated": "error",
    "skipped": "skipped",
    "cancelled": "cancelled",
}


def subtask_step_id(run: str, subtask: str) -> str:
    """Return the id of a subtask's step. `run`: that of its run."""
    return f"{run}:{subtask}"


def subtask_steps(
    state: State, steps: Sequence[TraceStep], session: str, own: str, closed: datetime | None
) -> Iterator[TraceStep]:
    """Return a step for each subtask that was begun or has ended."""
    parts: dict[str, list[TraceStep]] = {}
    for each in steps:
        parts.setdefault(each.parent, []).append(each)
    for progress in state.work.values():
        id = subtask_step_id(own, progress.subtask.id)
        inside = parts.get(id, [])
        if not inside and progress.finding is None:
            continue
        started, ended = _span(progress, inside, closed)
        yield TraceStep(
            session=session,
            id=id,
            parent=own,
            kind="subtask",
            name=progress.subtask.id,
            run=state.run_id,
            agent=progress.subtask.role,
            secondary=progress.subtask.secondary,
            because=progress.subtask.why,
            started=started,
            ended=ended,
            seconds=(ended - started).total_seconds() if started and ended else 0.0,
            **describe_subtask(progress.subtask),
            **_outcome(progress, over=ended is not None),
        )


def _span(
    progress: Progress, inside: Sequence[TraceStep], closed: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """Return from when to when, its parts included: the rules learn of a moment only with what
    comes back, by the worker's own measure.
    """
    finding = progress.finding
    starts = [each.started for each in inside if each.started]
    ends = [each.ended for each in inside if each.ended]
    if finding is not None and finding.finished is not None:
        ends.append(finding.finished)
    ended = max(ends, default=None) if finding is not None else closed
    if progress.started is not None:
        starts.append(progress.started)
    return min(starts, default=ended), ended


def _outcome(progress: Progress, *, over: bool) -> Facts:
    finding = progress.finding
    status: StepStatus = "unfinished" if over else "running"
    return {
        "tier": progress.called if progress.called != "none" else "",
        "model": progress.model,
        "try_number": len(progress.tries),
        "status": _STATUS[finding.status] if finding else status,
        "verdict": finding.status if finding else "",
        "why": finding.why if finding else progress.why,
        "tokens": progress.usage,
        "dollars": progress.paid.dollars,
        "assumed": progress.paid.assumed,
    }


def order_steps(state: State, session: str, own: str) -> list[TraceStep]:
    """Return a step for each thing that people told the run."""
    return [
        TraceStep(
            session=session,
            id=f"{own}/order-{place}",
            parent=own,
            kind="order",
            name=given.command,
            run=state.run_id,
            subtask=given.order.subtask_id,
            agent="person",
            by=given.order.by,
            status="error" if given.refused else "ok",
            verdict="refused" if given.refused else "carried out",
            why=given.refused,
            arguments=given.about,
            started=given.at,
            ended=given.at,
        )
        for place, given in enumerate(state.orders, 1)
    ]


def describe_end(state: State) -> Facts:
    """Return what a run came to, by its state; nothing of one that goes on."""
    if state.phase != "closed":
        return {}
    written = state.finishing.synthesis
    single = SINGLE if written and written.finding and state.single else ""
    return {"verdict": status_of(state), "why": state.stop.why if state.stop else single}


def sum_prices(state: State) -> Facts:
    """Return what a run cost, by its state: it may close without saying so itself."""
    ledger = state.ledger
    return {
        "tokens": ledger.all_usage,
        "dollars": ledger.paid.dollars if ledger.all_priced else None,
        "assumed": ledger.all_assumed,
    }
