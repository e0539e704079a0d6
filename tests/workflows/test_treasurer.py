"""The treasurer on a real server: its books outlive its histories, and runs do not wait for it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from test_supervisor import goal

from conftest import Handle, Runs
from holdfast.activities.asking import purses
from holdfast.activities.asking.purses import Purses, Refused
from holdfast.certifying.deployment import outcome
from holdfast.contracts.treasury import Asked, Caps, treasurer_of
from holdfast.intake.launch import priority_of
from holdfast.serving.worker import treasurers_worker
from holdfast.temporal.connection import plugin
from holdfast.temporal.treasury import Treasurer
from holdfast.workflows import treasurer as module
from holdfast.workflows.supervisor import SupervisorWorkflow
from holdfast.workflows.treasurer import TreasurerWorkflow
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


def treasurer(runs: Runs, day: str | None = "10") -> Treasurer:
    caps = Caps(day=Decimal(day) if day else None)
    return Treasurer(lambda: runs.client, runs.queue, caps)


@asynccontextmanager
async def serving(runs: Runs, seconds: int = 60, build: str = "one") -> AsyncIterator[None]:
    runner = UnsandboxedWorkflowRunner()
    worker = treasurers_worker(runs.client, runs.queue, build, workflow_runner=runner)
    async with worker, asyncio.timeout(seconds):
        yield


async def replay(runs: Runs, run_id: str | None = None) -> int:
    """Replay one history of the treasurer, in the sandbox; return its events."""
    handle = runs.client.get_workflow_handle(treasurer_of(runs.queue), run_id=run_id)
    history = await handle.fetch_history()
    replayer = Replayer(workflows=[TreasurerWorkflow], plugins=[plugin(runs.store)])
    await replayer.replay_workflow(history)
    return len(history.events)


@pytest.mark.long
async def test_the_books_go_on_in_new_histories_however_many_ask_at_once(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UPDATES", 9)
    chief = treasurer(runs)
    handle = runs.client.get_workflow_handle(treasurer_of(runs.queue))
    async with serving(runs):
        assert await chief.look() is None
        workers = [Purses(chief) for _ in range(6)]
        for turn in range(2):
            keys = [(each, f"{turn}") for each in workers]
            await asyncio.gather(*(each.take(key, Decimal("0.5"), "anna") for each, key in keys))
            for each, key in keys:
                each.give(key, Decimal("0.25"))
            await asyncio.gather(*(each.close() for each in workers))
            if not turn:
                first = (await handle.describe()).run_id
        found = await chief.look()
        assert found is not None
        assert found.today.paid == Decimal("3.00") and not found.held
        assert found.today.by == found.month.by == {"anna": Decimal("3.00")}
        last = (await handle.describe()).run_id
    assert first != last
    monkeypatch.undo()
    await replay(runs)


@pytest.mark.long
async def test_an_operator_raises_the_cap_for_the_next_call(runs: Runs) -> None:
    chief = treasurer(runs, "1")
    async with serving(runs):
        await chief.tell()
        own = Purses(chief)
        with pytest.raises(Refused, match=r"allows \$1 a day") as refused:
            await own.take("a", Decimal(2), "")
        assert refused.value.over
        await chief.set_caps(Caps(day=Decimal(3)))
        # A worker that starts with the same setting as before undoes nothing.
        await chief.tell()
        await own.take("a", Decimal(2), "")
    own.give("a", Decimal("1.5"))
    # It was the last worker: the next one reads what it gave back.
    await own.close()
    async with serving(runs):
        found = await chief.look()
    assert found is not None and found.today.paid == Decimal("1.5") and not found.held
    assert await replay(runs) < 50


async def test_neither_a_cancellation_nor_nonsense_ends_the_treasurer(runs: Runs) -> None:
    chief = treasurer(runs)
    handle = runs.client.get_workflow_handle(treasurer_of(runs.queue))
    async with serving(runs):
        await chief.tell()
        await handle.cancel()
        for nonsense in (None, [], [{"slice": "x"}], [{"slice": "x", "needs": "-1", "seconds": 1}]):
            for name in ("ask", "tell", "set_caps"):
                try:
                    await handle.execute_update(name, args=[] if nonsense is None else [nonsense])
                except WorkflowUpdateFailedError:
                    continue
                assert (name, nonsense) == ("ask", [])
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update("ask", None)
            await handle.signal("give_back", nonsense)
        (given,) = await chief.ask(
            [Asked(slice="a", began=False, needs=Decimal(1), likes=Decimal(1), seconds=60)]
        )
        assert given.holds == 1
        assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
    await replay(runs)


def scripted() -> ScriptedModel:
    return ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"))],
            "t1": [works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )


async def events_of(handle: Handle) -> Counter[str]:
    """The events of a run by type, without its workflow tasks, which depend on what comes when."""
    history = await handle.fetch_history()
    types = (EventType.Name(each.event_type).lower() for each in history.events)
    return Counter(each for each in types if "workflow_task" not in each)


async def test_a_run_has_no_event_more_for_a_cap_and_what_it_paid_counts_to_the_cent(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purses, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(purses, "LOOK_SECONDS", 0.05)
    chief = treasurer(runs)
    async with runs.worker(scripted()), asyncio.timeout(60):
        await outcome(await runs.start(goal()))
        assert await chief.look() is None, "without a cap there is no treasurer"
    async with runs.worker(scripted(), most_dollars_day=Decimal(50)), asyncio.timeout(60):
        handle = await runs.client.start_workflow(
            SupervisorWorkflow.run,
            goal(),
            id=f"{runs.queue}-capped",
            task_queue=runs.queue,
            priority=priority_of("urgent", "anna"),
        )
        report = await outcome(handle)
        for _ in range(100):
            found = await chief.look()
            if found is not None and not found.held:
                break
            await asyncio.sleep(0.05)
    plain, capped = [await events_of(each) for each in (runs.handles[0], handle)]
    assert plain == capped
    assert found is not None and found.caps.day == 50
    assert found.today.by == {"anna": report.dollars}


async def test_a_run_for_which_the_day_has_no_room_says_so_and_how_it_goes_on(runs: Runs) -> None:
    report = await runs.run(
        goal(plan=ready(subtask("t1", role="writer"))),
        ScriptedModel({"t1": [works("one")]}),
        most_dollars_day=Decimal("0.0001"),
    )
    assert report.status == "budget_stopped"
    assert any("holdfast budget --day" in note for note in report.notes), report.notes


async def test_a_worker_that_has_no_caps_pays_nothing_beside_the_treasurer(runs: Runs) -> None:
    async with runs.worker(ScriptedModel({"t1": [works("one")]}), treasurer=True):
        await treasurer(runs, "0.0001").tell()
        report = await outcome(await runs.start(goal(plan=ready(subtask("t1", role="writer")))))
    assert report.status == "budget_stopped"


async def test_any_builds_worker_carries_the_treasurer_on(runs: Runs) -> None:
    chief = treasurer(runs)
    async with serving(runs, build="two"):
        await chief.tell()
    # The newer one is gone for good.
    async with serving(runs, build="one"):
        own = Purses(chief)
        await own.take("a", Decimal(1), "")
        await own.close()


# ---------------------------------------------------------------- eight processes, and kills

WORKER = str(Path(__file__).parents[1] / "support" / "purse_worker.py")
KILLS = 4


def read_notes(folder: Path) -> tuple[int, int]:
    """The cents that were paid at most, a call that was cut counted in full; and how many such."""
    sent, paid = dict[str, int](), dict[str, int]()
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            what, key, cents = line.split()
            (sent if what == "sent" else paid)[key] = int(cents)
    cut = sent.keys() - paid.keys()
    return sum(paid.values()) + sum(sent[key] for key in cut), len(cut)


@pytest.mark.long
async def test_eight_processes_of_which_some_are_killed_pay_no_cent_above_the_cap(
    runs: Runs, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()

    async def start(number: int) -> Process:
        where = (runs.env.client.service_client.config.target_host, runs.queue)
        told = (*where, str(folder / str(number)), str(number))
        return await asyncio.create_subprocess_exec(sys.executable, WORKER, *told)

    async with serving(runs, seconds=180):
        processes = [await start(number) for number in range(8)]
        try:
            for _ in range(600):
                await asyncio.sleep(0.1)
                if sum(1 for _ in folder.iterdir()) == 8:
                    break
            for each in processes[:KILLS]:
                await asyncio.sleep(0.3)
                each.kill()
            codes = [await each.wait() for each in processes]
        finally:
            for each in processes:
                if each.returncode is None:
                    each.kill()
        await asyncio.sleep(3.5)
        found = await treasurer(runs).look()
    assert codes == [-9] * KILLS + [0] * (8 - KILLS) and found is not None
    paid, cut = read_notes(folder)
    said = f"{paid} cents at most, {cut} calls cut; counted {found.today.paid}"
    assert cut > 0, said
    assert paid <= 3_000, said
    assert Decimal(paid) / 100 <= found.today.paid <= 30, said
    assert found.held == 0, "nothing leaks"
