"""Note on disk which attempts a worker process holds.

The server learns of a worker that died when heartbeats are missed, after ten seconds. A worker that
starts on the same machine knows sooner: it reads what the dead one held, and hands it back at once;
a call that had been sent, and whose answer is not in the journal, as lost, so that no attempt
begins only to find that. What the dead one had been given and not begun stands in no file: the
server has it under the dead one's identity, which is the file's name. A process that lives, frozen
or not, keeps its file locked, and the kernel drops the lock with it.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import (
    ResetActivityRequest,
    ResetStickyTaskQueueRequest,
)
from temporalio.client import AsyncActivityHandle, Client
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from holdfast.contracts import Bill, Span
from holdfast.contracts.errors import AnswerLost, OrchestrationError, WorkerDied
from holdfast.embedded import private
from holdfast.embedded.state import flock
from holdfast.errors import EmbeddedError
from holdfast.ports import Journal
from holdfast.workers.noting import DIED, Sent, noting

MOST_BYTES = 16 * 2**20
"""A file that is larger is not ours."""
TRIMMED_BYTES = 2**18
"""Size from which on a file is written anew, with no more than what is held."""
PATIENCE = timedelta(seconds=5)
MOST_RUNS = 1_000
"""Open runs that are looked through for what a dead worker had been given, the newest first."""
LOOKS = 20
"""Runs that are looked at at once."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attempt:
    """One attempt at an activity, as the server names it."""

    token: bytes
    workflow_id: str
    run_id: str
    started: float = 0.0
    """By the server's clock, in seconds of the epoch."""
    here: float = 0.0
    """The same moment by this machine's clock."""
    sent: Sent | None = None
    """The call that it makes, once that has left; None also for an attempt at several."""


@dataclass(frozen=True)
class LeftBehind:
    """What processes that died leave: their names, and the attempts that they had begun."""

    names: frozenset[str] = frozenset()
    attempts: tuple[Attempt, ...] = ()

    @property
    def runs(self) -> set[tuple[str, str]]:
        return {(each.workflow_id, each.run_id) for each in self.attempts}


class Held(Interceptor):
    """Notes each attempt that begins in this process, and that it ended."""

    def __init__(self, folder: Path) -> None:
        """Raise OSError or EmbeddedError if the folder cannot be made private, or written to."""
        private.make_folder(folder)
        self._path = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._file = self._locked()
        while not os.fstat(self._file).st_nlink:
            # Another process that starts took it for one left behind, before it was locked.
            os.close(self._file)
            self._file = self._locked()
        self._open: dict[int, bytes] = {}
        """Number of an attempt -> its lines."""
        self._last = 0
        self._size = 0

    @property
    def identity(self) -> str:
        """The name of this process at the server: no other, before or after it, has the same."""
        return f"{self._path.name}@{socket.gethostname()}"

    def _locked(self) -> int:
        file = private.open_file(self._path, os.O_RDWR | os.O_APPEND)
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Noted(next, self)

    def begin(self, attempt: Attempt) -> int:
        """Note an attempt; its number."""
        self._last += 1
        token = base64.b64encode(attempt.token).decode()
        at = attempt.started, attempt.here
        line = _line(self._last, token, attempt.workflow_id, attempt.run_id, *at)
        self._open[self._last] = line
        self._write(line)
        return self._last

    def note_sent(self, number: int, sent: Sent) -> None:
        """Note the call that an attempt sends."""
        if number in self._open:
            line = _line(number, sent.key, sent.model)
            self._open[number] += line
            self._write(line)

    def end(self, number: int) -> None:
        """Note that it ended, however it did."""
        self._open.pop(number, None)
        held = b"".join(self._open.values()) if self._size > TRIMMED_BYTES else b""
        if self._size <= max(TRIMMED_BYTES, 2 * len(held)):
            self._write(_line(number))
            return
        # Killed just here, heartbeats tell.
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            self._size = 0
        self._write(held)

    def close(self) -> None:
        """Remove the file: nothing is held any more."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _write(self, lines: bytes) -> None:
        # Not synced: should the machine die with the process, heartbeats tell, as everywhere else.
        # On a full disk, too.
        with suppress(OSError):
            self._size += os.write(self._file, lines)


def _line(*row: object) -> bytes:
    return json.dumps(row).encode() + b"\n"


class _Noted(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, held: Held) -> None:
        super().__init__(next)
        self._held = held

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        run, at = (info.workflow_id or "", info.workflow_run_id or ""), info.started_time
        attempt = Attempt(info.task_token, *run, at.timestamp(), time.time())
        number = self._held.begin(attempt)
        noting.set(partial(self._held.note_sent, number))
        try:
            return await self.next.execute_activity(input)
        finally:
            self._held.end(number)


async def hand_back(client: Client, folder: Path, journal: Journal) -> LeftBehind:
    """Tell the server which attempts ended because their process died on this machine, so that it
    gives them out again at once, or their run decides what becomes of a lost call. What it knows no
    more of is left alone.
    """
    files = await asyncio.to_thread(_lock_left_behind, folder)
    try:
        lost = await asyncio.to_thread(_read_left_behind, files)
        # First: what ends an activity makes a workflow task, which would wait for the dead process.
        await asyncio.gather(*(_unstick(client, *run) for run in lost.runs))
        await asyncio.gather(*(_hand_back(client, journal, each) for each in lost.attempts))
    finally:
        # Not before the server knows: who is killed meanwhile leaves them to the next one, and
        # what it is told twice it does not know the second time.
        for path, file in files.items():
            with suppress(OSError):
                path.unlink(missing_ok=True)
            os.close(file)
    if lost.attempts:
        logger.info("handed back %d attempts of a worker that died", len(lost.attempts))
    return lost


async def _hand_back(client: Client, journal: Journal, attempt: Attempt) -> None:
    handle = client.get_async_activity_handle(task_token=attempt.token)
    await _fail(handle, await _what_died(journal, attempt))


async def _what_died(journal: Journal, attempt: Attempt) -> OrchestrationError:
    """Return AnswerLost for a call that left and whose answer was not recorded. Otherwise the
    next attempt sends it, or returns its answer, or finds out what the journal does not say now.
    """
    sent = attempt.sent
    if sent is not None:
        # The answers of other machines are in a store, which may be away.
        with suppress(Exception):
            async with asyncio.timeout(PATIENCE.total_seconds()):
                if await journal.answer(sent.key) is None and await journal.sent(sent.key):
                    bill = Bill(model=sent.model, calls=1, dollars=None, final=False)
                    return AnswerLost(DIED, bill, _until_now(attempt))
    return WorkerDied("its worker died")


def _until_now(attempt: Attempt) -> Span:
    """Return when an attempt was under way, as far as its run is concerned: until this moment. Its
    clock goes by that.
    """
    started = datetime.fromtimestamp(attempt.started, UTC)
    # This machine's clock may have been set back meanwhile.
    took = max(time.time() - attempt.here, 0.0)
    return Span(started=started, ended=started + timedelta(seconds=took))


async def hand_back_given(client: Client, queue: str, lost: LeftBehind) -> int:
    """Hand back what dead processes had been given and not begun, in the open runs of a queue, and
    return how much that was.
    """
    if not lost.names:
        return 0
    runs = dict.fromkeys(sorted(lost.runs))
    query = f"ExecutionStatus = 'Running' AND TaskQueue = {json.dumps(queue)}"
    with suppress(RPCError):
        async for each in client.list_workflows(query, limit=MOST_RUNS, rpc_timeout=PATIENCE):
            runs[each.id, each.run_id] = None
    at_once = asyncio.Semaphore(LOOKS)

    async def of_run(workflow_id: str, run_id: str) -> int:
        async with at_once:
            execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
            given = await _given_to(client, execution, lost.names)
            return sum(await asyncio.gather(*(_hand_on(client, execution, id) for id in given)))

    count = sum(await asyncio.gather(*(of_run(*each) for each in runs)))
    if count:
        logger.info("handed back %d attempts that a worker that died had not begun", count)
    return count


async def _given_to(client: Client, run: WorkflowExecution, names: frozenset[str]) -> Sequence[str]:
    """Return the ids of a run's activities that these processes were given."""
    try:
        handle = client.get_workflow_handle(run.workflow_id, run_id=run.run_id)
        seen = (await handle.describe(rpc_timeout=PATIENCE)).raw_description
    except RPCError:
        return ()
    started = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    return [
        each.activity_id
        for each in seen.pending_activities
        if each.state == started and each.last_worker_identity.partition("@")[0] in names
    ]


