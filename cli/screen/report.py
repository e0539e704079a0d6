"""A finished run on screen and in files: its page, or its JSON."""

from __future__ import annotations

import re

from rich.console import RenderableType

from cli.invocation import as_called, to_type
from cli.screen.streams import OUT, Safe, put, put_json
from orchestrator.contracts import Finding, Report
from orchestrator.views import findings, page

NAME_LETTERS = 200
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


def as_markdown(
    report: Report, *, subtasks: bool = True, whole: bool = True, where: str = ""
) -> str:
    """The report's page, with commands as they are typed here; `where` its files are."""
    notes = tuple(map(as_called, report.notes))
    named = report.model_copy(update={"notes": notes})
    return page.as_markdown(named, to_type, subtasks=subtasks, whole=whole, where=where)


def show(report: Report, *, as_json: bool, subtasks: bool) -> None:
    """The report on stdout: JSON, or Markdown, typeset for a terminal and plain for a pipe."""
    if as_json:
        put_json(report.model_dump_json(indent=2))
    elif OUT.is_terminal:
        source = as_markdown(report, subtasks=subtasks, whole=False)
        OUT.print(_typeset(source))
        OUT.print()
    else:
        put(as_markdown(report).rstrip("\n"))


def show_finding(report: Report, finding: Finding, *, as_json: bool) -> None:
    """One finding on stdout, as `show` does with a report."""
    if as_json:
        put_json(finding.model_dump_json(indent=2))
    elif OUT.is_terminal:
        OUT.print(_typeset(findings.alone(report, finding)))
    else:
        put(findings.alone(report, finding).rstrip("\n"))


def _typeset(source: str) -> RenderableType:
    # A tenth of what the start of every command costs, and few show a report on a terminal.
    from cli.screen.typeset import Page

    return Safe(Page(source, hyperlinks=False))
