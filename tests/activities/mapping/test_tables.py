"""What stands of a map's rows is a table that people read and agents ask."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.tools.query_data import query_data
from holdfast.activities.turns.workshop import Surroundings
from holdfast.calls.rows import Outcome, RowOrder, Unanswered
from mapped import Mapping

pytestmark = pytest.mark.anyio

FORM = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "why": {"type": "string"}},
    "additionalProperties": False,
}
CLOSED = {**FORM, "properties": {"label": {"enum": ["lid", "=cmd|x"]}, "why": {"type": "string"}}}
ROWS = b'{"id": "a", "t": 1}\n{"id": "b", "t": 2}\n{"id": \n{"id": "c", "t": 1, "x": 1}\n'


@pytest.fixture
def mapping(tmp_path: Path) -> Mapping:
    return Mapping(tmp_path)


def complete(n: int, id: str, label: str) -> Outcome:
    return Outcome(
        n=n, id=id, status="complete", result={"label": label, "why": "so"}, dollars=Decimal("0.01")
    )


async def lines(mapping: Mapping, digest: str) -> list[dict[str, object]]:
    content = await mapping.store.get(digest)
    return [json.loads(line) for line in content.splitlines()]


async def test_later_outcomes_win_and_repeated_rows_have_that_of_their_twin(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=CLOSED)
    found = await mapping.open(work)
    first = await mapping.outcomes(
        Outcome(n=0, id="a", status="failed", why="no"), complete(1, "b", "=cmd|x")
    )
    second = await mapping.outcomes(complete(0, "a", "lid").model_copy(update={"tries": 2}))
    closed = await mapping.close(work, found, [first, second])
    assert closed.counts.model_dump(exclude_defaults=True) == {
        "items": 4,
        "complete": 3,
        "failed": 1,
        "broken": 1,
        "repeated": 1,
        "asked": 3,
    }
    assert closed.values["label"] == {"lid": 2, "=cmd|x": 1}
    assert closed.failures[0].startswith("line 3: is no JSON")
    assert closed.table is not None
    rows = await lines(mapping, closed.table.digest)
    assert [(row["id"], row["status"], row["label"], row["tries"]) for row in rows] == [
        ("a", "complete", "lid", 2),
        ("b", "complete", "=cmd|x", 1),
        ("line 3", "failed", None, 0),
        ("c", "complete", "lid", 0),
    ]
    assert (rows[0]["why"], rows[0]["why_failed"]) == ("so", ""), "a result may say why, too"
    assert [file.name for file in closed.files] == ["label.jsonl", "label.csv"]
    text = (await mapping.store.get(closed.files[1].digest)).decode()
    assert '"\'=cmd|x"' in text


async def test_an_agent_asks_the_table_by_sql(mapping: Mapping, tmp_path: Path) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=FORM)
    found = await mapping.open(work)
    done = await mapping.outcomes(complete(0, "a", "lid"), complete(1, "b", "bill"))
    closed = await mapping.close(work, found, [done])
    assert closed.table is not None
    here = Surroundings(
        key="key",
        inputs={"label": closed.table},
        store=mapping.store,
        snapshots=mapping.inputs.snapshots,
        journal=FileJournal(tmp_path),
        scratch=tmp_path,
        settings=lambda _: "",
        made=(),
    )
    asked = "SELECT label, count(*) AS n FROM label WHERE status = 'complete' GROUP BY 1 ORDER BY 1"
    said = await query_data.run(here, {"sources": ["label"], "sql": asked})
    assert said.text == "label,n\nbill,1\nlid,2\n[2 rows]"


async def test_rows_that_were_not_asked_yet_stand_open(mapping: Mapping) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id")
    closed = await mapping.close(work, await mapping.open(work), [])
    assert closed.table is not None
    rows = await lines(mapping, closed.table.digest)
    assert [row["status"] for row in rows] == ["open", "open", "failed", "open"]
    assert "result" in rows[0]


async def test_rows_whose_answer_never_came_stand_failed_with_why_and_may_be_asked_again(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=FORM)
    found = await mapping.open(work)
    mended = Outcome(n=1, id="b", status="failed", why="no form", dollars=Decimal("0.01"))
    done = await mapping.outcomes(mended)
    # The third line is broken, the fourth repeats the first.
    gone = Unanswered(rows=(0, 1, 2, 3), why="no answer came")
    closed = await mapping.close(work, found, [done], RowOrder(kind="retry"), unanswered=(gone,))
    assert closed.table is not None
    rows = await lines(mapping, closed.table.digest)
    assert [(row["status"], row["why_failed"], row["tries"], row["dollars"]) for row in rows] == [
        ("failed", "no answer came", 0, None),
        ("failed", "no answer came", 1, 0.01),
        ("failed", rows[2]["why_failed"], 0, 0.0),
        ("failed", "no answer came", 0, 0.0),
    ]
    assert closed.had_failed == closed.retry == (0, 1) and len(closed.outcomes) == 2
    again = await mapping.close(work, found, closed.outcomes)
    assert again.counts.failed == 4, "what it was told once stands"


async def test_a_row_that_waits_to_be_asked_again_stands_open_and_has_not_failed(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=FORM)
    found = await mapping.open(work)
    done = await mapping.outcomes(
        Outcome(n=0, id="a", status="failed", why="no form"), complete(1, "b", "bill")
    )
    skip = RowOrder(kind="skip", which="open", number=1)
    skipped = await mapping.close(work, found, [done], skip, waiting=(0,))
    assert 0 in skipped.settled, "it is one of those that are open"
    closed = await mapping.close(work, found, [done], waiting=(0,))
    assert closed.table is not None
    rows = await lines(mapping, closed.table.digest)
    assert [row["status"] for row in rows] == ["open", "complete", "failed", "open"]
    assert rows[0]["why_failed"] == "not asked again: no form"
    assert closed.counts.failed == 1 and len(closed.failures) == 1


async def test_people_retry_supply_and_skip_rows_and_unknown_ids_are_named(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=FORM)
    found = await mapping.open(work)
    done = await mapping.outcomes(
        Outcome(n=0, id="a", status="failed", why="no"), complete(1, "b", "bill")
    )
    closed = await mapping.close(
        work,
        found,
        [done],
        RowOrder(kind="retry", ids=("c", "zz")),
        RowOrder(kind="supply", ids=("b",), value={"label": "mine", "why": ""}, by="ann"),
        RowOrder(kind="skip", by="ann", why="not ours"),
    )
    # Row c repeats row a, which has failed and is skipped at last.
    assert (closed.retry, closed.settled) == ((), (0, 1, 2))
    assert closed.told[0].why == "no row has the id 'zz'"
    assert (closed.counts.supplied, closed.counts.skipped, closed.counts.failed) == (1, 3, 0)
    again = await mapping.close(work, found, closed.outcomes)
    assert again.counts == closed.counts
    retried = await mapping.close(work, found, [done], RowOrder(kind="retry"))
    assert retried.retry == (0,)
    assert retried.told[0].why.startswith("row line 3 cannot be asked: is no JSON")


async def test_a_result_that_the_schema_forbids_is_no_result_and_each_order_is_told_what_came_of_it(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=FORM)
    found = await mapping.open(work)
    closed = await mapping.close(
        work,
        found,
        [await mapping.outcomes(complete(1, "b", "bill"))],
        RowOrder(number=1, kind="supply", ids=("b",), value={"label": 3}),
        RowOrder(number=2, kind="supply", ids=("zz",), value={"label": "x"}),
        RowOrder(number=3, kind="retry", ids=("b", "zz")),
        RowOrder(number=4, kind="skip", which="open"),
        RowOrder(number=5, kind="skip", which="open"),
    )
    assert [(each.number, each.rows, each.why) for each in closed.told] == [
        (1, 0, "result.label: must be of type string"),
        (2, 0, "no row has the id 'zz'"),
        (3, 1, "no row has the id 'zz'"),
        (4, 1, ""),
        (5, 0, "no row is open; there is nothing to do"),
    ]
    assert (closed.counts.supplied, closed.counts.complete) == (0, 1)
    # Row c repeats row a, the only one that was open.
    assert (closed.counts.skipped, closed.settled, closed.retry) == (2, (0,), (1,))


async def test_a_repeated_row_that_was_skipped_has_the_result_of_the_earlier_one_again(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=FORM)
    found = await mapping.open(work)
    done = [await mapping.outcomes(complete(0, "a", "spam"), complete(1, "b", "bill"))]
    skipped = await mapping.close(work, found, done, RowOrder(kind="skip", ids=("c",)))
    assert (skipped.counts.complete, skipped.counts.skipped) == (2, 1)
    again = RowOrder(kind="retry", ids=("c",))
    closed = await mapping.close(work, found, skipped.outcomes, again)
    assert (closed.counts.complete, closed.counts.skipped, closed.retry) == (3, 0, (0,))
    both = await mapping.close(work, found, done, RowOrder(kind="skip", ids=("c",)), again)
    later = await mapping.close(work, found, both.outcomes)
    assert (later.counts.complete, later.counts.skipped) == (3, 0)


async def test_a_skipped_row_that_is_to_be_asked_again_is_open_until_it_is(
    mapping: Mapping,
) -> None:
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=FORM)
    found = await mapping.open(work)
    done = [await mapping.outcomes(complete(0, "a", "spam"))]
    skip, retry = RowOrder(kind="skip", ids=("b",)), RowOrder(kind="retry", ids=("b",))
    closed = await mapping.close(work, found, done, skip, retry)
    assert (closed.counts.skipped, closed.retry, closed.settled) == (0, (1,), ())
    rest = RowOrder(kind="skip", which="open")
    closed = await mapping.close(work, found, done, skip, retry, rest)
    assert (closed.counts.skipped, closed.retry, closed.settled) == (1, (), (1,))


REVIEWS = b"""id,product,Tier,review,note
r1,lamp,gold,The lid is loose,short
r2,kettle,,It hums,%s
r3,lamp,gold,The lid is loose,short
""" % (b"n" * 300)


async def test_the_table_has_the_short_fields_of_items_and_names_what_a_row_repeats(
    mapping: Mapping, tmp_path: Path
) -> None:
    pinned = await mapping.pin(REVIEWS, "given.csv")
    work = mapping.work(pinned, "rows", "Label {review}", id="id", result=FORM)
    found = await mapping.open(work)
    done = await mapping.outcomes(complete(0, "r1", "lid"), complete(1, "r2", "bill"))
    closed = await mapping.close(work, found, [done])
    assert closed.table is not None and closed.table.rows == 3
    # `tier` is a column of every table, and one note is too long for all to be one.
    assert closed.own == ("review", "product", "item_Tier")
    rows = await lines(mapping, closed.table.digest)
    assert tuple(rows[0]) == closed.columns
    assert [(row["product"], row["item_Tier"], row["same_as"], row["label"]) for row in rows] == [
        ("lamp", "gold", "", "lid"),
        ("kettle", "", "", "bill"),
        ("lamp", "gold", "r1", "lid"),
    ]
    header = (await mapping.store.get(closed.files[1].digest)).decode().splitlines()[0]
    assert header == ",".join(f'"{each}"' for each in closed.columns)


async def test_values_are_counted_by_the_name_of_their_column(mapping: Mapping) -> None:
    form = {"type": "object", "properties": {"Tier": {"enum": ["gold"]}}}
    work = mapping.work(await mapping.pin(ROWS), "records", "Label {t}", id="id", result=form)
    done = Outcome(n=1, id="b", status="complete", result={"Tier": "gold"})
    found = await mapping.open(work)
    closed = await mapping.close(work, found, [await mapping.outcomes(done)])
    assert closed.values == {"result_Tier": {"gold": 1}}
    assert "result_Tier" in closed.columns


async def test_only_values_that_are_few_are_counted_and_never_those_of_texts(
    mapping: Mapping,
) -> None:
    form = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("mood", "total")}
        | {"kind": {"enum": ["a", "b"]}},
    }
    rows = b"".join(b'{"t": %d}\n' % n for n in range(6))
    work = mapping.work(await mapping.pin(rows), "records", result=form)
    told = [
        {"mood": "bad" if n < 4 else "", "total": f"{n}.00", "kind": "a" if n else "b"}
        for n in range(6)
    ]
    done = await mapping.outcomes(
        *(Outcome(n=n, id=str(n), status="complete", result=each) for n, each in enumerate(told))
    )
    closed = await mapping.close(work, await mapping.open(work), [done])
    assert closed.values == {"mood": {"bad": 4, "empty": 2}, "kind": {"a": 5, "b": 1}}
    texts = mapping.work(await mapping.pin(rows), "records")
    said = await mapping.outcomes(
        *(Outcome(n=n, id=str(n), status="complete", result="Yes.") for n in range(6))
    )
    assert not (await mapping.close(texts, await mapping.open(texts), [said])).values
