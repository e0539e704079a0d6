"""`trace`: every step of a run as JSON, or in the form that viewers of traces open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from temporalio.service import RPCError, RPCStatusCode

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import OUT, put, put_json, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import Embedded, RunId, check_file
from holdfast.cli.shared.replayed import read_history
from holdfast.client.reading import no_such_run
from holdfast.deployment.settings import NAME, Settings
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.rendering.trace_lines import lines
from holdfast.replaying.tracing import read_trace, read_trace_file
from holdfast.storage.files import write_whole
from holdfast.text import for_json
from holdfast.tracing.otlp import make_spans, to_otlp_json
from holdfast.tracing.steps import Trace, TraceStep
from holdfast.untrusted.known_secrets import KnownSecrets

Format = Literal["text", "json", "otlp"]


def command(
    run_id: RunId = "",
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="A history from `export`, instead of ID."),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="text: a line a step, what a terminal shows. json: an object a step, a line each."
            " otlp: OpenTelemetry, as collectors read it from a file.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on a terminal, too.")] = False,
    content: Annotated[bool, typer.Option("--content", help="Include inputs and answers.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file; without it, stdout.")
    ] = None,
    embedded: Embedded = False,
) -> int:
    """Print every step of a run with agent, time, price, verdict and reason.

    On a terminal as lines, elsewhere as JSON.
    """
    path = check_file(out)
    if as_json and form not in (None, "json"):
        raise Exit("--json is --format json: leave one of them out")
    # What is asked for with its contents, or goes into a file, is for a program.
    reads = OUT.is_terminal and not (as_json or path or content)
    form = form or ("text" if reads else "json")
    if bool(run_id) == (history is not None):
        raise Exit("name either the run's ID, or with --history a file that `export` wrote")
    settings = Settings()
    if history is not None:
        found = asyncio.run(_of_file(history, content=content))
        return put_trace(found, form, settings, path, content=content)

    async def put(connection: Connection) -> int:
        found = await of_run(connection, run_id, content=content)
        return put_trace(found, form, settings, path, content=content)

    return with_connection(settings, embedded, put)


async def of_run(connection: Connection, run_id: str, *, content: bool) -> Trace:
    """Return the trace of a run. Exit if there is none."""
    try:
        return await read_trace(connection.client, run_id, content=content)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_such_run(run_id) from error
        raise


async def _of_file(file: Path, *, content: bool) -> Trace:
    if not file.exists():
        raise Exit(f"there is no file {str(file)!r}; `export ID --out FILE` writes one")
    try:
        return await read_trace_file(read_history(file, "--history").events, content=content)
    except Refused as error:
        raise Exit(str(error)) from error


def put_trace(
    found: Trace, form: Format, settings: Settings, out: Path | None, *, content: bool
) -> int:
    """Print or write a trace, with secrets of the settings removed."""
    known = KnownSecrets(settings.secrets)
    # What is blotted out must be no part of the form, so it goes before it is text.
    documents = (known.blot_all(each) for each in _documents(found, form, content=content))
    if form == "text":
        text = "\n".join(lines([TraceStep.model_validate(each) for each in documents]))
    else:
        text = "\n".join(json.dumps(each, ensure_ascii=False) for each in documents)
    if found.unreadable:
        say(f"! verdicts and subtasks are not in it: {found.unreadable}", "magenta")
    if out is None:
        (put if form == "text" else put_json)(text)
        return Code.COMPLETE
    try:
        write_whole(out, f"{for_json(text)}\n".encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise Exit(f"{out} could not be written: {error.strerror}", Code.FAILED) from error
    say(f"Trace: {out}")
    return Code.COMPLETE


def _documents(found: Trace, form: Format, *, content: bool) -> Iterator[dict[str, Any]]:
    if form == "otlp":
        yield to_otlp_json(make_spans(found, content=content), {"service.name": NAME})
    else:
        yield from (each.model_dump(mode="json") for each in found.steps)
