"""What this deployment allows of web hooks: secrets and addresses."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr

SECRET = "HOLDFAST_WEBHOOK_SECRET"
PRIVATE = "HOLDFAST_WEBHOOK_PRIVATE"
PREFIX = "whsec_"
LEAST_BYTES, MOST_BYTES = 24, 64
"""Of a secret, as Standard Webhooks has them."""
LONGEST_URL = 2_000
_NUMBER = re.compile(r"(^|\.)([0-9]+|0x[0-9a-f]*)\.?$", re.IGNORECASE)
"""The end of a host that some read as an IP address."""
_KEY = re.compile(r"token|secret|sig|key|pass|auth|code", re.IGNORECASE)


def signable(value: SecretStr | None) -> SecretStr | None:
    """Return the secret. The ValueError, for one that is none, does not hold it."""
    if value is not None and not is_secret(value.get_secret_value()):
        raise ValueError(
            f"give it as {PREFIX} and {LEAST_BYTES} to {MOST_BYTES} random bytes as base64"
        )
    return value


def is_secret(text: str) -> bool:
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return False
    return text.startswith(PREFIX) and LEAST_BYTES <= len(key) <= MOST_BYTES


def refusal_of(url: str, *, private: bool) -> str:
    """Return why nothing is sent to an address, without repeating it; empty if it can be.
    `private`: True if it may be one without TLS.
    """
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        named = False
    if not named or len(url) > LONGEST_URL or not url.isascii() or not url.isprintable():
        return "is no address of the web, as https://HOST/PATH"
    if _NUMBER.search(parts.hostname or "") and not _is_ip(parts.hostname or ""):
        return "names its host by a number that is no IP address; write it as 203.0.113.7"
    if parts.username is not None or parts.password is not None:
        return "holds a user or a password, which would stand in the run's history; leave it out"
    if any(_KEY.search(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        return "holds a key in its query, which would stand in the run's history; leave it out"
    if parts.scheme == "http" and not private:
        return f"is not https; {PRIVATE}=true allows http, and addresses inside a net"
    if parts.scheme not in ("http", "https"):
        return "is no address of the web, as https://HOST/PATH"
    return ""


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
