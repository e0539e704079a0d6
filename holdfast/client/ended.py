"""How a run ended, read from a closed run."""

from __future__ import annotations

from dataclasses import dataclass, field

from temporalio.client import WorkflowExecutionStatus

from holdfast.client.reading import Look, with_notes
from holdfast.contracts import Report
from holdfast.errors import HoldfastError, Refused, RunFailed
from holdfast.rules.reporting import report

CLOSED: dict[WorkflowExecutionStatus, str] = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "ended as failed",
    WorkflowExecutionStatus.CANCELED: "cancelled",
    WorkflowExecutionStatus.TERMINATED: "terminated",
    WorkflowExecutionStatus.TIMED_OUT: "timed out",
    WorkflowExecutionStatus.CONTINUED_AS_NEW: "continued",
}


@dataclass(frozen=True)
class Ended:
    """A closed run: its report, or the reason why there is none."""

    report: Report | None = None
    failure: HoldfastError | None = None
    """Refused if the run was told something wrong, else RunFailed; None: there is a report."""
    look: Look = field(default_factory=Look)
    """The last look at its history."""

    @property
    def reason(self) -> str:
        return str(self.failure) if self.failure else ""


def read_end(run_id: str, look: Look) -> Ended:
    """Return how a closed run ended, from its history."""
    assert look.closed is not None, "only a closed run has ended"
    if is_damaged(look):
        was = f"run {run_id} was {CLOSED[look.closed]}"
        why = f"{was}, and what it found cannot be read: {look.unreadable}"
        return Ended(failure=RunFailed(why), look=look)
    if look.state is None:
        return Ended(failure=RunFailed(f"run {run_id} was {CLOSED[look.closed]} before it began"))
    made = with_notes(look.report or report(look.state), look.besides)
    if look.report is not None or look.closed is WorkflowExecutionStatus.COMPLETED:
        return Ended(made, look=look)
    if look.state.stop and look.state.stopped_by("refused", "small cap"):
        return Ended(failure=Refused(look.state.stop.why))
    if look.state.stop and look.state.stopped_by("unprepared"):
        return Ended(failure=RunFailed(f"run {run_id} failed: {look.state.stop.why}"))
    if look.closed is WorkflowExecutionStatus.CANCELED:
        return Ended(made.model_copy(update={"status": "cancelled"}), look=look)
    # Who closed the run from outside left it no time to judge itself.
    why = f"The run was {CLOSED[look.closed]} from outside."
    judged = made.model_copy(update={"status": "failed", "notes": (*made.notes, why)})
    return Ended(judged, look=look)


def is_damaged(look: Look) -> bool:
    """True if the history of a closed run cannot be read up to how it ended."""
    told = look.report is not None or (look.state is not None and look.state.phase == "closed")
    return bool(look.unreadable) and not told
