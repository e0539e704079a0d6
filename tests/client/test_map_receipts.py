"""What a run with a map leaves behind: its receipt names rows by digest, and all can be read."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from temporalio.client import WorkflowHistory

from holdfast import Plan, Subtask
from holdfast.calls.rows import Outcome
from holdfast.client.receipt_key import public_key
from holdfast.contracts.plans import MapSpec
from holdfast.receipts.account import account, sentences
from holdfast.receipts.checking import find_changes
from holdfast.receipts.file import Receipt
from holdfast.receipts.histories import find_differences
from holdfast.replaying.replay import export, replay
from holdfast.storage import DirectoryStore
from holdfast.storage.references import find_needed
from holdfast.testing import deployed
from holdfast.workflows import WORKFLOWS

pytestmark = pytest.mark.anyio


@pytest.mark.long
async def test_a_receipt_of_a_map_names_what_came_of_its_rows_by_digest() -> None:
    lines = "\n".join(json.dumps({"id": f"k{n}", "text": f"of a row {n}"}) for n in range(40))
    classify = Subtask(
        id="classify",
        title="Sort",
        role="writer",
        instruction="Say in one word what the ticket is about.",
        map=MapSpec(over="tickets", by="records", id="id", lane="now"),
    )
    plan = Plan(goal="Sort the tickets", subtasks=(classify,))
    async with deployed({"rules": []}) as deployment:
        connection = deployment.hf.connection
        run = await deployment.hf.start(
            "Sort the tickets",
            plan=plan,
            inputs={"tickets": f"text:{lines}"},
            models=True,
            dollars=1,
        )
        report = await run.report()
        made = Receipt.load(await run.receipt())
        assert find_changes(made, public_key(connection.settings)) == ()
        assert made.head["lacks"] == []
        assert made.head["dollars_of_calls"] == str(report.dollars)

        # Rows are no leaves: each call of some names the blob of what came of them.
        calls = [holds for _, holds in made.of_kind("call") if holds["rows"]]
        assert sum(each["rows"] for each in calls) == 40 and len(calls) < 5
        found = []
        for each in calls:
            blob = await connection.store.get(each["outcomes"])
            assert sha256(blob).hexdigest() == each["outcomes"]
            found += [Outcome.model_validate_json(line).id for line in blob.splitlines()]
        assert sorted(found) == sorted(f"k{n}" for n in range(40))
        told = "\n".join(account(made))
        assert "1 finding, 0 model calls, 40 calls about rows (claude-haiku-5-5 40)" in told
        assert f"{calls[-1]['rows']} answers)" in "\n".join(sentences(made))

        # The history of the map is exported, replays, and is the one that the receipt has.
        child = f"{run.id}.classify.1"
        exported = WorkflowHistory.from_json(
            child, await export(connection.client, child, connection.store)
        )
        assert [*find_differences(made, child, exported.events)] == []
        assert await replay(exported, WORKFLOWS, connection.store) == ()

        # `clean` lets go of none of the blobs of rows that a history names.
        assert isinstance(connection.store, DirectoryStore)
        needed, _ = await find_needed(connection.client, connection.store)
        tables = {each.digest for each in report.findings[0].files}
        assert {each["outcomes"] for each in calls} | tables <= needed
