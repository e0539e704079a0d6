"""Run a command of strangers in a tree of its own, in namespaces: it has no network but its own
loopback, sees the system's programs and the folders that it is given, read only, and writes into
memory that vanishes with it. Linux only.

The request, as JSON on the standard input, has `files` ([source, path in the tree]), `texts` (path:
text), `command`, `visible` (folders and files), `memory` and `disk` (bytes), `seconds`, and
`computing`, the seconds of computing of all processes together. The answer is `{"code", "output"}`,
`{"lacking"}`: why there can be no such place, or `{"stopped"}`: why the command was not run to its
end.
Runs isolated, as a program of its own, so it imports nothing of this project.
"""

from __future__ import annotations

import ctypes
import errno
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
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x04000000 | 0x10000000 | 0x20000000 | 0x40000000
"""Of mounts, IPC, host names, users, processes and networks."""
READ_ONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
RECURSIVE, PRIVATE = 16384, 1 << 18
KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags of a mount as statvfs tells them, and as mount takes them; none may get lost."""
DETACH = 2
DEATH_SIGNAL, SECCOMP, NO_NEW_PRIVILEGES = 1, 22, 38
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
CONFIGURATION = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
HIDDEN = ("kcore", "kmsg", "keys", "timer_list", "sched_debug", "latency_stats", "kpagecount")
"""Files of /proc that tell of the whole machine."""
CALLS = {
    "x86_64": {"arch": 0xC000003E, "clone": 56, "unshare": 272, "no": (29, 68, 319, 435, 447)},
    "aarch64": {"arch": 0xC00000B7, "clone": 220, "unshare": 97, "no": (194, 186, 279, 435, 447)},
}
"""Numbers of system calls; `no` are shmget, msgget, memfd_create, clone3 and memfd_secret."""
NEW_USER = 0x10000000
USER = 1000
PROCESSES, FILES = 256, 1024
"""Processes and their threads, and open files of each."""
NICE = 10
"""How far behind others it stands, so that this program and the machine can work beside it."""
WATCHED_EVERY = 0.05
"""Seconds."""
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


class Stopped(Exception):
    """The command was not run to its end: why, as the rest of a sentence."""


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
        # A file and no pipe: what the command leaves running does not keep anybody waiting. It is
        # none of the tree's, so a command that fills its disk can still say so.
        writing = os.memfd_create("output")
        forbid_calls()
        said = carry_out(asked, writing)
    except (OSError, Lacking) as error:
        said = {"lacking": str(error)}
    except Stopped as error:
        said = {"stopped": str(error)}
    answer(said)


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
    # Read only as a whole: the settings of the kernel below /proc/sys are this machine's.
    mount("proc", f"{root}/proc", "proc", NOSUID | NODEV | NOEXEC | READ_ONLY)
    for name in HIDDEN:
        if os.path.exists(f"{root}/proc/{name}"):
            mount("/dev/null", f"{root}/proc/{name}", "", BIND)
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
    try:
        for source, path in asked["files"]:
            shutil.copyfile(source, place_in(work, path))
        for path, text in asked["texts"].items():
            place_in(work, path).write_text(text, encoding="utf-8")
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise Stopped(f"its tree takes more than {asked['disk'] >> 20} MB") from None
        raise


def place_in(work: Path, path: str) -> Path:
    """Return where a file of the tree lies, in a folder that is there. Raise Stopped for a path
    that leads out.
    """
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise Stopped(f"the path {path!r} leads out of its tree")
    target = work / path
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        fcntl.ioctl(some, 0x8914, struct.pack("16sh14x", b"lo", 1 | 64))


def forbid_calls() -> None:
    """Forbid, for this process and all that it starts, calls for memory that belongs to no process
    and so is counted nowhere, and for namespaces in which a command could mount such.
    """
    known: Any = CALLS[platform.machine()]
    numbers = (*known["no"], known["clone"], known["unshare"])
    load, jump, equal, at_least, any_bit, end = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
    # Steps by their place; a jump counts from the step after it.
    first = 4
    flags = first + len(numbers) + 1
    allowed, denied = flags + 2, flags + 3
    code = [
        (load, 0, 0, 4),
        (equal, 0, denied - 2, known["arch"]),
        (load, 0, 0, 0),
        # Numbers from here on are those of x32.
        (at_least, denied - 4, 0, 0x40000000),
    ]
    for at, number in enumerate(numbers, first):
        code.append((equal, (denied if number in known["no"] else flags) - at - 1, 0, number))
    code += [
        (jump, 0, 0, allowed - flags),
        (load, 0, 0, 16),
        (any_bit, 1, 0, NEW_USER),
        (end, 0, 0, 0x7FFF0000),
        (end, 0, 0, 0x00050000 | errno.ENOSYS),
    ]
    packed = b"".join(struct.pack("=HBBI", *each) for each in code)
    content = ctypes.create_string_buffer(packed)
    program = struct.pack("@HP", len(code), ctypes.addressof(content))
    call("no new privileges", libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    call("seccomp", libc.prctl(SECCOMP, 2, program, 0, 0))


# ---------------------------------------------------------------- the command


def carry_out(asked: dict[str, Any], writing: int) -> dict[str, Any]:
    """Run the command, and return its exit code with the beginning and the end of its output. Raise
    Stopped if it takes more time, memory or processes than it may: all end with this one.
    """
    until, look_at = time.monotonic() + asked["seconds"], 0.0
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
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            ended = status
        elif (now := time.monotonic()) >= look_at:
            # Also while there are some to bury: they may never cease.
            if excess := find_excess(asked["memory"], asked["computing"]):
                raise Stopped(f"the test command was stopped: it {excess}")
            if now > until:
                took = f"it took longer than {asked['seconds']:.0f} s"
                raise Stopped(f"the test command was stopped: {took}")
            look_at = time.monotonic() + WATCHED_EVERY
        elif pid == 0:
            time.sleep(WATCHED_EVERY)
    size = os.fstat(writing).st_size
    output = os.pread(writing, FIRST_BYTES + LAST_BYTES, 0)
    if size > FIRST_BYTES + LAST_BYTES:
        last = os.pread(writing, LAST_BYTES, size - LAST_BYTES)
        output = output[:FIRST_BYTES] + b"\n...\n" + last
    return {"code": os.waitstatus_to_exitcode(ended), "output": output.decode("utf-8", "replace")}


def find_excess(memory: int, computing: float) -> str:
    """Return what all processes here have too much of, as the rest of a sentence; empty: nothing.
    The limits of the kernel hold for each process, or for no process of root.
    """
    pids = [each for each in os.listdir("/proc") if each.isdigit() and each != "1"]
    too_many = f"started more than {PROCESSES} processes and threads"
    if len(pids) > PROCESSES:
        # At once: they may become more while one looks at each.
        return too_many
    times = os.times()
    computed, threads = times.children_user + times.children_system, 0
    for pid in pids:
        took, count = read_times(pid)
        computed, threads = computed + took, threads + count
    if threads > PROCESSES:
        return too_many
    if computed > computing:
        return f"computed for longer than {computing:.0f} s"
    # What processes share counts once; that takes longer to find, and mostly need not be known.
    if sum(map(read_resident, pids)) > memory and sum(map(read_share, pids)) > memory:
        return f"took more than {memory >> 20} MB of memory"
    return ""


def read_times(pid: str) -> tuple[float, int]:
    """Return the seconds that a process and its ended children computed, and its threads."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK"), max(int(told[17]), 1)
    except (OSError, IndexError):
        return 0.0, 0


def read_resident(pid: str) -> int:
    """Return the bytes of memory that a process has; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def read_share(pid: str) -> int:
    """Return the bytes of memory of a process, each page divided among those that share it."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return read_resident(pid)
    return sum(int(each.split()[1]) << 10 for each in told if each.startswith("Pss:"))


def become(asked: dict[str, Any], writing: int) -> None:
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.closerange(3, FILES)
    os.nice(NICE)
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: round(asked["computing"] + 1),
        resource.RLIMIT_DATA: asked["memory"],
        resource.RLIMIT_FSIZE: asked["disk"],
        resource.RLIMIT_NOFILE: FILES,
        # Beyond what is counted, so that who meets it is seen and stopped: refused a process, a
        # bomb only tries again.
        resource.RLIMIT_NPROC: 2 * PROCESSES,
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
