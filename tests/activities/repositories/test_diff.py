"""The diff of a change as models may see it: as git writes one, without secrets, and bounded."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.activities.repositories.unified import REACH, heads_around, lay_out
from holdfast.activities.review.lenses import Scans
from holdfast.activities.snapshots import diff
from repositories import Bench, Repository

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

TEN = "".join(f"line {number}\n" for number in range(1, 11))
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HEX = "9f2c1be07d4a5586c3ef01b2a7d86e4490bc7f15"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def diff_of(bench: Bench, repository: Repository, base: str = "HEAD") -> str:
    """The diff of what differs from a base."""
    change = (await bench.pin(repository, base, models=True)).change
    assert change is not None
    return (await bench.store.get(change.diff)).decode() if change.diff else ""


async def test_a_diff_is_laid_out_as_git_does_and_each_line_has_its_number(
    repository: Repository, bench: Bench
) -> None:
    names = [f"{seed:02}.txt" for seed in range(12)]
    changed = {name: changed_lines(random.Random(seed)) for seed, name in enumerate(names)}
    repository.commit({name: "\n".join(old) + "\n" for name, (old, _) in changed.items()})
    for name, (_, new) in changed.items():
        repository.write(name, "\n".join(new) + "\n")
    told = (repository.git("diff", "--no-color", "--", name) for name in names)
    expected = [[*numbered(each.splitlines()[2:])] for each in told if each]
    _, *shown = (await diff_of(bench, repository)).split("--- a/")
    # The larger a difference, the later it comes.
    assert sorted([f"--- a/{each}".splitlines() for each in shown]) == sorted(expected)
    assert len(expected) >= 8


def changed_lines(chance: random.Random) -> tuple[list[str], list[str]]:
    """The lines of a file before and after some of them went and some came."""
    old = [f"line {chance.random()}" for _ in range(chance.randrange(1, 60))]
    new = [
        each
        for line in old
        for each in chance.choice([[line]] * 6 + [[], [line, f"new {chance.random()}"]])
    ] or ["all of it went"]
    return old, new


def numbered(lines: list[str]) -> Iterator[str]:
    """A diff of git with the number of each line, and of the lines in each header, which git leaves
    out if that is one.
    """
    old = new = 0
    for line in lines:
        if line.startswith("@@"):
            spans = [each if "," in each else f"{each},1" for each in line.split(" ")[1:3]]
            old, new = (int(each[1:].partition(",")[0]) for each in spans)
            yield f"@@ {' '.join(spans)} @@"
        elif line[:3] in ("---", "+++"):
            yield line
        else:
            yield f"{old if line[0] == '-' else new:>5} {line}"
            old, new = old + (line[0] != "+"), new + (line[0] != "-")


def test_no_context_shows_the_changed_lines_alone() -> None:
    (section,) = lay_out([(2, 1, 2, 1)], 3, 3, 0)
    assert [tuple(line) for line in section.lines] == [("-", 2, 0), ("+", 0, 2)]
    assert section.header == "@@ -2,1 +2,1 @@"


@pytest.mark.parametrize(
    ("text", "within"),
    [
        (
            "class A:\n    @cached\n    def sum(self):\n        pay(\n            X",
            "class A > def sum(self)",
        ),
        ("def a():\n    pass\n\n\nX", ""),
        (
            "export class A {\n  async sum(b) {\n    if (b) {\n      X",
            "export class A > async sum(b)",
        ),
        ("const sum = async (a, b) => {\n  X", "const sum = async (a, b) =>"),
        ("describe('a', () => {\n  it('b', () => {\n    X", "describe('a', () => > it('b', () =>"),
        ("func (a *A) Sum() int {\n\tfor b := range c {\n\t\tX", "func (a *A) Sum() int"),
        ("class A {\n  int sum(int a,\n      int b) {\n    X", "class A > int sum(int a,"),
        ("module A\n  class B\n    def sum(c)\n      X", "module A > class B > def sum(c)"),
        ("impl A {\n    pub fn sum(&self) {\n        X", "impl A > pub fn sum(&self)"),
    ],
)
async def test_a_section_says_in_which_definitions_its_first_change_stands(
    text: str, within: str
) -> None:
    lines = text.split("\n")
    (section,) = lay_out([(len(lines), 1, len(lines), 1)], len(lines), len(lines), 0)
    header = section.header_within(lines[at - 1] for at in heads_around(lines, len(lines)))
    assert header == f"{section.header} {within}".rstrip()


def test_a_definition_that_begins_far_above_is_not_looked_for() -> None:
    lines = ["def sum():", *["    a = 1"] * REACH]
    assert heads_around(lines, REACH) == [1] and heads_around(lines, REACH + 2) == []


async def test_a_deletion_says_in_which_definition_of_the_base_it_stood(
    repository: Repository, bench: Bench
) -> None:
    text = "class Cart:\n    def old(self):\n        a = 1\n        return a\n"
    repository.commit({"cart.py": text})
    repository.write("cart.py", text.replace("        a = 1\n", ""))
    assert "@@ -1,4 +1,3 @@ class Cart > def old(self)\n" in await diff_of(bench, repository)


async def test_a_deletion_a_rename_and_a_new_file_are_said(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"gone.py": "a\nb\n", "old.py": TEN, "moved.py": TEN * 3})
    (repository.path / "gone.py").unlink()
    repository.git("mv", "old.py", "new.py")
    repository.git("mv", "moved.py", "lib.py")
    repository.write("new.py", TEN.replace("line 1\n", "one\n"))
    repository.write("added.py", "x\n")
    repository.git("add", "-A")
    assert (await diff_of(bench, repository)).splitlines() == [
        "rename from moved.py",
        "rename to lib.py",
        "--- a/moved.py",
        "+++ b/lib.py",
        "--- /dev/null",
        "+++ b/added.py",
        "@@ -0,0 +1,1 @@",
        "    1 +x",
        "--- a/gone.py",
        "+++ /dev/null",
        "@@ -1,2 +0,0 @@",
        "    1 -a",
        "    2 -b",
        "rename from old.py",
        "rename to new.py",
        "--- a/old.py",
        "+++ b/new.py",
        "@@ -1,4 +1,4 @@",
        "    1 -line 1",
        "    1 +one",
        "    2  line 2",
        "    3  line 3",
        "    4  line 4",
    ]


async def test_secrets_of_the_head_of_the_base_and_of_messages_are_withheld(
    repository: Repository, bench: Bench
) -> None:
    """One by its shape, and one that only the search for secrets knows."""
    repository.commit({"a.py": f'key = "{TOKEN}"\nDIGEST = "{HEX}"\nx = 1\n'})
    repository.write("a.py", f'key = None\nx = 2\n# was {HEX}\ntoken: str = "{TOKEN[::-1]}"\n')
    repository.git("commit", "-qam", f"Drop {TOKEN}, {HEX}")
    change = (await bench.pin(repository, "HEAD~1", models=True)).change
    assert change is not None
    said = (await bench.store.get(change.diff) + await bench.store.get(change.messages)).decode()
    assert said.count("[redacted]") == 6
    for each in (TOKEN, HEX, TOKEN[::-1]):
        assert each not in said


async def test_a_private_key_does_not_stand_in_a_diff_of_its_middle(
    repository: Repository, bench: Bench
) -> None:
    body = [
        f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us{n:04}" for n in range(20)
    ]
    key = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"]
    repository.commit({"a.txt": "\n".join(key) + "\n"})
    key[10] = key[10].replace("MIIE", "MIIF")
    repository.write("a.txt", "\n".join(key) + "\n")
    assert "MII" not in await diff_of(bench, repository)


async def test_production_code_comes_before_tests_and_tests_before_the_rest(
    repository: Repository, bench: Bench
) -> None:
    paths = ("a.lock", "docs/a.md", "examples/a.py", "src/z.py", "tests/test_a.py")
    repository.commit(dict.fromkeys(paths, "a\n"))
    for path in paths:
        repository.write(path, "b\n" * (90 if path == "src/z.py" else 1))
    told = await diff_of(bench, repository)
    order = sorted(paths, key=lambda path: told.index(f"+++ b/{path}"))
    assert order[:2] == ["src/z.py", "tests/test_a.py"]


async def test_code_comes_before_data_and_what_does_not_fit_is_named_with_its_counts(
    repository: Repository, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff, "DIFF_BYTES", 200)
    repository.commit({"a.csv": "1\n", "b.py": "b\n", "c.py": "c\n"})
    repository.write("a.csv", "1\n2\n")
    repository.write("b.py", "b\nb\n")
    repository.write("c.py", "c\n" * 90)
    repository.write("logo.png", b"\x89PNG\0")
    told = await diff_of(bench, repository)
    assert told.index("+++ b/b.py") < told.index("+++ b/a.csv")
    assert told.endswith(
        "[not shown: 1 file]\n  c.py (+89 -0): no room\n"
        "[differs, or is new, and was not read: 1 file]\n  logo.png: binary\n"
    )


async def test_a_long_line_is_cut_and_a_file_that_cannot_be_searched_is_not_shown(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.py": "a\n", "b.js": "b\n"})
    repository.write("a.py", f"a = '{'x ' * 400}'\n")
    repository.write("b.js", f"b = '{'y ' * 4_000}'\n")
    told = await diff_of(bench, repository)
    assert "x x x… [806 letters in all]" in told
    assert "y y" not in told
    assert "b.js (+1 -1): it could not be searched for secrets" in told


async def test_names_that_would_look_like_lines_of_a_diff_are_harmless(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    repository.write("b\n+++ b.txt", "x\n\x1b[2J\n")
    told = await diff_of(bench, repository)
    assert "+++ b/b\\n+++ b.txt\n" in told
    assert "+\\x1b[2J\n" in told


async def test_without_models_there_are_counts_and_no_diff(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    repository.write("a.txt", "b\nc\n")
    change = (await bench.pin(repository, "HEAD")).change
    assert change is not None
    assert (change.files, change.added, change.deleted) == (1, 2, 1)
    assert (change.diff, change.messages) == ("", "")


async def test_messages_are_those_of_the_change_newest_first(
    repository: Repository, bench: Bench
) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "Begin")
    for subject in ("First", "Second"):
        repository.git("commit", "-q", "--allow-empty", "-m", f"{subject}\n\nWhy it is so")
    repository.write("a.txt", "a\n")
    ids = repository.git("log", "--format=%h", "--abbrev=12", "-2").split()
    change = (await bench.pin(repository, "HEAD~2", models=True)).change
    assert change is not None
    assert (await bench.store.get(change.messages)).decode() == (
        f"commit {ids[0]}\nSecond\n\nWhy it is so\n\ncommit {ids[1]}\nFirst\n\nWhy it is so\n\n"
    )


async def test_a_file_around_a_change_is_quoted_if_it_was_searched_for_secrets_and_else_not(
    repository: Repository, bench: Bench
) -> None:
    repository.commit(
        {"a.py": "a\n", "conf.py": f'x = 1\nDIGEST = "{HEX}"\n', "other.py": f'OTHER = "{HEX}"\n'}
    )
    repository.write("a.py", "b\n")
    snapshot = await bench.snapshot(repository, "HEAD")
    deadline = time.monotonic() + 60
    scans = Scans()
    redactor = await scans.redactor(snapshot, deadline)
    assert [redactor.quotes(file) for file in ("a.py", "conf.py")] == [True, False]
    redactor = await scans.redactor(snapshot, deadline, ["conf.py"])
    assert [redactor.quotes(file) for file in ("a.py", "conf.py", "other.py")] == [
        True,
        True,
        False,
    ]
    assert redactor.line(f'DIGEST = "{HEX}"', "conf.py", 2) == 'DIGEST = "[redacted]"'
    # What was found there is told of no other file either.
    assert HEX not in redactor.message(f"Compares {HEX}", 100, "a.py")


async def test_a_secret_that_the_base_alone_had_is_told_of_no_file(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.py": f'DIGEST = "{HEX}"\n', "gone.py": f'OTHER = "{HEX[::-1]}"\n'})
    repository.write("a.py", "b\n")
    (repository.path / "gone.py").unlink()
    snapshot = await bench.snapshot(repository, "HEAD")
    head, base = await Scans().redactors(snapshot, time.monotonic() + 60)
    said = head.message(f"Was {HEX} and {HEX[::-1]}", 200, "a.py")
    assert said == "Was [redacted] and [redacted]"
    assert base.line(f'OTHER = "{HEX[::-1]}"', "gone.py", 1) == 'OTHER = "[redacted]"'


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gone.py", "--- a/gone.py\n+++ /dev/null\n"),
        ("new.py", "--- /dev/null\n+++ b/new.py\n"),
    ],
)
async def test_an_empty_file_that_is_new_or_deleted_is_said_by_its_name(
    repository: Repository, bench: Bench, name: str, told: str
) -> None:
    repository.commit({"gone.py": "", "a.py": "a\n"})
    if name == "new.py":
        repository.write(name, "")
    else:
        (repository.path / name).unlink()
    assert await diff_of(bench, repository) == told


async def test_a_deleted_file_that_is_no_text_is_counted(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"logo.png": b"\x89PNG\0"})
    (repository.path / "logo.png").unlink()
    told = await diff_of(bench, repository)
    assert told == "[the base's version of 1 file is not kept: no text, or too large]\n"
