"""What every store of blobs can do, wherever it keeps them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import BinaryIO, Protocol


class Store(Protocol):
    """Content-addressed blobs, shared by every worker and starter of a deployment."""

    @property
    def url(self) -> str:
        """The address that `store_at` takes."""
        ...

    async def put(self, content: bytes) -> str:
        """Store a blob and return its SHA-256 (hex). OSError if it cannot be stored now."""
        ...

    async def put_file(self, source: BinaryIO) -> tuple[str, int]:
        """Store what a file has from where it stands on, never whole in memory, and return its
        SHA-256 (hex) and its bytes. OSError if it cannot be stored now.
        """
        ...

    async def get(self, digest: str) -> bytes:
        """Return a blob exactly as it was put. BlobLost if it is missing or damaged."""
        ...

    def file(self, digest: str) -> AbstractAsyncContextManager[Path]:
        """Yield a blob as a file of this machine, for reading only and within the block. BlobLost
        if it is missing or damaged.
        """
        ...
