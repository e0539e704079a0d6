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
    title = step.title if step.title != step.name else ""
    facts = [
        f"{step.kind} {step.name}",
        title,
        step.agent,
        f"{step.tool} {step.arguments}".strip(),
        step.model or step.tier,
        f"by {step.by}" if step.by else "",
        f"attempt {step.attempt}" if step.attempt > 1 else "",
        seconds(step.seconds) if step.ended else "",
        at_most(step.dollars, step.assumed) if step.dollars is None or step.dollars else "",
        step.verdict.replace("_", " ") if step.verdict != ACCEPTED else "",
        step.status if step.status not in ("ok", "running") else "",
    ]
    said = " · ".join(filter(None, facts))
    return f"{said}: {step.why}" if step.why else said
