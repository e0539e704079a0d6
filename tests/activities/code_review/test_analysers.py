"""The lenses: what each sees, on whatever a repository may hold."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from holdfast.activities.review import examination, tables
from holdfast.activities.review.analysers import bugs, security
from holdfast.activities.review.analysing import ruff
from holdfast.activities.review.analysing.lens import Analyser, CommandLine, Grade, Parsed, Sighting
from holdfast.activities.review.examination import Examination
from holdfast.activities.review.findings import MOST_REMARKS
from holdfast.activities.review.lenses import analysers, lenses_of, readers
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft, Subtask
from holdfast.contracts.errors import LensFailed
from holdfast.untrusted.process import MEMORY_LIMIT, ProgramStopped, run
from holdfast.untrusted.redact import redact
from parameters import rest_long
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

LENSES = tuple(sorted(name for name, each in analysers().items() if not each.lacking))
SURVEYS = {name for name, analyser in analysers().items() if analyser.survey is not None}
"""The lenses that read a repository's history, and none of its files."""
OF_CHANGES = {name for name, analyser in analysers().items() if analyser.explore is not None}
"""The lenses that look at nothing without a base."""
# Put together here, so that no scanner takes this file for a leak.
GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
TANGLED = "def tangled(a):\n" + "".join(f"    if a == {n}:\n        a += 1\n" for n in range(30))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def found(draft: Draft) -> list[tuple[str, int, str]]:
    return [(each.file, each.line, each.rule) for each in remarks_of(draft)]


def test_every_lens_is_found_under_its_own_name(bench: Bench) -> None:
    modules = Path(bugs.__file__).parent.glob("*.py")
    assert {*analysers()} == {path.stem for path in modules} - {"__init__"} and LENSES
    assert tuple(lenses_of(bench.snapshots)) == tuple(sorted(analysers()))
    assert all(name == analyser.name for name, analyser in analysers().items())


def test_each_analyser_has_a_table_of_its_grades_to_print() -> None:
    _, *printed = re.split(r"^### ", tables.markdown(), flags=re.MULTILINE)
    row = re.compile(r"^\| (.+) \| (\w+) \| (\d+) \| (.*) \|$", re.MULTILINE)
    shown = {part.splitlines()[0]: row.findall(part) for part in printed}
    assert shown == {
        name: [
            (
                rule,
                grade.severity,
                str(grade.confidence),
                f"{grade.change.severity} {grade.change.confidence}" if grade.change else "",
            )
            for rule, grade in each.grades.items()
        ]
        for name, each in analysers().items()
    }


async def test_bugs_are_found_where_they_are(repository: Repository, bench: Bench) -> None:
    repository.commit({"a.py": "def f(x=[]):\n    return missing\n\nprint('%s %s' % ('a',))\n"})
    draft = await bench.look("bugs", repository)
    assert found(draft) == [("a.py", 4, "F507"), ("a.py", 2, "F821"), ("a.py", 1, "B006")]
    assert remarks_of(draft)[0].model_dump(include={"severity", "confidence", "lens"}) == {
        "severity": "critical",
        "confidence": 85,
        "lens": "bugs",
    }
    assert (draft.status, draft.confidence, draft.data["files_read"]) == ("complete", None, 1)


async def test_an_exception_that_is_none_is_found_where_it_is_raised(
    repository: Repository, bench: Bench
) -> None:
    code = "class A:\n    def f(self):\n        raise NotImplemented('later')\n"
    repository.commit({"a.py": code})
    draft = await bench.look("bugs", repository)
    assert found(draft) == [("a.py", 3, "F901")]
    assert remarks_of(draft)[0].severity == "warning"


async def test_security_holes_are_found_and_a_password_is_not_quoted(
    repository: Repository, bench: Bench
) -> None:
    code = "import subprocess\nsubprocess.call('ls ' + x, shell=True)\npassword = 'hunter2hunter'\n"
    repository.commit({"a.py": code})
    draft = await bench.look("security", repository)
    assert ("a.py", 2, "B602") in found(draft)
    assert ("a.py", 3, "B105") in found(draft)
    assert "hunter2" not in draft.model_dump_json()


async def test_asserts_are_remarks_in_a_program_and_none_in_its_tests(
    repository: Repository, bench: Bench
) -> None:
    places = ("a.py", "contest.py", "test_a.py", "a_test.py", "conftest.py", "tests/data.py")
    repository.commit(dict.fromkeys(places, "assert input()\n"))
    draft = await bench.look("security", repository)
    assert found(draft) == [("a.py", 1, "B101"), ("contest.py", 1, "B101")]


