"""Background processes that outlive their starter and are known by a pid file.

A process is ours if it is the one that wrote the file: the same pid, started at the same moment,
the same program with the same arguments, and among these our state directory. A pid alone would be
mistaken after its reuse, arguments alone for somebody who only names them, and what a copy of the
directory says for its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.embedded import private

LOG_BYTES = 5_000_000
"""A log above this is put aside, once, at the next start."""

LET_GO_SECONDS = 2.0

RECORD_BYTES = 64 * 1024
START_SECONDS = 30.0
"""How much later than its start a process may have looked at the clock, where the system counts no
ticks; a step of the clock moves neither of the two.
"""
_EXEC_LOOKS = 200

# Runs in the new process: it records itself while it still holds the lock that its starter may die
# with, and then becomes the program, without the lock. So there is no moment at which a process
# lives that nobody knows.
_RECORD = """
import json, os, sys, time
lock, pid_file, *program = sys.argv[1:]
try:
    with open("/proc/self/stat", errors="replace") as stat:
        started = stat.read().rpartition(")")[2].split()[19]
except OSError:
    started = str(time.time())
fresh = pid_file + ".new"
try:
    os.unlink(fresh)
except FileNotFoundError:
    pass
flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
with os.fdopen(os.open(fresh, flags, 0o600), "w") as file:
    json.dump({"pid": os.getpid(), "started": started, "program": program}, file)
    file.flush()
    os.fsync(file.fileno())
os.replace(fresh, pid_file)
os.set_inheritable(int(lock), False)
os.execv(program[0], program)
"""


class Record(BaseModel):
    """What a process wrote about itself."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started: str
    """Ticks since the machine's start, as Linux has them; elsewhere seconds since the epoch."""
    program: tuple[str, ...]


def spawn(
    program: Sequence[str],
    pid_file: Path,
    log: Path,
    environment: Mapping[str, str],
    lock: int,
) -> subprocess.Popen[bytes]:
    """Start a program in its own session; return when it has written its record, or ended."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(log.suffix + ".1"))
    with os.fdopen(private.open_file(log, os.O_WRONLY | os.O_APPEND), "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-ISc", _RECORD, str(lock), str(pid_file), *program],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=pid_file.parent,
            env=dict(environment),
            umask=0o077,
            start_new_session=True,
            pass_fds=(lock,),
        )
    # Reaps it, should it end before its starter does: a zombie would count against the user's
    # processes, and Python warns of a child that nobody waited for.
    threading.Thread(target=process.wait, daemon=True).start()
    while process.poll() is None and not _is(read_record(pid_file), process.pid):
        time.sleep(0.005)
    return process


def _is(record: Record | None, pid: int) -> bool:
    return record is not None and record.pid == pid


def read_record(pid_file: Path) -> Record | None:
    """Return what a process wrote about itself; None if nothing, or nothing plausible, is there."""
    try:
        return Record.model_validate_json(private.read(pid_file, RECORD_BYTES))
    except (OSError, ValidationError):
        return None


def is_alive(record: Record | None, mark: Path) -> bool:
    """True if this very process runs and was started for `mark`."""
    if record is None or record.pid <= 0:
        return False
    try:
        process = psutil.Process(record.pid)
        for _ in range(_EXEC_LOOKS):
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if command := process.cmdline():
                return _is_program(record, command, mark) and _began(record, process)
            # Empty for an instant while a process becomes another program.
            time.sleep(0.005)
    except (psutil.Error, OSError):
        pass
    return False


def _is_program(record: Record, command: list[str], mark: Path) -> bool:
    """True if a command line is the recorded program's: its own, or that of the interpreter that
    runs or is about to become it.
    """
    arguments = list(record.program[1:])
    return bool(arguments) and command[-len(arguments) :] == arguments and str(mark) in command


def _began(record: Record, process: psutil.Process) -> bool:
    with suppress(FileNotFoundError, ValueError):
        fields = Path(f"/proc/{record.pid}/stat").read_text(errors="replace").rpartition(")")[2]
        return fields.split()[19] == record.started
    try:
        return abs(process.create_time() - float(record.started)) < START_SECONDS
    except ValueError:
        return False


def find_running(pid_file: Path, mark: Path) -> Record | None:
    """Return the recorded process if it is alive."""
    record = read_record(pid_file)
    return record if is_alive(record, mark) else None


def users_of(database: Path, seconds: float) -> tuple[int, ...]:
    """Return the pids of all servers that have this database open, after giving those that are
    ending up to `seconds`.
    """
    until = time.monotonic() + seconds
    while True:
        found = tuple(
            process.pid
            for process in psutil.process_iter(["cmdline", "status"])
            if process.info["status"] != psutil.STATUS_ZOMBIE
            and _names(process.info["cmdline"] or [], str(database))
        )
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def _names(command: list[str], database: str) -> bool:
    return ("--db-filename", database) in pairwise(command)


def terminate(record: Record | None, mark: Path) -> bool:
    """Send SIGTERM. False if the process is gone or not ours."""
    if record is None or not is_alive(record, mark):
        return False
    try:
        psutil.Process(record.pid).terminate()
    except psutil.NoSuchProcess:
        return False
    return True


def stop(record: Record | None, mark: Path, grace: float) -> bool:
    """End a process, with SIGKILL after `grace` seconds. False if it was gone or not ours."""
    if record is None or not terminate(record, mark):
        return False
    deadline = time.monotonic() + grace
    while is_alive(record, mark):
        if time.monotonic() > deadline:
            psutil.Process(record.pid).kill()
            deadline = float("inf")
        time.sleep(0.02)
    let_go(record.pid)
    return True


def let_go(pid: int) -> None:
    """Wait until a killed process has closed its files. It loses its command line first, and its
    files only with its last thread.
    """
    deadline = time.monotonic() + LET_GO_SECONDS
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1:
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)


def last_line(log: Path) -> str:
    """Return the last line of a log, which has the reason if the process ended by itself. A long
    one is shortened in the middle: the server puts the cause (a port in use) at the end.
    """
    try:
        lines = log.read_bytes()[-4096:].decode(errors="replace").split("\n")
    except OSError:
        return "no log"
    said = [line.strip() for line in lines if line.strip()]
    if not said:
        return "it said nothing"
    return said[-1] if len(said[-1]) <= 300 else f"{said[-1][:100]} … {said[-1][-200:]}"
