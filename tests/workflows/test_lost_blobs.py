"""What becomes of a run when the store has lost, or damaged, something that it needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import astuple, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from conftest import Handle, Runs
from driving import BRIEFING
from driving import subtask as subtask_of
from holdfast.activities.agents import Agents
from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.prompts.files import system_prompts
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, Goal, GoalInput, PinnedInput, Report
from holdfast.contracts.errors import BlobLost, PossiblyBilled
from holdfast.contracts.policies import TRANSPORT_TRIES
from holdfast.storage import DirectoryStore
from holdfast.temporal.connection import plugin
from parameters import rest_long
from scripted import Line, ScriptedModel, digests, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

LONG = "It was examined, and found to be sound. " * 1_000


def blob(store: DirectoryStore, payload: Payload) -> Path:
    """The file behind a payload that history only refers to."""
    digest: str = json.loads(payload.data)["claimData"]["sha256"]
    return store.root / digest[:2] / digest


def flip(path: Path) -> None:
    """One bit, as a bad disk does."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


async def events(handle: Handle) -> list[HistoryEvent]:
    return list((await handle.fetch_history()).events)


class Losing(DirectoryStore):
    """A store that damages what it was told to, each of the first `times` that it is put."""

    def __init__(self, root: Path, victim: bytes, times: int = 1_000) -> None:
        super().__init__(root)
        self.victim, self.times = victim, times

    async def put(self, content: bytes) -> str:
        digest = await super().put(content)
        if self.victim in content and self.times > 0:
            self.times -= 1
            flip(self.root / digest[:2] / digest)
        return digest


def reason(report: Report, subtask_id: str) -> str:
    [finding] = [each for each in report.findings if each.subtask_id == subtask_id]
    assert finding.status == "failed"
    return finding.why


async def test_a_damaged_input_of_a_call_is_a_gap_that_names_store_and_blob(runs: Runs) -> None:
    runs.store = Losing(runs.folder / "store", b"a note that somebody enclosed")
    note = GoalInput(name="note", kind="text", value="a note that somebody enclosed")
    plan = ready(subtask("t1", inputs=["note"]), subtask("t2"))
    model = ScriptedModel({"t2": [works("two")], "synthesize": [synthesizes("two [t2]")]})
    report = await runs.run(Goal(text="Compare", plan=plan, inputs=(note,), use_models=True), model)
    assert report.status == "complete_with_gaps"
    why = reason(report, "t1")
    assert "is lost: its file is damaged" in why
    assert runs.store.root.as_uri() in why
    assert report.inputs[0].digest in why
    assert "t1" not in model.heard


def damaged_arguments(runs: Runs, times: int) -> ScriptedModel:
    """What t2 works from is damaged this many times: what t1 found, by reference."""
    runs.store = Losing(runs.folder / "store", b'"dependencies":[{', times)
    config = runs.client.config()
    config["plugins"] = [plugin(runs.store)]
    runs.client = Client(**config)
    script: dict[str, list[Line]] = {"t1": [works(LONG)], "t2": [works("two")]}
    script |= {"digest": [digests("sound")], "synthesize": [synthesizes("sound [t1]")]}
    return ScriptedModel(script)


ARGUMENTS = Goal.model_validate(
    {
        "text": "Compare",
        "plan": ready(subtask("t1"), subtask("t2", "t1")),
        "use_models": True,
        # What t1 found is handed on as it is.
        "limits": {"digest_above_tokens": 1_000_000},
    }
)


async def refusals(handle: Handle) -> list[Failure]:
    """Of the activities that failed, why."""
    return [
        each.activity_task_failed_event_attributes.failure
        for each in await events(handle)
        if each.HasField("activity_task_failed_event_attributes")
    ]


async def test_a_damaged_argument_of_a_call_is_written_anew_by_the_next_one(runs: Runs) -> None:
    model = damaged_arguments(runs, times=1)
    report = await runs.run(ARGUMENTS, model)
    assert report.status == "complete"
    assert model.heard.count("t2") == 1 and report.assumed == 0
    assert len(await refusals(runs.handles[-1])) == 1


