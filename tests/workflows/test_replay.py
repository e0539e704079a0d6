"""Recorded histories replay under today's code; strict replay sees what Temporal's own misses."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from conftest import Runs
from holdfast.cli.commands.care import replay as command
from holdfast.cli.shared import replayed
from holdfast.contracts import Goal, GoalInput
from holdfast.errors import Refused
from holdfast.replaying.replay import export, find_divergence, replay
from holdfast.rules import reducer
from holdfast.state.events import Event, Prepared
from holdfast.state.run import State
from holdfast.storage import DirectoryStore
from holdfast.workflows import WORKFLOWS
from record import nameless
from scripted import ScriptedModel, digests, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

HISTORIES = sorted((Path(__file__).parents[1] / "histories").glob("*.json"))


def test_there_are_recorded_histories() -> None:
    assert HISTORIES


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_history_replays_with_the_same_arguments(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    assert await replay(history, WORKFLOWS) == ()


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_recorded_history_does_not_say_where_it_was_recorded(path: Path) -> None:
    text = path.read_text()
    assert nameless(text) == text
    assert "site-packages" not in text


async def recorded(runs: Runs) -> str:
    """A small run whose input is too big for history, exported."""
    note = GoalInput(name="note", kind="text", value="n" * 40_000)
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", inputs=["note"]), subtask("t2"))],
            "t1": [works("one " * 8_000)],
            "t2": [works("two")],
            "digest": [digests("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    await runs.run(Goal(text="Compare", inputs=(note,), use_models=True), model)
    return await export(runs.client, runs.handles[-1].id, runs.store)


async def test_an_exported_history_carries_every_payload_and_replays_without_a_store(
    runs: Runs,
) -> None:
    text = await recorded(runs)
    assert "external" not in text.lower()
    assert await replay(WorkflowHistory.from_json("run", text), WORKFLOWS) == ()


async def test_strict_replay_names_an_argument_that_differs(runs: Runs) -> None:
    """Temporal compares ids and types only: it would replay this history without a word."""
    history = WorkflowHistory.from_json("run", await recorded(runs))
    for event in history.events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_id == "work-t2-1":
            call = json.loads(attributes.input.payloads[0].data)
            attributes.input.payloads[0].data = json.dumps(call | {"max_output": 1}).encode()
    [difference] = await replay(history, WORKFLOWS)
    assert difference == "work-t2-1: Call.max_output was 1, is now 8000"


@pytest.mark.long
async def test_a_field_that_an_old_history_lacks_is_no_difference(runs: Runs) -> None:
    history = WorkflowHistory.from_json("run", await recorded(runs))
    for event in history.events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_id == "work-t2-1":
            call = json.loads(attributes.input.payloads[0].data)
            assert call.pop("number") == 1
            attributes.input.payloads[0].data = json.dumps(call).encode()
    assert await replay(history, WORKFLOWS) == ()


async def test_a_field_that_a_history_must_have_is_named_in_a_line(runs: Runs) -> None:
    history = WorkflowHistory.from_json("run", await recorded(runs))
    for event in history.events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_id == "work-t2-1":
            call = json.loads(attributes.input.payloads[0].data)
            assert call.pop("purpose") == "work-t2"
            attributes.input.payloads[0].data = json.dumps(call).encode()
    [difference] = await replay(history, WORKFLOWS)
    assert difference == "work-t2-1: its Call is none of today's: purpose: Field required"


@pytest.mark.long
async def test_a_step_that_a_busy_machine_is_slow_at_is_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK gives up a step of a workflow after two seconds, for whoever replays as well."""
    path = HISTORIES[0]
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    took = reducer.apply

    def slowly(state: State, event: Event) -> State:
        if isinstance(event, Prepared):
            time.sleep(2.5)
        return took(state, event)

    monkeypatch.setattr(reducer, "apply", slowly)
    assert await replay(history, WORKFLOWS) == ()
    assert await find_divergence(history, WORKFLOWS) == ""


async def test_a_changed_order_of_activities_is_named(runs: Runs) -> None:
    history = WorkflowHistory.from_json("run", await recorded(runs))
    for event in history.events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_id == "work-t1-1":
            attributes.activity_id = "work-t9-1"
    [problem] = await replay(history, WORKFLOWS)
    assert "work-t9-1" in problem


