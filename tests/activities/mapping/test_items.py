"""A map reads its input once, item by item, and what is wrong with it is named with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

import documents
from holdfast.activities.mapping import scanning
from holdfast.calls.row import row_prompt
from holdfast.calls.rows import Items, OpenMaterial, Outcome, RowOrder
from holdfast.contracts.errors import CallRefused
from mapped import Mapping

pytestmark = pytest.mark.anyio

TICKETS = b'{"id": "T-1", "subject": "Lid", "text": "broken"}\n{"id": "T-2", "subject": "Bill"}\n'


@pytest.fixture
def mapping(tmp_path: Path) -> Mapping:
    return Mapping(tmp_path)


async def opened(mapping: Mapping, content: bytes, by: str, name: str, **spec: str) -> Items:
    return await mapping.open(mapping.work(await mapping.pin(content, name), by, **spec))


async def refusal(mapping: Mapping, content: bytes, by: str, **more: str) -> str:
    name = more.pop("name", "given.jsonl")
    with pytest.raises(CallRefused) as refused:
        await opened(mapping, content, by, name, **more)
    assert "\n" not in refused.value.message
    return refused.value.message


async def test_only_the_fields_in_braces_are_kept_and_counted(mapping: Mapping) -> None:
    work = mapping.work(await mapping.pin(TICKETS), "records", "Label {subject} as {{x}}", id="id")
    found = await mapping.open(work)
    assert [(each.id, each.fields) for each in await mapping.items(found)] == [
        ("T-1", {"subject": "Lid"}),
        ("T-2", {"subject": "Bill"}),
    ]
    assert found.fields == ("subject",)
    assert found.chunks[0].asked == 2


async def test_a_table_is_read_by_rows_or_records_whatever_its_file_is(mapping: Mapping) -> None:
    csv = b"id;subject\nT-1;Lid\nT-2;Bill; and more\nT-3;Box\n"
    found = await opened(mapping, csv, "records", "given.csv", id="id")
    first, broken, last = await mapping.items(found)
    assert (first.fields, first.place) == ({"id": "T-1", "subject": "Lid"}, "line 2")
    assert broken.broken == "has 3 cells, where the header has 2"
    assert last.id == "T-3"
    sheet = documents.workbook({"Q3": {"A1": "id", "B1": "n", "A2": "a", "B2": 1, "A4": "b"}})
    found = await opened(mapping, sheet, "rows", "book.xlsx", id="id")
    assert [each.place for each in await mapping.items(found)] == [
        "row 2 of sheet Q3",
        "row 4 of sheet Q3",
    ]
    assert (await opened(mapping, TICKETS, "rows", "t.jsonl")).count == 2


async def test_parquet_has_rows_with_dates_as_text(mapping: Mapping, tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "made.parquet"
    made = "select range as n, date '2026-01-01' as day from range(3)"
    duckdb.connect().execute(f"copy ({made}) to '{path}'")
    found = await opened(mapping, path.read_bytes(), "rows", "given", id="n")
    assert [each.fields for each in await mapping.items(found)][2] == {"n": 2, "day": "2026-01-01"}


async def test_a_list_of_json_goes_on_behind_a_broken_record(mapping: Mapping) -> None:
    content = b'[{"id":1},\n{"id":2,,},\n {"id":3, "t":"a,]}"}, 7, {"id":4}]'
    found = await mapping.items(await opened(mapping, content, "records", "a.json"))
    assert [bool(each.broken) for each in found] == [False, True, False, True, False]
    assert found[3].broken == "is a number, and no object with fields"
    assert found[4].place == "item 5"


async def test_broken_lines_and_large_rows_fail_by_themselves(mapping: Mapping) -> None:
    large = json.dumps({"id": "big", "text": "x" * 5_000_000}).encode()
    content = b'{"id": "a", "text": "1"}\n{"id": \n\n' + large + b'\n{"id": "b", "text": "2"}\n'
    found = await opened(mapping, content, "records", "t.jsonl", id="id")
    assert (found.count, found.broken) == (4, 2)
    assert found.samples[0].startswith("line 2 is no JSON")
    assert found.samples[1].startswith("line 4 shows a model 5,000,003 bytes; at most 262,144")
    assert (await mapping.items(found))[2].id == "big"
    assert found.chunks[0].asked == 2


async def test_ids_that_are_doubled_or_missing_are_refused_with_both_places(
    mapping: Mapping,
) -> None:
    twice = await refusal(mapping, b'{"id": 1}\n{"id": 2}\n{"id": 1}\n', "records", id="id")
    assert twice == "input 'given' line 3 has the 'id' '1' again, which names line 1"
    missing = await refusal(mapping, b'{"id": 1}\n{"x": 2}\n', "records", id="id")
    assert missing == "input 'given' line 2 has no 'id', which is to name it"
    other = await refusal(mapping, TICKETS, "records", id="ident")
    assert "has no field 'ident' (its `id`); its fields: id, subject, text" in other


async def test_an_input_without_rows_or_with_too_many_is_refused(mapping: Mapping) -> None:
    assert "there is nothing to do" in await refusal(mapping, b"id,x\n", "rows", name="t.csv")
    many = await refusal(mapping, b"a\nb\nc\n", "lines", name="t.txt", most="2")
    assert many.startswith("input 'given' has more than 2 lines: line 3 is one too many")
    nothing = await refusal(mapping, b"{\n{\n", "records")
    assert "has no records that can be read: line 1 is no JSON" in nothing


async def test_a_field_that_no_item_has_is_refused_with_those_there_are(mapping: Mapping) -> None:
    work = mapping.work(await mapping.pin(TICKETS), "records", "Label {subjekt}")
    with pytest.raises(CallRefused, match=r"did you mean 'subject'.*its fields: id, subject, text"):
        await mapping.open(work)


async def test_a_unit_that_the_input_does_not_have_is_refused(mapping: Mapping) -> None:
    assert "has no pages; map it by records" in await refusal(mapping, TICKETS, "pages")
    assert "is a PDF, which has no rows" in await refusal(mapping, documents.pdf(["x"]), "rows")


async def test_equal_items_are_asked_once(mapping: Mapping) -> None:
    content = b"".join(json.dumps({"id": n, "t": n % 2}).encode() + b"\n" for n in range(6))
    work = mapping.work(await mapping.pin(content), "records", "Label {t}", id="id")
    found = await mapping.open(work, items=2)
    assert (found.count, found.repeated) == (6, 4)
    assert [each.same_as for each in await mapping.items(found)] == [None, None, 0, 1, 0, 1]
    assert [each.asked for each in found.chunks] == [2, 0, 0]


async def test_what_looks_like_a_secret_is_in_no_item(mapping: Mapping) -> None:
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    content = json.dumps({"id": 1, "t": f"my key {key}", "deep": [{"x": key}]}).encode()
    (item,) = await mapping.items(await opened(mapping, content, "records", "t.jsonl"))
    assert key not in item.model_dump_json()
    assert "my key" in item.model_dump_json()


async def test_a_folder_has_files_and_one_that_cannot_be_read_fails_alone(
    mapping: Mapping, tmp_path: Path
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "b.pdf").write_bytes(documents.pdf(["page of a PDF"]))
    (folder / "c.pdf").write_bytes(documents.pdf(["cut off"])[:200])
    (folder / "d.txt").write_text(" ")
    pinned = await mapping.pin_folder(folder)
    found = await mapping.items(await mapping.open(mapping.work(pinned, "files")))
    assert [each.place for each in found] == ["a.txt", "b.pdf", "c.pdf", "d.txt"]
    assert found[0].fields == {"text": "one"}
    assert "page of a PDF" in str(found[1].fields["text"])
    assert found[2].broken.startswith("cannot be read")
    assert found[3].broken == "has nothing in it that can be read"


async def test_a_pdf_has_pages_and_one_without_text_fails_alone(mapping: Mapping) -> None:
    found = await opened(mapping, documents.pdf(["one", "", "three"]), "pages", "x.pdf")
    first, empty, third = await mapping.items(found)
    assert (first.fields["text"], first.place, third.place) == ("one", "page 1", "page 3")
    assert empty.broken.startswith("has no text")


async def test_equal_items_of_an_earlier_run_are_taken_over(mapping: Mapping) -> None:
    work = mapping.work(await mapping.pin(TICKETS), "records", id="id")
    before = await mapping.open(work)
    done = await mapping.outcomes(
        Outcome(n=0, id="T-1", status="complete", result="lid"),
        Outcome(n=1, id="T-2", status="failed", why="no"),
    )
    table = await mapping.close(work, before, [done])
    kept = await mapping.store.put(table.model_dump_json().encode())
    more = b'{"id": "T-0", "subject": "New"}\n' + TICKETS
    again = mapping.work(await mapping.pin(more), "records", id="id")
    found = await mapping.open(again, reuse=kept)
    assert (found.reused, found.kept, found.unused) == (1, (1,), "")
    closed = await mapping.close(again, found, found.outcomes)
    assert (closed.counts.complete, closed.counts.reused, closed.counts.asked) == (1, 1, 0)
    seen = await mapping.inputs.scan(again.inputs[0], [again.subtask], {"label": kept})
    assert seen is not None
    told, size = seen.kept["label"], len(row_prompt((await mapping.items(found))[1]).encode())
    assert (told.rows, told.asked) == (1, table.asked) and abs(told.bytes - size) <= 2
    seen = await mapping.inputs.scan(again.inputs[0], [again.subtask], {"other": kept})
    assert seen is not None and seen.kept["label"].unused == "it has no rows of label"
    other = mapping.work(await mapping.pin(more), "records", "Label it otherwise", id="id")
    refused = await mapping.open(other, reuse=kept)
    assert (refused.reused, refused.unused[:33]) == (0, "the earlier run asked something e")


async def test_what_a_person_gave_a_row_is_taken_over_for_this_row(mapping: Mapping) -> None:
    first = b'{"id": "a", "t": "x"}\n{"id": \n{"id": "b", "t": "x"}\n{"id": "c", "t": "y"}\n'
    work = mapping.work(await mapping.pin(first), "records", "Label {t}", id="id")
    before = await mapping.open(work)
    done = Outcome(n=0, id="a", status="complete", result="one")
    given = [
        RowOrder(kind="supply", ids=(id,), value=f"of {id}", by="ada")
        for id in ("line 2", "b", "c")
    ]
    table = await mapping.close(work, before, [await mapping.outcomes(done)], *given)
    kept = await mapping.store.put(table.model_dump_json().encode())
    again = mapping.work(
        await mapping.pin(first + b'{"id": "d", "t": "x"}\n'), "records", "Label {t}", id="id"
    )
    found = await mapping.open(again, reuse=kept)
    assert (found.reused, found.kept, found.broken, found.repeated) == (3, (0, 3), 0, 2)
    closed = await mapping.close(again, found, found.outcomes)
    assert closed.table is not None
    rows = [
        json.loads(each) for each in (await mapping.store.get(closed.table.digest)).splitlines()
    ]
    assert [(row["id"], row["status"], row["result"]) for row in rows] == [
        ("a", "complete", "one"),
        ("line 2", "supplied", "of line 2"),
        ("b", "supplied", "of b"),
        ("c", "supplied", "of c"),
        ("d", "complete", "one"),
    ]
    seen = await mapping.inputs.scan(again.inputs[0], [again.subtask], {"label": kept})
    assert seen is not None
    assert (seen.kept["label"].rows, seen.kept["label"].mended) == (2, 1)


async def test_texts_are_merged_in_groups_until_one_is_left(mapping: Mapping) -> None:
    work = mapping.work(await mapping.pin(TICKETS), "records")
    texts = [
        Outcome(n=n, id=str(n), status="complete", result=f"{n} " + "x" * 20_000) for n in range(4)
    ]
    failed = Outcome(n=4, id="4", status="failed")
    merging = (await mapping.outcomes(failed, *reversed(texts)),)
    material = OpenMaterial(work=work, chunk_items=9, chunk_bytes=1 << 20, merging=merging)
    found = await ActivityEnvironment().run(mapping.maps.open_map, material)
    first, second = await mapping.items(found)
    assert [each.place for each in (first, second)] == ["texts 1 to 2", "texts 3 to 4"]
    said = str(first.fields["text"])
    assert said.startswith("[0] 0 x") and "\n\n[1] 1 x" in said and first.id == "0 … 1"
    one = (await mapping.outcomes(texts[2], failed),)
    left = await ActivityEnvironment().run(
        mapping.maps.open_map, material.model_copy(update={"merging": one})
    )
    assert (left.chunks, left.text[:2]) == ((), "2 ")


@pytest.mark.parametrize("asked", ["Shorten {review}", "Shorten it"])
async def test_texts_to_merge_stand_under_their_items_with_the_short_fields_that_are_shown(
    asked: str, mapping: Mapping
) -> None:
    rows = (
        b'{"id": "r1", "product": "lamp", "review": "It is loose"}\n'
        b'{"id": "r2", "product": "kettle", "review": "It hums"}\n'
        b'{"id": "r3", "product": "fan", "review": "It is loose"}\n'
    )
    work = mapping.work(await mapping.pin(rows), "records", asked, id="id")
    found = await mapping.open(work)
    done = await mapping.outcomes(
        Outcome(n=0, id="r1", status="complete", result="Loose.\n\nNothing else."),
        Outcome(n=1, id="r2", status="complete", result="Hums."),
    )
    material = OpenMaterial(
        work=work, chunk_items=9, chunk_bytes=1 << 20, merging=(done,), named=found.chunks
    )
    (group,) = await mapping.items(await ActivityEnvironment().run(mapping.maps.open_map, material))
    assert group.id == "r1 … r2"
    if asked == "Shorten it":
        assert group.fields["text"] == (
            "[r1; product: lamp; review: It is loose] Loose.\n\nNothing else.\n\n"
            "[r2; product: kettle; review: It hums] Hums."
        )
    else:
        assert group.fields["text"] == (
            "[r1; review: It is loose] [r3; review: It is loose] Loose.\n\nNothing else.\n\n"
            "[r2; review: It hums] Hums."
        )
    merged = Outcome(n=0, id=group.id, status="complete", result="A list")
    other = Outcome(n=1, id="r5 … r9", status="complete", result="Another")
    above = {"merging": (await mapping.outcomes(merged, other),), "named": ()}
    (last,) = await mapping.items(
        await ActivityEnvironment().run(mapping.maps.open_map, material.model_copy(update=above))
    )
    assert last.id == "r1 … r9"
    assert last.fields["text"] == "[r1 … r2] A list\n\n[r5 … r9] Another"


async def test_groups_that_nobody_merged_are_kept_under_their_ids_as_far_as_there_is_room(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(TICKETS), "records")
    texts = [
        Outcome(n=n, id=f"r{n}", status="complete", result=f"{n} " + "x" * 17_000) for n in range(6)
    ]
    material = OpenMaterial(
        work=work, chunk_items=9, chunk_bytes=1 << 20, merging=(await mapping.outcomes(*texts),)
    )
    groups = await ActivityEnvironment().run(mapping.maps.open_map, material)
    assert [each.id for each in await mapping.items(groups)] == [
        "r0 … r1",
        "r2 … r3",
        "r4 … r5",
    ]
    merged = Outcome(n=1, id="r2 … r3", status="complete", result="A list")
    refused = Outcome(n=2, id="r4 … r5", status="failed", why="it is no item")
    above = {
        "merging": (await mapping.outcomes(merged, refused),),
        "groups": groups.chunks,
        "unmerged_bytes": 40_000,
    }
    left = await ActivityEnvironment().run(mapping.maps.open_map, material.model_copy(update=above))
    assert (left.chunks, left.text) == ((), "A list")
    assert left.unmerged.startswith("[r0] 0 x") and "[r1] 1 x" in left.unmerged
    assert left.unmerged.endswith(
        "(Too long to stand here: the texts of r4 … r5; the table has them.)"
    )


async def test_fields_that_no_model_is_shown_are_kept_where_they_are_short(
    mapping: Mapping,
) -> None:
    long = "x" * 300
    given = {"id": "a", "t": "shown", "day": 3, "story": long, "tags": ["x"], "ok": True}
    for name, content, by in (
        ("given.jsonl", json.dumps(given).encode(), "records"),
        ("given.csv", f"id,t,day,story\na,shown,3,{long}\n".encode(), "rows"),
    ):
        work = mapping.work(await mapping.pin(content, name), by, "Label {t}", id="id")
        (item,) = await mapping.items(await mapping.open(work))
        assert item.fields == {"t": "shown"} and str(item.beside["day"]) == "3"
        assert "story" not in item.beside and "story" in item.long
        assert item.id == "a" and item.beside.get("ok") in (True, None)


async def test_a_literal_text_has_lines_or_records(mapping: Mapping) -> None:
    text = (await mapping.pin(b"one\n\ntwo\n")).model_copy(update={"kind": "text", "path": ""})
    found = await mapping.items(await mapping.open(mapping.work(text, "lines")))
    assert [(each.place, each.fields["text"]) for each in found] == [
        ("line 1", "one"),
        ("line 3", "two"),
    ]


async def test_a_table_in_another_encoding_and_a_quote_without_end_are_read(
    mapping: Mapping,
) -> None:
    found = await mapping.items(
        await opened(mapping, "id,x\n1,Müller\n".encode("latin-1"), "rows", "t.csv", id="id")
    )
    assert found[0].fields["x"] == "Müller"
    wide = await opened(mapping, "id\tx\n1\tMüller\n".encode("utf-16"), "rows", "t.tsv")
    assert (await mapping.items(wide))[0].fields == {"id": "1", "x": "Müller"}
    latin = b"caf\xe9 one\n" + "Müller two\n".encode()
    lines = await mapping.items(await opened(mapping, latin, "lines", "t.txt"))
    assert lines[0].broken == "holds bytes that are no text in UTF-8"
    assert lines[1].fields["text"] == "Müller two"


async def test_bytes_that_are_no_text_fail_their_row_alone_or_are_said_with_their_line(
    mapping: Mapping,
) -> None:
    records = b'{"id": 1, "t": "a"}\n{"id": 2, "t": "caf\xe9"}\n{"id": 3, "t": "b"}\n'
    found = await opened(mapping, records, "records", "t.jsonl", id="id")
    assert found.samples == ("line 2 holds bytes that are no text in UTF-8",)
    assert (found.count, found.broken) == (3, 1)
    work = mapping.work(await mapping.pin(b"id,t\n1,a\n2,caf\xe9\n", "t.csv"), "rows")
    seen = await mapping.inputs.scan(work.inputs[0], [work.subtask])
    assert seen is not None and seen.broken == 0
    assert seen.note == "is no UTF-8 (line 3), and is read as Windows-1252"
    # What that encoding does not have either is no text.
    bad = await opened(mapping, b"id,t\n1,a\n2,caf\x81\n", "rows", "t.csv")
    assert bad.samples == ("line 3 holds bytes that are no text in UTF-8",)


async def test_a_doubled_column_is_refused_and_a_doubled_header_fails_alone(
    mapping: Mapping,
) -> None:
    why = await refusal(mapping, b"id,t,t\n1,a,b\n", "rows", name="t.csv")
    assert why == "input 'given' has two columns 't' (2 and 3 of line 1); rename one"
    twice = documents.workbook({"Q3": {"A2": "id", "B2": "id", "A3": 1}})
    why = await refusal(mapping, twice, "rows", name="t.xlsx")
    assert why.endswith("two columns 'id' (1 and 2 of row 2 of sheet Q3); rename one")
    joined = await opened(mapping, b"id,t\n1,a\nid,t\n2,b\n", "rows", "t.csv", id="id")
    assert (joined.count, joined.samples) == (3, ("line 3 repeats the names of the columns",))


async def test_a_folder_that_takes_long_to_read_is_counted_by_its_files(
    mapping: Mapping, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "b.txt").write_text("three")
    pinned = await mapping.pin_folder(folder)
    monkeypatch.setattr(scanning, "FOLDER_SECONDS", 0.0)
    found = await mapping.inputs.scan(pinned, [mapping.work(pinned, "files").subtask])
    assert found is not None
    assert (found.count, found.longest, found.bytes) == (2, 5, {"text": 8})
