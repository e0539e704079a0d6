"""Batches of messages, asked of the scripted server by Anthropic's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse

from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator

pytestmark = pytest.mark.anyio

MODEL = "claude-haiku-5-5"


def row(number: int, **fields: Any) -> Any:
    said = [{"role": "user", "content": f"Ticket {number}: my tea is cold."}]
    params = {"model": MODEL, "max_tokens": 100, "messages": said, **fields}
    return {"custom_id": f"row-{number}", "params": params}


def rows(count: int) -> list[Any]:
    return [row(number) for number in range(count)]


@asynccontextmanager
async def serving(
    *rules: dict[str, Any], script: dict[str, Any] | None = None, **batches: Any
) -> AsyncIterator[tuple[Simulator, AsyncAnthropic]]:
    """A server whose batches end at once, unless `batches` says otherwise, and a client."""
    told = {"rules": rules, "batches": {"seconds": 0, **batches}, **(script or {})}
    async with (
        Simulator(Script.model_validate(told)) as simulator,
        client_of(simulator) as client,
    ):
        yield simulator, client


def client_of(simulator: Simulator, key: str = "scripted") -> AsyncAnthropic:
    return AsyncAnthropic(base_url=simulator.url, api_key=key, max_retries=0)


async def ended(client: AsyncAnthropic, batch: MessageBatch) -> MessageBatch:
    async with asyncio.timeout(10):
        while batch.processing_status != "ended":
            await asyncio.sleep(0.005)
            batch = await client.messages.batches.retrieve(batch.id)
    return batch


async def results(
    client: AsyncAnthropic, batch: MessageBatch
) -> list[MessageBatchIndividualResponse]:
    await ended(client, batch)
    return [each async for each in await client.messages.batches.results(batch.id)]


def text_of(each: MessageBatchIndividualResponse) -> str:
    assert each.result.type == "succeeded"
    [block] = each.result.message.content
    assert block.type == "text"
    return block.text


async def test_a_batch_is_created_ends_and_gives_its_results_in_another_order() -> None:
    async with serving(seconds=0.05) as (simulator, client):
        batch = await client.messages.batches.create(requests=rows(40))
        assert (batch.processing_status, batch.results_url, batch.ended_at) == (
            "in_progress",
            None,
            None,
        )
        assert batch.request_counts.processing == 40
        assert (batch.expires_at - batch.created_at).total_seconds() == 86_400
        batch = await ended(client, batch)
        assert batch.results_url == f"{simulator.url}/v1/messages/batches/{batch.id}/results"
        assert batch.request_counts.to_dict() == {
            "processing": 0, "succeeded": 40, "errored": 0, "canceled": 0, "expired": 0
        }  # fmt: skip
        got = await results(client, batch)
        assert [each.custom_id for each in got] == [
            each.custom_id for each in await results(client, batch)
        ]
    asked = [f"row-{number}" for number in range(40)]
    assert [each.custom_id for each in got] != asked
    assert sorted(each.custom_id for each in got) == sorted(asked)
    for each in got:
        assert each.result.type == "succeeded"
        assert each.result.message.usage.service_tier == "batch"
        number = each.custom_id.removeprefix("row-")
        assert text_of(each).startswith(f"(scripted) Ticket {number}:")
    made = simulator.log.batches[batch.id]
    assert made.custom_ids == asked
    assert (made.told, made.fetched, made.complete, made.counts["succeeded"]) == (True, 2, 2, 40)
    assert simulator.log.steps["create"] == 1
    assert simulator.log.report()["batches"][0]["id"] == batch.id


async def test_a_request_of_a_batch_costs_half_of_what_it_costs_alone() -> None:
    big = row(1, system="Answer in kind. " * 500)
    async with serving() as (simulator, client):
        alone = await client.messages.create(**big["params"])
        full = simulator.log.dollars
        [result] = await results(client, await client.messages.batches.create(requests=[big]))
        assert result.result.type == "succeeded"
        assert result.result.message.content == alone.content
        assert simulator.log.dollars - full == full / 2 > 0
        log = simulator.log.report()
    assert (log["admitted"], log["delivered"]) == (2, 2)