async def test_performance_remarks_name_blocking_calls(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.py": "import time\n\nasync def f():\n    time.sleep(1)\n"})
    assert found(await bench.look("performance", repository)) == [("a.py", 4, "ASYNC251")]


async def test_secrets_are_named_by_kind_place_and_mark_only(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.cfg": f"x\ntoken = {GITHUB}\n", "b.js": f"const t = '{GITHUB}'\n"})
    draft = await bench.look("secrets", repository)
    tokens = [each for each in remarks_of(draft) if each.rule == "github-token"]
    assert [(each.file, each.line) for each in tokens] == [("a.cfg", 2), ("b.js", 1)]
    marks = [re.search(r"marked ([0-9a-f]{8})\)", each.message) for each in tokens]
    assert marks[0] and marks[1] and marks[0][1] == marks[1][1]
    assert GITHUB[4:] not in draft.model_dump_json()


async def test_complexity_is_measured_in_other_languages_too(
    repository: Repository, bench: Bench
) -> None:
    script = "function f(a) {" + "if (a) { a++ }\n" * 60 + "}\n"
    repository.commit({"a.py": TANGLED, "b.js": script, "README": "text\n"})
    draft = await bench.look("complexity", repository)
    assert [(each.file, each.confidence) for each in remarks_of(draft)] == [
        ("b.js", 90),
        ("a.py", 85),
    ]
    assert draft.data["files_read"] == 2


async def test_the_history_names_hot_spots_and_lonely_owners(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"one.txt": "1\n", "two.txt": "2\n"}, author="Bob")
    repository.commit({"two.txt": "3\n"}, author="Cleo")
    for n in range(12):
        repository.commit({"hot.py": f"x = {n}\n" * 400})
    draft = await bench.look("history", repository)
    assert found(draft) == [("hot.py", 0, "hot-spot"), ("hot.py", 0, "one-owner")]
    assert "12 of 12 commits are by Ada" in remarks_of(draft)[1].message
    assert "14 commits by 3 authors" in draft.content


SUPPRESSED = {
    "bugs": "def f(x=[]):  # noqa: B006\n    return x\n",
    "security": "eval(input())  # nosec\n",
    "performance": "import time\nasync def f():\n    time.sleep(1)  # noqa\n",
    "secrets": f"token = '{GITHUB}'  # pragma: allowlist secret\n",
    "complexity": TANGLED.replace("(a):\n", "(a):\n    #lizard forgives\n"),
}


@pytest.mark.parametrize("lens", rest_long(SUPPRESSED, first=2))
async def test_suppressions_are_honoured_and_counted(
    repository: Repository, bench: Bench, lens: str
) -> None:
    repository.commit({"a.py": SUPPRESSED[lens]})
    draft = await bench.look(lens, repository)
    assert found(draft) == []
    assert draft.data["suppressed"] in (1, 2)


@pytest.mark.parametrize("lens", LENSES)
async def test_a_lens_with_nothing_to_look_at_is_complete_and_says_so(
    repository: Repository, bench: Bench, lens: str
) -> None:
    repository.commit({"data": b"\x89PNG\0"})
    draft = await bench.look(lens, repository, "HEAD" if lens in SURVEYS else "")
    if lens not in SURVEYS:
        assert draft.content.startswith("Nothing to look at: no ")
    assert (draft.status, draft.confidence, found(draft)) == ("complete", None, [])


async def test_a_repository_without_commits_has_no_history_to_look_at(
    repository: Repository, bench: Bench
) -> None:
    repository.write("a.py", "x = missing\n")
    assert (await bench.look("history", repository)).content == "Nothing to look at: no commits."
    assert found(await bench.look("bugs", repository)) == [("a.py", 1, "F821")]


async def test_only_touched_lines_count_in_a_range(repository: Repository, bench: Bench) -> None:
    code = "a = first\n\nb = second\n\nc = third\n"
    repository.commit({"a.py": code, "same.py": "d = fourth\n"})
    repository.write("a.py", code.replace("second", "changed"))
    repository.write("new.py", "e = fifth\n")
    draft = await bench.look("bugs", repository, "HEAD")
    assert found(draft) == [("a.py", 3, "F821"), ("new.py", 1, "F821")]


async def test_a_syntax_error_is_one_remark_of_bugs_and_not_parsed_elsewhere(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"bad.py": "def f(:\n  )\n(((\n", "ok.py": "x = missing\n"})
    pinned = await bench.pin(repository)
    draft = await bench.look_at("bugs", pinned)
    assert found(draft) == [("bad.py", 1, "invalid-syntax"), ("ok.py", 1, "F821")]
    for lens in ("security", "performance"):
        draft = await bench.look_at(lens, pinned)
        assert (found(draft), draft.data["not_parsed"]) == ([], ["bad.py"])
        assert (draft.confidence, draft.data["files_read"]) == (None, 1)
        assert "1 file could not be parsed" in draft.content


