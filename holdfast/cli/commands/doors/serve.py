"""`serve`: runs over HTTP, for programs, browsers and other agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.listening import (
    BehindProxy,
    Host,
    Names,
    Port,
    TlsCert,
    TlsKey,
    bound,
)
from holdfast.cli.shared.options import Embedded
from holdfast.deployment import extras
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection

if TYPE_CHECKING:
    from holdfast.doors.http.serving import Listening

PORT, RATE = 8700, 20.0


def command(
    host: Host = "127.0.0.1",
    port: Port = PORT,
    name: Names = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Ask for no token; on this machine alone.")
    ] = False,
    rate: Annotated[
        float,
        typer.Option("--rate", min=0.1, max=10_000, help="Requests a second of each token."),
    ] = RATE,
    embedded: Embedded = False,
) -> int:
    """Serve runs over HTTP: start, look, follow, steer, read reports."""
    if lacking := extras.lacking("serve"):
        raise Exit(f"serve {lacking}")
    # Only who serves loads what serves.
    from holdfast.doors.http.serving import Listening
    from holdfast.doors.tokens import Tokens

    settings = Settings()
    listening = Listening(
        host, port, tuple(name or ()), tls_cert, tls_key, behind_proxy, no_token, rate
    )
    listening.check(Tokens(settings))

    async def serving(connection: Connection) -> int:
        return await run(connection, listening)

    return with_connection(settings, embedded, serving)


async def run(connection: Connection, listening: Listening) -> int:
    """Serve until told to stop."""
    from holdfast.doors.http.serving import guarded, make_server
    from holdfast.doors.tokens import Tokens
    from holdfast.telemetry.logs import configure_logging

    settings = connection.settings
    listens = bound(listening)
    app, own = guarded(connection, listening, Tokens(settings))
    configure_logging(None, settings.log_level, settings.secrets)
    say(f"Serving at {listening.address(listens)}", "bold")
    if own:
        say("No token was made yet, so here is one for as long as this runs, shown once:")
        put(own)
        say(f"Others are made by: {STARTER} token new NAME", "dim")
    elif listening.no_token:
        say(
            "No token is asked for: each program of this machine may start and steer runs", "yellow"
        )
    await make_server(app, listening).serve(sockets=[listens])
    return Code.COMPLETE
