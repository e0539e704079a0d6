"""No byte, encoding, size or length of a line takes a changed text out of a review unseen."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from holdfast.activities.repositories.working_tree import FILE_LIMIT
from holdfast.contracts import Draft, Sightings
from parameters import rest_long
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

# Put together here, so that no scanner takes this file for a leak.
GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
CODE = f'const a = 1;\nconst t = "{GITHUB}";\n'
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0" + bytes(range(256))


@pytest.fixture
async def repository(tmp_path: Path) -> Repository:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({"README.md": "base\n"})
    return repository


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def secrets(bench: Bench, repository: Repository, name: str, content: bytes) -> Draft:
    """What the search for secrets says of a change that adds one file."""
    repository.write(name, content)
    return await bench.look("secrets", repository, "HEAD")


def missed(draft: Draft) -> tuple[int, list[tuple[str, str]]]:
    data = Sightings.model_validate(draft.data)
    return data.missed, [(each.path, each.why) for each in data.missed_files]


@pytest.mark.parametrize(
    "content",
    [
        b"/* \0 */ " + CODE.encode(),
        b"GIF89a=1; /* \0 */ " + CODE.encode(),
        codecs.BOM_UTF16_LE + CODE.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + CODE.encode("utf-16-be"),
        CODE.encode("utf-16-le"),
        CODE.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + CODE.encode("utf-32-le"),
        codecs.BOM_UTF8 + CODE.encode(),
        CODE.encode() + b"// \xff\xfe \0\n",
    ],
    ids=["nul", "nul-as-gif", "16le", "16be", "16le-bare", "16be-bare", "32le", "8", "latin"],
)
async def test_a_token_is_found_in_its_line_whatever_the_bytes_around_it(
    bench: Bench, repository: Repository, content: bytes
) -> None:
    draft = await secrets(bench, repository, "app/t.js", content)
    found = [(each.file, each.line, each.rule) for each in remarks_of(draft)]
    assert ("app/t.js", 2, "github-token") in found
    assert missed(draft) == (0, [])


async def test_a_token_is_found_in_bytes_of_an_unknown_kind(
    bench: Bench, repository: Repository
) -> None:
    content = b"\x01\x02\0\x03" + CODE.encode()
    draft = await secrets(bench, repository, "state.dat", content)
    assert "github-token" in [each.rule for each in remarks_of(draft)]


@pytest.mark.parametrize("before", rest_long([4_970, 0, 299_000]))
async def test_a_token_is_found_in_a_very_long_line_once_and_where_pieces_meet(
    bench: Bench, repository: Repository, before: int
) -> None:
    line = "a;" * (before // 2) + f'const t = "{GITHUB}";' + "b;" * ((300_000 - before) // 2)
    draft = await secrets(bench, repository, "app/t.js", line.encode())
    assert [each.rule for each in remarks_of(draft)] == ["github-token"]
    assert missed(draft) == (0, [])
    assert "1 file: in a line above 5,000 characters" in draft.content


@pytest.mark.parametrize("name", ["app/t.js", "run-me", "app/t.dat"])
async def test_a_text_that_is_too_large_is_missed_and_named(
    bench: Bench, repository: Repository, name: str
) -> None:
    content = CODE.encode() + b"x;\n" * (FILE_LIMIT // 3)
    draft = await secrets(bench, repository, name, content)
    assert missed(draft) == (1, [(name, "larger than 1 MiB")])


async def test_a_text_that_only_its_encoding_keeps_small_is_missed_too(
    bench: Bench, repository: Repository
) -> None:
    content = codecs.BOM_UTF16_LE + ("\u4e2d" * (FILE_LIMIT // 2 - 1)).encode("utf-16-le")
    draft = await secrets(bench, repository, "a.js", content)
    assert missed(draft) == (1, [("a.js", "larger than 1 MiB")])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("logo.png", PNG),
        ("logo", PNG),
        ("font.woff2", b"wOF2\0\1"),
        ("photo.png", PNG + b"\0" * FILE_LIMIT),
        ("weights.onnx", b"\x08\0" * FILE_LIMIT),
        ("archive", b"PK\x03\x04" + b"\0" * FILE_LIMIT),
    ],
)
async def test_a_picture_or_another_true_binary_stays_silent(
    bench: Bench, repository: Repository, name: str, content: bytes
) -> None:
    draft = await secrets(bench, repository, name, content)
    assert missed(draft) == (0, []) and remarks_of(draft) == []
    assert Sightings.model_validate(draft.data).unread == 1


async def test_what_nobody_wrote_or_the_base_takes_out_is_not_missed(
    bench: Bench, repository: Repository
) -> None:
    large = b"x;\n" * (FILE_LIMIT // 3 + 1)
    settings = '[review]\npaths_out = ["data/"]\n'
    repository.commit({"vendor/a.js": "1\n", ".holdfast.toml": settings})
    for name in ("vendor/b.js", "package-lock.json", "data/rows.csv", "dist/new.js"):
        repository.write(name, large)
    draft = await bench.look("secrets", repository, "HEAD")
    assert missed(draft) == (1, [("dist/new.js", "larger than 1 MiB")])