async def test_files_in_other_encodings_are_read_or_said_not_to_be(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"latin.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\neval(x)\n"})
    pinned = await bench.pin(repository)
    assert ("latin.py", 3, "B307") in found(await bench.look_at("security", pinned))
    assert (await bench.look_at("bugs", pinned)).data["not_parsed"] == ["latin.py"]
    for lens in ("secrets", "complexity"):
        assert (await bench.look_at(lens, pinned)).data["not_parsed"] == []


NAMES = ("a b.py", "new\nline.py", "\u202egnp.py", "-rf.py", "@args.py", "q\"u,o'te.py", "é.py")


@pytest.mark.parametrize(
    ("lens", "code"),
    rest_long(
        [
            ("bugs", "x = missing\n"),
            ("secrets", f"x = '{GITHUB}'\n"),
            ("security", "eval(x)\n"),
            ("complexity", TANGLED),
        ],
        first=2,
    ),
)
async def test_file_names_of_any_kind_are_reported_as_they_are(
    repository: Repository, bench: Bench, lens: str, code: str
) -> None:
    repository.commit(dict.fromkeys(NAMES, code))
    draft = await bench.look(lens, repository)
    assert {each.file for each in remarks_of(draft)} == set(NAMES)
    assert draft.data["files_read"] == len(NAMES)


@pytest.mark.long
async def test_more_files_than_one_command_takes_are_all_looked_at(
    repository: Repository, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "PORTION_FILES", 40)
    many = 3 * examination.PORTION_FILES
    for n in range(many):
        repository.write(f"package{n // 10}/module_{n:05}.py", "x = 1\n")
    repository.write("last.py", "x = missing\n")
    pinned = await bench.pin(repository)
    drafts = await asyncio.gather(*(bench.look_at(lens, pinned) for lens in LENSES))
    assert {draft.confidence for draft in drafts} == {None}, "nobody measured any"
    read = {lens: draft.data["files_read"] for lens, draft in zip(LENSES, drafts, strict=True)}
    others = {name for name, reads in readers().items() if "Python" not in reads}
    others |= SURVEYS | OF_CHANGES
    assert read == {lens: 0 if lens in others else many + 1 for lens in LENSES}
    assert found(drafts[LENSES.index("bugs")]) == [("last.py", 1, "F821")]


