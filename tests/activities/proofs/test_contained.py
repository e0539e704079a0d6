"""A test that a model wrote runs the code of strangers: only where the deployment allows it, in a
tree of its own, without network, and without a way to write or read elsewhere.
"""

from __future__ import annotations

import shlex
import socket
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from test_scripts import PINNED, Kept, remark

from holdfast.activities.proofs import contained
from holdfast.activities.proofs.contained import NotContained, Ran, TestCommand
from holdfast.activities.proofs.proving import Proofs, _ran, find_unstarted, judge_test
from holdfast.activities.repositories.manifest import BaseFile, Manifest, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.calls.prove import ProveMaterial, Script, Tried, TryMaterial
from holdfast.contracts.errors import BadGoal
from holdfast.deployment.settings import Settings
from parameters import rest_long

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

PYTHON = f"{shlex.quote(sys.executable)} {{test}}"


@pytest.fixture
async def command() -> TestCommand:
    made = TestCommand.of(PYTHON, ())
    assert made is not None
    if lacking := await made.find_lacking():
        pytest.skip(lacking)
    return made


async def run(command: TestCommand, text: str, files: dict[str, Path] | None = None) -> Ran:
    return await command.run(files or {}, "tests/test_new.py", text)


async def test_a_test_runs_in_a_tree_of_its_own(command: TestCommand, tmp_path: Path) -> None:
    (tmp_path / "kept.py").write_text("print('the code')")
    (tmp_path / "kept.py").chmod(0o444)
    text = "import os; exec(open('a.py').read()); open('a.py', 'w').write('x'); print(os.getcwd())"
    ran = await run(command, text, {"a.py": tmp_path / "kept.py"})
    assert (ran.code, ran.output) == (0, "the code\n/work\n")
    assert (tmp_path / "kept.py").read_text() == "print('the code')"


async def test_it_reaches_no_network(command: TestCommand) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 5):
            pass  # from here it is reached
        text = f"""
import socket
for place in (("127.0.0.1", {port}), ("192.0.2.1", 80)):
    try:
        socket.create_connection(place, 5)
        print("reached")
    except OSError as error:
        print(type(error).__name__)
own = socket.socket()
own.bind(("127.0.0.1", 0))
own.listen()
socket.create_connection(own.getsockname(), 5)
print("its own loopback")
"""
        ran = await run(command, text)
    assert ran.output.split("\n")[:3] == ["ConnectionRefusedError", "OSError", "its own loopback"]


async def test_it_reads_and_writes_nothing_of_this_machine(
    command: TestCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-told")
    secret = tmp_path / "secret"
    secret.write_text("not told")
    planted = str(Path(sys.prefix, "planted"))
    text = f"""
import os, pathlib, subprocess
print(os.path.exists({str(secret)!r}), os.path.exists({__file__!r}), "KEY" in str(os.environ))
for path in ("/usr/planted", {planted!r}, "/etc/planted", "/dev/planted"):
    try:
        open(path, "w")
        print("written", path)
    except OSError as error:
        print(type(error).__name__)
again = "mount -o remount,bind,rw /usr; touch /usr/planted"
subprocess.run(["unshare", "-rm", "sh", "-c", again], capture_output=True)
print(os.path.exists("/usr/planted"))
print([pathlib.Path(each, "environ").exists() for each in pathlib.Path("/proc").glob("[0-9]*")])
"""
    ran = await run(command, text)
    first, *refused, remounted, seen = ran.output.splitlines()
    assert first == "False False False", "no file elsewhere, and no variable"
    assert len(refused) == 4 and not any(each.startswith("written") for each in refused), refused
    assert remounted == "False", "not even as the root of namespaces of its own"
    assert seen.count("True") <= 4, "it sees the processes of its own place only"
    assert not Path(planted).exists() and not Path("/usr/planted").exists()


async def test_what_it_leaves_running_ends_with_it(command: TestCommand) -> None:
    mark = f"left-{time.time_ns()}"
    text = f"""
import os, subprocess, sys
sleeps = [sys.executable, "-c", "import time; time.sleep(300)", {mark!r}]
subprocess.Popen(sleeps, start_new_session=True)
print("over")
"""
    with anyio.fail_after(60):
        ran = await run(command, text)
    assert ran.output == "over\n"
    assert mark not in _commands()


def _commands() -> str:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_text())
        except OSError:
            continue
    return "\n".join(found)


