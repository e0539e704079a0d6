"""A trace for a person: a line for each step, below the step that it is a part of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from holdfast.contracts.view import RowStatus
from holdfast.history.judging import ACCEPTED
from holdfast.rendering.amounts import at_most, seconds
from holdfast.rendering.status import SIGNS
from holdfast.text import one_line
from holdfast.tracing.steps import StepStatus, TraceStep

OF_STEP: Mapping[StepStatus, RowStatus] = {
    "ok": "complete",
    "error": "failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
    "running": "running",
    "unfinished": "cancelled",
}
"""The status whose sign a step has."""
ENDINGS: Mapping[StepStatus, str] = {
    "error": "failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
    "running": "under way",
    "unfinished": "cut off",
}


def lines(steps: Sequence[TraceStep]) -> Iterator[str]:
    """Yield when each began, how it ended, what it is, how long it took and its price."""
    below = {
        key: [*those] for key, those in groupby(_by_parent(steps), key=lambda each: each.parent)
    }
    known = {each.id for each in steps}
    began = min((each.started for each in steps if each.started), default=None)

    def told(step: TraceStep, depth: int) -> Iterator[str]:
        at = f"{(step.started - began).total_seconds():.1f} s" if step.started and began else ""
        yield f"{at:>9}  {'  ' * depth}{SIGNS[OF_STEP[step.status]]} {one_line(_said(step))}"
        for each in below.get(step.id, ()):
            yield from told(each, depth + 1)

    for step in steps:
        if step.parent not in known:
            yield from told(step, 0)


def _by_parent(steps: Sequence[TraceStep]) -> list[TraceStep]:
    return sorted(steps, key=lambda each: each.parent)


def _said(step: TraceStep) -> str:
    parts = (
        f"{step.kind} {step.name}",
        step.title if step.title != step.name else "",
        step.agent,
        f"{step.tool} {step.arguments}".strip(),
        *facts(step),
    )
    said = " · ".join(filter(None, parts))
    return f"{said}: {step.why}" if step.why else said


def facts(step: TraceStep) -> Iterator[str]:
    """Yield how it ended, what did it, what it took and cost, who allowed it, and its verdict."""
    yield ENDINGS.get(step.status, "")
    yield step.model or step.tier
    yield f"attempt {step.attempt}" if step.attempt > 1 else ""
    yield seconds(step.seconds) if step.ended else ""
    yield f"{step.tokens.total:,} tokens" if step.tokens.total else ""
    yield f"{step.size:,} bytes" if step.size else ""
    yield at_most(step.dollars, step.assumed) if step.dollars is None or step.dollars else ""
    yield f"{'approved ' * (step.kind == 'tool')}by {step.by}" if step.by else ""
    yield step.verdict.replace("_", " ") if step.verdict != ACCEPTED else ""