@pytest.fixture
async def raw(runs: Runs, tmp_path: Path) -> Path:
    """A history as the Web UI and other tools hand it out: big payloads are only referred to."""
    await recorded(runs)
    path = tmp_path / "raw.json"
    path.write_text((await runs.handles[-1].fetch_history()).to_json())
    return path


async def test_a_raw_history_is_refused_in_a_line_that_says_what_to_do(raw: Path) -> None:
    found = await replayed.verdict(raw, None)
    assert re.search(r"is a raw history: \d+ of its payloads.*export.*STORE_URL", found.refused)


async def test_a_raw_history_replays_with_the_store_that_has_its_payloads(
    runs: Runs, raw: Path
) -> None:
    assert await replayed.verdict(raw, runs.store) == replayed.Verdict(problems=())


@pytest.mark.long
async def test_a_raw_history_with_another_store_names_the_blob_that_is_not_there(
    raw: Path, tmp_path: Path
) -> None:
    found = await replayed.verdict(raw, DirectoryStore(tmp_path / "other"))
    assert re.search(r"cannot be replayed: blob [0-9a-f]{64} of the store", found.refused)


# ---------------------------------------------------------------- what is not a history of ours

STARTED = {
    "eventId": "1",
    "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED",
    "workflowExecutionStartedEventAttributes": {"workflowType": {"name": "SupervisorWorkflow"}},
}
ALIEN = STARTED | {
    "workflowExecutionStartedEventAttributes": {"workflowType": {"name": "Nobody's"}}
}
TASK = {"eventId": "2", "eventType": "EVENT_TYPE_WORKFLOW_TASK_COMPLETED"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is not a history"),
        ("{}", "is not a history"),
        ("[]", "is not a history"),
        ("[" * 100_000, "nested too deeply"),
        ('{"events": ' + "9" * 6_000 + "}", "is not a history"),
        (json.dumps({"events": []}), "it has no events"),
        (json.dumps({"events": [{"eventId": "1", "eventType": 9999}]}), "unknown type 9999"),
        (json.dumps({"events": [{"eventId": "1", "eventType": "X"}]}), "is not a history"),
        (json.dumps({"events": [{"eventId": "1"}]}), "unknown type 0"),
        (json.dumps({"events": [TASK]}), "does not begin with the start"),
        (json.dumps({"events": [STARTED]}), "has not taken a step"),
        (json.dumps({"events": [ALIEN, TASK]}), 'its workflow is "Nobody\'s"'),
    ],
)
def test_what_is_no_history_of_ours_is_refused_in_one_line(
    tmp_path: Path, content: str, why: str
) -> None:
    path = tmp_path / "history.json"
    path.write_text(content)
    with pytest.raises(Refused) as refused:
        replayed.read_history(path)
    assert why in str(refused.value) and "\n" not in str(refused.value)


def test_a_run_has_its_own_id_whatever_its_file_is_called(tmp_path: Path) -> None:
    """Its teams' names begin with it: with another they would not be those that it started."""
    path = tmp_path / "run.json"
    path.write_text(HISTORIES[0].read_text())
    assert replayed.read_history(path).workflow_id.startswith("run-")
    path.write_text(json.dumps({"events": [STARTED, TASK]}))
    assert replayed.read_history(path).workflow_id == "run"


@pytest.mark.long
async def test_a_history_that_holds_or_ends_its_process_is_no_yes(tmp_path: Path) -> None:
    # The start and one task, without what must stand between: nothing replays it.
    path = tmp_path / "torn.json"
    path.write_text(json.dumps({"events": [STARTED, TASK]}))
    verdict = await command.judge(path, 5)
    assert verdict.problems and not verdict.refused
    late = await command.judge(HISTORIES[0], 0.05)
    assert late.problems == ("it could not be replayed: that took longer than 0 s",)


async def test_a_recorded_history_is_judged_in_a_process_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await command.run([HISTORIES[0]]) == 0
    assert "the same decisions" in capsys.readouterr().err
