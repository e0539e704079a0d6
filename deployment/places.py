"""Places of files and services that a deployment names, as its settings are written."""

from __future__ import annotations

import errno
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from deployment.address import is_loopback


def searched_by(value: SecretStr | None) -> SecretStr | None:
    """A provider and its key, or the address of one's own; what is said of it holds no key."""
    if value is None:
        return None
    name, _, key = value.get_secret_value().partition(":")
    if name == "searxng" and not key.startswith(("http://", "https://")):
        raise ValueError("searxng is given with its address, as searxng:http://127.0.0.1:8888")
    if name not in ("brave", "tavily", "searxng") or not key.strip() or not key.isascii():
        raise ValueError("give it as brave:KEY, tavily:KEY or searxng:ADDRESS")
    return SecretStr(f"{name}:{key.strip()}")


def safely_reached(url: str) -> str:
    """The address of a sandbox: code and key go there, so only this machine may do without TLS."""
    parts = urlsplit(url)
    schemes = ("https", "http") if is_loopback(url) else ("https",)
    if not url or (parts.hostname and parts.scheme in schemes and parts.username is None):
        return url
    raise ValueError(
        "give the address of a sandbox with https://, or with http:// on this machine; its key"
        " stands in a setting of its own"
    )


def findable(path: Path) -> Path:
    """The path as it was given, where it can lead to a place at all."""
    why = ""
    try:
        path.expanduser().stat()
    except RuntimeError:
        why = "there is no such user"
    except OSError as error:
        # That nothing is there yet is no mistake.
        why = "a link on the way leads to itself" * (error.errno == errno.ELOOP)
    if why:
        raise ValueError(f"{str(path)!r} leads nowhere: {why}")
    return path
