"""Let only the page's own browser see the live page and give orders by it.

Any page that a person has open can send requests to 127.0.0.1, and a name that leads there can be
anybody's. So the address has a key that nobody can guess, requests must name this very host, and an
order must come from the page itself: by its origin, its cookie and its token.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

COOKIE = "holdfast_live"


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Guard:
    """The secrets of one server."""

    port: int
    key: str = field(default_factory=_secret)
    """Key in the page's address."""
    token: str = field(default_factory=_secret)
    """Token in the page's forms."""
    cookie: str = field(default_factory=_secret)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.origin}/{self.key}/"

    def strange(self, headers: Mapping[str, str], key: str) -> str:
        """Return why a request is not answered; empty if it is one of whoever was given the
        address.
        """
        if headers.get("Host") != f"127.0.0.1:{self.port}":
            return "this server answers to 127.0.0.1 alone"
        return "" if _same(key, self.key) else "there is nothing here"

    def foreign(self, headers: Mapping[str, str], cookie: str, token: str) -> str:
        """Return why an order is not taken; empty if it comes from the page."""
        if headers.get("Origin") != self.origin:
            return "orders come from the page itself"
        if headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return "orders come from the page itself"
        if not _same(cookie, self.cookie) or not _same(token, self.token):
            return "this page is of another server; open the address that it printed"
        return ""


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
