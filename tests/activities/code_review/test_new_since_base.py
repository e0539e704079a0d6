"""What is new since the base is found wherever it stands, and what was there before is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.activities.repositories.manifest import SnapshotFile
from holdfast.activities.review.analysers import bugs, complexity
from holdfast.activities.review.analysing.lens import Parsed, Sighting
from holdfast.activities.review.comparing import Base, Comparison, compare
from holdfast.activities.review.examination import Examination
from holdfast.contracts import Draft
from holdfast.contracts.errors import LensFailed
from parameters import rest_long
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

KEY = "AKIA" + "QX7Z3M5N2P4R6T8V"
OTHER_KEY = "AKIA" + "ZB4W8K2J6H9G3F5D"
Files = dict[str, str | bytes]


def decisions(count: int, name: str = "tangled") -> str:
    """A function with one more way through it than it has decisions."""
    body = "".join(f"    if a == {n}:\n        a += {n}\n" for n in range(count))
    return f"def {name}(a):\n{body}    return a\n"


async def look(folder: Path, lens: str, base: Files, head: Files) -> Draft:
    """What a lens makes of a branch that makes `head` of `base`."""
    repository, bench = Repository.with_a_file(folder / "repo"), Bench(folder)
    repository.commit(base)
    repository.git("checkout", "-q", "-b", "feature")
    for name in base.keys() - head.keys():
        (repository.path / name).unlink()
    repository.commit(head)
    return await bench.look(lens, repository, "main")


def found(draft: Draft) -> list[tuple[str, int, bool]]:
    """Rule and line of each remark, and whether the change touched the line."""
    return sorted((each.rule, each.line, not each.new_since) for each in remarks_of(draft))


def by_file(draft: Draft, files: Files) -> list[list[tuple[str, int, bool]]]:
    """The same of each file."""
    seen = remarks_of(draft)
    return [
        sorted((each.rule, each.line, not each.new_since) for each in seen if each.file == name)
        for name in files
    ]


BROKEN_ELSEWHERE = {
    "bugs": (
        ("a.py", "import shutil\n\n\ndef f(a):\n    shutil.rmtree(a)\n",
         "import shutil\n", "F821", 4),
        ("b.py", "def f(a):\n    total = 0\n    for x in a:\n        total += x\n"
         "    return total\n", "    total = 0\n", "F821", 3),
        ("c.py", "from b import c, d\n\n\ndef f():\n    return c(d)\n", ", d", "F821", 5),
    ),
    "javascript": (
        ("a.js", "export function f(a) {\n  const done = a + 1;\n  return done;\n}\n",
         "  const done = a + 1;\n", "no-undef", 2),
        ("b.ts", "import { g } from './g';\nexport const f = (a: number) => g(a);\n",
         "import { g } from './g';\n", "no-undef", 1),
    ),
    "shell": (
        ("a.sh", '#!/bin/sh\ndir=a\nls "$dir"\n', "dir=a\n", "SC2154", 2),
    ),
}  # fmt: skip
"""By lens: a file, what is deleted of it, and the remark that this brings in another line."""


@pytest.mark.parametrize("lens", rest_long(BROKEN_ELSEWHERE))
async def test_a_deletion_breaks_a_line_that_the_change_did_not_touch(
    tmp_path: Path, lens: str
) -> None:
    cases = BROKEN_ELSEWHERE[lens]
    base: Files = {file: text for file, text, *_ in cases}
    head: Files = {file: text.replace(gone, "", 1) for file, text, gone, *_ in cases}
    draft = await look(tmp_path, lens, base, head)
    rules = {rule for *_, rule, _ in cases}
    remarks = [each for each in remarks_of(draft) if each.rule in rules]
    assert sorted((each.file, each.rule, each.line) for each in remarks) == [
        (file, rule, line) for file, _, _, rule, line in cases
    ]
    for remark in remarks:
        assert remark.excerpt is not None and remark.fingerprint
        assert remark.new_since == draft.data["base"]


async def test_a_renamed_file_is_compared_with_what_it_was(tmp_path: Path) -> None:
    rest = "".join(f"x{n} = {n}\n" for n in range(30))
    base = f"import shutil\n{rest}\n\ndef f(a):\n    shutil.rmtree(a)\n    nope(a)\n"
    head = base.replace("import shutil\n", "")
    draft = await look(tmp_path, "bugs", {"old/a.py": base}, {"new/b.py": head})
    assert found(draft) == [("F821", 34, False)]


KNOWN: tuple[tuple[str, str, list[tuple[str, int, bool]], int], ...] = (
    # Only its spaces were edited, or its line moved.
    ("print(nope)\n", "if True:\n    print( nope )\n", [], 1),
    ("print(nope)\nx = 1\ny = 2\nz = 3\n", "x = 1\ny = 2\nz = 3\nprint(nope)\n", [], 1),
    # One is repaired, and an equal one comes elsewhere: it did not move.
    ("if True:\n    print(nope)\nx = 1\ny = 2\nz = 3\n",
     "if True:\n    print(1)\nx = 1\ny = 2\nz = 3\nif False:\n    print(nope)\n",
     [("F821", 7, True)], 0),
    # Of two equal ones one goes; a third one comes, at the beginning or at the end.
    ("print(nope)\nx = 1\nprint(nope)\n", "x = 1\nprint(nope)\n", [], 0),
    ("print(nope)\nx = 1\nprint(nope)\n", "print(nope)\n" * 2 + "x = 1\nprint(nope)\n",
     [("F821", 2, True)], 0),
    ("print(nope)\nx = 1\n", "print(nope)\nx = 1\nprint(nope)\n", [("F821", 3, True)], 0),
    # In one line one name is known again and another one is not.
    ("import b\nx = 1\nprint(a, b)\n", "import a\nx = 1\nprint(a, b)\n",
     [("F821", 3, False)], 0),
    # The line says something else.
    ("print(nope)\n", "print(nope, 1)\n", [("F821", 1, True)], 0),
    # What suppressed it in the base is gone, and it is not.
    ("# ruff: noqa\nprint(nope)\n", "print(nope)\n", [], 0),
    ("print(nope)  # noqa\n", "print(nope)\n", [("F821", 1, True)], 0),
)  # fmt: skip
"""Of a file: in the base, in the head, what is found, and how many of its remarks are old."""


async def test_what_the_base_has_too_is_not_new(tmp_path: Path) -> None:
    base: Files = {f"a{n}.py": each[0] for n, each in enumerate(KNOWN)}
    head: Files = {f"a{n}.py": each[1] for n, each in enumerate(KNOWN)}
    draft = await look(tmp_path, "bugs", base, head)
    assert by_file(draft, base) == [each[2] for each in KNOWN]
    assert draft.data["old"] == sum(each[3] for each in KNOWN)


BROKEN = "def f(:\n"


UNREADABLE: tuple[tuple[str, str, list[tuple[str, int, bool]]], ...] = (
    # It does not parse any more, because of a line that is there still.
    ("def f(\n):\n    pass\n", "):\n    pass\n", [("invalid-syntax", 1, False)]),
    ("x = 1\n", f"x = 1\n{BROKEN}", [("invalid-syntax", 2, True)]),
    # It parses now: what there was before nobody knows.
    (f"print(nope)\n{BROKEN}", "print(nope)\nprint(nil)\n", [("F821", 2, True)]),
    # It did not parse before either.
    (f"x = 1\ny = 1\n{BROKEN}", f"x = 2\ny = 1\n{BROKEN}", []),
    (f"x = 1\ny = 1\n{BROKEN}", f"x = = 1\ny = 1\n{BROKEN}", [("invalid-syntax", 1, True)]),
)
"""Of a file: in the base, which of the last three nobody can read, in the head, what is found."""


@pytest.mark.long
async def test_where_either_side_does_not_parse_no_more_is_said_than_is_known(
    tmp_path: Path,
) -> None:
    base: Files = {f"a{n}.py": each[0] for n, each in enumerate(UNREADABLE)}
    head: Files = {f"a{n}.py": each[1] for n, each in enumerate(UNREADABLE)}
    draft = await look(tmp_path, "bugs", base, head)
    assert by_file(draft, base) == [each[2] for each in UNREADABLE]
    assert "bugs could not read the base of 3 files" in str(draft.data["notes"])


async def test_a_key_that_was_there_is_not_new_and_no_value_of_the_base_is_told(
    tmp_path: Path,
) -> None:
    base = f'a = "{KEY}"\nb = 1\ngone = "{OTHER_KEY}"\n'
    head = f'a = "{KEY}"\nb = 2\n'
    draft = await look(tmp_path, "secrets", {"a.py": base}, {"a.py": head})
    assert found(draft) == [] and draft.data["old"] == 0
    added = await look(tmp_path / "2", "secrets", {"a.py": head}, {"a.py": base})
    assert [each[1:] for each in found(added) if each[0] == "aws-access-key"] == [(3, True)]


async def test_what_was_secret_in_the_base_is_withheld_where_the_head_names_it(
    tmp_path: Path,
) -> None:
    value = "zq7Bx2Lm9Tp4Vw8K"
    base, head = f'password = "{value}"\nx = 1\n', f"x = 1\nprint(nope, {value})\n"
    draft = await look(tmp_path, "bugs", {"a.py": base}, {"a.py": head})
    assert found(draft) == [("F821", 2, True)] * 2
    assert value not in draft.model_dump_json()


@pytest.mark.long
async def test_only_functions_that_the_change_made_worse_are_told(tmp_path: Path) -> None:
    base = decisions(20) + decisions(22, "other") + decisions(14, "third")
    head = base.replace("def other(a):\n    if", "def other(a, b=0):\n    if")
    same = await look(tmp_path, "complexity", {"a.py": base}, {"a.py": head})
    assert found(same) == []
    head = decisions(20) + decisions(23, "other") + decisions(15, "third")
    worse = await look(tmp_path / "2", "complexity", {"a.py": base}, {"a.py": head})
    assert [each.weight for each in remarks_of(worse)] == [24, 16]


@pytest.mark.long
async def test_a_statement_of_several_lines_is_as_new_as_any_of_them(tmp_path: Path) -> None:
    code = "import subprocess\nx = 1\nsubprocess.run(\n    {},\n    shell=True,\n)\n"
    base, head = code.replace("{}", "'ls'"), code.replace("{}", "'ls ' + request.args['a']")
    draft = await look(tmp_path, "security", {"a.py": base}, {"a.py": head})
    (remark,) = (each for each in remarks_of(draft) if each.rule == "B602")
    assert (remark.severity, remark.new_since) == ("critical", "")


@pytest.mark.parametrize("failure", [LensFailed("it crashed"), None])
async def test_without_the_base_touched_lines_count_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: LensFailed | None
) -> None:
    run = Examination.look_at

    async def look_at(self: Examination, paths: Sequence[str]) -> Parsed:
        if all("/before/" not in path and "before-" not in path for path in paths):
            return await run(self, paths)
        if failure:
            raise failure
        return Parsed(not_parsed=tuple(paths), read=len(paths))

    monkeypatch.setattr(Examination, "look_at", look_at)
    base, head = "import a\nprint(a)\nprint(b)\n", "print(a)\nprint(b)\nprint(c)\n"
    draft = await look(tmp_path, "bugs", {"a.py": base}, {"a.py": head})
    assert found(draft) == [("F821", 3, True)]
    assert "touched lines alone count" in str(draft.data["notes"])


# ---------------------------------------------------------------- what was only counted

HEAD = SnapshotFile(path="a.py", size=1, lines=9, touched=((5, 5),), was="was.py")
SEEN = Sighting("a.py", 1, "F821", "m", "F821", column=1)


def compared(tmp_path: Path, head: Parsed, base: Parsed) -> Comparison:
    for side, name in (("head", "a.py"), ("base", "was.py")):
        (tmp_path / side).mkdir()
        (tmp_path / side / name).write_text("nope\n" * 9)
    before = Base(base, tmp_path / "base", frozenset(["was.py"]))
    return compare(bugs.ANALYSER, head, tmp_path / "head", {"a.py": HEAD}, before)


def lines(name: str, *numbers: int) -> tuple[Sighting, ...]:
    return tuple(replace(SEEN, file=name, line=number) for number in numbers)


def test_of_what_was_only_counted_as_many_are_new_as_the_base_has_fewer(tmp_path: Path) -> None:
    head = Parsed(lines("a.py", 1, 2), beyond=(("a.py", "F821", 7), ("b.py", "F821", 2)))
    base = Parsed(lines("was.py", 1, 2, 3))
    seen = compared(tmp_path, head, base)
    assert seen == Comparison(frozenset(), beyond=(("a.py", "F821", 6),), not_compared=2)


def test_where_the_base_has_more_than_is_handed_on_touched_lines_count(tmp_path: Path) -> None:
    base = Parsed(lines("was.py", 1), beyond=(("was.py", "F821", 1),))
    seen = compared(tmp_path, Parsed(lines("a.py", 1, 2, 5)), base)
    assert seen == Comparison(frozenset([2]))


def test_what_is_measured_is_known_by_its_name_and_new_if_it_grew(tmp_path: Path) -> None:
    def measured(file: str, *weights: int) -> Parsed:
        one = replace(SEEN, file=file, name="f", grade="complexity above 15")
        return Parsed(tuple(replace(one, line=n, weight=w) for n, w in enumerate(weights, 1)))

    before = Base(measured("was.py", 20, 30), tmp_path, frozenset(["was.py"]))
    seen = compare(
        complexity.ANALYSER, measured("a.py", 30, 19, 21), tmp_path, {"a.py": HEAD}, before
    )
    assert seen == Comparison(frozenset([2]), frozenset([2]))


BROKEN_SHELL = "if true; then\n"


@pytest.mark.long
async def test_an_error_of_syntax_is_critical_where_the_tool_could_read_the_base(
    tmp_path: Path,
) -> None:
    repository, bench = Repository.at(tmp_path / "repo"), Bench(tmp_path)
    first = repository.commit({"a.sh": "true\n", "odd.sh": f"true\n{BROKEN_SHELL}"})
    (whole,) = remarks_of(await bench.look("shell", repository))
    assert (whole.file, whole.severity) == ("odd.sh", "warning"), "its parser may be the older one"
    repository.commit(
        {"a.sh": BROKEN_SHELL, "odd.sh": f"false\n{BROKEN_SHELL}x\n", "new.sh": BROKEN_SHELL}
    )
    changed = remarks_of(await bench.look("shell", repository, first))
    severities = {each.file: each.severity for each in changed}
    assert severities["a.sh"] == "critical" and severities["new.sh"] == "warning"
    assert severities.get("odd.sh", "warning") == "warning"


async def test_python_that_does_not_parse_is_critical_on_a_whole_tree(tmp_path: Path) -> None:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({"a.py": BROKEN})
    (remark,) = remarks_of(await Bench(tmp_path).look("bugs", repository))
    assert (remark.rule, remark.severity) == ("invalid-syntax", "critical")


async def test_history_of_a_change_that_only_deletes_does_not_say_that_there_are_no_commits(
    tmp_path: Path,
) -> None:
    repository = Repository.at(tmp_path / "repo")
    first = repository.commit({"a.py": "x = 1\n", "b.py": "y = 1\n"})
    (repository.path / "a.py").unlink()
    repository.commit({})
    draft = await Bench(tmp_path).look("history", repository, first)
    assert "no file left of what differs" in str(draft.data["nothing_to_look_at"])
