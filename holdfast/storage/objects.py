"""Named bytes in a bucket of an object store: what a client of each maker's must do for us."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any, BinaryIO, ClassVar

from holdfast.storage.store import StoreAway

THREADS = 16
"""Requests under way at once, of one process."""
CONNECT_SECONDS, READ_SECONDS = 3, 10
"""Of one request, which is tried three times or so. A worker that hears nothing for longer counts
as dead where it fetches the arguments of an activity.
"""


class Missing(LookupError):
    """A bucket has nothing of this name."""


class Objects(ABC):
    """Named bytes in a bucket, below a prefix. Blocking; all raise StoreAway."""

    scheme: ClassVar[str]
    extra: ClassVar[str]
    """The extra that has the client."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self.bucket = bucket
        self.url = f"{self.scheme}://{bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._making = Lock()

    def write(self, name: str, content: bytes) -> None:
        """Write an object, replacing an earlier one."""
        with self._explained():
            self._put(self._prefix + name, content)

    def write_file(self, name: str, source: BinaryIO) -> None:
        """Write an object of any size."""
        with self._explained():
            self._put_file(self._prefix + name, source)

    def read(self, name: str) -> bytes:
        """Return an object; Missing if there is none."""
        with self._explained():
            return self._get(self._prefix + name)

    def read_file(self, name: str, target: BinaryIO) -> None:
        """Write an object into a file; Missing if there is none."""
        with self._explained():
            self._get_file(self._prefix + name, target)

    @property
    def _client(self) -> Any:
        with self._making:
            return self._made

    @cached_property
    def _made(self) -> Any:
        # At the first use: it takes a second.
        return self._connect()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise self._explain(error) or error from None

    @abstractmethod
    def _connect(self) -> Any:
        """Return the maker's client."""

    @abstractmethod
    def _put(self, key: str, content: bytes) -> None: ...

    @abstractmethod
    def _put_file(self, key: str, source: BinaryIO) -> None: ...

    @abstractmethod
    def _get(self, key: str) -> bytes: ...

    @abstractmethod
    def _get_file(self, key: str, target: BinaryIO) -> None: ...

    @abstractmethod
    def _explain(self, error: Exception) -> Missing | StoreAway | None:
        """Return Missing for what is not there, StoreAway for all else that can go wrong with a
        service, and None for what is nobody's but ours.
        """

    def _away(self, why: object, *, passing: bool = True) -> StoreAway:
        return StoreAway(self.url, " ".join(str(why).split())[:300], passing=passing)