async def test_one_that_never_ends_is_ended(
    command: TestCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contained, "SECONDS", 1.0)
    monkeypatch.setattr(contained, "STARTING_SECONDS", 2.0)
    mark = f"endless-{time.time_ns()}"
    with pytest.raises(NotContained, match="was stopped: it took longer than 1 s"):
        await run(command, f"MARK = {mark!r}\nwhile True: pass")
    assert mark not in _commands()
    monkeypatch.setattr(contained, "SECONDS", 20.0)
    monkeypatch.setattr(contained, "COMPUTING_SECONDS", 1.0)
    busy = "import os\nos.fork()\nos.fork()\nwhile True: pass"
    with pytest.raises(NotContained, match="was stopped: it computed for longer than 1 s"):
        await run(command, busy)


async def test_of_much_output_the_beginning_and_the_end_are_kept(command: TestCommand) -> None:
    ran = await run(command, "print('first'); print('x' * 10_000_000); print('last')")
    assert ran.output.startswith("first\n") and ran.output.endswith("last\n")
    assert len(ran.output) < 20_000


async def test_it_cannot_fill_the_memory_of_this_machine(command: TestCommand) -> None:
    ran = await run(command, "kept = bytearray(4 << 30)")
    assert ran.code == 1 and "MemoryError" in ran.output
    ran = await run(command, "open('big', 'wb').truncate(1 << 40)")
    assert ran.code != 0


