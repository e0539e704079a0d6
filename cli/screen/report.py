"""A finished run on screen and in files: its page, or its JSON."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from rich.console import RenderableType

from cli.invocation import to_type
from cli.screen.streams import OUT, Safe, put, put_json, say
from orchestrator.contracts import Finding, Report
from orchestrator.text import for_json
from orchestrator.views import findings, page

NAME_LETTERS = 200
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


def as_markdown(report: Report, *, subtasks: bool = True, whole: bool = True) -> str:
    """The report's page, with commands as they are typed here."""
    return page.as_markdown(report, to_type, subtasks=subtasks, whole=whole)


def show(report: Report, *, as_json: bool, subtasks: bool) -> None:
    """The report on stdout: JSON, or Markdown, which a terminal shows typeset and a pipe gets as
    it is.
    """
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
    from rich.markdown import Markdown

    return Safe(Markdown(source, hyperlinks=False))


def keep(report: Report, folder: Path) -> Path:
    """Write the report as `RUN.md` and `RUN.json` into a private folder; the Markdown's path."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whoever reaches the server names runs as he likes.
    file = folder / f"{_UNFIT.sub('_', report.run_id)[:NAME_LETTERS].lstrip('.') or '_'}.md"
    write(report, file)
    write(report, file.with_suffix(".json"))
    return file


def write(report: Report, path: Path) -> None:
    """Write a report as one file, JSON if its name says so. It appears whole or not at all."""
    as_json = path.suffix.lower() == ".json"
    document = for_json(report.model_dump_json(indent=2)) + "\n"
    text = document if as_json else as_markdown(report)
    write_whole(path, text)


def write_whole(path: Path, text: str) -> None:
    """Write a private file, replacing an earlier one in one step. OSError says why it could not."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def deliver(report: Report, folder: Path, out: Path | None) -> None:
    """Write the files of a finished run and say where they are; a full disk is said, and costs no
    report.
    """
    try:
        say(f"Report: {keep(report, folder)}")
    except OSError as error:
        say(f"The report could not be kept in {folder}: {error.strerror}", "yellow")
    if out:
        try:
            write(report, out)
            say(f"Report: {out}")
        except OSError as error:
            say(f"The report could not be written to {out}: {error.strerror}", "yellow")
