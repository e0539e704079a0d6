"""`report`: a run as one page for a browser, from its history alone; a running one as it stands."""

from __future__ import annotations

import asyncio
import webbrowser
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from temporalio.client import WorkflowExecutionStatus

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say_all
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.delivery import as_bytes, files_of, from_beside, place, with_files
from holdfast.cli.shared.options import Embedded, RunId, check_file, write_file
from holdfast.client.documents import as_page
from holdfast.client.doing import Turns
from holdfast.client.ended import is_damaged, read_end
from holdfast.client.reading import Look, Reader, with_notes
from holdfast.contracts import Report
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from holdfast.rules.reporting import report
from holdfast.storage import store_at

IMPORTED = ".imported.html"
"""Prefix of the page of a history from a file, which keeps that of a run here with its id."""


def command(
    run_id: RunId = "",
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="A history from `export`, instead of ID."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The page; without it, beside the reports."),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    embedded: Embedded = False,
) -> int:
    """Write a run as one HTML page that needs nothing else, and print the link to it."""
    if bool(run_id) == bool(history):
        raise Exit("name the run, or a history with --history FILE")
    path, settings = check_page(out), Settings()
    if history is not None:
        look, name = asyncio.run(read_export(history, settings))
        return write_page(settings, name, page_of(name, look), path, IMPORTED, open_it=open_it)
    return with_connection(
        settings, embedded, lambda connection: run(connection, run_id, path, open_it=open_it)
    )


def check_page(out: Path | None) -> Path | None:
    """Return the absolute path to write a page to. Exit if its suffix is not that of a page."""
    if out is not None and out.suffix.lower() not in ("", ".html", ".htm"):
        raise Exit(f"--out {str(out)!r}: a page is HTML; name a file that ends in .html")
    return check_file(out)


async def run(connection: Connection, run_id: str, out: Path | None, *, open_it: bool) -> int:
    """Read the run and write its page."""
    reader = Reader(connection, run_id)
    look = await reader.look()
    if not look.closed:
        await reader.find_doing()
        look = await reader.look()
    look = replace(look, turns=await Turns(connection, run_id).of(look.steps))
    if look.state is None:
        say_all(look.notes, "magenta")
        raise Exit(f"{run_id} {look.blank}: there is nothing to show", Code.UNREACHABLE)
    if look.closed and is_damaged(look):
        raise Exit(read_end(run_id, look).reason, Code.FAILED)
    made = _report_of(run_id, look)
    if not look.closed:
        made = made.model_copy(update={"notes": (*look.notes, *made.notes)})
    kept = files_of(run_id, StateDir.of(connection.settings).reports)
    made = await with_files(made, connection.store, kept)
    where = kept.as_uri() if out else from_beside(kept)
    page = page_of(run_id, look, made, where, datetime.now(UTC))
    return write_page(connection.settings, run_id, page, out, open_it=open_it)


def write_page(
    settings: Settings,
    run_id: str,
    text: str,
    out: Path | None,
    ending: str = ".html",
    *,
    open_it: bool,
) -> Code:
    """Write the page and print its link."""
    page = out or place(run_id, StateDir.of(settings).reports, ending)
    write_file(page, as_bytes(text))
    put(page.as_uri())
    if open_it and not webbrowser.open(page.as_uri()):
        raise Exit(f"no browser could be started; open {page} yourself", Code.FAILED)
    return Code.COMPLETE


def page_of(
    run_id: str,
    look: Look,
    made: Report | None = None,
    where: str = "",
    drawn: datetime | None = None,
) -> str:
    """Return the page of a run from one look at it. `made` is its report if not that of its
    history, `where` the folder of its files, `drawn` the moment unless it is that of a file.
    """
    over, made = bool(look.closed), made or _report_of(run_id, look)
    return as_page(made, look, over=over, where=where, drawn=drawn)


def _report_of(run_id: str, look: Look) -> Report:
    """Return the report of a run as far as it has come."""
    assert look.state is not None
    made = read_end(run_id, look).report if look.closed else None
    return made or with_notes(report(look.state), look.besides)


async def read_export(file: Path, settings: Settings) -> tuple[Look, str]:
    """Return what an exported history tells, and the id of its run."""
    # Reading one is what `replay` does: it loads the workflows, to know their names.
    from holdfast.cli.shared.replayed import decrypt_all, read_history
    from holdfast.history.fold import Fold
    from holdfast.storage.keys import keyring
    from holdfast.temporal.connection import data_converter

    history = read_history(file, "--history")
    keys = keyring(settings.key_file)
    store = store_at(settings.store_url, keys) if settings.store_url else None
    await decrypt_all(file, history, store, keys)
    fold = Fold(history.workflow_id, data_converter(None))
    for event in history.events:
        await fold.take(event)
    if fold.unreadable:
        raise Exit(f"{file} cannot be shown: {fold.unreadable}")
    if fold.state is None:
        raise Exit(f"{file}: the run has not taken a step in it")
    own = fold.executions.own
    closed = WorkflowExecutionStatus[own.end.upper()] if own and own.end else None
    steps = tuple(fold.steps.by_id.values())
    look = Look(closed, fold.state, fold.report, fold.lost, steps=steps)
    return look, history.workflow_id
