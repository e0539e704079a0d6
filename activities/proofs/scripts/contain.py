"""Run a command of strangers in a tree of its own, in namespaces: it has no network but its own
loopback, sees the system's programs and the folders that it is given, read only, and writes into
memory that vanishes with it. Linux only.

The request, as JSON on the standard input, has `files` ([source, path in the tree]), `texts` (path:
text), `command`, `visible` (folders and files), `memory` and `disk` (bytes) and `seconds` of
computing. The answer is `{"code", "output"}`, or `{"lacking"}`: why there can be no such place.
Runs isolated, as a program of its own, so it imports nothing of this project.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import platform
import resource
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x04000000 | 0x10000000 | 0x20000000 | 0x40000000
"""Of mounts, IPC, host names, users, processes and networks."""
READ_ONLY, NOSUID, NODEV, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags of a mount as statvfs tells them, and as mount takes them; none may get lost."""
DETACH = 2
DEATH_SIGNAL, NO_NEW_PRIVILEGES = 1, 38
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
CONFIGURATION = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
USER = 1000
PROCESSES, FILES = 512, 1024
FIRST_BYTES, LAST_BYTES = 2_000, 16_000
"""Of the output that is kept; what stands between is left out."""
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}
libc = ctypes.CDLL(None, use_errno=True)


class Lacking(Exception):
    """The machine gives no such place."""


def main() -> None:
    asked = json.loads(sys.stdin.buffer.read())
    libc.prctl(DEATH_SIGNAL, signal.SIGKILL)
    user, group = os.getuid(), os.getgid()
    try:
        if platform.machine() not in PIVOT_ROOT:
            raise Lacking(f"it is not known how on {platform.machine()}")
        call("unshare", libc.unshare(NEW_NAMESPACES))
        Path("/proc/self/setgroups").write_text("deny")
        # Another user than the one outside, so that nothing the command starts has a privilege.
        Path("/proc/self/uid_map").write_text(f"{USER} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{USER} {group} 1")
    except (OSError, Lacking) as error:
        answer({"lacking": str(error)})
        return
    child = os.fork()
    if child == 0:
        # The first process of its namespace: whatever it leaves ends with it.
        libc.prctl(DEATH_SIGNAL, signal.SIGKILL)
        inside(asked)
        os._exit(0)
    os.waitpid(child, 0)


def inside(asked: dict[str, Any]) -> None:
    try:
        build(asked)
    except (OSError, Lacking) as error:
        answer({"lacking": str(error)})
        return
    answer(carry_out(asked))


def call(what: str, result: int) -> None:
    if result != 0:
        raise Lacking(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode(), flags, data.encode())
    call(f"mount {target}", libc.mount(*arguments))


# ---------------------------------------------------------------- the place


def build(asked: dict[str, Any]) -> None:
    """Make a root in memory, with what may be seen, and go there."""
    root = os.getcwd()
    mount("none", "/", "", RECURSIVE | PRIVATE)
    mount("tmpfs", root, "tmpfs", NOSUID | NODEV, f"size={asked['disk']},mode=755")
    os.chdir(root)
    for folder in ("dev", "dev/shm", "etc", "proc", "tmp", "work", "old"):
        os.mkdir(f"{root}/{folder}", 0o755)
    for path in (*SYSTEM, *CONFIGURATION, *asked["visible"]):
        show(path, root, writable=False)
    for path in DEVICES:
        show(path, root, writable=True)
    Path(root, "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    Path(root, "etc/passwd").write_text(f"tester:x:{USER}:{USER}::/tmp:/bin/sh\n")
    Path(root, "etc/group").write_text(f"tester:x:{USER}:\n")
    lay_out(asked, Path(root, "work"))
    with suppress(Lacking):
        # Some containers do not allow it, and most tests do without.
        mount("proc", f"{root}/proc", "proc", NOSUID | NODEV | 8)
    numbers = PIVOT_ROOT[platform.machine()]
    call("pivot_root", libc.syscall(numbers, root.encode(), f"{root}/old".encode()))
    os.chdir("/")
    call("umount", libc.umount2(b"/old", DETACH))
    os.rmdir("/old")
    # The last of what is ours: from here on only the tree and temporary files can be written.
    for folder in ("/dev", "/etc"):
        os.chmod(folder, 0o555)
    os.chdir("/work")
    with suppress(OSError):
        bring_up_loopback()


def show(path: str, root: str, *, writable: bool) -> None:
    """Make a path of the machine visible below the root."""
    if not os.path.lexists(path):
        return
    target = f"{root}{path}"
    if os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.mkdir(target)
    else:
        Path(target).touch()
    mount(path, target, "", BIND | RECURSIVE)
    if writable:
        return
    for place in mounts_below(target):
        told = os.statvfs(place).f_flag
        kept = sum(ours for theirs, ours in KEPT_FLAGS.items() if told & theirs)
        mount("none", place, "", BIND | REMOUNT | READ_ONLY | NOSUID | kept)


def mounts_below(target: str) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        raw = line.split(b" ")[4].decode("unicode_escape").encode("latin-1")
        place = os.fsdecode(raw)
        if place == target or place.startswith(f"{target}/"):
            yield place


def lay_out(asked: dict[str, Any], work: Path) -> None:
    for source, path in asked["files"]:
        target = work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    for path, text in asked["texts"].items():
        target = work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        fcntl.ioctl(some, 0x8914, struct.pack("16sh14x", b"lo", 1 | 64))


# ---------------------------------------------------------------- the command


def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Run the command, and return its exit code with the beginning and the end of its output."""
    # A file and no pipe: what the command leaves running does not keep anybody waiting.
    writing = os.open("/output", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink("/output")
    child = os.fork()
    if child == 0:
        try:
            become(asked, writing)
        except OSError as error:
            os.write(2, f"{asked['command'][0]}: {error.strerror}\n".encode())
        os._exit(127)
    ended = None
    while ended is None:
        # A process that lost its parent is ours to bury.
        pid, status = os.wait()
        ended = status if pid == child else None
    size = os.fstat(writing).st_size
    output = os.pread(writing, FIRST_BYTES + LAST_BYTES, 0)
    if size > FIRST_BYTES + LAST_BYTES:
        last = os.pread(writing, LAST_BYTES, size - LAST_BYTES)
        output = output[:FIRST_BYTES] + b"\n...\n" + last
    return {"code": os.waitstatus_to_exitcode(ended), "output": output.decode("utf-8", "replace")}


def become(asked: dict[str, Any], writing: int) -> None:
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.closerange(3, FILES)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: 2 * round(asked["seconds"] + 1),
        resource.RLIMIT_DATA: asked["memory"],
        resource.RLIMIT_FSIZE: asked["disk"],
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_NPROC: PROCESSES,
    }
    for kind, most in bounds.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    command = asked["command"]
    folder = os.path.dirname(command[0])
    path = f"{folder}:{ENVIRONMENT['PATH']}" if folder else ENVIRONMENT["PATH"]
    os.execvpe(command[0], command, {**ENVIRONMENT, "PATH": path})


def answer(said: dict[str, Any]) -> None:
    os.write(1, json.dumps(said).encode())


if __name__ == "__main__":
    main()
