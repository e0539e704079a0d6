"""A paused run holds its agents: what flies lands and is kept, and nothing is asked twice."""

from __future__ import annotations

import asyncio

import pytest
from test_agents import NOTES, catalogue, goal, segments, told

from conftest import Handle, Runs, seen
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Order
from scripted import ScriptedModel, calls, synthesizes, works

pytestmark = pytest.mark.anyio

SAYS = calls(("read_file", NOTES), says="So far: it may be 40.")


def waits_in_its_first_turn(*later: object) -> tuple[ScriptedModel, asyncio.Event]:
    """A model whose first turn comes back when the test says so."""
    lands = asyncio.Event()
    script = {"t1": [lands, *later], "synthesize": [synthesizes("40 [t1].")]}
    return ScriptedModel(script), lands  # type: ignore[arg-type]


async def tell(handle: Handle, name: str) -> None:
    await handle.execute_update(name, Order(by="ada"))


async def paused(runs: Runs, handle: Handle, number: int = 1) -> None:
    """Pause the run; once a segment of t1's agent has been told, and has taken it in: what lands in
    the same workflow task goes before.
    """
    await tell(handle, "pause")
    agent = runs.client.get_workflow_handle(f"{handle.id}.t1.{number}")
    told = False
    async for event in agent.fetch_history_events(wait_new_event=True):
        told = told or event.HasField("workflow_execution_signaled_event_attributes")
        if told and event.HasField("workflow_task_completed_event_attributes"):
            return


async def ended(runs: Runs, handle: Handle, number: int = 1) -> None:
    """Once a segment of t1's agent has closed."""
    await runs.client.get_workflow_handle(f"{handle.id}.t1.{number}").result()


async def test_an_agent_of_a_paused_run_lands_what_flies_and_goes_on_after_resume(
    runs: Runs,
) -> None:
    model, lands = waits_in_its_first_turn(SAYS, works("40"))
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(runs), skipping=False)
        await model.asked("t1")
        await paused(runs, handle)
        lands.set()
        await ended(runs, handle)
        view = await seen(handle, lambda view: view.waiting and view.dollars_spent)
        assert model.heard == ["t1"], "nothing was asked after the pause"
        assert view.dollars_spent and not view.dollars_reserved, "and it holds no money"
        assert [each.doing for each in view.rows] == ["stands at turn 1 of 10"]
        await tell(handle, "resume")
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    below = await segments(runs, report)
    assert below == [["turn-1"], ["tool-1-1", "turn-2"]], "the call of the tool was not lost"
    assert report.assumed == 0 and report.model_calls == 2
    assert report.timings is not None and report.timings.waited > 0


async def test_whoever_pauses_and_resumes_at_once_loses_nothing_of_an_agent(runs: Runs) -> None:
    model, lands = waits_in_its_first_turn(SAYS, works("40"))
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(runs), skipping=False)
        await model.asked("t1")
        await paused(runs, handle)
        for name in ("resume", "pause", "resume"):
            await tell(handle, name)
        lands.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert await segments(runs, report) == [["turn-1"], ["tool-1-1", "turn-2"]]
    assert model.heard.count("t1") == 2


@pytest.mark.long
async def test_what_is_held_can_be_ended_by_a_person(runs: Runs) -> None:
    model, _ = waits_in_its_first_turn()
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(runs, limits={"replans": 0}), skipping=False)
        await model.asked("t1")
        await paused(runs, handle)
        await handle.execute_update("cancel_subtask", Order(subtask_id="t1", by="ada"))
        report = await outcome(handle)
    assert [each.why for each in report.findings] == ["cancelled by ada"]
    assert report.model_calls == 0 and not report.assumed, "its turn was cut before it left"


@pytest.mark.long
async def test_workers_that_read_an_agent_anew_at_each_step_hold_it_in_the_same_place(
    runs: Runs,
) -> None:
    """Each workflow task of run and agent begins with a replay, as after a kill between any two."""
    runs.kept = 0
    model, lands = waits_in_its_first_turn(SAYS, works("40"))
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(runs), skipping=False)
        await model.asked("t1")
        await paused(runs, handle)
        lands.set()
        await ended(runs, handle)
        await tell(handle, "resume")
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert await segments(runs, report) == [["turn-1"], ["tool-1-1", "turn-2"]]
    assert model.heard.count("t1") == 2 and told(model, 1)[0]["tool_use_id"] == "u1"
