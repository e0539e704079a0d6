"""What a reader makes of a history is what its workflow had in mind, after every workflow task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowFailureError, WorkflowHistory
from temporalio.worker import Worker

from conftest import Handle, Runs, folded, seen
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Goal, Order, Unreached
from holdfast.contracts.errors import EndpointUnreachable
from holdfast.history.fold import Fold
from holdfast.replaying.replay import export, play, replay
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio

COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


@pytest.fixture(autouse=True)
def replayed_in_each_task(runs: Runs) -> None:
    """Runs of every kind, taken up from each point of their histories."""
    runs.kept = 0


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare three engines", "use_models": True, **fields})


def with_team(runs: Runs) -> Catalogue:
    """The shipped roles, and a team."""
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True, exist_ok=True)
    head = "name: department\ndescription: a whole team\nmodel: sonnet\nteam: true"
    (home / "department.md").write_text(f"---\n{head}\n---\n")
    extra, shipped = Catalogue.load(runs.folder / "home"), shipped_catalogue()
    return Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)


def beginnings(events: list[HistoryEvent]) -> Iterator[list[HistoryEvent]]:
    """The history as it stood after each completed workflow task, with what the task asked for."""
    for place, event in enumerate(events):
        if event.event_type == COMPLETED:
            end = place + 1
            while end < len(events) and _asked_by(events[end], event.event_id):
                end += 1
            yield events[:end]


def until_next_task(events: list[HistoryEvent]) -> Iterator[HistoryEvent]:
    for event in events:
        yield event
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
            return


def _asked_by(event: HistoryEvent, task: int) -> bool:
    attributes = getattr(event, str(event.WhichOneof("attributes")))
    return getattr(attributes, "workflow_task_completed_event_id", 0) == task or (
        event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
        or event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED
    )


async def compared(runs: Runs, handle: Handle) -> int:
    """After how many workflow tasks reader and workflow agreed."""
    events = list((await handle.fetch_history()).events)
    agreed = 0
    for beginning in beginnings(events):
        fold = Fold(handle.id, runs.client.data_converter)
        # What was scheduled and cut in one task is known to have ended once the next is scheduled.
        for event in (*beginning, *until_next_task(events[len(beginning) :])):
            await fold.take(event)
        own = await play(WorkflowHistory(handle.id, beginning), WORKFLOWS, runs.store)
        assert own.differences == (), beginning[-1].event_id
        assert fold.state == own.state, f"after event {beginning[-1].event_id}"
        agreed += 1
    return agreed


async def tell(handle: Handle, name: str, **fields: object) -> None:
    await handle.execute_update(name, Order.model_validate(fields))


async def test_of_a_steered_run(runs: Runs) -> None:
    held = asyncio.Event()
    model = ScriptedModel(
        {
            "t1": [held, works("one")],
            "t2": [held, works("two")],
            "t3": [works("three")],
            "synthesize": [synthesizes("done")],
        }
    )
    plan = ready(subtask("t1"), subtask("t2"), subtask("t3", "t1"))
    async with runs.worker(model):
        handle = await runs.start(goal(plan=plan), skipping=False)
        await model.asked("t1", "t2")
        await tell(handle, "skip", subtask_id="t2", by="me")
        await tell(handle, "pause")
        held.set()
        await seen(handle, lambda view: view.rows[0].status == "complete")
        await tell(handle, "resume")
        await handle.result()
    assert await compared(runs, handle) > 6


async def test_of_a_cancelled_run(runs: Runs) -> None:
    held = asyncio.Event()
    model = ScriptedModel({"t1": [held], "t2": [works("two")]})
    async with runs.worker(model):
        handle = await runs.start(goal(plan=ready(subtask("t1"), subtask("t2"))), skipping=False)
        await model.asked("t1")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert await compared(runs, handle) > 3


@pytest.mark.long
async def test_of_a_run_with_a_team_and_of_the_team(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("a"), subtask("b"))],
            "a": [works("a")],
            "b": [works("b")],
            "t2": [works("two")],
            "synthesize": [synthesizes("what the team says"), synthesizes("all of it")],
        }
    )
    plan = ready(subtask("t1", role="department"), subtask("t2", "t1"))
    report = await runs.run(goal(plan=plan), model, catalogue=with_team(runs))
    assert report.status == "complete"
    assert await compared(runs, runs.handles[-1]) > 4
    team: Handle = runs.client.get_workflow_handle_for(
        SupervisorWorkflow.run, f"{report.run_id}.t1.1"
    )
    assert await compared(runs, team) > 4


@pytest.mark.long
async def test_of_a_run_with_an_outage(runs: Runs) -> None:
    lost = EndpointUnreachable(Unreached(address="http://127.0.0.1:1", why="refused"))
    model = ScriptedModel(
        {
            "t1": [lost, works("one")],
            "t2": [lost, works("two")],
            "reach": ["refused"],
            "synthesize": [lost, synthesizes("done")],
        }
    )
    await runs.run(goal(plan=ready(subtask("t1"), subtask("t2"))), model)
    assert await compared(runs, runs.handles[-1]) > 6


# ---------------------------------------------------------------- what came while nobody worked


def scheduled(activity_id: str) -> Callable[[HistoryEvent], bool]:
    return lambda event: event.activity_task_scheduled_event_attributes.activity_id == activity_id


def done(count: int) -> Callable[[HistoryEvent], bool]:
    """This many activities have returned."""
    left = iter(range(count - 1))

    def last(event: HistoryEvent) -> bool:
        completed = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
        return event.event_type == completed and next(left, None) is None

    return last


async def until(handle: Handle, wanted: Callable[[], Callable[[HistoryEvent], bool]]) -> None:
    """Return once the history has such an event."""
    async with asyncio.timeout(60):
        while True:
            is_wanted = wanted()
            if any([is_wanted(event) for event in (await handle.fetch_history()).events]):
                return
            await asyncio.sleep(0.02)


async def planned_by_nobody(runs: Runs, wanted: Goal, model: ScriptedModel) -> Handle:
    """A run that is prepared, and of which no worker has heard."""
    handle = await runs.start(wanted, skipping=False)
    async with Worker(
        runs.client, task_queue=runs.queue, workflows=WORKFLOWS, max_cached_workflows=0
    ):
        await until(handle, lambda: scheduled("prepare"))
    async with runs.worker(model, catalogue=with_team(runs), workflows=()):
        await until(handle, lambda: done(1))
    return handle


@pytest.mark.long
async def test_a_team_that_is_cut_in_the_task_that_starts_it_ends_at_once(runs: Runs) -> None:
    """A cancellation comes in one batch with the plan."""
    model = ScriptedModel({})
    plan = ready(subtask("t1", role="department"), subtask("t2"))
    handle = await planned_by_nobody(runs, goal(plan=plan), model)
    await handle.cancel()
    async with runs.worker(model, catalogue=with_team(runs)):
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    events = list((await handle.fetch_history()).events)
    fired = [each for each in events if each.HasField("timer_fired_event_attributes")]
    assert fired == [], "nothing waits for the grace of a cut"
    assert await compared(runs, handle) >= 2


async def test_a_team_whose_name_is_taken_fails_its_subtask_and_costs_nothing(runs: Runs) -> None:
    model = ScriptedModel({"t2": [works("two")], "synthesize": [synthesizes("done")]})
    plan = ready(subtask("t1", role="department"), subtask("t2"))
    handle = await planned_by_nobody(runs, goal(plan=plan), model)
    other = await runs.client.start_workflow(
        SupervisorWorkflow.run, goal(plan=plan), id=f"{handle.id}.t1.1", task_queue="nobody"
    )
    try:
        async with runs.worker(model, catalogue=with_team(runs)), asyncio.timeout(60):
            report = await handle.result()
    finally:
        await other.terminate()
    assert report.status == "complete_with_gaps"
    assert f"another run named {handle.id}.t1.1 is open" in report.gaps[0].why
    assert report.assumed == 0
    assert await compared(runs, handle) >= 3


@pytest.mark.long
async def test_a_team_that_was_terminated_is_lost_to_a_reader_as_to_its_run(runs: Runs) -> None:
    held = asyncio.Event()
    model = ScriptedModel({"plan": [held], "t2": [works("two")], "synthesize": [synthesizes("-")]})
    plan = ready(subtask("t1", role="department"), subtask("t2"))
    limits = {"tries_per_subtask": 1, "replans": 0}
    async with runs.worker(model, catalogue=with_team(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(plan=plan, limits=limits), skipping=False)
        await model.asked("plan")
        await runs.client.get_workflow_handle(f"{handle.id}.t1.1").terminate()
        report = await handle.result()
        held.set()
    assert "terminated" in report.gaps[0].why and report.assumed > 0
    assert await compared(runs, handle) >= 3


async def test_an_open_run_with_results_that_nobody_took_in_replays(runs: Runs) -> None:
    model = ScriptedModel({})
    handle = await planned_by_nobody(runs, goal(plan=ready(subtask("t1"))), model)
    text = await export(runs.client, handle.id, runs.store)
    assert await replay(WorkflowHistory.from_json(handle.id, text), WORKFLOWS) == ()
    state = await folded(handle)
    assert state is not None and state.phase == "preparing"
    await handle.terminate()
