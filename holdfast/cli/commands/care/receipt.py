"""`receipt`: what a run came to in one signed file, which `verify` checks on any machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import put, say, say_all
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import Embedded, RunId, check_file, write_file
from holdfast.client.receipt_key import check_installed
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.text import one_line


def command(
    run_id: RunId,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The file; without it, stdout."),
    ] = None,
    inputs: Annotated[
        bool,
        typer.Option("--with-inputs", help="Also what each call was given and answered."),
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Write a finished run as a signed receipt: findings, calls, prices, orders, digests."""
    check_installed("receipt")
    path = check_file(out)

    async def write(connection: Connection) -> int:
        return await run(connection, run_id, path, inputs=inputs)

    return with_connection(Settings(), embedded, write)


async def run(connection: Connection, run_id: str, out: Path | None, *, inputs: bool) -> int:
    """Make the receipt and write it. FAILED if the journal says otherwise than the history."""
    # It needs what a worker needs.
    from holdfast.client.receipts import receipt_of

    made = await receipt_of(connection, run_id, content=inputs)
    text = made.dump()
    if out is None:
        put(text.decode().removesuffix("\n"))
    else:
        write_file(out, text)
        say(f"Receipt: {out}, {len(text):,} bytes, signed by {made.key}")
        say(f"It holds {made.head['holds']}.")
    say_all(map(one_line, made.head["lacks"]), "magenta")
    other = any(call["journal"] == "other" for _, call in made.of_kind("call"))
    return Code.FAILED if other else Code.COMPLETE
