"""A run as a document for people: Markdown, and a page for a browser, with commands as they are
typed here.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.contracts import Plan, Report, Subtask
from holdfast.deployment.invocation import as_called, to_type
from holdfast.rendering import report as made

if TYPE_CHECKING:
    from holdfast.client.reading import Look
    from holdfast.contracts.view import RunView
    from holdfast.rendering.html.steering import Live


def as_markdown(
    report: Report, *, subtasks: bool = True, whole: bool = True, where: str = ""
) -> str:
    """Return the report as Markdown. `where`: the folder of its files."""
    notes = tuple(map(as_called, report.notes))
    named = report.model_copy(update={"notes": notes})
    return made.as_markdown(named, to_type, subtasks=subtasks, whole=whole, where=where)


def as_page(
    report: Report,
    look: Look,
    *,
    over: bool = True,
    live: Live | None = None,
    where: str = "",
    drawn: datetime | None = None,
) -> str:
    """Return the page of a run. `live` is what it has while it is served, `where` the folder of its
    files, `drawn` the moment up to which an open run's clocks go.
    """
    # Few commands write one, and its reader of Markdown takes long to load.
    from holdfast.rendering.html.page import as_html
    from holdfast.rendering.html.pictured import Pictured

    view = look.view
    if view and not over:
        # A report counts what is reserved as spent; while a run goes on, it is not.
        spent = {"dollars": view.dollars_spent, "assumed": view.assumed}
        report = report.model_copy(update={**spent, "model_calls": view.model_calls})
        if report.plan is None and view.rows:
            report = report.model_copy(update={"plan": _begun_of(view)})
    shown = Pictured(report, to_type, look.steps, view, over, look.turns, where, drawn)
    return as_html(shown, live)


def _begun_of(view: RunView) -> Plan:
    """Return what has begun of a plan that is still being written, as far as its rows tell."""
    subtasks = tuple(
        Subtask(id=row.id, title=row.title, instruction="", role=row.role, why=row.why)
        for row in view.rows
    )
    return Plan(goal=view.goal, subtasks=subtasks)
