"""`codec-server`: what is encrypted, readable in the Web UI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
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
from holdfast.deployment.settings import Settings
from holdfast.embedded.server import CODEC_PORT
from holdfast.intake.connection import Connection
from holdfast.storage.keys import VARIABLE

if TYPE_CHECKING:
    from holdfast.doors.http.serving import Listening


def command(
    host: Host = "127.0.0.1",
    port: Port = CODEC_PORT,
    ui: Annotated[
        str, typer.Option("--ui", metavar="URL", help="The Web UI whose pages may ask.")
    ] = "",
    name: Names = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
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
    listening.check(Tokens(settings), scopes="--scope read")
    if ui:
        origins_of(ui)

    async def serving(connection: Connection) -> int:
        return await run(connection, listening, ui)

    return with_connection(settings, embedded, serving)


async def run(connection: Connection, listening: Listening, ui: str) -> int:
    """Serve until told to stop."""
    from holdfast.doors.codec import CodecServer, origins_of
    from holdfast.doors.http.serving import make_server
    from holdfast.doors.tokens import Tokens

    target = connection.target
    if not target.keys.ids:
        raise Exit(f"nothing is encrypted here: {VARIABLE} is not set")
    if not (ui := ui or target.ui_url):
        raise Exit("the Web UI is not known: give its address with --ui")
    tokens = Tokens(connection.settings) if listening.outside else None
    served = CodecServer(target.keys, target.store, origins_of(ui), listening.hosts, tokens)
    listens = bound(listening)
    say(f"Decrypting at {listening.address(listens)} for {ui}", "bold")
    if tokens is None:
        say("No token is asked for: each user of this machine may read all runs by it", "yellow")
    await make_server(served.app(), listening).serve(sockets=[listens])
    return Code.COMPLETE
