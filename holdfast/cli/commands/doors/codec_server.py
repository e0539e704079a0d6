"""`codec-server`: what is encrypted, readable in the Web UI."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import Embedded
from holdfast.deployment import extras
from holdfast.deployment.settings import Settings
from holdfast.embedded.server import CODEC_PORT
from holdfast.intake.connection import Connection
from holdfast.storage.keys import VARIABLE

if TYPE_CHECKING:
    from holdfast.doors.http.serving import Listening


def command(
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="0: a free one.")
    ] = CODEC_PORT,
    ui: Annotated[
        str, typer.Option("--ui", metavar="URL", help="The Web UI whose pages may ask.")
    ] = "",
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="A host that callers name; repeatable."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificates, PEM.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Their private key, PEM.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front speaks TLS.")
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Decrypt histories for the Web UI and for `temporal --codec-endpoint`."""
    if lacking := extras.lacking("serve", "encryption"):
        raise Exit(f"codec-server {lacking}")
    # Only who serves loads what serves.
    from holdfast.doors.codec import origins_of
    from holdfast.doors.http.serving import Listening
    from holdfast.doors.tokens import Tokens

    settings = Settings()
    listening = Listening(host, port, tuple(name or ()), tls_cert, tls_key, behind_proxy)
    listening.check(Tokens(settings))
    if ui:
        origins_of(ui)

    async def serving(connection: Connection) -> int:
        return await run(connection, listening, ui)

    return with_connection(settings, embedded, serving)


async def run(connection: Connection, listening: Listening, ui: str) -> int:
    """Serve until told to stop."""
    from holdfast.doors.codec import CodecServer, origins_of
    from holdfast.doors.http.serving import bind, make_server
    from holdfast.doors.tokens import Tokens

    target = connection.target
    if not target.keys.ids:
        raise Exit(f"nothing is encrypted here: {VARIABLE} is not set")
    if not (ui := ui or target.ui_url):
        raise Exit("the Web UI is not known: give its address with --ui")
    tokens = Tokens(connection.settings) if listening.outside else None
    served = CodecServer(target.keys, target.store, origins_of(ui), listening.hosts, tokens)
    try:
        bound = bind(listening)
    except OSError as error:
        where = f"{listening.host}:{listening.port}"
        remedy = "; choose another --port" if error.errno == errno.EADDRINUSE else ""
        raise Exit(f"cannot listen at {where}: {error.strerror}{remedy}") from error
    say(f"Decrypting at {listening.address(bound)} for {ui}", "bold")
    if tokens is None:
        say("No token is asked for: each user of this machine may read all runs by it", "yellow")
    await make_server(served.app(), listening).serve(sockets=[bound])
    return Code.COMPLETE
