"""What a deployment keeps: the store of blobs, what of it is needed, and how the rest goes away."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.storage.directory import DirectoryStore
from holdfast.storage.store import Store

__all__ = ["BadStore", "DirectoryStore", "Store", "store_at"]


class BadStore(ValueError):
    """The store's address is of an unsupported kind."""


def store_at(url: str) -> Store:
    """Return the store at an address, which is `file:///PATH` so far."""
    parts = urlsplit(url)
    if parts.scheme != "file" or not parts.path.startswith("/") or parts.netloc:
        raise BadStore(f"STORE_URL {url!r}: not an address of the form file:///PATH")
    return DirectoryStore(Path(unquote(parts.path)))
