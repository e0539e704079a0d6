"""`watch`: follow a run that somebody started, and decide on its plan if it waits for that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.commands.runs import approval
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import ERR, at_terminal, say
from holdfast.cli.shared import outcome
from holdfast.cli.shared.connection import announce, with_connection
from holdfast.cli.shared.follow import display, look_at, watch
from holdfast.cli.shared.options import (
    AsJson,
    CommentFile,
    Embedded,
    FailOn,
    Links,
    OutFile,
    RunId,
    SarifFile,
    check_out,
    pipeline_of,
)
from holdfast.cli.shared.pipeline import Pipeline
from holdfast.client.ended import read_end
from holdfast.client.reading import Look
from holdfast.deployment import extras
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection


def command(
    run_id: RunId,
    as_json: AsJson = False,
    out: OutFile = None,
    fail_on: FailOn = "",
    sarif: SarifFile = None,
    comment: CommentFile = None,
    links: Links = "",
    web: Annotated[
        bool, typer.Option("--web", help="Serve its page on this machine, to steer it from there.")
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Follow a run to its end and print its report; a plan that waits can be approved here."""
    if web and (lacking := extras.lacking("serve")):
        raise Exit(f"--web {lacking}")
    path = check_out(out)
    pipeline = pipeline_of(fail_on, sarif, comment, links, out)
    return with_connection(
        Settings(),
        embedded,
        lambda connection: run(connection, run_id, as_json, path, pipeline, web=web),
    )


async def run(
    connection: Connection,
    run_id: str,
    as_json: bool,
    out: Path | None,
    pipeline: Pipeline = Pipeline(),  # noqa: B008
    *,
    web: bool = False,
) -> int:
    """Follow a run and print its report; return its exit code."""
    look = await look_at(connection, run_id)
    if look.state and look.state.briefing:
        played = look.state.briefing.playbook
        pipeline.check(played.template if played else "", f"run {run_id}")
    if web and look.closed:
        page = to_type("report", run_id)
        say(f"{run_id} is over: there is no live page of it any more; its page: {page}")
    web = web and not look.closed
    await announce(connection, run_id)
    if not web:
        return await to_the_end(connection, run_id, as_json=as_json, out=out, pipeline=pipeline)
    # The server's library is loaded by whoever serves.
    from holdfast.cli.live.server import live

    async with live(connection, run_id) as address:
        say(f"Live page, for you alone: {address}")
        return await to_the_end(connection, run_id, as_json=as_json, out=out, pipeline=pipeline)


async def to_the_end(
    connection: Connection,
    run_id: str,
    *,
    as_json: bool,
    out: Path | None,
    pipeline: Pipeline = Pipeline(),  # noqa: B008
) -> Code:
    """Follow a run, then print its report. When interrupted, say how to come back; the run goes
    on.
    """
    try:
        look = await _follow_to_close(connection, run_id)
    except asyncio.CancelledError:
        say(f"Left. The run goes on; come back with: {to_type('watch', run_id)}")
        raise
    assert look.closed is not None
    ended = read_end(run_id, look)
    return await outcome.print_outcome(
        connection,
        run_id,
        ended,
        as_json=as_json,
        out=out,
        subtasks=not ERR.is_terminal,
        announced=True,
        pipeline=pipeline,
    )


async def _follow_to_close(connection: Connection, run_id: str) -> Look:
    """Follow a run and return the last look at it. At a terminal the person is asked about a plan
    that waits.
    """
    asking = at_terminal()
    while True:
        with display() as shown:
            look = await watch(
                connection, run_id, shown, approval.is_wanted if asking else lambda _: False
            )
        if look.closed:
            return look
        asking = await approval.decide(connection, run_id)
