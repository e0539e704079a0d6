"""A finished run on screen: its text, or its JSON."""

from __future__ import annotations

from holdfast.cli.screen.streams import OUT, Safe, put, put_json
from holdfast.client.documents import as_markdown
from holdfast.contracts import Finding, Report
from holdfast.rendering import findings
from holdfast.text import for_terminal


def show(report: Report, *, as_json: bool, subtasks: bool, whole: bool = False) -> None:
    """Print the report: JSON, or typeset for a terminal and plain text for a pipe. `whole`: with
    each finding.
    """
    if as_json:
        put_json(report.model_dump_json(indent=2))
    else:
        show_markdown(as_markdown(report, subtasks=subtasks, whole=whole))
        if OUT.is_terminal:
            OUT.print()


def show_finding(report: Report, finding: Finding, *, as_json: bool) -> None:
    if as_json:
        put_json(finding.model_dump_json(indent=2))
    else:
        show_markdown(findings.alone(report, finding))


def show_markdown(source: str) -> None:
    """Show Markdown as it is read there: typeset on a terminal, else as plain text."""
    # A tenth of what the start of every command costs, and few show a report.
    if OUT.is_terminal:
        from holdfast.cli.screen.typeset import Page

        OUT.print(Safe(Page(source, hyperlinks=False)))
    else:
        from holdfast.cli.screen.plain import as_text

        # What is decoded here could be a live control character, too.
        put(for_terminal(as_text(source), lines=True))
