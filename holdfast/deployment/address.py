"""Addresses as they may be shown: on a screen, in a log, in a history."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.text import visible

OFFICIAL = "https://api.anthropic.com"
"""The endpoint where no other is set."""


def address_of(url: str) -> str:
    """Return scheme, host, port and path of an address, without user, password, query and fragment,
    so that it can be shown; `?` if it is not an address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "?"
    if "://" not in url or not (host or parts.scheme == "file"):
        return "?"
    host = f"[{host}]" if ":" in host else host
    # A password with a slash in it ends up here; what follows the last @ is surely none.
    path = parts.path.rpartition("@")[2].rstrip("/")
    return visible(f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}")


def withheld_of(url: str) -> tuple[str, ...]:
    """Return the secret parts of an address (user with password, password, values of its query),
    both encoded and decoded.
    """
    try:
        parts = urlsplit(url)
        found = [parts.password or "", parts.netloc.rpartition("@")[0]]
        found += [value for _, value in parse_qsl(parts.query)]
        found += [value.partition("=")[2] for value in parts.query.split("&")]
    except ValueError:
        return ()
    found += [unquote(each) for each in found]
    return tuple(dict.fromkeys(each for each in found if each))


def is_loopback(url: str) -> bool:
    """True if an address certainly stays on this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def in_headers(environment: Mapping[str, str]) -> list[str]:
    """Return the values of the headers that an OpenTelemetry backend is sent; they may be
    credentials.
    """
    names = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
    pairs = [pair for name in names for pair in environment.get(name, "").split(",")]
    return [unquote(pair.partition("=")[2].strip()) for pair in pairs]
