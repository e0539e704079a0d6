"""`slack`: start and steer runs in Slack's threads."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import Embedded
from holdfast.deployment import extras
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection

TERMINATED = "SIGTERM"


def command(
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            help="Take signed requests at 127.0.0.1, instead of Socket Mode. 0: a free one.",
        ),
    ] = None,
    manifest: Annotated[
        bool, typer.Option("--manifest", help="Print what to paste in Slack, and end.")
    ] = False,
    url: Annotated[
        str,
        typer.Option("--url", metavar="URL", help="With --manifest: where Slack reaches --port."),
    ] = "",
    embedded: Embedded = False,
) -> int:
    """Start, follow and steer runs in threads of Slack."""
    if lacking := extras.lacking("slack"):
        raise Exit(f"slack {lacking}")
    if url and not manifest:
        raise Exit("--url is for --manifest; add that, or leave it out")
    # Only who stands at this door loads it.
    from holdfast.doors.slack import serving
    from holdfast.doors.slack.manifest import manifest as manifest_of
    from holdfast.telemetry.logs import configure_logging

    if manifest:
        put(manifest_of(url))
        return Code.COMPLETE
    settings = Settings()
    secrets = serving.Secrets.taken(os.environ, http=port is not None)
    serving.channels_of(settings)

    async def stand(connection: Connection) -> int:
        configure_logging(None, settings.log_level, (*settings.secrets, *secrets.all))
        standing = asyncio.current_task()
        assert standing is not None
        # As at Ctrl-C, what somebody was told is taken is finished first.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, standing.cancel, TERMINATED)
        try:
            await serving.serve(connection, secrets, port, say)
        except asyncio.CancelledError as error:
            if error.args != (TERMINATED,):
                raise
            standing.uncancel()
        return Code.COMPLETE

    return with_connection(settings, embedded, stand)
