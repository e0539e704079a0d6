"""The playbooks that do the same for each of many items, from their examples of 200 to the report:
what is scripted of a table must be what its rows say.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import pytest
from test_playbooks import goal, report_of

from conftest import Runs
from holdfast.calls.rows import MapReport
from holdfast.contracts import Report

pytestmark = pytest.mark.anyio


async def table_of(runs: Runs, report: Report, subtask: str) -> tuple[MapReport, list[Any]]:
    """How a map ended, and its rows."""
    handle = runs.client.get_workflow_handle(f"{report.run_id}.{subtask}.1", result_type=MapReport)
    done = await handle.result()
    assert done.table.table is not None
    content = await runs.store.get(done.table.table.digest)
    return done, [json.loads(line) for line in content.splitlines()]


@pytest.mark.long
async def test_a_folder_of_invoices_becomes_a_table_that_names_what_failed_and_what_is_doubtful(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "documents"))
    done, rows = await table_of(runs, report, "read")
    counts = done.table.counts
    assert (counts.items, counts.complete, counts.failed, counts.repeated) == (200, 193, 7, 6)
    whole = [row for row in rows if row["status"] == "complete"]
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in whole:
        sums[f"| {row['supplier']} | {row['currency'] or 'none named'} |"] += Decimal(row["total"])
        assert sum(Decimal(line["amount"]) for line in row["lines"]) == Decimal(row["total"])
    for name, total in sums.items():
        assert name in report.answer and f"| {total:,.2f}" in report.answer
    failed = {row["place"]: row["why_failed"] for row in rows if row["status"] == "failed"}
    assert len(failed) == 7 and all(place in report.answer for place in failed)
    assert "adds up to 243.75, and total is 153.75" in failed["2026-04-11-norrland-156.txt"]
    mended = next(row for row in rows if row.get("number") == "BR-2026-0174")
    assert (mended["status"], mended["tries"]) == ("complete", 2), (
        "its first answer left a line out"
    )
    doubtful = {row["place"] for row in whole if row["doubt"]}
    found = {each.subtask_id: each for each in report.findings}
    assert len(doubtful) == 5 and all(place in found["doubts"].content for place in doubtful)
    assert found["doubts"].tool_calls == 6 and found["sums"].tool_calls == 3


@pytest.mark.long
async def test_tickets_are_sorted_one_by_one_and_one_that_gives_orders_goes_to_people(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "tickets"))
    done, rows = await table_of(runs, report, "sort")
    counts = done.table.counts
    assert (counts.items, counts.complete, counts.failed, counts.repeated) == (200, 195, 5, 7)
    sorted_ = [row for row in rows if row["status"] == "complete"]
    queues = Counter((row["queue"], row["urgency"]) for row in sorted_)
    for queue in {queue for queue, _ in queues}:
        cells = [str(queues[queue, when]) for when in ("today", "this week", "later")]
        assert f"| {queue} | {' | '.join(cells)}" in report.answer
    for row in rows:
        if row["status"] == "failed":
            assert row["place"] in report.answer
        elif row["queue"] == "people":
            assert row["draft"] == "", "what people decide, no model drafts"
            assert row["urgency"] != "today" or row["id"] in report.answer
    (ordering,) = [row for row in rows if row["id"] == "T-5059"]
    assert (ordering["kind"], ordering["queue"]) == ("other", "people")
    assert not report.notes, "nobody is told that one agent would do"
