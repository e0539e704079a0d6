"""How a run ended, read from a closed run, and told to a person or a program."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from temporalio.client import WorkflowExecutionStatus

from holdfast.cli.screen import report as pages
from holdfast.cli.screen.exits import Code, code_of
from holdfast.cli.screen.invocation import STARTER, to_type
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.connection import say_where
from holdfast.cli.shared.delivery import deliver, files_of, place, with_files
from holdfast.cli.shared.doing import Turns
from holdfast.cli.shared.pipeline import Pipeline
from holdfast.cli.shared.reading import Look, with_notes
from holdfast.contracts import Report, ReviewData
from holdfast.contracts.remarks import read_review, stands
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from holdfast.rendering.foremost import first_in_line
from holdfast.rendering.status import SEVERITY_SIGNS
from holdfast.rendering.verdict import Verdict, counted, judge
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
    """A closed run: its exit code, and its report or the reason why there is none."""

    code: Code
    report: Report | None = None
    reason: str = ""
    look: Look = field(default_factory=Look)
    """The last look at its history."""


def read(run_id: str, look: Look) -> Ended:
    """Return how a closed run ended, from its history."""
    assert look.closed is not None, "only a closed run has ended"
    if is_damaged(look):
        was = f"run {run_id} was {CLOSED[look.closed]}"
        why = f"{was}, and what it found cannot be read: {look.unreadable}"
        return Ended(Code.FAILED, reason=why, look=look)
    if look.state is None:
        return Ended(Code.FAILED, reason=f"run {run_id} was {CLOSED[look.closed]} before it began")
    made = with_notes(look.report or report(look.state), look.besides)
    if look.report is not None or look.closed is WorkflowExecutionStatus.COMPLETED:
        return Ended(code_of(made.status), made, look=look)
    if look.state.stop and look.state.stopped_by("refused", "small cap"):
        return Ended(Code.REFUSED, reason=look.state.stop.why)
    if look.state.stop and look.state.stopped_by("unprepared"):
        return Ended(Code.FAILED, reason=f"run {run_id} failed: {look.state.stop.why}")
    if look.closed is WorkflowExecutionStatus.CANCELED:
        return Ended(Code.CANCELLED, made.model_copy(update={"status": "cancelled"}), look=look)
    # Who closed the run from outside left it no time to judge itself.
    why = f"The run was {CLOSED[look.closed]} from outside."
    judged = made.model_copy(update={"status": "failed", "notes": (*made.notes, why)})
    return Ended(Code.FAILED, judged, look=look)


def is_damaged(look: Look) -> bool:
    """True if the history of a closed run cannot be read up to how it ended."""
    told = look.report is not None or (look.state is not None and look.state.phase == "closed")
    return bool(look.unreadable) and not told


async def print_outcome(
    connection: Connection,
    run_id: str,
    ended: Ended,
    *,
    as_json: bool,
    out: Path | None,
    subtasks: bool,
    announced: bool = False,
    whole: bool = False,
    pipeline: Pipeline = Pipeline(),  # noqa: B008
) -> Code:
    """Print the report on stdout and, on stderr, the Web UI (unless `announced`), how to come back,
    its files and its page; return the exit code.
    """
    turns = await Turns(connection, run_id).of(ended.look.steps)
    ended = read(run_id, replace(ended.look, turns=turns)) if turns else ended
    code, made, reports = ended.code, ended.report, StateDir.of(connection.settings).reports
    if made is None:
        say(ended.reason, "bold red")
        before = place(run_id, reports, ".md")
        if is_damaged(ended.look) and before.exists():
            say(f"Its report, as it was written before: {before}")
    else:
        made = await with_files(made, connection.store, files_of(run_id, reports))
        pages.show(made, as_json=as_json, subtasks=subtasks, whole=whole)
    if not announced:
        await say_where(connection, run_id)
    if made is not None and (review := read_review(made)):
        _say_verdict(judge(review, made.status), review)
    say(f"Come back with: {to_type('show', run_id)} (all runs: {STARTER} list)", "dim")
    if made is not None:
        code = pipeline.pass_on(made, code)
        deliver(made, reports, out, ended.look)
    return code


def _say_verdict(verdict: Verdict, review: ReviewData) -> None:
    """Say last what stands first, which the terminal has scrolled away: the counts, and what to do
    first.
    """
    sign = f"{SEVERITY_SIGNS[verdict.worst]} " if verdict.worst else ""
    if verdict.worst:
        style = "bold red" if verdict.worst == "critical" else "bold magenta"
    else:
        style = "bold green" if verdict.known and not verdict.beside else "bold"
    say(f"{sign}{verdict.line}", style)
    if first := first_in_line([each for each in counted(review) if stands(each)]):
        say(f"First: {first}")
