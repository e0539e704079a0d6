"""Options of commands that listen, and how they begin to."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.screen.exits import Exit

if TYPE_CHECKING:
    from holdfast.doors.http.serving import Listening

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: a free one.")]
Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A host that callers name; repeatable."),
]
TlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificates, PEM.")
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Their private key, PEM.")
]
BehindProxy = Annotated[bool, typer.Option("--behind-proxy", help="A proxy in front speaks TLS.")]


def bound(listening: Listening) -> socket.socket:
    """Return the socket that callers reach. Exit if there can be none."""
    # Only who serves loads what serves.
    from holdfast.doors.http.serving import bind

    try:
        return bind(listening)
    except OSError as error:
        where = f"{listening.host}:{listening.port}"
        remedy = "; choose another --port" if error.errno == errno.EADDRINUSE else ""
        raise Exit(f"cannot listen at {where}: {error.strerror}{remedy}") from error
