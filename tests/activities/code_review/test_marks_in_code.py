"""A change cannot take itself out of its review by its own lines; what stood in the base counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.activities.review.scope import marks
from holdfast.contracts import Draft
from holdfast.contracts.errors import BadGoal
from holdfast.contracts.remarks import blocks_change
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.long, pytest.mark.anyio]

KEY = "AKIA" + "QX7Z3M5N2P4R6T8V"
WORKFLOW = """on: push
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: echo ${{ github.event.issue.title }}
"""
LONG = (
    "def f(a):\n"
    + "".join(f"    if a == {n}:\n        a += {n}\n" for n in range(40))
    + "    return a\n"
)
NAN = "export const f = (a) => {\nif (a === NaN) f(1);\n};\n"
CODE = [
    ("bugs", "a.py", "print(nope){}\n", "  # noqa"),
    ("bugs", "a.py", "print(nope){}\n", "  # NOQA: F821"),
    ("bugs", "a.py", "{}print(nope)\n", "# ruff: noqa\n"),
    ("bugs", "a.py", "{}print(nope)\n", "# flake8: noqa\n"),
    ("security", "a.py", "import pickle\npickle.loads(x){}\n", "  # nosec"),
    ("security", "a.py", "import pickle\npickle.loads(x){}\n", "  # noqa # nosec B301"),
    ("secrets", "a.py", f'key = "{KEY}"{{}}\n', "  # pragma: allowlist secret"),
    ("secrets", "a.py", f'{{}}key = "{KEY}"\n', "# pragma: allowlist nextline secret\n"),
    ("secrets", "a.yml", f"key: {KEY}{{}}\n", "  # pragma: whitelist secret"),
    ("javascript", "a.js", NAN.replace("if", "{}if"), "// eslint-disable-next-line\n"),
    ("javascript", "a.js", "{}const a = 1;\na = 2;\n", "/* eslint-disable */\n"),
    ("javascript", "a.js", NAN.replace(";\n}", ";{}\n}"), " // oxlint-disable-line use-isnan"),
    ("shell", "a.sh", "#!/bin/sh\n{}rm -rf $1/*\n", "# shellcheck disable=all\n"),
    ("shell", "a.sh", "#!/bin/sh\n{}rm -rf $1/*\n", "# shellcheck shell=sh disable=SC2115\n"),
    ("workflows", ".github/workflows/a.yml", WORKFLOW.replace("title }}", "title }}{}"),
     " # zizmor: ignore[template-injection]"),
    ("patterns", "A.java", "class A { void b(String c) throws Exception {\n{}"
     'Runtime.getRuntime().exec("ls " + c);\n} }\n', "// ast-grep-ignore\n"),
    ("complexity", "a.py", LONG.replace("(a):", "(a):{}"), "  #lizard forgives"),
    ("dockerfiles", "Dockerfile", "FROM debian\n{}RUN cd /x && sudo ls\n",
     "# hadolint ignore=DL3003,DL3004\n"),
]  # fmt: skip


def said(found: Draft) -> list[tuple[str, str]]:
    return sorted((each.rule, each.file) for each in remarks_of(found))


def notes_of(found: Draft) -> str:
    return str(found.data["notes"])


def files_of(rows: list[tuple[str, str, str]], place: int) -> dict[str, str | bytes]:
    """Return a file of each row: without its mark for `place` 0, with it for 1."""
    return {
        # A Dockerfile and a workflow have the names that they have.
        (file if len(rows) == 1 else f"{n}{file}"): code.replace("{}", mark if place else "")
        for n, (file, code, mark) in enumerate(rows)
    }


@pytest.mark.parametrize("lens", dict.fromkeys(lens for lens, *_ in CODE))
async def test_a_mark_that_is_itself_new_takes_nothing_out(tmp_path: Path, lens: str) -> None:
    # One look for all marks that a lens obeys: programs that start are most of what one costs.
    rows = [(file, code, mark) for each, file, code, mark in CODE if each == lens]
    repository, bench = Repository.with_a_file(tmp_path / "repo"), Bench(tmp_path)
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit(files_of(rows, 0))
    expected = said(await bench.look(lens, repository, "main"))
    marked = files_of(rows, 1)
    repository.commit(marked)
    obeyed = said(await bench.look(lens, repository))
    for file in marked:
        seen, left = ([at for _, at in each].count(file) for each in (expected, obeyed))
        assert seen, "the defect is one that this lens sees"
        assert left < seen, f"the mark in {file} is one that its analyser obeys"
    changed = await bench.look(lens, repository, "main")
    assert said(changed) == expected
    told = re.search(
        r"\d+ marks? in changed lines (was|were) not honoured, since [^:]+: (.*)", notes_of(changed)
    )
    assert told and all(f"{file}:" in told[2] for file in marked)


@pytest.mark.parametrize(
    ("lens", "file", "base", "added"),
    [
        ("bugs", "a.py", "# ruff: noqa\nimport os\n", "print(nope)\n"),
        ("javascript", "a.js", "/* eslint-disable */\nconst a = 1;\n", "a = 2;\n"),
        ("shell", "a.sh", "#!/bin/sh\n# shellcheck disable=all\ntrue\n", "rm -rf $1/*\n"),
    ],
)
async def test_a_mark_that_stood_in_the_base_is_honoured(
    tmp_path: Path, lens: str, file: str, base: str, added: str
) -> None:
    repository, bench = Repository.with_a_file(tmp_path / "repo"), Bench(tmp_path)
    repository.commit({file: base})
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({file: base + added})
    found = await bench.look(lens, repository, "main")
    assert remarks_of(found) == []
    assert "honoured" not in notes_of(found)


async def test_a_shallow_clone_says_how_many_marks_it_believes_and_what_to_fetch(
    tmp_path: Path,
) -> None:
    repository, bench = Repository.with_a_file(tmp_path / "repo"), Bench(tmp_path)
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.py": "print(nope)  # noqa\n"})
    here = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.path}", str(here))
    shallow = Repository(here)
    pinned = await bench.pin(shallow, scope="changed")
    said_of_it = notes_of(await bench.look_at("bugs", pinned))
    assert "1 mark that may suppress remarks was honoured and may be part" in said_of_it
    assert "fetch its whole history (fetch-depth: 0)" in said_of_it
    with pytest.raises(BadGoal, match="the clone is shallow: `git fetch --unshallow`"):
        await bench.look("bugs", shallow, "HEAD~1")


@pytest.mark.parametrize(
    ("path", "head", "kind"),
    [
        ("a.py", "# Code generated by x. DO NOT EDIT.\n", "production"),
        ("vendor/a.py", "", "production"),
        ("lib/vendor/a.py", "", "production"),
        ("dist/a.py", "", "production"),
        ("third_party/x/a.py", "", "production"),
        ("a_pb2.py", "", "production"),
        ("a.generated.py", "", "production"),
        ("node_modules/x/a.py", "# @generated\n", "production"),
        ("old/vendor/new/a.py", "", "vendored"),
        ("testing/pay.py", "", "production"),
        ("src/tests/pay.py", "", "production"),
        ("examples/pay.py", "", "production"),
        ("src/spec/pay.py", "", "tests"),
        ("src/test_pay.py", "", "tests"),
    ],
)
async def test_a_new_folder_or_first_line_makes_no_file_one_that_nobody_wrote(
    tmp_path: Path, path: str, head: str, kind: str
) -> None:
    repository, bench = Repository.with_a_file(tmp_path / "repo"), Bench(tmp_path)
    repository.commit({"old/vendor/was/here.py": "x = 1\n", "lib/spec/here.py": "x = 1\n"})
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({path: f"{head}print(nope)\n"})
    found = await bench.look("bugs", repository, "main")
    (seen,) = remarks_of(found)
    assert seen.kind == kind
    assert blocks_change(seen) is (kind == "production")
    assert ("1 new file counted as production code" in notes_of(found)) is blocks_change(seen)
    assert (f"1 new file taken for tests: {path}" in notes_of(found)) is (kind == "tests")


async def test_what_the_base_calls_generated_stays_so(tmp_path: Path) -> None:
    repository, bench = Repository.with_a_file(tmp_path / "repo"), Bench(tmp_path)
    base = "# Code generated by x. DO NOT EDIT.\nimport os\nprint(os)\n"
    repository.commit({"a.py": base})
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"a.py": f"{base}print(nope)\n", "package-lock.json": '{"a": 1}\n'})
    (seen,) = remarks_of(await bench.look("bugs", repository, "main"))
    assert seen.kind == "generated"
    manifest = (await bench.snapshot(repository, "main")).manifest
    assert {file.path: file.kind for file in manifest.files}["package-lock.json"] == "generated"


@pytest.mark.parametrize(
    "path", ["a.py", "tests/a.py", "docs/a.py", "examples/a.py", "old/vendor/a.py", "a.min.js"]
)
async def test_a_credential_that_a_change_brings_is_in_the_way_wherever_it_stands(
    tmp_path: Path, path: str
) -> None:
    repository, bench = Repository.with_a_file(tmp_path / "repo"), Bench(tmp_path)
    repository.commit({"old/vendor/was/here.py": "x = 1\n"})
    repository.git("checkout", "-q", "-b", "feature")
    mark = "// Code generated. DO NOT EDIT. noqa nosec pragma: allowlist secret\n"
    repository.commit({path: f'{mark}key = "{KEY}"  # pragma: allowlist secret\n'})
    found = remarks_of(await bench.look("secrets", repository, "main"))
    assert [each.severity for each in found if blocks_change(each)] == ["critical"]


def test_only_marks_in_touched_lines_are_taken_out_and_nothing_moves() -> None:
    content = b"a # noqa\nb # nosec # noqa\r\nc # noqa\n"
    plain, found = marks.strip_marks(content, [(2, 2)])
    assert plain == b"a # noqa\nb # xosec # xoqa\r\nc # noqa\n" and found == [2, 2]
    assert marks.strip_marks(content, [(0, 9)])[1] == marks.find_marks(content) == [1, 2, 2, 3]
    assert marks.drop_touched(content, [(2, 2)]) == b"a # noqa\nc # noqa"
