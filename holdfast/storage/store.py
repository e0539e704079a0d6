"""What every store of blobs can do, wherever it keeps them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import BinaryIO, Protocol


class StoreAway(OSError):
    """A store cannot be used now: it does not answer, or does not allow it. What it has is not
    lost.
    """

    def __init__(self, url: str, why: str, *, passing: bool = True) -> None:
        self.why, self.passing = why, passing
        """False: only a person can help, with rights or settings."""
        remedy = "" if passing else "; give workers and starters the rights and settings for it"
        super().__init__(0, f"the store cannot be used: {why}{remedy}", url)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class Store(Protocol):
    """Content-addressed blobs, shared by every worker and starter of a deployment."""

    @property
    def url(self) -> str:
        """The address that `store_at` takes."""
        ...

    async def put(self, content: bytes) -> str:
        """Store a blob and return its SHA-256 (hex). StoreAway or another OSError if it cannot."""
        ...

    async def put_file(self, source: BinaryIO) -> tuple[str, int]:
        """Store what a file has from where it stands on, never whole in memory, and return its
        SHA-256 (hex) and its bytes. StoreAway or another OSError if it cannot.
        """
        ...

    async def get(self, digest: str) -> bytes:
        """Return a blob exactly as it was put. BlobLost if it is missing or damaged; StoreAway."""
        ...

    def file(self, digest: str) -> AbstractAsyncContextManager[Path]:
        """Yield a blob as a file of this machine, for reading only and within the block. BlobLost
        if it is missing or damaged; StoreAway.
        """
        ...

    async def write(self, name: str, content: bytes) -> None:
        """Keep content under a name of its own, `FOLDER/NAME`, replacing what was there. StoreAway
        or another OSError if it cannot.
        """
        ...

    async def read(self, name: str) -> bytes | None:
        """Return what is kept under a name; None if there is nothing. StoreAway or another
        OSError if it cannot be told.
        """
        ...
