"""Places of files and services that a deployment names, as its settings are written."""

from __future__ import annotations

import errno
import re
import shlex
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from holdfast.deployment.address import is_loopback
from holdfast.deployment.project import NAME

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
UNDERSTOOD = ("schemas", "effort", "counting", "caching", "batches")
"""What an endpoint may understand beyond text, by the names of HOLDFAST_CAPABILITIES."""
_HEADER = re.compile(r"[!-~]+")
_PLAIN = re.compile(r"[^\s\x00-\x1f\x7f]+")


def sendable(value: SecretStr | None) -> SecretStr | None:
    """Return a key that can be sent as a header. ValueError, without any of its text, otherwise."""
    if value is not None and not _HEADER.fullmatch(value.get_secret_value()):
        raise ValueError("holds a space, a line end or a letter that no key has; copy it once more")
    return value


def model_id(value: str) -> str:
    """Return the id of a model. ValueError unless it is one word."""
    if not _PLAIN.fullmatch(value):
        raise ValueError("is not an id of a model; give one without spaces")
    return value


def with_test(value: str) -> str:
    """Return a test command. ValueError unless it has words, and a place for the test."""
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {error}") from None
    if words and not any("{test}" in each for each in words):
        raise ValueError("has no {test}, which stands for the path of the test")
    return value.strip()


def plain_name(value: str) -> str:
    """What a project is called: plain, as it stands in every run of it; or nothing."""
    if value and not NAME.fullmatch(value):
        raise ValueError("give up to 40 letters a-z, digits, '.', '_' and '-'")
    return value


def level(value: str) -> str:
    """Return the name of a logging level, in any case. ValueError for another word."""
    if value.upper() not in LEVELS:
        raise ValueError(f"give one of {', '.join(LEVELS)}")
    return value


def understood(value: str) -> str:
    """Return what an endpoint is said to understand: one word, or names separated by commas."""
    names = {name.strip() for name in value.split(",") if name.strip()}
    if value not in ("auto", "full", "none") and not names <= {*UNDERSTOOD, "none"}:
        raise ValueError(f"give auto, full, none, or a list of {', '.join(UNDERSTOOD)}")
    return value


def web_address(url: str) -> str:
    """Return an HTTP address, or an empty string. ValueError for anything else."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if url and not (good and _PLAIN.fullmatch(url)):
        raise ValueError(
            "is not an address; give one with http:// or https://, as http://HOST:PORT"
        )
    return url


def searched_by(value: SecretStr | None) -> SecretStr | None:
    """Return `PROVIDER:KEY`, or the address of a search server. The ValueError holds no key."""
    if value is None:
        return None
    name, _, key = value.get_secret_value().partition(":")
    if name == "searxng" and not key.startswith(("http://", "https://")):
        raise ValueError("searxng is given with its address, as searxng:http://127.0.0.1:8888")
    if name not in ("brave", "tavily", "searxng") or not _HEADER.fullmatch(key.strip()):
        raise ValueError("give it as brave:KEY, tavily:KEY or searxng:ADDRESS")
    return SecretStr(f"{name}:{key.strip()}")


def safely_reached(url: str) -> str:
    """Return the address of a sandbox. ValueError for one on another machine without TLS: code and
    the key go there.
    """
    parts = urlsplit(url)
    schemes = ("https", "http") if is_loopback(url) else ("https",)
    if not url or (parts.hostname and parts.scheme in schemes and parts.username is None):
        return url
    raise ValueError(
        "give the address of a sandbox with https://, or with http:// on this machine; its key"
        " stands in a setting of its own"
    )


def findable(path: Path) -> Path:
    """Return the path unchanged. ValueError if it can lead nowhere."""
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


def own_address(value: str) -> str:
    """Return an IP address. ValueError for anything else."""
    try:
        return str(ip_address(value))
    except ValueError:
        raise ValueError("is no IP address; give one as 127.0.0.1 or 0.0.0.0") from None


def listening(value: str) -> str:
    """Return ADDRESS:PORT, or an empty string. ValueError for anything else: a name would listen
    somewhere that nobody chose.
    """
    host, _, port = value.rpartition(":")
    try:
        ip_address(host.strip("[]"))
        good = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
    except ValueError:
        good = False
    if value and not good:
        raise ValueError("is no ADDRESS:PORT; give one as 127.0.0.1:8080")
    return value
