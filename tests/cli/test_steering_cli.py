"""Steering from the command line: who decides, what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs
from holdfast.cli.commands.runs import approval, inbox, run, watch
from holdfast.cli.commands.steering import raising, rows
from holdfast.cli.screen.exits import Code, exit_of
from holdfast.cli.shared import completion, orders
from holdfast.cli.shared.connection import tell
from holdfast.cli.shared.starting import approval_when
from holdfast.client.orders import send
from holdfast.contracts import Approval, Goal, Limits, Order
from holdfast.contracts.view import Preview
from holdfast.deployment.invocation import STARTER
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection
from holdfast.intake.goals import limits_of
from holdfast.intake.launch import goal_of_run, launch
from holdfast.rules import steering as core
from scripted import ready, subtask, works
from steered import ALWAYS, GOAL, report_of, script, waiting

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- the rows


def test_every_update_has_a_command() -> None:
    known = {row.__name__ for row in rows.ROWS}
    assert known | {"edit", "raise_cap", "cancel_subtask"} == set(core.COMMANDS)


def test_a_row_makes_the_order_that_its_options_say(tmp_path: Path) -> None:
    (tmp_path / "found.md").write_text("It is 42.")
    assert rows.answer("t1", "2025") == Order(subtask_id="t1", text="2025")
    assert rows.retry("t1", "haiku", "anew") == Order(subtask_id="t1", tier="haiku", text="anew")
    assert rows.hand("t1", "coder") == Order(subtask_id="t1", role="coder")
    assert rows.skip("t1", "not needed") == Order(subtask_id="t1", text="not needed")
    assert rows.supply("t1", file=tmp_path / "found.md").text == "It is 42."
    assert rows.reject("too dear") == Order(text="too dear")
    assert (rows.approve(), rows.approve(3)) == (Order(), Order(call=3))
    assert rows.decline(3, "not now") == Order(call=3, text="not now")


def test_of_a_map_the_same_orders_are_about_rows(tmp_path: Path) -> None:
    (tmp_path / "label.json").write_text('{"label": "bug"}')
    all_failed = Order(subtask_id="t1", tier="sonnet", rows=True)
    assert rows.retry("t1", "sonnet", rows="failed") == all_failed
    assert rows.skip("t1", rows="open") == Order(subtask_id="t1", rows=True, which="open")
    two = Order(subtask_id="t1", text="spam", rows=True, ids=("a-7", "b"))
    assert rows.skip("t1", "spam", rows="a-7, b,b") == two
    one = Order(subtask_id="t1", rows=True, ids=("a-7",), value={"label": "bug"})
    assert rows.supply("t1", row="a-7", value='{"label": "bug"}') == one
    assert rows.supply("t1", row="a-7", file=tmp_path / "label.json") == one


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"row": "a-7"}, "give a row's result as JSON, either by --value or by --file FILE"),
        ({"row": "a-7", "text": "bug"}, "give a row's result as JSON"),
        ({"row": "a-7", "value": "{"}, "--value: not JSON: line 1 column 2"),
        ({"row": "a-7", "value": "null"}, "give the result of row 'a-7' as a JSON value, not null"),
        ({"value": "3"}, "say whose result the value is"),
    ],
)
def test_a_row_that_cannot_be_supplied_so_is_refused(options: Any, why: str) -> None:
    with pytest.raises(HoldfastError, match=re.escape(why)):
        rows.supply("t1", **options)


def test_rows_that_name_none_or_too_many_are_refused() -> None:
    with pytest.raises(HoldfastError, match="say failed, or the ids of items"):
        rows.retry("t1", rows=" , ")
    with pytest.raises(HoldfastError, match="1,001 ids, one order names at most 1,000"):
        rows.skip("t1", rows=",".join(map(str, range(1_001))))


async def test_a_plan_is_approved_from_elsewhere_with_the_command_that_the_run_named(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-approve")
        assert f"decide: {STARTER} approve cli-approve" in capsys.readouterr().err
        watching = asyncio.create_task(watch.run(connection, "cli-approve", True, None))
        said = ""
        while "python starter.py approve cli-approve" not in said:
            await asyncio.sleep(0.05)
            said += capsys.readouterr().err
        assert "the plan waits for approval: 2 subtasks, $" in said
        assert await orders.run(connection, "cli-approve", "approve", Order()) == Code.COMPLETE
        assert "cli-approve: the plan is approved" in capsys.readouterr().err
        assert await watching == Code.COMPLETE


async def test_what_makes_no_sense_is_refused_with_the_reason_in_one_line(
    runs: Runs, connection: Connection
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-nonsense")

        async def refusal(run_id: str, update: str, **fields: object) -> str:
            with pytest.raises(HoldfastError) as refused:
                await send(connection, run_id, update, Order.model_validate(fields))
            assert exit_of(refused.value).code == Code.REFUSED
            return str(refused.value)

        said = await refusal("cli-nonsense", "resume")
        assert said == "cli-nonsense: refused: the run is not paused"
        assert "no run 'nobody'" in await refusal("nobody", "approve")
        await orders.run(connection, "cli-nonsense", "reject", Order(text="too dear"))
        report = await report_of(connection, "cli-nonsense")
        assert "run cli-nonsense is over" in await refusal("cli-nonsense", "approve")
    assert report.status == "declined"
    assert any("too dear" in note for note in report.notes)


async def test_the_record_says_who_gave_a_command(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-who")
        await orders.run(connection, "cli-who", "reject", Order())
        report = await report_of(connection, "cli-who")
    assert any("rejected by ada" in note for note in report.notes)
    goal = await goal_of_run(connection, "cli-who")
    assert goal is not None and goal.requester == "ada"


# ---------------------------------------------------------------- a question in the terminal


@contextmanager
def typing(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal's input of which the test holds the other end."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as source:
        monkeypatch.setattr(sys, "stdin", source)
        yield writing


@pytest.mark.parametrize(("typed", "status"), [("y\n", "complete"), ("n\n", "declined")])
async def test_the_person_at_the_terminal_decides(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    status: str,
) -> None:
    run_id = f"cli-decide-{typed[0]}"
    async with runs.worker(script()):
        await waiting(runs, connection, run_id)
        with typing(monkeypatch) as keys:
            deciding = asyncio.create_task(approval.decide(connection, run_id))
            for line in ("perhaps\n", typed):
                asked = ""
                while approval.QUESTION not in asked:
                    await asyncio.sleep(0.05)
                    asked += capsys.readouterr().err
                os.write(keys, line.encode())
            assert await deciding
            os.close(keys)
        report = await report_of(connection, run_id)
    assert report.status == status


async def test_the_question_is_withdrawn_when_somebody_else_decides(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-elsewhere")
        with typing(monkeypatch) as keys:
            deciding = asyncio.create_task(approval.decide(connection, "cli-elsewhere"))
            await send(connection, "cli-elsewhere", "approve", Order())
            assert await deciding
            os.close(keys)
        assert "Decided elsewhere" in capsys.readouterr().err
        assert (await report_of(connection, "cli-elsewhere")).status == "complete"


async def test_the_end_of_the_input_leaves_the_plan_waiting(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-nobody")
        with typing(monkeypatch) as keys:
            os.close(keys)
            assert not await approval.decide(connection, "cli-nobody")
        await send(connection, "cli-nobody", "approve", Order())
        assert (await report_of(connection, "cli-nobody")).status == "complete"


# ---------------------------------------------------------------- the inbox, and raising the cap


async def test_the_inbox_says_what_is_asked_and_the_command_that_answers_it(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = works("", status="escalate", reason="ambiguous_input", why="which year?")
    goal = Goal(text="Sum it up", use_models=True, ask_people=True, plan=ready(subtask("t1")))

    async def asked() -> list[dict[str, object]]:
        capsys.readouterr()
        await inbox.run(connection, True)
        listed = json.loads(capsys.readouterr().out)
        return [each for each in listed if each["id"] == "cli-inbox"]

    async with runs.worker(script(t1=[asks, works("2025")])):
        await waiting(runs, connection, "cli-inbox", goal)
        listed: list[dict[str, object]] = []
        while not listed:
            listed = await asked()
        assert listed[0]["goal"] == "Sum it up"
        assert listed[0]["waiting"] == [
            {
                "question": "t1 asks: ambiguous input: which year?",
                "command": f'{STARTER} answer cli-inbox t1 "your answer"',
            }
        ]
        await send(connection, "cli-inbox", "answer", rows.answer("t1", "2025"))
        await report_of(connection, "cli-inbox")
        assert await asked() == []


async def test_the_inbox_has_what_a_person_may_decide_about_a_subtask(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    fails = works("", status="failed", why="gone")
    limits = Limits(tries_per_subtask=1)
    plan = ready(subtask("t1"))
    goal = Goal(text="Sum it up", use_models=True, ask_people=True, plan=plan, limits=limits)
    async with runs.worker(script(t1=[fails])):
        await waiting(runs, connection, "cli-decide", goal)
        said = ""
        while "t1 failed: gone" not in said:
            capsys.readouterr()
            await inbox.run(connection, False)
            said = " ".join(capsys.readouterr().out.split())
        ways = [
            "retry cli-decide t1",
            'answer cli-decide t1 "your advice"',
            'supply cli-decide t1 "the finding"',
            "hand cli-decide t1 ROLE",
            "skip cli-decide t1",
        ]
        assert all(f"{STARTER} {each}" in said for each in ways)
        await send(connection, "cli-decide", "skip", rows.skip("t1"))
        assert (await report_of(connection, "cli-decide")).status == "failed"


async def test_raising_one_cap_keeps_what_was_raised_before(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ready(subtask("t1", role="writer"), subtask("t2", role="writer"))
    limits = Limits(model_calls=2, concurrency=1)
    goal = Goal(text="x", use_models=True, plan=plan, limits=limits, wait_for_raise=True)
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-raise", goal)
        await raising.run(connection, "cli-raise", limits_of(("dollars=3",)))
        await raising.run(connection, "cli-raise", limits_of(("tokens=6000000",)))
        with pytest.raises(HoldfastError, match="dollars: below the present cap"):
            await raising.run(connection, "cli-raise", limits_of(("dollars=2.50",)))
        await raising.run(connection, "cli-raise", limits_of(("model_calls=10",)))
        assert "At most $3.00 and 10 model calls now." in capsys.readouterr().err
        assert (await report_of(connection, "cli-raise")).status == "complete"


# ---------------------------------------------------------------- a dry run


async def test_a_dry_run_shows_the_price_pays_the_planning_alone_and_leaves_nothing_open(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script()
    dry = run.RunOptions("cli-dry", as_json=True, out=None, stay=False)
    goal = GOAL.model_copy(update={"plan_only": True})
    async with runs.worker(model):
        with runs.env.with_time_skipping_disabled():
            assert await run.run(connection, goal, dry) == Code.COMPLETE
        report = await report_of(connection, "cli-dry")
    said = capsys.readouterr()
    preview = Preview.model_validate_json(said.out)
    assert preview.critical_path == ("t1", "t2")
    assert preview.plan is not None and "part t2" in preview.plan.subtasks[1].instruction
    assert "Paid, for planning: $" in said.err
    assert model.heard == ["plan"]
    assert report.status == "declined"
    assert [*preview.by_tier] == ["haiku", "sonnet", "opus"] and preview.alone is not None


async def test_a_dry_run_says_what_the_same_work_costs_otherwise_and_whose_prices_these_are(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    dry = run.RunOptions("cli-dry-told", as_json=False, out=None, stay=False)
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            await run.run(connection, GOAL.model_copy(update={"plan_only": True}), dry)
    said = capsys.readouterr().out
    assert re.search(r"the same work +expected +of the plan's price\n", said)
    for row in ("Every call to come by haiku", "As planned", "One agent, one call"):
        assert re.search(rf"^{row} +\$0\.\d{{4}} +\d+%$", said, re.MULTILINE), row
    assert "Prices are from genai-prices " in said


async def test_a_dry_run_whose_command_was_killed_ends_by_itself_and_nobody_can_approve_it(
    runs: Runs, connection: Connection
) -> None:
    model = script()
    goal = GOAL.model_copy(update={"plan_only": True})
    async with runs.worker(model):
        run_id = (await launch(connection, goal, "cli-dry-left", tell)).run_id
        assert (await report_of(connection, run_id)).status == "declined"
        with pytest.raises(HoldfastError, match="over"):
            await orders.run(connection, run_id, "approve", Order())
    assert model.heard == ["plan"]


# ---------------------------------------------------------------- when to ask, and completion


@pytest.mark.parametrize(
    ("text", "yes", "terminal", "expected"),
    [
        ("", False, False, Approval()),
        ("", False, True, Approval(when="above", dollars=Decimal("0.50"))),
        ("", True, True, Approval()),
        ("auto", False, True, Approval()),
        ("always", False, False, ALWAYS),
        ("$0.20", False, False, Approval(when="above", dollars=Decimal("0.20"))),
    ],
)
def test_a_dear_plan_is_asked_about_where_somebody_can_answer_unless_told_otherwise(
    text: str, yes: bool, terminal: bool, expected: Approval
) -> None:
    assert approval_when(text, yes=yes, terminal=terminal) == expected


async def test_completion_knows_runs_and_their_subtasks(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = connection.target
    monkeypatch.setenv("TEMPORAL_ADDRESS", target.address)
    monkeypatch.setenv("STORE_URL", target.store_url)
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-tab")
        found: completion.Ids = []
        while "cli-tab" not in found:
            found = await asyncio.to_thread(completion.open_run_ids, "cli-t")
        context = type("Context", (), {"params": {"run_id": "cli-tab"}})()
        subtasks = await asyncio.to_thread(completion.subtask_ids, context, "")
        assert subtasks == ["t1", "t2"], "plain ids, and no words of a model's"
        await send(connection, "cli-tab", "reject", Order())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "", "not an address"])
def test_completion_without_a_server_is_empty_starts_nothing_and_says_nothing(
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    monkeypatch.setenv("STORE_URL", "file:///tmp/store")
    assert completion.run_ids("") == []
    assert capsys.readouterr() == ("", "")
    assert not connection.settings.state_dir.exists()
