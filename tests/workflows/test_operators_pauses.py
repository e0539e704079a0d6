"""What an operator pauses by Temporal's own means: every reader says so, and nobody waits in vain.
The server is real, and is told to let workflows be paused.
"""

from __future__ import annotations

import asyncio

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    PauseActivityRequest,
    PauseWorkflowExecutionRequest,
    UnpauseActivityRequest,
    UnpauseWorkflowExecutionRequest,
)
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError
from test_agents import catalogue, goal

from conftest import Handle, Runs
from holdfast.cli.commands.runs import inbox, report, show
from holdfast.cli.commands.runs import list as list_command
from holdfast.cli.commands.steering import cancel
from holdfast.cli.screen.exits import Code, Exit, exit_of
from holdfast.client import orders
from holdfast.contracts import Goal, Order
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

GOAL = Goal(text="Compare", plan=ready(subtask("t1"), subtask("t2", "t1")), use_models=True)


def held() -> tuple[ScriptedModel, asyncio.Event]:
    """A model whose first answer comes when the test says so."""
    lands = asyncio.Event()
    lines = {"t1": [lands, works("one"), works("one")], "t2": [works("two")]}
    return ScriptedModel({**lines, "synthesize": [synthesizes("Both [t2].")]}), lands  # type: ignore[dict-item]


async def pause_activity(runs: Runs, workflow_id: str, activity_id: str) -> None:
    execution = WorkflowExecution(workflow_id=workflow_id)
    asked = PauseActivityRequest(namespace="default", execution=execution, id=activity_id)
    await runs.client.workflow_service.pause_activity(asked)


async def unpause_activity(runs: Runs, workflow_id: str, activity_id: str) -> None:
    execution = WorkflowExecution(workflow_id=workflow_id)
    asked = UnpauseActivityRequest(namespace="default", execution=execution, id=activity_id)
    await runs.client.workflow_service.unpause_activity(asked)


async def listed(connection: Connection, handle: Handle, capsys: pytest.CaptureFixture[str]) -> str:
    """The run's line of the list, once the server's index has followed."""
    while True:
        await list_command.run(connection, 1_000, False)
        for line in capsys.readouterr().out.splitlines():
            if line.startswith(handle.id) and "paused" in line:
                return line
        await asyncio.sleep(0.05)


async def shown(
    connection: Connection, handle: Handle, capsys: pytest.CaptureFixture[str]
) -> tuple[str, str]:
    """What `show` and the page of `report` say."""
    capsys.readouterr()
    assert await show.run(connection, handle.id, False, None) == Code.COMPLETE
    board = " ".join(capsys.readouterr().out.split())
    page = connection.settings.state_dir / "page.html"
    assert await report.run(connection, handle.id, page, open_it=False) == Code.COMPLETE
    return board, page.read_text()


async def test_a_run_that_is_paused_in_temporal_says_so_and_keeps_nobody_waiting(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model, lands = held()
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(GOAL, skipping=False)
        await model.asked("t1")
        service = runs.client.workflow_service
        asked = PauseWorkflowExecutionRequest(namespace="default", workflow_id=handle.id)
        await service.pause_workflow_execution(asked)
        assert "paused in Temporal" in await listed(connection, handle, capsys)
        said = f"paused in Temporal by an operator: .*unpause --workflow-id {handle.id}"
        board, page = await shown(connection, handle, capsys)
        assert board.startswith("paused in Temporal by an operator · ")
        assert "paused in Temporal by an operator" in page
        await inbox.run(connection, False)
        waiting = " ".join(capsys.readouterr().out.partition(handle.id)[2].split())
        free = f"temporal workflow unpause --workflow-id {handle.id}"
        assert waiting.startswith(f"Compare ? the run is paused in Temporal by an operator {free}")
        with pytest.raises(HoldfastError, match=said) as refused:
            await orders.send(connection, handle.id, "pause", Order())
        assert exit_of(refused.value).code == Code.FAILED
        with pytest.raises(Exit, match=f"cancel of {handle.id} waits until it is free: {said}"):
            await cancel.run(connection, handle.id)
        lands.set()
        again = UnpauseWorkflowExecutionRequest(namespace="default", workflow_id=handle.id)
        await service.unpause_workflow_execution(again)
        with pytest.raises(WorkflowFailureError) as ended:
            await handle.result()
        assert isinstance(ended.value.cause, CancelledError), "the cancel was carried out"


@pytest.mark.long
async def test_a_call_that_is_paused_in_temporal_is_not_told_as_running(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model, lands = held()
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(GOAL, skipping=False)
        await model.asked("t1")
        await pause_activity(runs, handle.id, "work-t1-1")
        board, page = await shown(connection, handle, capsys)
        assert "‖ t1" in board and "work-t1-1 is paused in Temporal by an operator" in board
        assert "running" not in board
        assert "s-paused" in page and "work-t1-1 is paused in Temporal" in page
        assert "partly paused in Temporal" in await listed(connection, handle, capsys)
        await unpause_activity(runs, handle.id, "work-t1-1")
        lands.set()
        assert (await handle.result()).status == "complete"
        board, _ = await shown(connection, handle, capsys)
        assert "paused in Temporal" not in board


async def test_an_agent_whose_turn_is_paused_in_temporal_is_not_told_as_running(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    lands = asyncio.Event()
    model = ScriptedModel({"t1": [lands, works("40")], "synthesize": [synthesizes("40 [t1].")]})
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(runs), skipping=False)
        await model.asked("t1")
        agent = f"{handle.id}.t1.1"
        await pause_activity(runs, agent, "turn-1")
        board, page = await shown(connection, handle, capsys)
        said = f"t1: turn-1 of {agent} is paused in Temporal by an operator"
        assert said in board and "‖ t1" in board and "running" not in board
        assert said in page
        await unpause_activity(runs, agent, "turn-1")
        lands.set()
        finding, *_ = (await handle.result()).findings
        assert finding.content == "40"
