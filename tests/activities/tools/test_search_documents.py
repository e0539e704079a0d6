"""Ranked search finds the passage that says most of what was asked, and only what may be seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hands import Bench
from holdfast.activities.tools.search_documents import search_documents

pytestmark = pytest.mark.anyio

SECRET = "zX9cV8bN7mQ6wE5rT4yU"


def folder_of(tmp_path: Path, files: dict[str, str | bytes], name: str = "digest") -> Bench:
    root = tmp_path / name
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Bench(folders={"docs": root}, scratch=tmp_path / "scratch")


async def found(bench: Bench, query: str, **arguments: int) -> str:
    return await bench.told(search_documents, query=query, path="docs", **arguments)


async def test_the_passage_that_says_most_comes_first_with_file_and_line(tmp_path: Path) -> None:
    filler = "nothing of interest here\n"
    bench = folder_of(
        tmp_path,
        {
            "a.md": filler * 50 + "The rate limit is five a minute.\n" + filler * 50,
            "b/c.txt": filler * 9 + "A limit of length.\n",
            "d.txt": filler * 100,
        },
    )
    first, second = (await found(bench, "rate limit")).split("\n\n")
    assert first.splitlines() == [
        "docs/a.md:51",
        "    50\tnothing of interest here",
        "    51\tThe rate limit is five a minute.",
        "    52\tnothing of interest here",
    ]
    assert second.startswith("docs/b/c.txt:10\n")
    assert "c.txt" not in await found(bench, "rate limit", limit=1)


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("größe", 1), ("GROSSE GRÖSSE", 1), ("C++ foo-bar* AND OR NOT NEAR(", 1), ('"quoted"', 1),
        ("snake_case", 1), ("snake", 0), ("absent", 0),
    ],
)  # fmt: skip
async def test_whatever_is_asked_is_words_and_never_a_language(
    tmp_path: Path, query: str, hits: int
) -> None:
    text = 'Die Grösse und die Größe\nfoo-bar in C++ is "quoted", snake_case\n'
    told = await found(folder_of(tmp_path, {"a": text}), query)
    assert told.count("docs/a:") == hits
    assert hits or told == "[no passage has any of these words]"


async def test_a_query_without_words_and_a_folder_below_are_refused(tmp_path: Path) -> None:
    bench = folder_of(tmp_path, {"a/b": "x"})
    said = await bench.refused(search_documents, query="+-*", path="docs")
    assert "no words; search_files" in said
    said = await bench.refused(search_documents, query="x", path="docs/a")
    assert "name the input, 'docs'" in said
    assert "begins with no input" in await bench.refused(
        search_documents, query="x", path="../docs"
    )


async def test_an_index_is_made_once_for_the_same_content(tmp_path: Path) -> None:
    bench = folder_of(tmp_path, {"a": "needle in hay\n"})
    await found(bench, "needle")
    [index] = (tmp_path / "scratch").iterdir()
    assert index.name == "search-digest" and index.stat().st_mode & 0o077 == 0
    made = (index / "index.db").stat().st_mtime_ns
    assert "docs/a:1" in await found(bench, "hay")
    assert (index / "index.db").stat().st_mtime_ns == made
    assert [each.name for each in index.iterdir()] == ["index.db"]
    # Other content is another digest, hence another index.
    assert "no passage" in await found(folder_of(tmp_path, {"a": "straw"}, "other"), "needle")


async def test_other_encodings_are_found_and_what_is_not_searched_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.tools.search_documents.FOLDER_BYTES", 1_000)
    monkeypatch.setattr("holdfast.activities.tools.search_documents.TEXT_BYTES", 900)
    bench = folder_of(
        tmp_path,
        {
            "a": "Jürgen\n".encode("latin-1"),
            "b": "Jürgen\n".encode("utf-16"),
            "c": b"J\0rgen",
            "d": "x" * 950,
            "e": "y" * 850,
            "f": "z" * 800,
        },
    )
    told = await found(bench, "jürgen")
    assert "docs/a:1" in told and "docs/b:1" in told
    assert "[not searched: 1 beyond 0 MiB in all, 1 larger than 0 MiB, 1 no text]" in told
    # What was left out is still said when the index is there already.
    assert "1 no text" in await found(bench, "absent")


async def test_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("needle of the host")
    bench = folder_of(tmp_path, {"a": "hay"})
    (bench.folders["docs"] / "link").symlink_to(tmp_path / "secret")
    (bench.folders["docs"] / "out").symlink_to(tmp_path)
    os.mkfifo(bench.folders["docs"] / "fifo")
    assert await found(bench, "needle") == "[no passage has any of these words]"


async def test_a_secret_is_neither_shown_nor_found(tmp_path: Path) -> None:
    bench = folder_of(
        tmp_path, {"a": f"password = '{SECRET}'\n", "b": f"the database\ntoken: '{SECRET}'\n"}
    )
    assert await found(bench, SECRET) == "[no passage has any of these words]"
    told = await found(bench, f"database {SECRET}")
    assert "docs/b:1" in told and "docs/a" not in told and SECRET not in told


async def test_hostile_text_is_indexed_within_bounds(tmp_path: Path) -> None:
    bench = folder_of(
        tmp_path,
        {
            "line": "word " * 400_000,
            "lines": "\n" * 1_000_000,
            "words": " ".join(f"w{n}" for n in range(200_000)),
            "last": "needle\n",
        },
    )
    told = await found(bench, "needle word")
    assert "docs/last:1" in told and len(told) < 20_000


async def test_an_index_that_takes_too_long_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.tools.search_documents.ALL_SECONDS", 0.01)
    bench = folder_of(tmp_path, {"a": "x"})
    said = await bench.refused(search_documents, query="x", path="docs")
    assert said == "'docs' is not searched: its index took longer than 0 s"


async def test_an_index_that_ran_out_of_time_says_what_it_lacks_and_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = folder_of(tmp_path, {"a": "x", "b": "x"})
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.activities.tools.search_documents.SECONDS", -1.0)
        assert "[not searched: 2 beyond the time there is]" in await found(bench, "x")
    assert [*(tmp_path / "scratch" / "search-digest").iterdir()] == []
    told = await found(bench, "x")
    assert "docs/a:1" in told and "not searched" not in told