@pytest.mark.long
async def test_an_argument_that_is_always_damaged_is_a_gap_and_not_tried_for_an_hour(
    runs: Runs,
) -> None:
    """The SDK decodes the arguments before the activity begins, and calls that retryable."""
    model = damaged_arguments(runs, times=1_000)
    report = await runs.run(ARGUMENTS, model)
    assert report.status == "complete_with_gaps"
    assert "is lost: its file is damaged" in reason(report, "t2")
    assert "t2" not in model.heard
    failures = await refusals(runs.handles[-1])
    assert len(failures) == TRANSPORT_TRIES
    assert all(each.application_failure_info.type == "BlobLost" for each in failures)
    assert all(each.application_failure_info.non_retryable for each in failures)
    runs.handles.clear()  # Its history refers to what cannot be read: a replay compares it.


@pytest.mark.parametrize("harm", rest_long([Path.unlink, flip]), ids=["missing", "damaged"])
async def test_a_run_whose_results_are_lost_says_so_and_goes_on_when_they_are_back(
    runs: Runs, harm: Callable[[Path], None]
) -> None:
    """Neither believed nor closed: an error that closes the run would only be called a mistake of
    its code, because the commands of its history do not follow.
    """
    unheard = asyncio.Event()
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    script: dict[str, list[Line]] = {"t1": [works(LONG)], "t2": [unheard, works("two")]}
    script |= {"digest": [digests("sound")], "synthesize": [synthesizes("sound [t1]")]}
    model = ScriptedModel(script)
    # What was taken in is asked of the store again when the run is replayed.
    runs.kept = 0
    # A step that failed is tried again after this, and not after ten seconds.
    runs.task_timeout = timedelta(seconds=2)
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(Goal(text="Compare", plan=plan, use_models=True), skipping=False)
        await model.asked("t2")
        lost = blob(runs.store, await long_result(handle))
        content = lost.read_bytes()
        harm(lost)
        unheard.set()
        message = await task_failure(handle)
        assert f"blob {lost.name} of the store {runs.store.root.as_uri()} is lost" in message
        # Anything of the same content heals it, wherever it comes from.
        assert await runs.store.put(content) == lost.name
        report = await handle.result()
    assert report.status == "complete"
    assert report.findings[0].content == LONG


async def long_result(handle: Handle) -> Payload:
    """The last result of an activity that history only refers to."""
    results = [
        each.activity_task_completed_event_attributes.result.payloads[0]
        for each in await events(handle)
        if each.HasField("activity_task_completed_event_attributes")
    ]
    return [each for each in results if each.external_payloads][-1]


async def task_failure(handle: Handle) -> str:
    """What the first failed workflow task of a run says, once there is one."""
    while True:
        for event in await events(handle):
            if event.HasField("workflow_task_failed_event_attributes"):
                return event.workflow_task_failed_event_attributes.failure.message
        await asyncio.sleep(0.05)


async def test_an_input_that_is_lost_after_the_call_was_sent_leaves_it_in_the_bill(
    tmp_path: Path,
) -> None:
    agents = Agents(
        model=ScriptedModel({}),
        journal=FileJournal(tmp_path / "journal"),
        store=DirectoryStore(tmp_path / "store"),
        roles={},
        system=system_prompts(),
        templates={},
        price=lambda *_: Decimal(0),
    )
    pinned = PinnedInput(name="note", kind="text", size=4, digest="0" * 64)
    material = WorkMaterial(subtask=subtask_of("t1"), inputs=(pinned,), goal="Compare")
    call = Call(purpose="work-t1", kind="work", model=BRIEFING.model("haiku"))
    for past, expected in ((Past(), BlobLost), (Past(throttled=2).leaving(), PossiblyBilled)):
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, heartbeat_details=astuple(past))
        with pytest.raises(expected, match="is lost"):
            await environment.run(agents.work, call, material)
