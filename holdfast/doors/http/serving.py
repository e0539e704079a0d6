"""Listening: where, for whom, and only if that is safe."""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from holdfast.deployment.invocation import STARTER
from holdfast.doors.http.app import make_app
from holdfast.doors.http.guard import LOOPBACK, RATE, Guard, Rates
from holdfast.doors.http.pages import Sessions
from holdfast.doors.tokens import Tokens, hash_of, new_secret, owner
from holdfast.errors import Refused
from holdfast.intake.connection import Connection

MOST_CONNECTIONS = 500
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
LEAVING_SECONDS = 5


@dataclass(frozen=True)
class Listening:
    """Where the server listens, and how callers reach it."""

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    """More hosts by which it is spoken to."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    """True if a proxy in front speaks TLS and passes `Host` on."""
    no_token: bool = False
    rate: float = RATE

    @property
    def tls(self) -> bool:
        return self.tls_cert is not None

    @property
    def secure(self) -> bool:
        """True if callers come by https."""
        return self.tls or self.behind_proxy

    @property
    def outside(self) -> bool:
        """True if others than this machine's users can reach it."""
        return self.behind_proxy or not is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """Return the hosts that requests may name."""
        own = () if is_wild(self.host) else (_bracketed(self.host),)
        near = LOOPBACK if is_loopback(self.host) else ()
        return frozenset(each.lower() for each in (*own, *near, *self.names))

    def address(self, bound: socket.socket) -> str:
        """Return the address by which it is reached, for people."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{_bracketed(self.host)}:{bound.getsockname()[1]}"

    def check(self, tokens: Tokens, scopes: str = "--scope start:1 --scope decide") -> None:
        """Refuse what would let strangers in, and names that no request can have. `scopes`: those
        of the token that whoever lacks one is told to make.
        """
        for name in self.names:
            if not _HOST.fullmatch(name):
                raise Refused(f"--name {name!r:.80}: give a host alone, as in runs.example.com")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise Refused("--tls-cert and --tls-key belong together; give both")
        if self.no_token and self.outside:
            raise Refused(
                "--no-token is for this machine alone; leave out --host and --behind-proxy"
            )
        if not self.outside:
            return
        where = f"--host {self.host}" if not is_loopback(self.host) else "--behind-proxy"
        if not tokens.all():
            raise Refused(
                f"{where}: others can reach it, and there is no token; make one with:"
                f" {STARTER} token new NAME {scopes}"
            )
        if not self.secure:
            raise Refused(
                f"{where}: tokens would be sent in the clear; give --tls-cert and --tls-key, or"
                " --behind-proxy where a proxy speaks TLS"
            )
        if not self.names and (self.behind_proxy or is_wild(self.host)):
            raise Refused(f"{where}: say by which name callers reach it: --name runs.example.com")


def bind(listening: Listening) -> socket.socket:
    """Return a socket that listens. OSError says why it cannot; Refused, why TLS cannot."""
    _check_certificate(listening)
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    return socket.create_server((listening.host, listening.port), family=family)


def _check_certificate(listening: Listening) -> None:
    """Raise Refused for files with which no TLS can be spoken, before anybody is told of it."""
    if listening.tls_cert is None or listening.tls_key is None:
        return
    for path in (listening.tls_cert, listening.tls_key):
        try:
            path.read_bytes()
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}") from error
    try:
        trying = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Else a terminal would be asked for it.
        trying.load_cert_chain(listening.tls_cert, listening.tls_key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise Refused(
            f"--tls-cert {listening.tls_cert} and --tls-key {listening.tls_key} are no certificate"
            " and its key, in PEM and without a password"
        ) from error


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wild(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def guarded(connection: Connection, listening: Listening, tokens: Tokens) -> tuple[ASGIApp, str]:
    """Return the application with its guard, and the token that the server made for itself; empty
    if there are others, or none is asked for.
    """
    own = "" if listening.no_token or tokens.all() else new_secret()
    sessions = Sessions()
    guard = Guard(
        make_app(connection, sessions),
        tokens,
        listening.hosts,
        secure=listening.secure,
        printed=hash_of(own) if own else "",
        anybody=owner() if listening.no_token else None,
        owner=owner(),
        rates=Rates(listening.rate, listening.rate * 10),
        sessions=sessions,
    )
    return guard, own


def make_server(app: ASGIApp, listening: Listening) -> uvicorn.Server:
    """Return the server, to be served at a bound socket."""
    # Its own lines have whole addresses in them; ours have none.
    logging.getLogger("uvicorn.access").disabled = True
    config = uvicorn.Config(
        app,
        ssl_certfile=str(listening.tls_cert) if listening.tls_cert else None,
        ssl_keyfile=str(listening.tls_key) if listening.tls_key else None,
        http="h11",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        date_header=True,
        # Whom a proxy names is not used for anything.
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=LEAVING_SECONDS,
    )
    return uvicorn.Server(config)
