"""Logging the story of a workflow on its worker, once: a replay logs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from temporalio import workflow

from holdfast.tracing.story import Line

_INFO = 20
"""Level of `logging`, which workflows do not import."""


def tell(lines: Iterator[Line]) -> None:
    """Log lines of the story, which a replay does not even make. A failure stops no run."""
    if workflow.unsafe.is_replaying() or not workflow.logger.isEnabledFor(_INFO):
        return
    info, log = workflow.info(), workflow.logger.base_logger
    # As the SDK's own logger has it, which finds out more for each line than a line says.
    facts = {"workflow_id": info.workflow_id, "run_id": info.run_id, "attempt": info.attempt}
    facts["workflow_type"] = info.workflow_type
    try:
        for line in lines:
            said = {"story": line.what, "temporal_workflow": facts, **line.with_facts()}
            log.handle(log.makeRecord(log.name, _INFO, "", 0, line.what, (), None, extra=said))
    except Exception:
        workflow.logger.exception("a line of the story could not be told")
