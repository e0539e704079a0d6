"""A finished run: its Report in files, as Markdown, as JSON and as a page for a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from cli.invocation import to_type
from cli.reading import Look
from cli.screen.report import as_markdown
from cli.screen.streams import say
from deployment.files import write_whole
from orchestrator.contracts import Report
from orchestrator.text import for_json
from orchestrator.views.answers import answer_file

if TYPE_CHECKING:
    from orchestrator.views.html.steering import Live

NAME_LETTERS = 200
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


class PageFailed(Exception):
    """The page could not be made, by a mistake of ours; the other files are written. It holds the
    path of the Markdown.
    """

    def __init__(self, markdown: Path) -> None:
        super().__init__(str(markdown))
        self.markdown = markdown


def place(run_id: str, folder: Path, ending: str) -> Path:
    """Where a file of a run's report is kept; the folder is there afterwards, and private."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whoever reaches the server names runs as he likes.
    name = _UNFIT.sub("_", run_id)[:NAME_LETTERS].lstrip(".") or "_"
    return folder / f"{name}{ending}"


def keep(report: Report, folder: Path, look: Look) -> tuple[Path, Path]:
    """Write the report as `RUN.md`, `RUN.json` and `RUN.html` into a private folder; the paths of
    the Markdown and of the page. PageFailed when the others are written and the page is not.
    """
    markdown, document, page = (
        place(report.run_id, folder, ending) for ending in (".md", ".json", ".html")
    )
    for path in (markdown, document):
        write(report, path, look)
    if answer := answer_file(report):
        ending, text = answer
        write_whole(place(report.run_id, folder, ending), as_bytes(text))
    try:
        write(report, page, look)
    except OSError:
        raise
    except Exception as error:
        raise PageFailed(markdown) from error
    return markdown, page


def write(report: Report, path: Path, look: Look) -> None:
    """Write a report as one file, in the form that its name says. It appears whole or not at all.
    `look`: what the history of its run tells besides, for the page.
    """
    match path.suffix.lower():
        case ".json":
            text = for_json(report.model_dump_json(indent=2)) + "\n"
        case ".html":
            text = as_page(report, look)
        case _:
            text = as_markdown(report)
    write_whole(path, as_bytes(text))


def as_bytes(text: str) -> bytes:
    """Half a character, which no encoding has, is shown as its escape."""
    return text.encode("utf-8", "backslashreplace")


def as_page(report: Report, look: Look, *, over: bool = True, live: Live | None = None) -> str:
    """The page of a run; `live`: what it has besides while it is served."""
    # Few commands write one, and its reader of Markdown takes long to load.
    from orchestrator.views.html.page import as_html
    from orchestrator.views.html.pictured import Pictured

    view = look.view
    if view and not over:
        # A report counts what is reserved as spent; while a run goes on, it is not.
        spent = {"dollars": view.dollars_spent, "assumed": view.assumed}
        report = report.model_copy(update={**spent, "model_calls": view.model_calls})
    return as_html(Pictured(report, to_type, look.steps, view, over), live)


def deliver(report: Report, folder: Path, out: Path | None, look: Look) -> None:
    """Write the files of a finished run and say where they are, the page last; a full disk costs
    nobody the report itself.
    """
    if out:
        try:
            write(report, out, look)
            say(f"Report: {out}")
        except OSError as error:
            say(f"The report could not be written to {out}: {error.strerror}", "magenta")
    try:
        markdown, page = keep(report, folder, look)
    except OSError as error:
        say(f"The report could not be kept in {folder}: {error.strerror}", "magenta")
        return
    except PageFailed as failed:
        say(f"Report: {failed.markdown}")
        say(f"Its page could not be made: a mistake of ours: {failed.__cause__!r}", "magenta")
        return
    say(f"Report: {markdown}")
    if answer := answer_file(report):
        say(f"Answer: {place(report.run_id, folder, answer[0])}")
    say(f"Page: {page.as_uri()}")
