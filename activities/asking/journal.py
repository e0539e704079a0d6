"""What this deployment has sent to models and received: one or two small files a call, on the
worker's own disk.

A call key becomes a file name by SHA-256. `<digest>.sent` exists from just before the first byte
leaves; `<digest>.answer` holds the complete answer below its SHA-256. Whatever moment the process
is killed at, and whatever a disk does to the files, the directory reads as not sent, sent, or
answered: a `sent` file counts from its creation on, even empty; an answer appears under its name
only when it is whole, and one that is not what was written is none, but the call was sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio import activity

from holdfast.activities.asking import senders
from holdfast.contracts import Bill, Contract
from holdfast.contracts.errors import NotBilled, PossiblyBilled
from holdfast.errors import MissingKey, Undecipherable
from holdfast.storage.files import create, to_disk, write_whole
from holdfast.storage.keys import Keyring, keyring

WRITTEN_AT_ONCE = 2**16
"""Bytes up to which an answer is written on the event loop: that takes less time than to start a
thread, which only syncs it.
"""
UNWRITTEN_LETTERS = 64 * 2**20
"""Characters kept in memory, in all, of answers that the disk did not take."""
ROOM = 32 * 2**20
"""Bytes that must be free before a call is sent: an answer without room may be paid twice."""

logger = logging.getLogger(__name__)


MOMENTS: Any = {"__all__": {"started", "finished", "waited"}}
UNDATED: Any = {
    "findings": MOMENTS,
    "dependencies": MOMENTS,
    "work": {"dependencies": MOMENTS},
}


def dump_undated(material: Contract) -> str:
    """Return the JSON of a material without the times of its findings: after a reset the same
    findings were made at other times, and what is asked with them is asked already.
    """
    return material.model_dump_json(exclude=UNDATED)


def key_of(asked: str, run: str = "", activity_id: str = "") -> str:
    """Return namespace / workflow id / run id / activity id / SHA-256 of what is asked, never the
    attempt. `run` is the first execution of a run that was reset; empty: this one. `activity_id`:
    that of an earlier activity, whose call this one goes on with.
    """
    info = activity.info()
    digest = hashlib.sha256(asked.encode()).hexdigest()
    place = f"{info.workflow_namespace}/{info.workflow_id}/{run or info.workflow_run_id}"
    return f"{place}/{activity_id or info.activity_id}/{digest}"


class _Disk:
    """Syncs files to disk for many calls at once, by one thread at a time: for each call by itself
    it would cost as much as sending it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: list[str] = []
        self._next: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def sync(self, *files: str) -> None:
        """Return once these files, and all names in the directory, are on the disk. Raise OSError,
        to all who waited together, if that fails.
        """
        self._files += files
        if self._next is None:
            self._next = asyncio.create_task(self._bring())
        await asyncio.shield(self._next)

    async def _bring(self) -> None:
        async with self._turn:
            # Who comes from here on may have written after the thread looked: it waits for the
            # next.
            files, self._files, self._next = self._files, [], None
            await asyncio.to_thread(_sync, files, self._directory)


