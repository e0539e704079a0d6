"""What agents see of folders: their files, within them, without secrets, and nothing else."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from hands import Bench
from holdfast.activities.tools.list_files import list_files
from holdfast.activities.tools.read_file import read_file
from holdfast.activities.tools.search_files import search_files
from holdfast.untrusted.redact import without_keys

pytestmark = pytest.mark.anyio

SECRET = "sk-ant-" + "a1B2c3D4" * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "snapshot"
    files = {
        "README.md": "# Title\nRate limit: 5\n",
        "src/a.py": "import os\n\n\ndef limit():\n    return 5\n",
        "src/deep/b.py": "limit = 1\n",
        "src/deep/b.txt": "Limit of b\n",
        "empty": "",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def bench(folder: Path) -> Bench:
    return Bench(folders={"repo": folder}, contents={"notes": b"one\ntwo limit\n"})


# ---------------------------------------------------------------- list_files


async def test_all_inputs_are_one_tree_with_sizes(bench: Bench) -> None:
    assert (await bench.told(list_files)).splitlines() == [
        "notes  14",
        "repo/README.md  22",
        "repo/empty  0",
        "repo/src/a.py  38",
        "repo/src/deep/b.py  10",
        "repo/src/deep/b.txt  11",
    ]


@pytest.mark.parametrize(
    ("pattern", "path", "names"),
    [
        ("*.py", "", ["a.py", "b.py"]),
        ("src/*.py", "", ["a.py"]),
        ("src/**/*.py", "", ["a.py", "b.py"]),
        ("**/b.*", "repo/src", ["b.py", "b.txt"]),
        ("repo/src/deep/*", "", ["b.py", "b.txt"]),
        ("*.{md,txt}", "", ["README.md", "b.txt"]),
        ("[!a-z]*", "", ["README.md"]),
        ("?.py", "repo/src/deep", ["b.py"]),
        ("", "repo/src/a.py", ["a.py"]),
        ("*.rs", "", []),
    ],
)
async def test_a_glob_and_a_path_choose(
    bench: Bench, pattern: str, path: str, names: list[str]
) -> None:
    told = await bench.told(list_files, pattern=pattern, path=path)
    found = [each.rpartition("  ")[0].rpartition("/")[2] for each in told.splitlines()]
    assert [each for each in found if each] == names
    assert names or told == "[no file matches]"


async def test_more_files_than_are_named_are_counted(tmp_path: Path) -> None:
    for number in range(1_200):
        (tmp_path / f"{number:04}").touch()
    lines = (await Bench(folders={"many": tmp_path}).told(list_files)).splitlines()
    assert lines[999].startswith("many/0999") and "200 more" in lines[1_000]


async def test_a_line_break_in_a_name_makes_no_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a\nrepo admin.key  5").touch()
    told = await Bench(folders={"repo": tmp_path}).told(list_files)
    assert told == "repo/a\\nrepo admin.key  5  0"


# ---------------------------------------------------------------- what has no path


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "begins with no input; your inputs are: notes (file), repo (repository)"),
        ("../secret", "begins with no input"),
        ("repo/../secret", "leads out"),
        ("repo/src/../../secret", "leads out"),
        ("repo/link", "there is no file|not a regular file"),
        ("repo/out/secret", "there is no file"),
        ("repo/fifo", "not a regular file"),
        ("repo/src", "not a regular file"),
        ("repo", "is a folder"),
        ("notes/a", "is a file and no folder"),
        ("repo/none", "there is no file"),
        ("repo/src/a.py/b", "there is no file"),
        ("repo/a\0b", "that is not a path"),
        ("repo/" + "a" * 5_000, "that is not a path"),
        ("", "begins with no input"),
    ],
)
async def test_nothing_outside_of_the_inputs_and_behind_no_link_is_read(
    bench: Bench, folder: Path, tmp_path: Path, path: str, why: str
) -> None:
    (tmp_path / "secret").write_text("limit of the host")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo")
    said = await bench.refused(read_file, file_path=path)
    assert any(each in said for each in why.split("|")), said
    assert "host" not in said and str(tmp_path) not in said


async def test_links_and_fifos_are_neither_listed_nor_searched(
    bench: Bench, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("limit of the host")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo")
    for told in (
        await bench.told(list_files),
        await bench.told(search_files, pattern="limit"),
        await bench.told(list_files, pattern="**/secret"),
    ):
        assert "host" not in told and "link" not in told and "fifo" not in told
        assert "secret" not in told
    assert "there is no" in await bench.refused(search_files, pattern="limit", path="repo/out")
    assert "there is no" in await bench.refused(list_files, path="repo/out/x")


# ---------------------------------------------------------------- read_file


async def test_lines_have_their_numbers_and_can_be_chosen(bench: Bench) -> None:
    told = await bench.told(read_file, file_path="repo/src/a.py", offset=4, limit=1)
    assert told == ("     4\tdef limit():\n[lines 4 to 4 of 5; offset=5 reads on]")
    assert (await bench.told(read_file, file_path="notes")).splitlines()[1] == "     2\ttwo limit"
    assert "is empty" in await bench.told(read_file, file_path="repo/empty")
    said = await bench.refused(read_file, file_path="repo/src/a.py", offset=9)
    assert "has 5 lines; there is no line 9" in said


async def test_other_encodings_are_read_and_what_is_no_text_is_said(
    bench: Bench, folder: Path
) -> None:
    (folder / "latin").write_bytes("Grüße\n".encode("latin-1"))
    (folder / "wide").write_bytes("Grüße\n".encode("utf-16"))
    (folder / "binary").write_bytes(b"a\0b")
    assert "Grüße" in await bench.told(read_file, file_path="repo/latin")
    assert "Grüße" in await bench.told(read_file, file_path="repo/wide")
    assert "is not text; read_document" in await bench.refused(read_file, file_path="repo/binary")


async def test_a_long_line_and_a_huge_file_are_cut_and_said(bench: Bench, folder: Path) -> None:
    (folder / "long").write_text("x" * 10_000)
    with (folder / "huge").open("wb") as file:
        file.truncate(2 << 30)
    told = await bench.told(read_file, file_path="repo/long")
    assert len(told) < 2_100 and "10,000 letters in all" in told
    assert "larger than 4 MiB" in await bench.refused(read_file, file_path="repo/huge")


KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "QUJDREVG\n" * 9 + "-----END RSA PRIVATE KEY-----\n"


async def test_secrets_are_withheld_wherever_a_piece_begins(bench: Bench, folder: Path) -> None:
    (folder / "conf").write_text(f"{KEY}token = '{SECRET}'\n{'y' * 1_990} {SECRET}\nend\n")
    whole = await bench.told(read_file, file_path="repo/conf")
    piece = await bench.told(read_file, file_path="repo/conf", offset=4, limit=3)
    found = await bench.told(search_files, pattern="QUJD|token|yyy|sk-", path="repo/conf")
    for told in (whole, piece, found):
        assert "QUJD" not in told and "a1B2" not in told and "sk-ant" not in told
    assert "    14\tend" in whole
    assert "repo/conf:12:token = '[redacted]'" in found


async def test_a_secret_cannot_be_found_by_guessing_it(bench: Bench, folder: Path) -> None:
    (folder / "conf").write_text(f"token = '{SECRET}'\n")
    for mode in ("content", "files_with_matches", "count"):
        told = await bench.told(search_files, pattern="sk-ant-a1", output_mode=mode)
        assert told.startswith("[nothing found")


# ---------------------------------------------------------------- search_files


async def test_matching_lines_are_told_with_file_and_line(bench: Bench) -> None:
    assert (await bench.told(search_files, pattern="limit")).splitlines() == [
        "notes:2:two limit",
        "repo/README.md:2:Rate limit: 5",
        "repo/src/a.py:4:def limit():",
        "repo/src/deep/b.py:1:limit = 1",
    ]


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": "^limit", "ignore_case": True, "glob": "*.txt"},
         ["repo/src/deep/b.txt:1:Limit of b"]),
        ({"pattern": "limit", "glob": "src/**/*.py", "output_mode": "files_with_matches"},
         ["repo/src/a.py", "repo/src/deep/b.py"]),
        ({"pattern": "o", "path": "notes", "output_mode": "count"}, ["notes:2"]),
        ({"pattern": "def", "path": "repo/src", "context": 1},
         ["repo/src/a.py-3-", "repo/src/a.py:4:def limit():", "repo/src/a.py-5-    return 5"]),
        ({"pattern": "import|return", "path": "repo/src", "context": 1},
         ["repo/src/a.py:1:import os", "repo/src/a.py-2-", "--",
          "repo/src/a.py-4-def limit():", "repo/src/a.py:5:    return 5"]),
        ({"pattern": "^$", "path": "repo/src/a.py"}, ["repo/src/a.py:2:", "repo/src/a.py:3:"]),
        ({"pattern": r"os\n"}, ["[nothing found in 6 of 6 files]"]),
        ({"pattern": r"os[^x]*def"}, ["[nothing found in 6 of 6 files]"]),
    ],
)  # fmt: skip
async def test_a_search_can_be_narrowed_and_shown_in_other_ways(
    bench: Bench, arguments: dict[str, str | int | bool], lines: list[str]
) -> None:
    assert (await bench.told(search_files, **arguments)).splitlines() == lines


@pytest.mark.parametrize(
    "pattern", ["(", "(?=a)", r"(a)\1", "a{99999}", "[", "((a{500}){500}){500}"]
)
async def test_a_pattern_that_cannot_be_used_is_said_in_a_line(bench: Bench, pattern: str) -> None:
    said = await bench.refused(search_files, pattern=pattern)
    assert "cannot be used" in said and "b'" not in said


async def test_a_pattern_that_would_take_for_ever_elsewhere_takes_linear_time(
    bench: Bench, folder: Path
) -> None:
    (folder / "hostile").write_text("a" * 1_000_000 + "!")
    told = await bench.told(search_files, pattern=r"(a+)+$", path="repo/hostile")
    assert told.startswith("[nothing found")


@pytest.mark.long
async def test_enough_is_enough(bench: Bench, folder: Path) -> None:
    (folder / "many").write_text("hit\n" * 50_000)
    told = await bench.told(search_files, pattern="hit", path="repo/many", head_limit=7)
    assert told.count("many:") == 7 and "there may be more" in told
    counted = await bench.told(search_files, pattern="hit", path="repo/many", output_mode="count")
    assert counted == "repo/many:10000+"
    empty = await bench.told(search_files, pattern="x*", path="repo/many", head_limit=3)
    assert empty.count("many:") == 3


async def test_files_that_cannot_be_searched_are_counted(bench: Bench, folder: Path) -> None:
    (folder / "binary").write_bytes(b"a\0limit")
    with (folder / "huge").open("wb") as file:
        file.truncate(2 << 30)
    assert "[not read, as no text or too large: 2 files]" in (
        await bench.told(search_files, pattern="limit")
    )


async def test_a_search_that_takes_too_long_says_how_far_it_came(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.tools.search_files.SECONDS", -1.0)
    told = await bench.told(search_files, pattern="limit", path="repo")
    assert "stopped after" in told


@pytest.mark.parametrize("end", ["", "-" * 40], ids=["letters", "dashes"])
def test_a_file_that_is_one_endless_private_key_takes_no_memory_of_the_worker(end: str) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n"
    text = key + "a" * 8_000_000 if not end else (key + end) * 120_000
    tracemalloc.start()
    try:
        assert without_keys(text).startswith("[redacted]")
        assert tracemalloc.get_traced_memory()[1] < 3 * len(text)
    finally:
        tracemalloc.stop()
