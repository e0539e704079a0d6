"""Temporal's own clients start, signal and update our workflows as they like: no run is stuck."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from test_agents import READS, catalogue, goal

from conftest import Runs
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Order
from holdfast.contracts.signals import BEGUN, HOLD, RESET, STANDSTILL
from parameters import rest_long
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

AT = "2026-11-23T06:28:00Z"
FAILED: Any = "workflow_task_failed_event_attributes"


def raw(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


NO_GOALS: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "it was given none"),
    "null": ([None], "what it was given is none"),
    "two": ([{"text": "a"}, {"text": "b"}], "it was given 2"),
    "a number": ([7], "it: Input should be an object"),
    "no JSON": ([raw(b"{")], "it: Invalid JSON"),
    "bytes": ([raw(b"\xff", b"binary/plain")], "what it was given is none"),
    "another codec's": ([raw(b"x", b"binary/encrypted")], "cannot be read: 'Unknown payload"),
    "too deep": ([raw(b"[" * 100_000)], "it: Invalid JSON: recursion limit exceeded"),
    "too much money": ([{"limits": {"dollars": "1e40"}, "slice": {"dollars": "1e40"}}], "dollars"),
}


async def started(runs: Runs, kind: str, given: list[Any]) -> WorkflowHandle[Any, Any]:
    """As Temporal's own client starts it."""
    return await runs.client.start_workflow(
        kind, args=given, id=f"foreign-{uuid.uuid4().hex[:8]}", task_queue=runs.queue
    )


@pytest.mark.parametrize(
    ("kind", "takes"), rest_long([("SupervisorWorkflow", "Goal"), ("AgentWorkflow", "AgentGoal")])
)
async def test_a_start_without_a_goal_closes_failed_with_one_clear_line(
    kind: str, takes: str, runs: Runs
) -> None:
    async with runs.worker(ScriptedModel({})), asyncio.timeout(60):
        for given, why in NO_GOALS.values():
            handle = await started(runs, kind, given)
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
            cause = failed.value.cause
            assert isinstance(cause, ApplicationError) and cause.type == "BadGoal"
            assert cause.message.startswith(f"{kind} takes one argument, its {takes}")
            assert why in cause.message and "\n" not in cause.message
            events = (await handle.fetch_history()).events
            assert not any(
                each.HasField("workflow_task_failed_event_attributes") for each in events
            )


def lost(id: str, dollars: str) -> dict[str, Any]:
    return {"execution": "e", "at": AT, "lost": [{"id": id, "bill": {"dollars": dollars}}]}


SIGNALS: list[tuple[str, list[Any]]] = [
    (RESET, []),
    (RESET, [7, 8]),
    (RESET, [raw(b"{")]),
    (RESET, [raw(b"x", b"binary/encrypted")]),
    (RESET, [lost("work-t1-1", "-5")]),
    (RESET, [lost("work-t1-1", "1e40")]),
    (RESET, [lost("bribe-1", "5")]),
    (STANDSTILL, [{"team": "run", "number": 10**30, "at": AT}]),
    (STANDSTILL, [None]),
    (BEGUN, [None]),
    (BEGUN, ["work-t1-1"]),
    (BEGUN, ["work-t9-1"]),
    (HOLD, ["words", {"more": 1}]),
    (HOLD, [raw(b"x", b"binary/encrypted")]),
    ("nobody", [1]),
]


async def test_signals_of_any_form_stop_neither_a_run_nor_an_agent(runs: Runs) -> None:
    goes_on = asyncio.Event()
    model = ScriptedModel(
        {
            "t1": [goes_on, READS, works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("[t2]")],
        }
    )
    plan = ready(subtask("t1", role="reader", inputs=["repo"]), subtask("t2"))
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(runs, plan=plan), skipping=False)
        await model.asked("t1")
        agent = runs.client.get_workflow_handle(f"{handle.id}.t1.1")
        for name, given in SIGNALS:
            await handle.signal(name, args=given)
            await agent.signal(name, args=given)
        await asyncio.sleep(1)
        goes_on.set()
        report = await outcome(handle)
        for each in (handle, agent):
            events = (await each.fetch_history()).events
            assert not any(event.HasField(FAILED) for event in events)
    assert report.status == "complete"
    assert report.dollars is not None and report.dollars > 0 and not report.assumed


@pytest.mark.parametrize("call", [2.0, "2", True, None, [2], 2.5])
async def test_an_order_names_a_call_by_a_whole_number_or_is_refused(call: object) -> None:
    with pytest.raises(ValidationError, match="call"):
        Order.model_validate_json(json.dumps({"call": call}))
    assert Order.model_validate_json('{"call": 2}').call == 2