async def _hand_on(client: Client, run: WorkflowExecution, id: str) -> bool:
    """Return False if the server knew no more of what had not begun. It did not kill the worker, so
    the attempts that it had are forgotten: however many workers die, this ends no run.
    """
    request = ResetActivityRequest(namespace=client.namespace, execution=run, id=id)
    with suppress(RPCError):
        await client.workflow_service.reset_activity(request, timeout=PATIENCE)
    handle = client.get_async_activity_handle(
        workflow_id=run.workflow_id, run_id=run.run_id, activity_id=id
    )
    return await _fail(handle, WorkerDied("its worker died"))


async def _fail(handle: AsyncActivityHandle, error: OrchestrationError) -> bool:
    """Return False if the server knew no more of it."""
    try:
        await handle.fail(error, rpc_timeout=PATIENCE)
    except (RPCError, UnicodeEncodeError):
        return False
    return True


async def _unstick(client: Client, workflow_id: str, run_id: str) -> None:
    """Have workflow tasks offered to any worker, not to the dead process first."""
    execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
    request = ResetStickyTaskQueueRequest(namespace=client.namespace, execution=execution)
    with suppress(RPCError):
        await client.workflow_service.reset_sticky_task_queue(request, timeout=PATIENCE)


def _lock_left_behind(folder: Path) -> dict[Path, int]:
    """Return the files of dead processes, open and locked: each is read by one process alone."""
    found: dict[Path, int] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with suppress(OSError, EmbeddedError):
            file = private.open_file(path)
            if flock(file, fcntl.LOCK_EX):
                found[path] = file
            else:
                os.close(file)
    return found


def _read_left_behind(files: Mapping[Path, int]) -> LeftBehind:
    found: list[Attempt] = []
    for file in files.values():
        with suppress(OSError):
            found += _open_in(os.pread(file, MOST_BYTES, 0))
    return LeftBehind(frozenset(path.name for path in files), tuple(found))


def _open_in(content: bytes) -> Iterator[Attempt]:
    """Return the attempts in a file that did not end, without a row that was not written whole."""
    rows: dict[int, Attempt] = {}
    for line in content.splitlines():
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            match json.loads(line):
                case [number, str(token), str(workflow_id), str(run_id), started, here]:
                    # Half a character is in no name that the server gives.
                    f"{workflow_id}{run_id}".encode()
                    rows[number] = Attempt(
                        base64.b64decode(token), workflow_id, run_id, float(started), float(here)
                    )
                case [number, str(key), str(model)]:
                    rows[number] = replace(rows[number], sent=Sent(key, model))
                case [number]:
                    rows.pop(number, None)
    return iter(rows.values())
