"""Background processes that outlive their starter and are known by a pid file.

A pid is ours if its command line names our state directory: a start time would be mistaken after a
step of the clock, and a bare pid after its reuse.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

LOG_BYTES = 5_000_000
"""A log above this is put aside, once, at the next start."""

LET_GO_SECONDS = 2.0

_EXEC_LOOKS = 200

# Runs in the new process: it records itself while it still holds the lock that its starter may die
# with, and then becomes the program, without the lock. So there is no moment at which a process
# lives that nobody knows.
_RECORD = """
import os, sys
lock, pid_file, *program = sys.argv[1:]
with open(pid_file, "w") as file:
    file.write(str(os.getpid()))
    file.flush()
    os.fsync(file.fileno())
os.set_inheritable(int(lock), False)
os.execv(program[0], program)
"""


def spawn(
    program: Sequence[str],
    pid_file: Path,
    log: Path,
    environment: Mapping[str, str],
    lock: int,
) -> subprocess.Popen[bytes]:
    """Start a program in its own session; return when it has recorded itself, or ended."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(log.suffix + ".1"))
    with log.open("ab") as output:
        log.chmod(0o600)
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
    while process.poll() is None and recorded(pid_file) != process.pid:
        time.sleep(0.005)
    return process


def recorded(pid_file: Path) -> int:
    """The pid that a process wrote of itself; 0 if there is none."""
    try:
        return int(pid_file.read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return 0


def alive(pid: int, mark: Path) -> bool:
    """Whether a process with this pid runs and was started for `mark`."""
    if pid <= 0:
        return False
    try:
        process = psutil.Process(pid)
        for _ in range(_EXEC_LOOKS):
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if command := process.cmdline():
                return str(mark) in command
            # Empty for an instant while a process becomes another program.
            time.sleep(0.005)
    except psutil.Error:
        pass
    return False


def running(pid_file: Path, mark: Path) -> int | None:
    """The recorded pid, if that process lives."""
    pid = recorded(pid_file)
    return pid if alive(pid, mark) else None


def terminate(pid: int, mark: Path) -> bool:
    """Ask a process to end. False: it is gone or not ours."""
    if not alive(pid, mark):
        return False
    try:
        psutil.Process(pid).terminate()
    except psutil.NoSuchProcess:
        return False
    return True


def stop(pid: int, mark: Path, grace: float) -> bool:
    """End a process, by force after `grace` seconds. False: it was gone or not ours."""
    if not terminate(pid, mark):
        return False
    deadline = time.monotonic() + grace
    while alive(pid, mark):
        if time.monotonic() > deadline:
            psutil.Process(pid).kill()
            deadline = float("inf")
        time.sleep(0.02)
    _let_go(pid)
    return True


def _let_go(pid: int) -> None:
    """A process that ends loses its command line, by which it is ours, before its open files; and
    these go with the last of its threads, not with the first.
    """
    deadline = time.monotonic() + LET_GO_SECONDS
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1:
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)


def last_line(log: Path) -> str:
    """What a process said last, shortened: the reason, when it ended by itself."""
    try:
        lines = log.read_bytes()[-4096:].decode(errors="replace").split("\n")
    except OSError:
        return "no log"
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:300] if said else "it said nothing"
