"""See what a tool does outside while one of its calls is at work: by Python's audit events, so not
what C libraries and other programs do, nor what goes through what was opened before the call.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import os
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Tell = Callable[[str], None]
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
CHANGING = {
    "os.remove": 1,
    "os.rename": 2,
    "os.mkdir": 1,
    "os.rmdir": 1,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.chmod": 1,
    "os.chown": 1,
    "os.utime": 1,
    "os.setxattr": 1,
    "os.removexattr": 1,
}
"""Audit event -> how many of its arguments are paths."""
REACHING = ("socket.connect", "socket.sendto", "socket.sendmsg")
ASKING = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
ENDING = ("os.kill", "os.killpg")
FORKING = ("os.fork", "os.forkpty")
STARTING = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pty.spawn")
NOT_SEEN = "started "
"""Begins what is told of programs, whose own effects nobody here sees."""
REACHED = "reached "


@dataclass
class _Call:
    tell: Tell
    private: str
    databases: dict[str, object] = field(default_factory=dict)
    """How the files of databases were before this call opened them: SQLite writes unseen."""
    starting: object = None
    """The program that `subprocess` is starting: since Python 3.13 by `os.posix_spawn`, which tells
    of it once more."""


_AT_WORK: ContextVar[_Call | None] = ContextVar("at_work", default=None)


@dataclass(frozen=True)
class Watch:
    """Watches over calls; what happens in the `private` folder is nobody's matter."""

    private: Path

    @contextlib.contextmanager
    def over(self, tell: Tell) -> Iterator[None]:
        """Tell what happens outside in this block, also in threads that are given its context."""
        _hooked()
        call = _Call(tell, str(self.private.resolve()))
        token = _AT_WORK.set(call)
        try:
            yield
        finally:
            _AT_WORK.reset(token)
            for path, before in call.databases.items():
                if _stamp(path) != before:
                    tell(f"wrote {path}")


@functools.cache
def _hooked() -> None:
    # For good: Python takes no hook away.
    sys.addaudithook(_heard)
    _follow_threads()


def _follow_threads() -> None:
    """Give threads that a call starts, and what it hands to a pool, the call's context: of itself
    Python leaves them none.
    """
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    @functools.wraps(start)
    def started(thread: threading.Thread) -> None:
        if _AT_WORK.get() is not None:
            thread.run = functools.partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    def submitted(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> Future[Any]:
        if _AT_WORK.get() is not None:
            function = functools.partial(copy_context().run, function)
        return submit(pool, function, *arguments, **named)

    setattr(threading.Thread, "start", started)  # noqa: B010
    setattr(ThreadPoolExecutor, "submit", submitted)  # noqa: B010


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    call = _AT_WORK.get()
    if call is None:
        return
    token = _AT_WORK.set(None)
    try:
        # A mistake here would look like one of the tool's.
        with contextlib.suppress(Exception):
            if event == "sqlite3.connect":
                path = os.path.abspath(_database(os.fsdecode(arguments[0])))
                call.databases.setdefault(path, _stamp(path))
            elif event == "os.posix_spawn" and arguments[0] == call.starting:
                call.starting = None
            elif said := outside(event, arguments, call.private):
                if event == "subprocess.Popen":
                    call.starting = arguments[0]
                call.tell(said)
    finally:
        _AT_WORK.reset(token)


def outside(event: str, arguments: tuple[Any, ...], private: str) -> str:
    """Return what an audit event says was done outside; empty: nothing."""
    if event in CHANGING:
        paths = [each for each in arguments[: CHANGING[event]] if _is_outside(each, private)]
        return f"{event.removeprefix('os.')} {os.fsdecode(paths[0])}" if paths else ""
    if event == "open":
        path, _, flags = arguments
        written = isinstance(flags, int) and flags & WRITING
        return f"wrote {os.fsdecode(path)}" if written and _is_outside(path, private) else ""
    if event in REACHING:
        address = arguments[1]
        named = ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)
        return f"{REACHED}{named}"
    if event in ASKING:
        name = os.fsdecode(arguments[0] or "")
        return "" if not name or _is_address(name) else f"{REACHED}the name server for {name}"
    if event in ENDING:
        return f"sent signal {arguments[1]} to process {arguments[0]}"
    if event in FORKING:
        return f"{NOT_SEEN}a copy of the worker"
    if event in STARTING:
        return f"{NOT_SEEN}{os.path.basename(os.fsdecode(arguments[0]))}"
    return ""


def _is_outside(path: object, private: str) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        # A descriptor, which somebody has opened before.
        return False
    place = os.path.realpath(os.fsdecode(path))
    folder, name = os.path.split(place)
    compiled = os.path.basename(folder) == "__pycache__" and ".pyc" in name
    device = place.startswith(("/dev/", "/proc/")) and not place.startswith("/dev/shm/")
    return not (compiled or device or Path(place).is_relative_to(private))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _database(name: str) -> str:
    """Return the path of a database that may be named by a URI."""
    return urllib.parse.unquote(urllib.parse.urlsplit(name).path) if name[:5] == "file:" else name


def _stamp(path: str) -> object:
    """Return what changes when a database is written, its log included."""
    found: list[object] = []
    for each in (path, f"{path}-wal"):
        try:
            facts = os.stat(each)
            found.append((facts.st_size, facts.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)
