"""Tells the story of a workflow to its worker's log, once: a replay tells nothing."""

from __future__ import annotations

from collections.abc import Iterator

from temporalio import workflow

from orchestrator.tracing.story import Line


def tell(lines: Iterator[Line]) -> None:
    """Log these lines. On replay, when the logger would drop them, they are not even made. What
    cannot be told stops no run.
    """
    if workflow.unsafe.is_replaying():
        return
    try:
        for line in lines:
            workflow.logger.info(line.what, extra={"story": line.what, **line.with_facts()})
    except Exception:
        workflow.logger.exception("a line of the story could not be told")