class FileJournal:
    """Implements `Journal` in a private directory (0700, files 0600)."""

    def __init__(self, directory: Path, room: int = ROOM, keys: Keyring | None = None) -> None:
        """Create the directory if need be; with keys, answers are encrypted. Raise OSError if it
        cannot be made private.
        """
        self._directory = directory
        self._room = room
        self._keys = keys or keyring("")
        self._disk = _Disk(directory)
        self._unwritten: dict[str, str] = {}
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        where = f"{senders.this_machine()}\n{directory.resolve()}"
        self._place = int.from_bytes(hashlib.sha256(where.encode()).digest()[:6], "big")

    @property
    def place(self) -> int:
        return self._place

    async def sent(self, key: str) -> bool:
        """True if the call may have left, in this process or an earlier one."""
        # A look at a name takes less than a thread takes to begin.
        return any(_is_there(self._path(key, kind)) for kind in ("sent", "answer"))

    async def mark_sent(self, key: str) -> None:
        """Record, durably, that the first byte is about to leave.

        Raise PossiblyBilled if another attempt was faster, and NotBilled if the disk is full or not
        writable: then nothing may be sent.
        """
        path = self._path(key, "sent")
        try:
            self._mark(key, path)
            try:
                # What is in it may follow later: the mark counts from its creation on.
                await self._disk.sync()
            except OSError:
                os.unlink(path)
                raise
        except FileExistsError:
            raise PossiblyBilled(
                "another attempt has sent this call and no answer is recorded", Bill(calls=1)
            ) from None
        except OSError as error:
            raise NotBilled(
                f"nothing was sent: the journal in {str(self._directory)!r} cannot be written: "
                f"{error}"
            ) from error

    async def withdraw(self, key: str) -> None:
        """Take the mark back, because the call surely was not billed: it may be sent again."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(key, "sent"))

    async def answer(self, key: str) -> str | None:
        """Return the recorded answer; None if none arrived, or it is not as it was recorded."""
        if key in self._unwritten:
            return self._unwritten[key]
        if not os.path.lexists(self._path(key, "answer")):
            return None
        return await asyncio.to_thread(self._read, key)

    async def record(self, key: str, answer: str) -> None:
        """Record, durably, the complete raw answer.

        A failing disk is only logged: the answer is paid, and the caller still has it. The next
        attempt in this process has it, too, and the disk as soon as it takes anything again.
        """
        try:
            await self._put(key, answer)
        except OSError as error:
            logger.warning("an answer could not be recorded in the journal: %s", error)
            if sum(map(len, self._unwritten.values())) + len(answer) <= UNWRITTEN_LETTERS:
                self._unwritten[key] = answer
            return
        with suppress(OSError):
            for late, kept in tuple(self._unwritten.items()):
                await self._put(late, kept)
                self._unwritten.pop(late, None)

    async def _put(self, key: str, answer: str) -> None:
        content = dump_entry(answer)
        path = self._path(key, "answer")
        if len(content) > WRITTEN_AT_ONCE:
            await asyncio.to_thread(self._write, path, content)
        else:
            # From here on it outlives this process, however many others wait to be synced.
            self._write(path, content)
        await self._disk.sync(path)

    def _write(self, path: str, content: bytes) -> None:
        write_whole(Path(path), self._keys.sealed(content), sync=False)

    def _path(self, key: str, kind: str) -> str:
        return f"{self._directory}/{hashlib.sha256(key.encode()).hexdigest()}.{kind}"

    def _mark(self, key: str, path: str) -> None:
        """Create the mark; takes less time than to start a thread."""
        if os.path.lexists(self._path(key, "answer")):
            raise FileExistsError
        free = shutil.disk_usage(self._directory).free
        if free < self._room:
            raise OSError(f"only {free} bytes are free, {self._room} are needed")
        create(Path(path), key.encode(), sync=False)

    def _read(self, key: str) -> str | None:
        path = self._path(key, "answer")
        try:
            return load_entry(self._keys.opened(Path(path).read_bytes()))
        except FileNotFoundError:
            return None
        except MissingKey:
            # The answer is there, and paid: who has the key returns it.
            raise
        except (OSError, ValueError, Undecipherable) as error:
            logger.warning("%s counts as a call without an answer: %s", path, error)
            return None


def _is_there(path: str) -> bool:
    """True if there is anything of this name, or nobody can tell: a call that was sent once wrote
    it.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _sync(files: Sequence[str], directory: Path) -> None:
    for file in files:
        # What was cleaned up meanwhile is nobody's loss.
        with suppress(FileNotFoundError):
            to_disk(file)
    to_disk(directory)


def find_damaged(directory: Path, seconds: float, keys: Keyring | None = None) -> tuple[Path, ...]:
    """Return recorded answers that are not as they were recorded, as far as `seconds` of looking
    find them. Blocking. Raise OSError if the directory cannot be read.
    """
    until = time.monotonic() + seconds
    found = []
    for path in directory.iterdir():
        if time.monotonic() > until:
            break
        if path.suffix == ".answer":
            try:
                load_entry((keys or keyring("")).opened(path.read_bytes()))
            except (FileNotFoundError, MissingKey):
                continue
            except (OSError, ValueError, Undecipherable):
                found.append(path)
    return tuple(found)


def dump_entry(answer: str) -> bytes:
    """Return an answer below its SHA-256, which shows later whether it was written whole."""
    # Half a character, as a model can write one, is no reason to lose what was paid.
    content = answer.encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def load_entry(recorded: bytes) -> str:
    """Return the answer of an entry. Raise ValueError if it is not the one that was recorded."""
    digest, _, content = recorded.partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ValueError("the recorded answer is damaged")
    return content.decode("utf-8", "surrogatepass")
