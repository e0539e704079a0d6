"""A store that has moved: what is new goes to one place, and what is old is found at others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.contracts.errors import BlobLost
from holdfast.storage.store import Store


class MovedStore:
    """Writes to one store, and reads what that one lacks from those it was before."""

    def __init__(self, now: Store, before: Sequence[Store]) -> None:
        self.now = now
        self.all = (now, *before)

    @property
    def url(self) -> str:
        """The addresses of all, as `store_at` takes them."""
        return " ".join(each.url for each in self.all)

    async def put(self, content: bytes) -> str:
        """Store content where it belongs now."""
        return await self.now.put(content)

    async def put_file(self, source: BinaryIO) -> tuple[str, int]:
        """Store a file where it belongs now."""
        return await self.now.put_file(source)

    async def get(self, digest: str) -> bytes:
        """Return a blob, wherever it is. BlobLost, of the store of now, if it is in none."""
        lost: list[BlobLost] = []
        for each in self.all:
            try:
                return await each.get(digest)
            except BlobLost as error:
                lost.append(error)
        raise lost[0]

    @asynccontextmanager
    async def file(self, digest: str) -> AsyncIterator[Path]:
        """Yield a blob as a file, wherever it is. BlobLost if it is in none."""
        lost: list[BlobLost] = []
        async with AsyncExitStack() as stack:
            for each in self.all:
                try:
                    path = await stack.enter_async_context(each.file(digest))
                    break
                except BlobLost as error:
                    lost.append(error)
            else:
                raise lost[0]
            yield path

    async def write(self, name: str, content: bytes) -> None:
        """Keep content under a name where it belongs now."""
        await self.now.write(name, content)

    async def read(self, name: str) -> bytes | None:
        """Return what is kept under a name, wherever it is."""
        for each in self.all:
            found = await each.read(name)
            if found is not None:
                return found
        return None
