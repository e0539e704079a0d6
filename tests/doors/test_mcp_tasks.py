"""Runs as tasks of MCP, in both eras, as the official client meets them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolRequest, CallToolRequestParams, TaskMetadata

from conftest import Runs
from holdfast.doors.mcp.leash import Leash
from holdfast.intake.connection import Connection
from hosting import DECIDES, SPENDS, Speak, SpeaksTasks, as_task, ask, data, opened
from scripted import works
from steered import report_of, script

pytestmark = pytest.mark.anyio
GOAL = {"goal": "Compare three engines"}
WAITS = {**GOAL, "approval": "always"}


@pytest.fixture
async def speak(runs: Runs, connection: Connection) -> AsyncIterator[Speak]:
    def at(leash: Leash = SPENDS, **client: Any) -> Client:
        return opened(connection, leash, **client)

    with runs.env.with_time_skipping_disabled():
        yield at


def modern(speak: Speak, leash: Leash = SPENDS) -> Client:
    return speak(leash, extensions=[SpeaksTasks()])


async def polled(host: Client, run_id: str, *statuses: str) -> dict[str, Any]:
    """The task once it has one of these statuses."""
    while True:
        task = await ask(host, "tasks/get", taskId=run_id)
        if task["status"] in statuses:
            return task
        await asyncio.sleep(0.05)


async def as_core_task(host: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool as hosts of 2025-11-25 do that want a task."""
    params = CallToolRequestParams(name=name, arguments=arguments, task=TaskMetadata(ttl=60_000))
    made: dict[str, Any] = await host.session._dispatcher.send_raw_request(
        "tools/call", params.model_dump(by_alias=True, mode="json", exclude_none=True), {}
    )
    assert CallToolRequest(params=params).method == "tools/call"
    task: dict[str, Any] = made["task"]
    return task


async def failing(host: Client, method: str, **params: Any) -> tuple[int, str]:
    with pytest.raises(MCPError) as caught:
        await ask(host, method, **params)
    return caught.value.error.code, caught.value.error.message


# ---------------------------------------------------------------- 2026-07-28


async def test_a_run_is_a_task_and_its_result_is_what_look_gives(runs: Runs, speak: Speak) -> None:
    async with runs.worker(script()), modern(speak) as host:
        assert host.protocol_version == "2026-07-28"
        made = await as_task(host, "run", {**GOAL, "id": "t-run"})
        assert made["taskId"] == "t-run" and made["status"] == "working"
        assert made["pollIntervalMs"] > 0 and made.get("ttlMs") is None
        task = await polled(host, "t-run", "completed")
        looked = await host.call_tool("look", {"id": "t-run"})
    assert task["resultType"] == "complete"
    assert task["result"]["structuredContent"] == data(looked)
    assert "Both" in task["result"]["content"][0]["text"]