@pytest.mark.parametrize(
    "text",
    [
        "import mmap; m = mmap.mmap(-1, 1 << 30)\nfor at in range(0, 1 << 30, 4096): m[at] = 1",
        """
import os, time
for each in range(3):
    if os.fork() == 0:
        kept = b"x" * (150 << 20)
        time.sleep(60)
time.sleep(60)
""",
    ],
    ids=["shared", "in three processes"],
)
async def test_memory_is_bounded_for_all_processes_together(
    command: TestCommand, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(contained, "MEMORY", 300 << 20)
    with pytest.raises(NotContained, match="took more than 300 MB of memory"):
        await run(command, text)


async def test_pages_that_processes_share_count_once(
    command: TestCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contained, "MEMORY", 300 << 20)
    text = """
import os, time
kept = b"x" * (150 << 20)
for each in range(3):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
for each in range(3):
    os.wait()
print("over")
"""
    assert (await run(command, text)).output == "over\n"


async def test_there_is_no_memory_that_belongs_to_no_process(command: TestCommand) -> None:
    text = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for ask in (
    lambda: os.memfd_create("kept"),
    lambda: libc.shmget(0, 1 << 20, 0o1600),
    lambda: libc.unshare(0x10000000),
):
    try:
        assert ask() != -1, os.strerror(ctypes.get_errno())
        print("given")
    except (OSError, AssertionError) as error:
        print("refused:", error)
import threading
thread = threading.Thread(target=print, args=("a thread",))
thread.start()
thread.join()
"""
    *refused, thread = (await run(command, text)).output.splitlines()
    assert len(refused) == 3 and all("not implemented" in each for each in refused), refused
    assert thread == "a thread"


async def test_a_test_that_starts_too_many_processes_is_ended(command: TestCommand) -> None:
    # No bomb that grows by itself: nothing in the kernel bounds root's, if root runs this.
    text = """
import os, time
for each in range(500):
    if os.fork() == 0:
        time.sleep(60)
time.sleep(60)
"""
    with anyio.fail_after(20), pytest.raises(NotContained) as stopped:
        await run(command, text)
    assert "was stopped: it started more than 256 processes and threads" in str(stopped.value)


async def test_what_it_starts_and_leaves_without_end_is_ended(
    command: TestCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contained, "SECONDS", 1.0)
    text = """
import os
if os.fork() == 0:
    while True:
        if os.fork():
            os._exit(0)
while True:
    pass
"""
    with anyio.fail_after(20), pytest.raises(NotContained, match="took longer than 1 s"):
        await run(command, text)
    assert (await run(command, "import os; print(os.nice(0))")).output != "0\n"


async def test_the_settings_of_the_kernel_cannot_be_written(command: TestCommand) -> None:
    text = """
import os
found = [os.path.join(*each) for each in (("/proc/sys", "vm/swappiness"),
    ("/proc/sys", "kernel/core_pattern"), ("/proc", "sysrq-trigger"), ("/proc/self", "oom_adj"))]
for path in found:
    if os.path.exists(path):
        try:
            os.close(os.open(path, os.O_WRONLY))
            print("can be written:", path)
        except OSError as error:
            print(type(error).__name__)
print(open("/proc/self/comm").read().strip() != "", os.listdir("/proc/self/fd") != [])
for path in ("/proc/kcore", "/proc/kmsg", "/proc/timer_list"):
    if os.path.exists(path):
        print(os.stat(path).st_rdev == os.stat("/dev/null").st_rdev)
"""
    ran = await run(command, text)
    assert ran.code == 0 and "can be written" not in ran.output, ran.output
    assert "OSError" in ran.output and "False" not in ran.output, ran.output


@pytest.mark.parametrize("path", rest_long(["../out", "a/../../out", "{folder}/out"]))
async def test_no_file_is_written_outside_of_the_tree(
    command: TestCommand, tmp_path: Path, path: str
) -> None:
    path = path.format(folder=tmp_path)
    (tmp_path / "kept").write_text("x")
    with pytest.raises(NotContained, match="leads out of its tree"):
        await command.run({}, path, "x")
    with pytest.raises(NotContained, match="leads out of its tree"):
        await run(command, "x", {path: tmp_path / "kept"})
    assert not (tmp_path / "out").exists()


async def test_one_that_fills_its_disk_still_says_so(
    command: TestCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contained, "DISK", 8 << 20)
    text = """
try:
    with open("big", "wb", buffering=0) as big:
        while big.write(b"x" * 100_000):
            pass
except OSError as error:
    print(error.strerror)
"""
    assert "No space left on device\n" in (await run(command, text)).output
    with pytest.raises(NotContained, match="its tree takes more than 8 MB"):
        await run(command, "x" * (9 << 20))


# ---------------------------------------------------------------- proofs by it

CODE = "def pages(total, size):\n    return {}\n"
SHOWS = "import sys; sys.path.insert(0, '.')\nfrom book import pages\nassert pages(7, 3) == 3\n"


def proofs(command: TestCommand, folder: Path, *, based: bool = True) -> Proofs:
    head, base = CODE.format("total // size"), CODE.format("-(-total // size)")
    for where, text in {"head": head, "before": base}.items():
        (folder / where).mkdir()
        (folder / where / "book.py").write_text(text)
    (folder / "head" / "around.py").write_text("X = 1\n")
    file = SnapshotFile(path="book.py", size=len(head), lines=2, was="book.py" if based else "")
    manifest = Manifest(
        archive="",
        files=(file,),
        around=(SnapshotFile(path="around.py", size=6, lines=1),),
        before=(BaseFile(path="book.py", size=len(base), lines=2, now="book.py"),) * based,
        base="b" * 40 if based else "",
        head="",
    )
    kept: Any = Kept(Snapshot(folder / "head", manifest, folder / "before", folder))
    return Proofs(kept, command)


async def prove(made: Proofs, text: str, path: str = "test_pages.py") -> Tried:
    script = Script(why="", text=text, path=path, fails_with="AssertionError")
    material = TryMaterial(
        repository=PINNED, remark=remark(2, "book.py"), script=script, by="tests"
    )
    return await made.run(material)


async def test_a_test_that_fails_on_the_head_and_passes_on_the_base_proves(
    command: TestCommand, tmp_path: Path
) -> None:
    made = proofs(command, tmp_path)
    assert (await made.find_way()).by == "tests"
    tried = await prove(made, "import around\n" + SHOWS)
    assert tried.verdict == "proved", tried
    assert tried.output == "head: AssertionError\nbase: passes"
    taken = await prove(made, SHOWS, "around.py")
    assert (taken.verdict, "already" in taken.why) == ("not tried", True)


async def test_without_a_base_a_test_only_shows(command: TestCommand, tmp_path: Path) -> None:
    assert (await prove(proofs(command, tmp_path, based=False), SHOWS)).verdict == "shown"


async def test_a_test_that_cannot_be_run_was_not_tried(
    command: TestCommand, tmp_path: Path
) -> None:
    tried = await prove(proofs(command, tmp_path), "import nothing_of_this_name")
    assert (tried.verdict, "exit code 1" in tried.why) == ("not tried", True), tried


async def test_a_command_that_cannot_be_started_is_told_and_no_other_test_is_written(
    command: TestCommand, tmp_path: Path
) -> None:
    made = proofs(command, tmp_path)
    dead = TestCommand.of("sh -c 'pytesst -q {test}'", ())
    tried = await prove(Proofs(made.snapshots, dead), SHOWS)
    assert (tried.verdict, tried.final) == ("not tried", True), tried
    assert "the test command could not be started (exit code 127): " in tried.why
    assert "pytesst" in tried.why and "not found" in tried.why


@pytest.mark.parametrize(
    ("ran", "dead"),
    [
        (Ran(126, "sh: 1: ./run: Permission denied"), True),
        (Ran(127, ""), True),
        (Ran(1, "/usr/bin/python3: No module named pytest"), True),
        (Ran(2, "tried test_pages.sh\nmake: tried: No such file or directory\nError 127"), True),
        (Ran(127, "test_pages.sh: line 2: pages: command not found"), False),
        (Ran(1, "FileNotFoundError: [Errno 2] No such file or directory: 'x'"), False),
        (Ran(1, "ModuleNotFoundError: No module named 'nothing'"), False),
        (Ran(1, "not ok 1\n# a\n# b\nls: x: No such file or directory"), False),
        (Ran(0, "x: not found"), False),
    ],
)
def test_only_what_the_command_says_of_itself_is_told_of_the_command(ran: Ran, dead: bool) -> None:
    assert bool(find_unstarted(ran, "test_pages.sh")) is dead


RAISES = """import sys; sys.path.insert(0, '.')
import pytest
from book import pages
def test_no_page_is_refused():
    with pytest.raises(ZeroDivisionError):
        pages(7, 0)
"""


async def by_pytest(folder: Path, command: TestCommand, test: str) -> Tried:
    made = proofs(command, folder)
    (folder / "head" / "book.py").write_text(CODE.format("total // (size or 1)"))
    command = TestCommand.of(f"{shlex.quote(sys.executable)} -m pytest -q {{test}}", ()) or command
    return await prove(Proofs(made.snapshots, command), test)


@pytest.mark.long
async def test_a_deleted_check_is_proved_by_a_test_that_wanted_an_error(
    command: TestCommand, tmp_path: Path
) -> None:
    tried = await by_pytest(tmp_path, command, RAISES)
    assert tried.verdict == "proved", tried
    assert "DID NOT RAISE" in tried.printed and len(tried.printed.splitlines()) <= 15


@pytest.mark.long
async def test_a_test_that_pytest_cannot_collect_was_not_tried(
    command: TestCommand, tmp_path: Path
) -> None:
    tried = await by_pytest(tmp_path, command, f"import nothing_of_this_name\n{RAISES}")
    assert (tried.verdict, "it did not run: exit code 2" in tried.why) == ("not tried", True), tried
    assert "No module named" in tried.printed


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("test_pages.py:3: NameError", True),
        ("E       fixture 'shop' not found", True),
        ('  File "/work/test_pages.py", line 1, in <module>\nImportError: cannot import x', True),
        ('  File "/work/book.py", line 1, in <module>\nImportError: cannot import x', False),
        ("book.py:3: NameError", False),
        ("test_pages.py:3: AssertionError", False),
    ],
)
def test_an_error_of_the_test_itself_shows_nothing(said: str, own: bool) -> None:
    script = Script(why="", path="test_pages.py", fails_with="ImportError")
    ended = _ran(Ran(1, said), script, by_pytest=True)
    verdict, why = judge_test("ImportError", ended, _ran(GREEN, script, by_pytest=True))
    assert verdict == ("not tried" if own else "proved"), why


RED, GREEN = Ran(1, "not ok 1"), Ran(0, "ok 1")


@pytest.mark.parametrize(
    ("head", "base", "verdict"),
    [
        (RED, GREEN, "proved"),
        (RED, RED, "not tried"),
        (RED, None, "not tried"),
        (GREEN, GREEN, "not proved"),
        (Ran(1, "AssertionError: 2"), Ran(1, "AssertionError: 2"), "not proved"),
        (Ran(1, "AssertionError: 2"), Ran(1, "no such module"), "shown"),
        (Ran(1, "AssertionError: 2"), None, "shown"),
    ],
)
def test_of_any_other_runner_the_base_decides_what_a_failure_means(
    head: Ran, base: Ran | None, verdict: str
) -> None:
    script = Script(why="", path="test_pages.py", fails_with="AssertionError")
    ended = [_ran(each, script, by_pytest=False) for each in (head, base) if each]
    assert judge_test("AssertionError", ended[0], ended[1] if base else None)[0] == verdict


async def test_prompt_and_report_name_the_command(tmp_path: Path) -> None:
    made = proofs(TestCommand.of(PYTHON, ()), tmp_path)  # type: ignore[arg-type]
    version = f"python{sys.version_info.major}.{sys.version_info.minor} {{test}}"
    material = ProveMaterial(repository=PINNED, remark=remark(2, "book.py"), by="tests")
    assert (await made.show(material)).runner == version
    tried = await prove(made, "pass")
    assert tried.verdict == "not tried" or tried.why.endswith(f"under review ({version})"), tried


async def test_whoever_writes_a_test_is_shown_code_in_any_language(
    command: TestCommand, tmp_path: Path
) -> None:
    made = proofs(command, tmp_path)
    material = ProveMaterial(repository=PINNED, remark=remark(2, "book.py"), by="tests")
    shown = await made.show(material)
    assert "total // size" in shown.code


# ---------------------------------------------------------------- what the setting says


async def test_a_program_that_is_not_there_is_refused_in_a_line() -> None:
    snapshots: Any = None
    made = Proofs(snapshots, TestCommand.of("no-such-program {test}", ()))
    with pytest.raises(BadGoal, match="HOLDFAST_TEST_COMMAND: there is no program") as refused:
        await made.find_way()
    assert "\n" not in str(refused.value)


async def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    snapshots: Any = None
    made = Proofs(snapshots, TestCommand.of(PYTHON, (tmp_path / "none",)))
    with pytest.raises(BadGoal, match="HOLDFAST_TEST_FOLDERS: there is no folder"):
        await made.find_way()


async def test_where_nothing_can_be_contained_the_sandbox_is_used_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    snapshots: Any = None
    way = await Proofs(snapshots, TestCommand.of(PYTHON, ())).find_way()
    assert way.by == "sandbox" and "only Linux" in way.lacking


async def test_a_worker_that_runs_as_root_uses_the_sandbox_and_that_is_said() -> None:
    snapshots: Any = None
    way = await Proofs(snapshots, TestCommand.of(PYTHON, (), as_root=True)).find_way()
    assert (way.by, way.lacking) == ("sandbox", "the worker runs as root")


@pytest.mark.parametrize("given", ["pytest -q", "pytest 'un{test}ended"])
def test_a_command_that_cannot_name_its_test_is_refused(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TEST_COMMAND", given)
    with pytest.raises(ValueError, match="test_command"):
        Settings(_env_file=None, project=None)
