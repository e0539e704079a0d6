"""The sign and the words of each status, and the wording of what a person is asked, wherever a run
is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.contracts import Finding, Money, Report, ReportStatus, Severity
from holdfast.contracts.view import Phase, Preview, Question, QuestionKind, RowStatus, RunView
from holdfast.rendering.amounts import seconds
from holdfast.rendering.preview import price_under
from holdfast.text import pluralize
from holdfast.text.marks import count_unsupported

SIGNS: Mapping[RowStatus, str] = {
    "waiting": "·",
    "running": "▸",
    "paused": "‖",
    "complete": "✓",
    "failed": "✗",
    "escalated": "?",
    "skipped": "–",
    "cancelled": "⊘",
}
SEVERITY_SIGNS: Mapping[Severity, str] = {"critical": "✗", "warning": "!", "info": "i"}
SETTLED: tuple[RowStatus, ...] = ("complete", "failed", "escalated", "skipped", "cancelled")
OF_REPORT: Mapping[ReportStatus, RowStatus] = {
    "complete": "complete",
    "complete_with_gaps": "escalated",
    "budget_stopped": "escalated",
    "deadline_partial": "escalated",
    "declined": "cancelled",
    "cancelled": "cancelled",
    "failed": "failed",
}
PHASES: Mapping[Phase, str] = {
    "preparing": "getting ready",
    "planning": "making a plan",
    "approval": "waiting for approval of the plan",
    "working": "working",
    "synthesizing": "writing the answer",
    "closed": "closed",
}
STATUS: Mapping[ReportStatus, str] = {
    "complete": "Complete",
    "complete_with_gaps": "Complete, with gaps",
    "budget_stopped": "Stopped at the budget; the answer covers what was finished",
    "deadline_partial": "Stopped at the deadline; the answer covers what was finished",
    "declined": "Declined",
    "cancelled": "Cancelled",
    "failed": "Failed",
}
NOTHING_FINISHED = "Stopped at the budget, before anything was finished"
ANSWERED_BY: Mapping[QuestionKind, tuple[str, ...]] = {
    "plan": ("approve", "edit", "reject"),
    "call": ("approve", "decline", "skip"),
    "subtask": ("answer", "skip", "supply"),
    "decision": ("retry", "answer", "supply", "hand", "skip"),
    "budget": ("raise",),
    "paused": ("resume",),
}
"""The commands that answer a question, the usual one first."""


def verdict(report: Report) -> str:
    """Return how a run ended, and how much of its answer nothing supports."""
    complete = any(each.status == "complete" or _has_rows(each) for each in report.findings)
    nothing = report.status == "budget_stopped" and not complete
    return _flagged(NOTHING_FINISHED if nothing else STATUS[report.status], report.flags)


def _has_rows(finding: Finding) -> bool:
    """True if some rows of a map are complete."""
    rows = finding.data.get("rows")
    return isinstance(rows, dict) and bool(rows.get("complete"))


def standing(view: RunView) -> str:
    """Return where an open run stands, or how it ended."""
    if view.held:
        return view.held
    return _flagged(STATUS[view.status] if view.status else phase(view), view.flags)


def phase(view: RunView) -> str:
    """Return what an open run does; of one that plans, also what has begun meanwhile."""
    if view.phase != "planning" or not view.rows:
        return PHASES[view.phase]
    settled = sum(row.status in SETTLED for row in view.rows)
    at_work = sum(row.status in ("running", "paused") for row in view.rows)
    begun = f"{pluralize(len(view.rows), 'subtask')} so far, {at_work} at work"
    return f"{PHASES['planning']} · {begun}{f', {settled} settled' if settled else ''}"


def _flagged(said: str, flags: tuple[str, ...]) -> str:
    return f"{said} · ⚠ {count_unsupported(flags)}" if flags else said


def question_text(question: Question, view: RunView | None, call: str = "") -> str:
    """Return a question in a line; of a plan with its price, where the run is known. `call`: the
    call as this form shows it, if not as it is.
    """
    match question.kind:
        case "plan":
            waits = "the plan waits for approval"
            plan = view.preview if view else None
            return f"{waits}: {_plan(plan, view.dollars_cap)}" if view and plan else waits
        case "call":
            wanted = call or question.text
            return f"{question.subtask_id} wants to make call {question.call}: {wanted}"
        case "subtask":
            return f"{question.subtask_id} asks: {question.text}"
        case "decision":
            return f"{question.subtask_id} {question.text}"
        case "budget":
            return question.text
        case "paused":
            return "the run is paused"


def _plan(plan: Preview, cap: Money) -> str:
    subtasks = pluralize(len(plan.subtasks), "subtask")
    return f"{subtasks}, {price_under(plan, cap)}, {seconds(plan.makespan)}"