async def test_a_plan_that_waits_is_input_and_the_answer_comes_by_an_update(
    runs: Runs, connection: Connection, speak: Speak
) -> None:
    async with runs.worker(script()), modern(speak, DECIDES) as host:
        await as_task(host, "run", {**WAITS, "id": "t-plan"})
        task = await polled(host, "t-plan", "input_required")
        ((key, request),) = task["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        schema = request["params"]["requestedSchema"]
        assert schema["properties"]["decision"]["enum"] == ["approve", "reject"]
        again = await polled(host, "t-plan", "input_required")
        assert [*again["inputRequests"]] == [key]
        unknown = {"plan-run-0": {"action": "accept", "content": {"decision": "reject"}}}
        await ask(host, "tasks/update", taskId="t-plan", inputResponses=unknown)
        answer = {key: {"action": "accept", "content": {"decision": "approve"}}}
        assert (await ask(host, "tasks/update", taskId="t-plan", inputResponses=answer)) == {
            "resultType": "complete",
            "_meta": again["_meta"],
        }
        await polled(host, "t-plan", "completed")
    (order,) = (await report_of(connection, "t-plan")).orders
    assert (order.command, order.order.by) == ("approve", "mcp:Test-Host")


async def test_an_update_decides_nothing_where_only_a_person_may(runs: Runs, speak: Speak) -> None:
    async with runs.worker(script()), modern(speak) as host:
        await as_task(host, "run", {**WAITS, "id": "t-gate"})
        task = await polled(host, "t-gate", "input_required")
        ((key, request),) = task["inputRequests"].items()
        assert request["params"]["requestedSchema"]["properties"] == {}
        assert "approve t-gate" in request["params"]["message"]
        answer = {key: {"action": "accept", "content": {"decision": "approve"}}}
        await ask(host, "tasks/update", taskId="t-gate", inputResponses=answer)
        assert (await ask(host, "tasks/get", taskId="t-gate"))["status"] == "input_required"
        await ask(host, "tasks/cancel", taskId="t-gate")
        await polled(host, "t-gate", "cancelled")
        await ask(host, "tasks/cancel", taskId="t-gate")


async def test_a_run_that_failed_is_a_completed_task_whose_result_is_an_error(
    runs: Runs, speak: Speak
) -> None:
    fails = works("", status="failed", why="gone")
    async with runs.worker(script(t1=[fails] * 5)), modern(speak) as host:
        await as_task(host, "run", {**GOAL, "id": "t-fails"})
        task = await polled(host, "t-fails", "completed", "failed")
    assert task["status"] == "completed" and task["result"]["isError"]


async def test_a_host_that_does_not_speak_tasks_is_given_none(runs: Runs, speak: Speak) -> None:
    async with runs.worker(script()), speak() as host:
        begun = await host.call_tool("run", {**WAITS, "id": "t-plain"})
        assert data(begun)["id"] == "t-plain"
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            code, _ = await failing(host, method, taskId="t-plain", inputResponses={})
            assert code == -32021
        await host.call_tool("cancel", {"id": "t-plain"})


async def test_unknown_tasks_and_methods_of_the_other_era_are_refused(
    runs: Runs, speak: Speak
) -> None:
    async with runs.worker(script()), modern(speak) as host:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            code, said = await failing(host, method, taskId="nobody", inputResponses={})
            assert code == -32602 and "no run 'nobody'" in said
        assert (await failing(host, "tasks/result", taskId="nobody"))[0] == -32601
        assert (await failing(host, "tasks/list"))[0] == -32601
        refused = await host.call_tool("run", {**GOAL, "dollars": 900})
        assert refused.is_error and data(refused)["error"]["code"] == "not_allowed"


# ---------------------------------------------------------------- 2025-11-25


async def test_hosts_of_2025_have_tasks_of_the_protocol_itself(runs: Runs, speak: Speak) -> None:
    async with runs.worker(script()), speak(mode="legacy") as host:
        assert host.protocol_version == "2025-11-25"
        offers = host.server_capabilities.tasks
        assert offers and offers.requests and offers.requests.tools and offers.cancel is not None
        tools = {each.name: each.execution for each in (await host.list_tools()).tools}
        assert {name for name, each in tools.items() if each} == {"preview", "run", "review"}
        made = await as_core_task(host, "run", {**GOAL, "id": "c-run"})
        assert (made["taskId"], made["status"], made["ttl"]) == ("c-run", "working", None)
        assert made["pollInterval"] > 0
        task = await polled(host, "c-run", "completed")
        assert "result" not in task and "pollIntervalMs" not in task
        result = await ask(host, "tasks/result", taskId="c-run")
        assert "Both" in result["content"][0]["text"]
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": "c-run"}
        plain = await host.call_tool("look", {"id": "c-run"})
        assert data(plain)["status"] == "completed"


@pytest.mark.long
async def test_a_task_of_2025_that_waits_for_a_person_says_so_at_once_and_can_be_cancelled(
    runs: Runs, speak: Speak
) -> None:
    async with runs.worker(script()), speak(mode="legacy") as host:
        await as_core_task(host, "run", {**WAITS, "id": "c-gate"})
        await polled(host, "c-gate", "input_required")
        code, said = await failing(host, "tasks/result", taskId="c-gate")
        assert code == -32603 and "approve c-gate" in said
        task = await ask(host, "tasks/cancel", taskId="c-gate")
        assert task["status"] == "cancelled"
        await polled(host, "c-gate", "cancelled")