@pytest.mark.long
async def test_the_most_severe_remarks_are_handed_on_and_the_cut_is_said(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.py": "def f(x=[]): pass\n" * 2_100 + "y = '%s %s' % ('a',)\n"})
    draft = await bench.look("bugs", repository)
    remarks = remarks_of(draft)
    assert (len(remarks), remarks[0].rule) == (MOST_REMARKS, "F507")
    total = draft.data["remarks_in_all"]
    assert isinstance(total, int) and total > 2_100
    assert f"Of {total} remarks {MOST_REMARKS} are handed on" in draft.content


async def test_a_subtask_without_a_repository_fails_in_one_line(bench: Bench) -> None:
    subtask = Subtask(id="t", title="t", instruction="", role="bugs")
    with pytest.raises(LensFailed, match="no input that is a repository"):
        await lenses_of(bench.snapshots)["bugs"](WorkMaterial(subtask=subtask, lens="bugs"))


# ---------------------------------------------------------------- tools that misbehave

TOOL = """
import json, sys, time, os
paths = sys.argv[1:]
for path in paths:
    text = open(path).read()
    if "crash" in text: os.abort()
    if "hang" in text: time.sleep(600)
    if "flood" in text:
        while True: print("x" * 1_000_000)
print(json.dumps(paths))
"""


def _command(files: Sequence[str], honour: bool) -> CommandLine:
    return CommandLine((sys.executable, "-c", TOOL, *files))


def _parse(stdout: bytes) -> Parsed:
    seen = (Sighting(path, 1, "seen", "seen", "seen") for path in json.loads(stdout))
    return Parsed(tuple(seen))


STRANGE = Analyser(
    name="strange",
    looks_for="anything",
    grades={"seen": Grade("info", 90)},
    command=_command,
    parse=_parse,
)


def _files(folder: Path, contents: Sequence[str]) -> list[str]:
    paths = [folder / f"{n:03}.txt" for n in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    return [str(path) for path in paths]


def _deadline(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


@pytest.mark.parametrize("trouble", ["crash", "flood"])
async def test_a_file_on_which_the_tool_fails_does_not_take_the_others_down(
    tmp_path: Path, trouble: str
) -> None:
    paths = _files(tmp_path, ["fine"] * 5 + [trouble] + ["fine"] * 3)
    parsed = await Examination(STRANGE, _deadline(60)).look_at(paths)
    assert parsed.not_parsed == (paths[5],)
    assert {each.file for each in parsed.sightings} == {*paths[:5], *paths[6:]}
    assert parsed.read == 9


async def test_a_tool_that_always_fails_is_said_to_have_failed(tmp_path: Path) -> None:
    paths = _files(tmp_path, ["crash"] * 4)
    with pytest.raises(LensFailed, match="strange: its tool failed: exit code -6"):
        await Examination(STRANGE, _deadline(60)).look_at(paths)


async def test_a_tool_that_says_something_else_has_failed(tmp_path: Path) -> None:
    odd = replace(STRANGE, command=lambda *_: CommandLine((sys.executable, "-c", "print('hello')")))
    with pytest.raises(LensFailed, match="its tool failed"):
        await Examination(odd, _deadline(60)).look_at(_files(tmp_path, ["fine"]))


async def test_a_tool_that_hangs_is_stopped_at_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(LensFailed, match="strange: "):
        await Examination(STRANGE, _deadline(0.5)).look_at(_files(tmp_path, ["hang"]))


FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
with open(sys.argv[1], "w") as file:
    print(child.pid, file=file, flush=True)
time.sleep(600)
"""


def _gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        for _ in itertools.count():
            if condition():
                return
            await asyncio.sleep(0.01)


async def test_a_cancelled_program_is_dead_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = (sys.executable, "-c", FAMILY, str(note))
    task = asyncio.create_task(run(command, folder=tmp_path, environment={}, seconds=60))
    await _until(lambda: note.exists() and note.read_text().endswith("\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until(lambda: _gone(int(note.read_text())))


async def test_a_program_beyond_its_time_is_dead_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = (sys.executable, "-c", FAMILY, str(note))
    with pytest.raises(ProgramStopped, match="took longer"):
        await run(command, folder=tmp_path, environment={}, seconds=2)
    await _until(lambda: _gone(int(note.read_text())))


@pytest.mark.skipif(sys.platform != "linux", reason="no other system bounds another process")
async def test_a_program_gets_no_more_memory_than_its_share(tmp_path: Path) -> None:
    greedy = f"import time; time.sleep(0.2); bytearray({MEMORY_LIMIT})"
    command = (sys.executable, "-c", greedy)
    finished = await run(command, folder=tmp_path, environment={}, seconds=60)
    assert finished.code and b"MemoryError" in finished.stderr


# ---------------------------------------------------------------- tables and redaction


def test_every_rule_of_the_ruff_tables_exists() -> None:
    builds = [each.command for each in analysers().values() if each.marker is ruff.MARKER]
    assert builds
    for build in builds:
        assert build is not None
        command = build([os.devnull], True)
        done = subprocess.run(command.arguments, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_the_longest_row_grades_a_rule() -> None:
    assert bugs.ANALYSER.grade("F507") == bugs.GRADES["F50"]
    assert security.ANALYSER.grade("B101") == security.GRADES["B101"]
    assert security.ANALYSER.grade("NEW/SCALE") == Grade("warning", 30)


@pytest.mark.parametrize(
    "secret",
    [
        GITHUB,
        "AKIA" + "IOSFODNN7EXAMPLQ",
        "sk-ant-" + "api03-abcdefghij0123456789",
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "hunter2hunter2",
    ],
)
def test_what_looks_like_a_secret_is_redacted(secret: str) -> None:
    for text in (f"password = '{secret}'", f"see 'api_key': \"{secret}\" there"):
        assert secret[6:] not in redact(text)
        assert "[redacted]" in redact(text)


def test_redaction_keeps_lines_and_plain_text() -> None:
    key = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----"
    text = f"one = 1\n{key}\nUndefined name `token`\n"
    assert redact(text) == "one = 1\n[redacted]\n\n\nUndefined name `token`\n"


PIECES = """\
import os
import subprocess


def run(name, LIMIT):
    exec(f"x = {name}")
    eval("len(%s)" % name)
    subprocess.run("ls " + name, shell=True)
    os.system("ls {}".format(name))
    command = f"ls {name}"
    subprocess.run(command, shell=True)
    eval(name)
    exec("x = 1")
    eval(f"{LIMIT} + 1")
    command = "ls"
    subprocess.run(command, shell=True)
    name += 1
    name += 1
    exec(input())
"""


async def test_a_text_of_pieces_that_is_run_is_a_warning_that_is_shown_in_a_change(
    repository: Repository, bench: Bench
) -> None:
    first = repository.commit({"a.py": "x = 1\n"})
    repository.commit({"run.py": PIECES})
    draft = await bench.look("security", repository, first)
    told = {
        each.line: (each.severity, each.confidence >= 50)
        for each in remarks_of(draft)
        if each.rule in ("B102", "B307", "B602", "B605")
    }
    assert {line for line, how in told.items() if how == ("warning", True)} == {6, 7, 8, 9, 11}
    assert {line for line, how in told.items() if how == ("critical", True)} == {19}
    assert {line for line, (_, shown) in told.items() if not shown} >= {12, 13, 14}
