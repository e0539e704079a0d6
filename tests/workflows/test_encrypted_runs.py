"""A run whose words only who has the key can read."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import DescribeScheduleRequest
from temporalio.client import WorkflowHistory

from conftest import Runs, seen
from encrypted import plain_files, raw, words_in, write_keys
from holdfast import Holdfast
from holdfast.cli.commands.runs import inbox, report, show
from holdfast.cli.commands.runs import list as list_command
from holdfast.cli.commands.steering import cancel
from holdfast.cli.screen.exits import Code, Exit
from holdfast.client import orders
from holdfast.client.listing import list_runs
from holdfast.contracts import Approval, Goal, Order, Report
from holdfast.contracts.errors import CallRefused
from holdfast.errors import MissingKey, Refused
from holdfast.history.fold import TASK_FAILED
from holdfast.history.payloads import failure_message
from holdfast.intake.connection import Connection, require_worker, tell_nobody
from holdfast.intake.launch import prepare_start
from holdfast.intake.requests import RunRequest
from holdfast.replaying.replay import export, replay
from holdfast.storage.keys import Keyring, keyring
from holdfast.storage.references import find_needed
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = [pytest.mark.anyio, pytest.mark.long]

WORDS = (
    "goalcanary", "inputcanary", "namecanary", "titlecanary", "instructioncanary", "answercanary",
    "findingcanary", "sourcecanary", "reasoncanary", "failurecanary", "bigcanary",
)  # fmt: skip


@pytest.fixture
def payload_keys(tmp_path: Path) -> Keyring:
    return keyring(write_keys(tmp_path / "keys", "one"))


def canaries() -> tuple[Goal, ScriptedModel, asyncio.Event]:
    """A goal and a model with a canary in every place where words can stand; the first answer comes
    when the test says so.
    """
    plan: Any = ready(
        subtask(
            "t1",
            title="titlecanary",
            instruction="Find the instructioncanary of part t1 of the goal, as a list",
        ),
        subtask("t2", "t1"),
        subtask("t3", "t1"),
        subtask("t4", "t1"),
    )
    text = {"name": "namecanary", "kind": "text", "value": "inputcanary " + "bigcanary " * 2_000}
    goal = Goal.model_validate(
        {"text": "A goalcanary", "use_models": True, "plan": plan, "inputs": [text]}
    )
    lands = asyncio.Event()
    lines = {
        "t1": [lands, works("findingcanary " + "bigcanary " * 2_000, sources=["sourcecanary"])],
        "t2": [CallRefused("failurecanary")] * 3,
        "t4": [works("findingcanary")],
        "synthesize": [synthesizes("answercanary [t4].")],
    }
    return goal, ScriptedModel(lines), lands  # type: ignore[arg-type]


async def test_neither_server_nor_store_nor_journal_holds_a_word_of_a_run_in_plain(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    goal, model, lands = canaries()
    async with runs.worker(model), asyncio.timeout(60):
        goal, shown = await prepare_start(connection, goal)
        handle = await runs.client.start_workflow(
            SupervisorWorkflow.run, goal, id="encrypted", task_queue=runs.queue, **shown
        )
        runs.handles.append(handle)
        await model.asked("t1")
        board = await handle.query("__temporal_workflow_metadata")
        order = Order(subtask_id="t3", text="reasoncanary", by="somebody")
        await orders.send(connection, handle.id, "skip", order)
        lands.set()
        report = await handle.result()
    assert report.answer.startswith("answercanary") and "titlecanary" in str(board)
    said = await raw(runs.client, ["encrypted"])
    assert [*words_in(said, WORDS)] == []
    assert plain_files(runs.folder, (*WORDS, "A goal")) == []
    for there in (b"one", b"work-t1-1", b"SupervisorWorkflow"):
        assert there in said, "ids and types are what stays"
    needed, _ = await find_needed(runs.client, runs.store)
    assert needed >= {each.digest for each in runs.store.files()} - {""}
    # Whoever has the key reads all of it.
    assert await show.run(connection, "encrypted", False, None) == Code.PARTIAL
    whole = capsys.readouterr().out
    assert "titlecanary" in whole and "failurecanary" in whole
    await list_command.run(connection, 1_000, False)
    assert "goalcanary" in capsys.readouterr().out
    text = await export(runs.client, "encrypted", runs.store, runs.keys)
    assert {*words_in(text.encode(), WORDS)} >= {*WORDS} - {"reasoncanary"}
    assert await replay(WorkflowHistory.from_json("encrypted", text), WORKFLOWS) == ()


async def test_what_a_schedule_asks_stands_nowhere_in_plain(
    runs: Runs, connection: Connection
) -> None:
    name, schedules = f"nightly-{runs.queue}", Holdfast.on(connection).schedules
    request = RunRequest(goal="A goalcanary", plan=ready(subtask("t1")), models=True)
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("One [t1].")]})
    async with runs.worker(model), asyncio.timeout(60):
        await schedules.add(name, request, every="300d")
        try:
            await schedules.trigger(name)
            while not [each for each in (await schedules.show(name)).last if each.outcome.status]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            asked = DescribeScheduleRequest(namespace=runs.client.namespace, schedule_id=name)
            kept = await runs.client.workflow_service.describe_schedule(asked)
        finally:
            await schedules.delete(name)
    times = runs.client.list_workflows(f"TemporalScheduledById = '{name}'")
    ids = [each.id async for each in times]
    said = kept.SerializeToString() + await raw(runs.client, ids)
    assert ids and [*words_in(said, WORDS)] == []


async def test_where_workers_encrypt_nothing_is_started_in_plain(
    runs: Runs, connection: Connection
) -> None:
    plain = Runs(runs.env, runs.folder)
    blind = Connection(connection.settings, replace(connection.target, key_file=""), plain.client)
    async with runs.worker(ScriptedModel({})), asyncio.timeout(60):
        with pytest.raises(Refused, match="encrypt, and HOLDFAST_PAYLOAD_KEY_FILE is not set"):
            while True:
                # It says so with its first beat.
                await require_worker(blind, tell_nobody, models=False)
                await asyncio.sleep(0.1)
        await require_worker(connection, tell_nobody, models=False)
        request = RunRequest(goal="A goalcanary", plan=ready(subtask("t1")), models=True)
        with pytest.raises(Refused, match="nothing was started"):
            await Holdfast.on(blind).schedules.add("plain", request, every="300d")


async def test_whoever_lacks_the_key_is_told_what_he_cannot_see_and_may_cancel(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ready(subtask("t1"))
    goal = Goal(text="goalcanary", plan=plan, use_models=True, approval=Approval(when="always"))
    target = replace(connection.target, key_file="")
    blind = Connection(connection.settings, target, Runs(runs.env, runs.folder).client)
    lacks = "this is encrypted with key 'one', and HOLDFAST_PAYLOAD_KEY_FILE is not set"
    async with runs.worker(ScriptedModel({})), asyncio.timeout(60):
        handle = await runs.start(goal, skipping=False)
        await seen(handle, lambda view: view.waiting)
        said = ""
        while handle.id not in said:
            assert await inbox.run(blind, False) in (Code.COMPLETE, Code.FAILED)
            said = capsys.readouterr().out
        assert await inbox.run(blind, False) == Code.FAILED
        assert "what it asks, if anything, cannot be read" in said and lacks in said
        with pytest.raises(Exit, match=f"{handle.id} cannot be read here: there is nothing"):
            await report.run(blind, handle.id, None, open_it=False)
        assert lacks in capsys.readouterr().err
        assert await cancel.run(blind, handle.id) == Code.COMPLETE
        closed = f"run {handle.id} was cancelled, and what it found cannot be read: "
        assert closed in capsys.readouterr().err.split("It has closed: ")[1]


async def test_a_run_waits_while_its_worker_lacks_the_key_and_goes_on_when_it_has_it(
    runs: Runs, connection: Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its first task fails, and is tried again; what reads it meanwhile says in a line why."""
    goal = Goal(text="goalcanary", plan=ready(subtask("t1")), use_models=True)
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("One [t1].")]})
    file = tmp_path / "late"
    late = Keyring(write_keys(file, "two"))
    lacking = Runs(runs.env, runs.folder, keys=late)
    lacking.queue = runs.queue
    handle = await runs.client.start_workflow(
        SupervisorWorkflow.run,
        goal,
        id=f"lacking-{runs.queue}",
        task_queue=runs.queue,
        task_timeout=timedelta(seconds=1),
        static_summary="titlecanary",
    )
    async with lacking.worker(model), asyncio.timeout(60):
        while True:
            history = await handle.fetch_history()
            failed = [each for each in history.events if each.event_type == TASK_FAILED]
            if failed:
                break
            await asyncio.sleep(0.05)
        why = failed[0].workflow_task_failed_event_attributes.failure
        converter = lacking.client.data_converter
        assert "encrypted with key 'one'" in await failure_message(converter, why)
        blind = Connection(connection.settings, connection.target, lacking.client)
        lacks = r"encrypted with key 'one', and .*late\) lacks it; add that key"
        assert await show.run(blind, handle.id, False, None) != Code.COMPLETE
        assert re.search(lacks, capsys.readouterr().err)
        with pytest.raises(MissingKey, match=lacks):
            await orders.send(blind, handle.id, "skip", Order(subtask_id="t1"))
        # One that cannot be read takes no other run from the list.
        assert handle.id in [each.id async for each in list_runs(blind)]
        with pytest.raises(MissingKey, match=lacks):
            await export(lacking.client, handle.id, runs.store, late)
        write_keys(file, "one", "two")
        seen = lacking.client.get_workflow_handle(handle.id, result_type=Report)
        report = await seen.result()
    assert report.status == "complete"
    history = await seen.fetch_history()
    assert await replay(history, WORKFLOWS, lacking.store, late) == (), "both keys read"
