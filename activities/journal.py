"""What this deployment has sent to models and received: one or two small files a call, on the
worker's own disk.

A call key becomes a file name by SHA-256. `<digest>.sent` exists from just before the first byte
leaves; `<digest>.answer` holds the complete answer. Whatever moment the process is killed at, the
directory reads as not sent, sent, or answered: a `sent` file counts from its creation on, even
empty, and an answer appears under its name only when it is whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from orchestrator.contracts import Bill
from orchestrator.errors import NotBilled, PossiblyBilled

ROOM = 32 * 2**20
"""Bytes that must be free before a call is sent: an answer that cannot be recorded may be paid
twice.
"""

logger = logging.getLogger(__name__)


class FileJournal:
    """Implements the `Journal` seam in a private directory (0700, files 0600)."""

    def __init__(self, directory: Path, room: int = ROOM) -> None:
        """Creates the directory if need be; OSError if it cannot be made private."""
        self._directory = directory
        self._room = room
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)

    async def sent(self, key: str) -> bool:
        """Whether the call may have left, in this process or an earlier one."""
        return await asyncio.to_thread(self._path(key, "sent").exists)

    async def mark_sent(self, key: str) -> None:
        """Record, durably, that the first byte is about to leave.

        PossiblyBilled if another attempt was faster; NotBilled if the disk is full or not
        writable, and then nothing may be sent.
        """
        await asyncio.to_thread(self._mark, key)

    async def withdraw(self, key: str) -> None:
        """Take the mark back, because the call surely was not billed: it may be sent again."""
        await asyncio.to_thread(self._path(key, "sent").unlink, missing_ok=True)

    async def answer(self, key: str) -> str | None:
        """The recorded answer, if one arrived."""
        return await asyncio.to_thread(self._read, key)

    async def record(self, key: str, answer: str) -> None:
        """Record, durably, the complete raw answer.

        A disk that fails now is logged and not raised: the answer is paid, and the caller still
        has it.
        """
        await asyncio.to_thread(self._record, key, answer)

    async def prune(self, retention: timedelta) -> int:
        """Remove what is older than the retention of histories; returns the number of files."""
        return await asyncio.to_thread(self._prune, time.time() - retention.total_seconds())

    def _path(self, key: str, kind: str) -> Path:
        return self._directory / f"{hashlib.sha256(key.encode()).hexdigest()}.{kind}"

    def _mark(self, key: str) -> None:
        path = self._path(key, "sent")
        try:
            free = shutil.disk_usage(self._directory).free
            if free < self._room:
                raise OSError(f"only {free} bytes are free, {self._room} are needed")
            _write(path, key)
            _sync(self._directory)
        except FileExistsError:
            raise PossiblyBilled(
                "another attempt has sent this call and no answer is recorded", Bill(calls=1)
            ) from None
        except OSError as error:
            raise NotBilled(
                f"nothing was sent: the journal in {str(self._directory)!r} cannot be written: "
                f"{error}"
            ) from error

    def _read(self, key: str) -> str | None:
        try:
            return self._path(key, "answer").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def _record(self, key: str, answer: str) -> None:
        path = self._path(key, "answer")
        draft = path.with_suffix(f".{os.getpid()}.{time.monotonic_ns()}.draft")
        try:
            _write(draft, answer)
            draft.replace(path)
            _sync(self._directory)
        except OSError as error:
            logger.warning("an answer could not be recorded in the journal: %s", error)
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _prune(self, before: float) -> int:
        removed = 0
        for path in self._directory.iterdir():
            with suppress(FileNotFoundError):
                if path.suffix in (".sent", ".answer", ".draft") and path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
        return removed


def _write(path: Path, text: str) -> None:
    """Create a private file that did not exist, whole and on the disk, or leave none behind."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _sync(directory: Path) -> None:
    """Make a new name in a directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
