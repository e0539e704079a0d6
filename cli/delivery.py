"""A finished run: its Report in files, as Markdown and as JSON."""

from __future__ import annotations

import re
from pathlib import Path

from cli.screen.report import as_markdown
from cli.screen.streams import say
from deployment.files import write_whole
from orchestrator.contracts import Report
from orchestrator.text import for_json

NAME_LETTERS = 200
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


def keep(report: Report, folder: Path) -> Path:
    """Write the report as `RUN.md` and `RUN.json` into a private folder; the Markdown's path."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whoever reaches the server names runs as he likes.
    page = folder / f"{_UNFIT.sub('_', report.run_id)[:NAME_LETTERS].lstrip('.') or '_'}.md"
    write(report, page)
    write(report, page.with_suffix(".json"))
    return page


def write(report: Report, path: Path) -> None:
    """Write a report as one file, JSON if its name says so. It appears whole or not at all."""
    as_json = path.suffix.lower() == ".json"
    document = for_json(report.model_dump_json(indent=2)) + "\n"
    text = document if as_json else as_markdown(report)
    write_whole(path, text.encode("utf-8", "backslashreplace"))


def deliver(report: Report, folder: Path, out: Path | None) -> None:
    """Write the files of a finished run and say where they are; a full disk costs no report."""
    try:
        say(f"Report: {keep(report, folder)}")
    except OSError as error:
        say(f"The report could not be kept in {folder}: {error.strerror}", "magenta")
    if out:
        try:
            write(report, out)
            say(f"Report: {out}")
        except OSError as error:
            say(f"The report could not be written to {out}: {error.strerror}", "magenta")
