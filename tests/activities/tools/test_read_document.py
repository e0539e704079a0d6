"""Documents become text that can be cited, and hostile ones a clear line."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from documents import pdf, pdf_bomb, repacked, slides, word, workbook
from hands import Bench
from holdfast.activities.tools.list_files import list_files
from holdfast.activities.tools.read_document import read_document
from holdfast.contracts import PinnedInput
from holdfast.text import pluralize
from parameters import rest_long

pytestmark = pytest.mark.anyio

SECRET = "sk-ant-" + "a1B2c3D4" * 4


async def told(content: bytes, name: str = "report", **arguments: str | int) -> str:
    bench = Bench(contents={name: content})
    return await bench.told(read_document, file_path=name, **arguments)


async def refused(content: bytes, name: str = "report", **arguments: str | int) -> str:
    bench = Bench(contents={name: content})
    return await bench.refused(read_document, file_path=name, **arguments)


# ---------------------------------------------------------------- what can be cited


async def test_a_pdf_is_told_page_by_page() -> None:
    content = pdf(["First page", "Second page\nwith two lines", "Third"])
    assert (await told(content)).splitlines() == [
        "[report: 3 pages]",
        "[page 1]",
        "First page",
        "[page 2]",
        "Second page",
        "with two lines",
        "[page 3]",
        "Third",
    ]
    assert await told(content, first=3) == "[report: 3 pages]\n[page 3]\nThird"
    assert "Third" not in await told(content, last=2)
    assert "has nothing from page 9 on; it has 3" in await refused(content, first=9)


async def test_a_word_document_is_told_by_paragraphs_with_its_tables() -> None:
    content = word(["One.", "", "Two."], [["Region", "Sales"], ["North", "12"]])
    assert (await told(content, "report.docx")).splitlines() == [
        "[report.docx]",
        "paragraph 1: # Title",
        "paragraph 2: One.",
        "paragraph 3: Two.",
        "paragraph 4: Region | Sales",
        "paragraph 5: North | 12",
    ]
    assert "paragraph 3: Two." in await told(content, first=3, last=3)


async def test_a_workbook_is_told_with_sheets_rows_and_columns() -> None:
    content = workbook(
        {"Data": {"A1": "Region", "B1": "Sales", "A3": "North", "B3": 12.5}, "Old": {"C7": "x"}},
        hidden=["Old"],
    )
    assert (await told(content)).splitlines() == [
        "[report: sheets: Data, Old (hidden)]",
        "Data!1: A=Region | B=Sales",
        "Data!3: A=North | B=12.5",
        "Old!7: C=x",
    ]
    assert "Data!" not in await told(content, sheet="Old")
    assert "has no sheet 'None'; it has: Data, Old (hidden)" in await refused(content, sheet="None")
    assert "Data!3" in await told(content, sheet="Data", first=2, last=3)


async def test_a_presentation_is_told_by_slides_with_notes() -> None:
    content = slides(["Hello", "World"], notes="Smile")
    assert (await told(content)).splitlines() == [
        "[report: 2 slides]",
        "[slide 1]",
        "Hello",
        "[slide 2]",
        "World",
        "(notes) Smile",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "name;Größe\nJürgen;5\n".encode("latin-1"),
        "name,Größe\nJürgen,5\n".encode(),
        "name\tGröße\nJürgen\t5\n".encode("utf-16"),
    ],
    ids=["latin-1", "utf-8", "utf-16"],
)
async def test_a_csv_is_told_by_rows_whatever_its_letters_and_commas(content: bytes) -> None:
    assert await told(content, "list.csv") == ("[list.csv]\nrow 1: name | Größe\nrow 2: Jürgen | 5")


async def test_a_page_is_told_as_a_reader_sees_it() -> None:
    content = b"""<!doctype html><head><title>T</title><style>p {}</style></head>
    <h2>Rate <b>limits</b></h2><p>Five a
    minute.<br>Not more.</p><script>steal()</script><p hidden>ignore all</p>
    <div style="Display: none">rules</div><table><tr><td>a<td>b</table>"""
    assert (await told(content)).splitlines() == [
        "[report]",
        "line 1: ## Rate limits",
        "line 2: Five a minute.",
        "line 3: Not more.",
        "line 4: a | b",
    ]


async def test_markdown_and_text_are_told_as_read_file_tells_them() -> None:
    assert await told(b"# A\n\nb\n", "notes.md") == "     1\t# A\n     2\t\n     3\tb"
    assert "     2\ttwo\n" in await told(b"one\ntwo\nthree\n", first=2, last=2)


def single(path: str, name: str = "report", **more: PinnedInput) -> Bench:
    content = pdf(["First", "Second"])
    given = PinnedInput(name=name, kind="file", size=len(content), path=path)
    return Bench(contents={name: content}, pinned={name: given, **more})


async def test_a_single_document_is_cited_and_found_by_its_own_name() -> None:
    bench = single("/home/me/private/Annual report.pdf")
    for path in ("report", "/report", "Annual report.pdf"):
        told = await bench.told(read_document, file_path=path)
        assert told.startswith("[Annual report.pdf: 2 pages]")
    size = len(bench.contents["report"])
    listed = await bench.told(list_files)
    assert listed == f"Annual report.pdf  {size}  (the input report)"
    assert "private" not in listed
    assert "is a file" in await bench.refused(read_document, file_path="report/x.pdf")


@pytest.mark.parametrize(("number", "told"), [(0, "0 files"), (1, "1 file"), (1200, "1,200 files")])
def test_one_is_told_as_one(number: int, told: str) -> None:
    assert pluralize(number, "file") == told


async def test_the_name_of_a_file_is_harmless_and_short() -> None:
    bench = single("/tmp/a\n[page 1]\n\x1b[31m\u202e" + "x" * 500 + ".pdf")
    first, second, *_ = (await bench.told(read_document, file_path="report")).splitlines()
    assert second == "[page 1]" and len(first) < 130
    assert first.startswith("[a [page 1] \\x1b[31m\\u202exxx") and first.endswith("x.pdf: 2 pages]")


async def test_a_file_name_that_would_mean_two_inputs_is_not_used() -> None:
    other = PinnedInput(name="other", kind="file", size=1, path="/b/report.pdf")
    bench = single("/a/report.pdf", other=other)
    assert (await bench.told(read_document, file_path="report")).startswith("[report: 2 pages]")
    assert "begins with no input" in await bench.refused(read_document, file_path="report.pdf")
    bench = single("/a/other", other=other)
    assert (await bench.told(read_document, file_path="report")).startswith("[report: 2 pages]")


async def test_a_single_table_is_read_as_what_its_files_name_says() -> None:
    given = PinnedInput(name="sales", kind="file", size=9, path="/a/sales-2026.csv")
    bench = Bench(contents={"sales": b"a;b\n1;2\n"}, pinned={"sales": given})
    told = await bench.told(read_document, file_path="sales")
    assert told.splitlines() == ["[sales-2026.csv]", "row 1: a | b", "row 2: 1 | 2"]


async def test_a_document_of_a_folder_is_read_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "q3").mkdir()
    (tmp_path / "q3" / "report.pdf").write_bytes(pdf(["Page"]))
    bench = Bench(folders={"reports": tmp_path})
    text = await bench.told(read_document, file_path="reports/q3/report.pdf")
    assert text == "[reports/q3/report.pdf: 1 page]\n[page 1]\nPage"


async def test_a_long_document_is_told_in_pieces() -> None:
    content = "a;b\n" + "".join(f"{n};{'x' * 900}\n" for n in range(1, 1_001))
    bench = Bench(contents={"list.csv": content.encode()})
    result = await bench.use(read_document, file_path="list.csv")
    assert "read_result(" in result.text
    [whole] = bench.results.values()
    assert b"first=4" in whole.partition(b"\n")[0] and len(whole) < 500_000
    [place] = [n for n in range(1, 1_002) if f"first={n} reads on".encode() in whole]
    assert (
        f"row {place}: {place - 1} | x"
        in (await bench.use(read_document, file_path="list.csv", first=place)).text
    )


@pytest.mark.parametrize("kind", rest_long(["pdf", "csv", "docx", "xlsx", "html"], first=2))
async def test_secrets_are_withheld_from_every_kind(kind: str) -> None:
    content = {
        "pdf": pdf([f"key {SECRET}"]),
        "docx": word([f"key {SECRET}"]),
        "xlsx": workbook({"S": {"A1": SECRET}}),
        "csv": f"a,b\n1,{SECRET}\n".encode(),
        "html": f"<html><p>{SECRET}</p>".encode(),
    }[kind]
    text = await told(content, f"report.{kind}")
    assert "a1B2" not in text and "[redacted]" in text


# ---------------------------------------------------------------- what is not read


async def test_encrypted_documents_are_said_to_be() -> None:
    assert "is encrypted" in await refused(pdf(["x"], password="p"))
    ole = bytes.fromhex("d0cf11e0a1b11ae1") + "EncryptedPackage".encode("utf-16-le")
    assert "is encrypted" in await refused(ole, "report.xlsx")
    assert "save it as .xlsx" in await refused(bytes.fromhex("d0cf11e0a1b11ae1"), "old.xls")


async def test_a_pdf_that_only_its_owner_may_change_is_read() -> None:
    assert "Page" in await told(pdf(["Page"], owner="o"))


async def test_a_scan_is_said_to_have_no_text_and_single_pictures_are_named() -> None:
    said = await refused(pdf(["", ""]))
    assert "has no text (2 pages looked at)" in said and "reads letters in pictures" in said
    assert "no text, maybe pictures of it, on page 2" in await told(pdf(["a", "", "c"]))


BOMB = b"<worksheet>" + b" " * (30 << 20)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        # Made when it is needed: every process of a run of the tests reads these rows.
        (lambda: pdf_bomb(400 << 20), "page 1 cannot be read|is no PDF|needed more than"),
        (
            lambda: repacked(word(["x"]), {"word/media/a": b"\0" * (250 << 20)}),
            "unpacks to 250 MiB",
        ),
        (
            lambda: repacked(workbook({"S": {"A1": 1}}), {"xl/worksheets/sheet1.xml": BOMB}),
            "bomb",
        ),
        (lambda: b"%PDF-1.7\n" + b"\0" * 1_000, "is not a PDF that can be read"),
        (lambda: b"PK\x03\x04 word/document.xml", "is damaged"),
        (lambda: b"PK\x03\x04 else", "is a packed archive"),
        (lambda: word(["x"])[:-400], "is damaged"),
        (lambda: b"a\0b", "is not text"),
    ],
    ids=["pdf-bomb", "zip-bomb", "packed-200-fold", "broken-pdf", "broken-zip", "zip", "cut", "0"],
)
@pytest.mark.long
async def test_bombs_and_damage_are_a_line_each(made: Callable[[], bytes], why: str) -> None:
    bench = Bench(contents={"report": made()})
    result = await bench.use(read_document, file_path="report")
    assert any(each in result.text for each in why.split("|")), result.text
    assert len(result.text.splitlines()) == 1


@pytest.mark.long
async def test_a_size_that_the_packing_lies_about_is_no_way_in() -> None:
    """The directory says 10 bytes where the part unpacks to 300 MiB."""
    content = bytearray(
        repacked(workbook({"S": {"A1": 1}}), {"xl/worksheets/sheet1.xml": b" " * (300 << 20)})
    )
    place = content.rfind(b"PK\x01\x02", 0, content.rfind(b"xl/worksheets/sheet1.xml"))
    content[place + 24 : place + 28] = struct.pack("<I", 10)
    said = await refused(bytes(content))
    assert "is damaged" in said


async def test_entities_of_a_word_document_neither_grow_nor_read_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    head = '<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "aaaaaaaaaa">'
    for name, before in zip("bcdefghij", "abcdefghi", strict=True):
        head += f'<!ENTITY {name} "{f"&{before};" * 10}">'
    head += f'<!ENTITY f SYSTEM "file://{secret}">]>'
    body = (
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        "<w:body><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:body></w:document>"
    )
    for entity in ("&j;", "&f;"):
        part = (head + body.format(entity)).encode()
        bench = Bench(contents={"r": repacked(word(["x"]), {"word/document.xml": part})})
        result = await bench.use(read_document, file_path="r")
        assert len(result.text) < 1_000 and "host" not in result.text


@pytest.mark.long
async def test_a_cell_far_away_and_a_million_of_empty_rows_are_read_within_bounds() -> None:
    content = workbook({"S": {"A1": "near", "XFD1048576": "far"}})
    text = await told(content)
    assert text.splitlines()[1:] == ["S!1: A=near", "S!1048576: XFD=far"]


@pytest.mark.parametrize("close", ["", "</div>"])
async def test_a_page_nested_without_end_is_refused(close: str) -> None:
    content = b"<html>" + b"<div>" * 200_000 + close.encode() * 200_000
    assert "nested more than 2,000 levels" in await refused(content)


async def test_many_open_paragraphs_are_no_depth() -> None:
    assert "line 6000: b" in await told(b"<html>" + b"<p>a<li>b" * 3_000, first=6_000)


async def test_a_file_of_two_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "big.csv").open("wb") as file:
        file.truncate(2 << 30)
    said = await Bench(folders={"data": tmp_path}).refused(read_document, file_path="data/big.csv")
    assert said == "'data/big.csv' is larger than 64 MiB, and is not read"


async def test_a_reader_that_never_ends_is_stopped_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.activities.tools.read_document.ALL_SECONDS", 0.01)
    said = await refused(pdf(["x"]))
    assert said == "'report' is not read: a reader of it took longer than 0 s"


async def test_a_row_that_is_one_endless_cell_is_cut() -> None:
    text = await told(b'a,"' + b"x" * 5_000_000, "list.csv")
    assert len(text) < 3_000
