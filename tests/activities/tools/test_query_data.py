"""Inputs are asked by one SELECT that reads what was loaded, and nothing else."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from pathlib import Path

import duckdb
import openpyxl
import pytest

from hands import Bench
from holdfast.activities.tools import query_data as module
from holdfast.activities.tools.query_data import query_data
from parameters import rest_long

pytestmark = pytest.mark.anyio

SALES = b"region,amount,day\nNorth,0.10,2026-01-01\nSouth,0.20,2026-01-02\nNorth,0.30,2026-02-01\n"


def workbook(**sheets: list[list[object]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def parquet(folder: Path) -> bytes:
    path = folder / "made.parquet"
    db = duckdb.connect()
    db.execute(f"copy (select range as n, range * 2 as twice from range(10)) to '{path}'")
    return path.read_bytes()


def sqlite_file(folder: Path, script: str) -> bytes:
    path = folder / "made.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(script)
    db.close()
    return path.read_bytes()


async def test_csv_is_asked_by_sql_and_money_is_exact_when_cast() -> None:
    sql = "select region, sum(amount::decimal(10,2)) total from sales group by 1 order by 1"
    said = await Bench(contents={"sales": SALES}).told(query_data, sources=["sales"], sql=sql)
    assert said == "region,total\nNorth,0.40\nSouth,0.20\n[2 rows]"


async def test_json_is_a_table_of_its_objects_and_a_broken_one_is_refused() -> None:
    for name, content in {
        "list.json": b'[{"a": 1, "b": "x"}, {"a": 2, "b": null}]',
        "lines.jsonl": b'{"a": 1, "b": "x"}\n{"a": 2}\n',
    }.items():
        table = name.partition(".")[0]
        said = await Bench(contents={name: content}).told(
            query_data, sources=[name], sql=f"select sum(a) total, count(b) known from {table}"
        )
        assert said == "total,known\n3,1\n[1 row]"
    broken = Bench(contents={"list.json": b'[{"a": 1}'})
    assert "Malformed JSON" in await broken.refused(query_data, sources=["list.json"])
    odd = Bench(contents={"odd.csv": b"[a],b\n1,2\n"})
    assert (await odd.told(query_data, sources=["odd.csv"])).startswith("table odd, 1 row\n[a] ")


async def test_without_sql_the_tables_are_shown_with_types_and_first_rows() -> None:
    said = await Bench(contents={"sales.csv": SALES}).told(query_data, sources=["sales.csv"])
    assert said.startswith("table sales, 3 rows\nregion VARCHAR,amount DOUBLE,day DATE\nNorth,0.1,")


async def test_files_of_several_kinds_are_joined(tmp_path: Path) -> None:
    people = workbook(people=[["id", "name", "name"], [1, "Ann", "x"], [2, None, "y"]])
    bench = Bench(contents={"people": people, "numbers": parquet(tmp_path), "sales": SALES})
    sql = "select p.name, n.twice, (select count(*) from sales) c from people p"
    said = await bench.told(
        query_data,
        sources=["people", "numbers", "sales"],
        sql=f"{sql} join numbers n on n.n = p.id order by p.id",
    )
    assert said == "name,twice,c\nAnn,2,3\nNULL,4,3\n[2 rows]"


async def test_each_sheet_is_a_table_and_a_hidden_one_is_told(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(io.BytesIO(workbook(One=[["a"], [1]], Two=[["b"], ["x"]])))
    book["Two"].sheet_state = "hidden"
    content = io.BytesIO()
    book.save(content)
    said = await Bench(contents={"book": content.getvalue()}).told(query_data, sources=["book"])
    assert "table book_one, 1 row\na DOUBLE\n1.0" in said
    assert "table book_two, 1 row\nb VARCHAR\nx" in said
    assert "[the sheet 'Two' of book is hidden]" in said


async def test_a_file_in_a_folder_is_a_source_and_nothing_outside_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "sales.csv").write_bytes(SALES)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "up").symlink_to(tmp_path)
    bench = Bench(folders={"data": folder})
    sql = "select count(*) n from sales"
    assert (await bench.told(query_data, sources=["data/in/sales.csv"], sql=sql)) == "n\n3\n[1 row]"
    for source in ("data/../secret.csv", "data/link.csv", "data/up/secret.csv", "/etc/passwd"):
        said = await bench.refused(query_data, sources=[source])
        assert any(
            why in said for why in ("leads out", "not a regular file", "no file", "no input")
        )
    assert "there is no file" in await bench.refused(query_data, sources=["data/none.csv"])


@pytest.mark.parametrize(
    "sql",
    rest_long(
        [
            "select * from read_csv('{outside}')",
            "select * from '{outside}'",
            "select * from read_text('{outside}')",
            "select * from glob('/etc/*')",
            "select * from read_csv('https://example.com/x.csv')",
            "copy sales to '{outside}'",
            "attach '{outside}' as other",
            "export database '{folder}'",
            "install httpfs",
            "load httpfs",
            "set enable_external_access=true",
            "pragma database_list",
            "drop table sales",
            "insert into sales select * from sales",
            "create table other as select 1",
            "select 1; drop table sales",
            "select 1; select 2",
            "select * from query('drop table sales')",
            "select * from asked",
            "select * from sources",
            "select * from none",
            "select getenv('HOME')",
            "selec",
            "-- nothing",
        ],
        first=2,
    ),
)
async def test_what_is_no_select_over_the_sources_is_refused(sql: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("secret\n4711\n")
    bench = Bench(contents={"sales": SALES})
    filled = sql.format(outside=outside, folder=tmp_path / "exported")
    said = await bench.refused(query_data, sources=["sales"], sql=filled)
    assert "4711" not in said
    assert outside.read_text() == "secret\n4711\n"
    assert [*tmp_path.iterdir()] == [outside]


@pytest.mark.parametrize(
    "sql",
    [
        "select repeat('x', 3000000000)",
        pytest.param(
            "select count(*) from range(1000000000000) a, range(1000000) b",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r",
            marks=pytest.mark.long,
        ),
        pytest.param("select list(range) from range(1000000000)", marks=pytest.mark.long),
    ],
)
async def test_a_query_that_wants_all_memory_or_time_is_ended(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 4.0)
    bench = Bench(contents={"sales": SALES})
    said = await bench.refused(query_data, sources=["sales"], sql=sql)
    assert any(why in said for why in ("took longer", "memory", "computing"))


async def test_many_rows_and_long_cells_are_cut_and_it_is_said() -> None:
    bench = Bench(contents={"sales": SALES})
    said = await bench.told(query_data, sources=["sales"], sql="select 1 a from range(2000)")
    assert said.endswith("[the first 500 rows; there are more]") and said.count("1\n") == 500
    sql = "select repeat('x', 1000000) a"
    said = await bench.told(query_data, sources=["sales"], sql=sql)
    assert "x… (1000000 letters)" in said and len(said) < 600


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("name;amount\nMüller;3.5\n".encode("latin-1"), "not UTF-8 and was read as latin-1"),
        ("name;amount\nMüller;3.5\n".encode("utf-16"), "not UTF-8 and was read as utf-16"),
        (b"day,n\n" + b"2026-01-01,1\n" * 30_000 + b"soon,2\n", "all are text, cast"),
    ],
)
async def test_a_csv_that_is_odd_is_read_and_how_is_said(content: bytes, note: str) -> None:
    said = await Bench(contents={"odd": content}).told(query_data, sources=["odd"])
    assert note in said
    assert "Müller" in said or "2026-01-01" in said


def far_cell() -> bytes:
    book = openpyxl.Workbook()
    book.active["XFD1048576"] = 1
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def zip_bomb() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * (300 << 20))
    return content.getvalue()


@pytest.mark.long
async def test_hostile_workbooks_and_files_are_an_error_in_one_line() -> None:
    bench = Bench(
        contents={
            "bomb": zip_bomb(),
            "cut": workbook(a=[[1]])[:-30],
            "none": b"PK\x03\x04" + bytes(100),
            "cut_parquet": b"PAR1" + bytes(50),
            "zeros": bytes(1000),
        }
    )
    assert "would unpack to 300 MiB" in await bench.refused(query_data, sources=["bomb"])
    assert "damaged archive" in await bench.refused(query_data, sources=["cut"])
    assert "damaged archive" in await bench.refused(query_data, sources=["none"])
    assert "cut_parquet" in await bench.refused(query_data, sources=["cut_parquet"])
    assert (await bench.use(query_data, sources=["zeros"])).text


async def test_a_cell_very_far_away_is_refused() -> None:
    said = await Bench(contents={"far": far_cell()}).refused(query_data, sources=["far"])
    assert "very far from its first one" in said


async def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 5)
    said = await Bench(contents={"sales": SALES}).refused(query_data, sources=["sales"])
    assert "'sales' is larger than" in said


# ---------------------------------------------------------------- SQLite

SHOP = """
create table item (id integer primary key, name text, price text);
insert into item values (1, 'pen', '1.20'), (2, 'book', '9.90');
create view cheap as select * from item where id = 1;
"""


async def test_a_sqlite_file_is_asked_by_its_own_names(tmp_path: Path) -> None:
    bench = Bench(contents={"shop": sqlite_file(tmp_path, SHOP)})
    said = await bench.told(query_data, sources=["shop"], sql="select name from item order by 1")
    assert said == "name\nbook\npen\n[2 rows]"
    shown = await bench.told(query_data, sources=["shop"])
    assert "CREATE TABLE item" in shown and "CREATE VIEW cheap" in shown and "1,pen,1.20" in shown


@pytest.mark.parametrize(
    "sql",
    rest_long(
        [
            "insert into item values (3, 'x', 'y')",
            "delete from item",
            "attach '/tmp/other.sqlite' as other",
            "pragma user_version = 3",
            "vacuum into '/tmp/other.sqlite'",
            "create table x (a)",
            "select load_extension('x')",
            "select 1; delete from item",
            "select zeroblob(2000000000)",
            "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r",
            "select * from pragma_database_list",
            "select readfile('/etc/passwd')",
        ],
        first=2,
    ),
)
async def test_a_sqlite_file_is_only_read(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 4.0)
    folder = tmp_path / "data"
    folder.mkdir()
    content = sqlite_file(tmp_path, SHOP)
    (folder / "shop.sqlite").write_bytes(content)
    bench = Bench(folders={"data": folder})
    await bench.refused(query_data, sources=["data/shop.sqlite"], sql=sql)
    assert (folder / "shop.sqlite").read_bytes() == content
    assert [*folder.iterdir()] == [folder / "shop.sqlite"]


async def test_a_damaged_sqlite_file_and_two_sources_are_refused(tmp_path: Path) -> None:
    content = sqlite_file(tmp_path, SHOP)
    bench = Bench(contents={"cut": content[:5000] + bytes(3000), "shop": content, "sales": SALES})
    said = await bench.refused(query_data, sources=["cut"], sql="select * from item")
    assert "damaged" in said or "malformed" in said
    said = await bench.refused(query_data, sources=["shop", "sales"])
    assert "asked alone" in said
