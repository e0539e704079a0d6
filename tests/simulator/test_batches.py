"""Batches of messages, asked of the scripted server by Anthropic's own client."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.replaying.cassette import Cassette
from holdfast.simulator.batch_routes import mistake
from holdfast.simulator.batch_script import Batches
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
    async with asyncio.timeout(60):
        while batch.processing_status != "ended":
            await asyncio.sleep(0.005)
            batch = await client.messages.batches.retrieve(batch.id)
    return batch


async def results(
    client: AsyncAnthropic, batch: MessageBatch
) -> list[MessageBatchIndividualResponse]:
    await ended(client, batch)
    return [each async for each in await client.messages.batches.results(batch.id)]


async def created(client: AsyncAnthropic, count: int) -> MessageBatch:
    return await client.messages.batches.create(requests=rows(count))


def outcomes(got: list[MessageBatchIndividualResponse]) -> dict[str, str]:
    return {each.custom_id: each.result.type for each in got}


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
            "processing": 0,
            "succeeded": 40,
            "errored": 0,
            "canceled": 0,
            "expired": 0,
        }
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


def test_the_client_that_does_not_wait_for_a_loop_reads_a_batch_as_well() -> None:
    async def served() -> tuple[list[str], int]:
        async with Simulator(Script(batches=Batches(seconds=(0, 0)))) as simulator:
            return await asyncio.to_thread(ask, simulator.url), len(simulator.log.batches)

    def ask(url: str) -> list[str]:
        with Anthropic(base_url=url, api_key="scripted", max_retries=0) as client:
            batch = client.messages.batches.create(requests=rows(3))
            while client.messages.batches.retrieve(batch.id).processing_status != "ended":
                time.sleep(0.005)
            return sorted(each.custom_id for each in client.messages.batches.results(batch.id))

    assert asyncio.run(served()) == (["row-0", "row-1", "row-2"], 1)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([], "requests: List should have at least 1 item"),
        (rows(4), "requests: List should have at most 3 items after validation, not 4"),
        ([row(1), row(1)], "requests: custom_id must be unique"),
        ([{**row(1), "custom_id": "a.b"}], "requests.0.custom_id: String should match pattern"),
        ([row(0), {**row(1), "custom_id": "x" * 65}], "requests.1.custom_id"),
        ([{"custom_id": "a"}], "requests.0.params: Field required"),
        ([{**row(1), "stream": False}], "requests.0.stream: Extra inputs are not permitted"),
        ([row(1, stream=True)], "requests.0.params.stream"),
        ([row(1, speed="fast")], "requests.0.params.speed"),
        ([row(1, max_tokens=0)], "requests.0.params.max_tokens"),
    ],
)
async def test_what_no_batch_may_have_is_refused_before_there_is_one(
    requests: list[Any], said: str
) -> None:
    async with serving(most_rows=3) as (simulator, client):
        with pytest.raises(anthropic.BadRequestError, match=said.replace(".", "[.]")) as refused:
            await client.messages.batches.create(requests=requests)
    assert refused.value.type == "invalid_request_error"
    assert not simulator.log.batches


async def test_a_batch_may_be_larger_than_a_message_and_has_its_own_limit() -> None:
    large = row(1, system="x" * 34_000_000)
    async with serving(hold=True) as (simulator, client):
        await client.messages.batches.create(requests=[large])
        simulator.script = Script(batches=Batches(most_bytes=1_000))
        with pytest.raises(anthropic.RequestTooLargeError):
            await client.messages.batches.create(requests=[row(1, system="x" * 2_000)])
    assert len(simulator.log.batches) == 1


async def test_what_is_wrong_with_one_request_is_an_error_among_the_results() -> None:
    wrong = [row(1, model="claude-9"), row(2, temperature=0), row(3)]
    async with serving() as (simulator, client):
        got = await results(client, await client.messages.batches.create(requests=wrong))
    errors = {
        each.custom_id: each.result.error.error for each in got if each.result.type == "errored"
    }
    assert {name: error.type for name, error in errors.items()} == {
        "row-1": "not_found_error",
        "row-2": "invalid_request_error",
    }
    assert errors["row-2"].message == "temperature: Extra inputs are not permitted"
    assert simulator.log.report()["admitted"] == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
ROW = st.fixed_dictionaries({}, optional={"custom_id": JSON | st.just("a"), "params": JSON})


@given(st.fixed_dictionaries({}, optional={"requests": st.lists(ROW | JSON) | JSON}))
def test_no_batch_breaks_the_validation(body: dict[str, Any]) -> None:
    if not mistake(body, 3):
        assert {"custom_id", "params"} == set(body["requests"][0])


async def test_there_are_no_results_before_the_end_and_nothing_is_deleted_before_it() -> None:
    async with serving(hold=True) as (simulator, client):
        batch = await created(client, 2)
        with pytest.raises(anthropic.NotFoundError):
            await client.get(f"/v1/messages/batches/{batch.id}/results", cast_to=object)
        with pytest.raises(anthropic.AnthropicError, match="Has it finished processing"):
            await client.messages.batches.results(batch.id)
        with pytest.raises(anthropic.BadRequestError, match="still processing"):
            await client.messages.batches.delete(batch.id)
        async with aiohttp.ClientSession(simulator.url) as session:
            await session.post("/simulator/release", params={"id": batch.id})
        await ended(client, batch)
        with pytest.raises(anthropic.BadRequestError, match="cannot be canceled"):
            await client.messages.batches.cancel(batch.id)
        gone = await client.messages.batches.delete(batch.id)
        assert (gone.id, gone.type) == (batch.id, "message_batch_deleted")
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.batches.retrieve(batch.id)
    assert simulator.log.batches[batch.id].deleted


async def test_an_endpoint_may_have_no_batches_and_says_so_of_its_models() -> None:
    for offered in (True, False):
        async with serving(offered=offered) as (_, client):
            [first, *_others] = (await client.models.list()).data
            assert first.capabilities is not None
            assert first.capabilities.batch.supported is offered
            if offered:
                await client.messages.batches.list()
            else:
                with pytest.raises(anthropic.NotFoundError):
                    await client.messages.batches.list()


async def test_results_are_gone_once_a_batch_is_archived() -> None:
    async with serving(keeps=0) as (_, client):
        batch = await ended(client, await created(client, 1))
        assert (batch.archived_at is not None, batch.results_url) == (True, None)
        with pytest.raises(anthropic.NotFoundError):
            await client.get(f"/v1/messages/batches/{batch.id}/results", cast_to=object)


# ---------------------------------------------------------------- how requests end


async def test_rules_decide_what_becomes_of_each_request_and_only_success_is_paid() -> None:
    rules: list[dict[str, Any]] = [
        {"lane": "now", "status": 529},
        {"text": "Ticket 1:", "status": 500, "message": "broken"},
        {"text": "Ticket 2:", "outcome": "errored", "type": "overloaded_error"},
        {"text": "Ticket 3:", "outcome": "expired"},
        {"text": "Ticket 4:", "outcome": "canceled"},
        {"text": "Ticket 5:", "result": "tea"},
    ]
    async with serving(*rules) as (simulator, client):
        batch = await ended(client, await created(client, 7))
        got = {each.custom_id: each for each in await results(client, batch)}
        with pytest.raises(anthropic.OverloadedError):
            await client.messages.create(**row(5)["params"])
        dollars = simulator.log.dollars
        await results(client, await client.messages.batches.create(requests=[row(6)]))
        assert simulator.log.report()["admitted"] == 4
    assert batch.request_counts.to_dict() == {
        "processing": 0,
        "succeeded": 3,
        "errored": 2,
        "canceled": 1,
        "expired": 1,
    }
    assert outcomes([*got.values()]) == {
        "row-0": "succeeded",
        "row-1": "errored",
        "row-2": "errored",
        "row-3": "expired",
        "row-4": "canceled",
        "row-5": "succeeded",
        "row-6": "succeeded",
    }
    broken, loaded = got["row-1"].result, got["row-2"].result
    assert broken.type == loaded.type == "errored"
    assert (broken.error.error.type, broken.error.error.message) == ("api_error", "broken")
    assert loaded.error.error.type == "overloaded_error"
    assert text_of(got["row-5"]) == "(scripted) tea"
    assert dollars < 4 * (simulator.log.dollars - dollars)


async def test_a_share_errs_by_the_seed_and_the_same_seed_does_the_same() -> None:
    rule = {"lane": "batch", "probability": 0.3, "outcome": "expired"}
    seen = []
    for seed in (1, 1, 2):
        async with serving(rule, script={"seed": seed}) as (_, client):
            seen.append([*outcomes(await results(client, await created(client, 60))).items()])
    assert seen[0] == seen[1] != seen[2]
    assert 8 <= Counter(dict(seen[0]).values())["expired"] <= 28


async def test_a_canceled_batch_ends_with_what_was_done_and_paid() -> None:
    async with serving(hold=True, finishes=0.4, cancel_seconds=0.05) as (simulator, client):
        batch = await client.messages.batches.cancel((await created(client, 50)).id)
        assert (batch.processing_status, batch.request_counts.processing) == ("canceling", 50)
        assert batch.cancel_initiated_at is not None
        batch = await client.messages.batches.cancel(batch.id)
        assert batch.processing_status == "canceling"
        counts = Counter(outcomes(await results(client, batch)).values())
    assert set(counts) == {"succeeded", "canceled"} and counts.total() == 50
    assert simulator.log.report()["admitted"] == counts["succeeded"] > 0
    assert simulator.log.batches[batch.id].canceled


@pytest.mark.parametrize("batches", [{"seconds": 60}, {"hold": True}])
async def test_a_batch_that_lasts_too_long_expires(batches: dict[str, Any]) -> None:
    async with serving(**{**batches, "lasts": 0.05}) as (simulator, client):
        batch = await created(client, 3)
        assert (batch.expires_at - batch.created_at).total_seconds() == 0.05
        assert set(outcomes(await results(client, batch)).values()) == {"expired"}
    assert simulator.log.dollars == 0


# ---------------------------------------------------------------- the list


async def test_the_list_goes_from_the_newest_to_the_oldest_by_pages() -> None:
    async with serving() as (_, client):
        made = [(await created(client, 1)).id for _ in range(5)]
        made.reverse()
        page = await client.messages.batches.list(limit=2)
        assert ([each.id for each in page.data], page.has_more) == (made[:2], True)
        assert (page.first_id, page.last_id) == (made[0], made[1])
        assert [each.id async for each in page] == made
        newer = await client.messages.batches.list(before_id=made[3], limit=2)
        assert ([each.id for each in newer.data], newer.has_more) == (made[1:3], True)
        last = await client.messages.batches.list(after_id=made[3], limit=2)
        assert ([each.id for each in last.data], last.has_more) == (made[4:], False)
        refused: Any
        for refused in ({"limit": 0}, {"limit": 1_001}, {"after_id": "msgbatch_x"}):
            with pytest.raises(anthropic.BadRequestError):
                await client.messages.batches.list(**refused)


async def test_a_batch_belongs_to_the_workspace_of_its_key() -> None:
    shared = {"one": "team", "two": "team"}
    async with (
        serving(workspaces=shared) as (simulator, other),
        client_of(simulator, "one") as one,
        client_of(simulator, "two") as two,
    ):
        batch = await created(one, 1)
        assert [each.id for each in (await two.messages.batches.list()).data] == [batch.id]
        assert (await other.messages.batches.list()).data == []
        for call in (other.messages.batches.retrieve, other.messages.batches.cancel):
            with pytest.raises(anthropic.NotFoundError):
                await call(batch.id)
        with pytest.raises(anthropic.PermissionDeniedError):
            await other.messages.batches.list(workspace_id="team")
        assert len((await one.messages.batches.list(workspace_id="team")).data) == 1


async def test_a_new_batch_may_be_unseen_for_a_while_in_the_list_or_altogether() -> None:
    async with serving(behind=60) as (_, client):
        batch = await created(client, 1)
        assert (await client.messages.batches.list()).data == []
        assert (await client.messages.batches.retrieve(batch.id)).id == batch.id
    async with serving(unseen=0.1) as (_, client):
        batch = await created(client, 1)
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.batches.retrieve(batch.id)
        await asyncio.sleep(0.1)
        assert len(await results(client, batch)) == 1


async def test_batches_of_others_look_like_ours_and_cost_us_nothing() -> None:
    async with serving({"outcome": "expired"}, foreign=2) as (simulator, client):
        ours = await created(client, 3)
        listed = (await client.messages.batches.list()).data
        assert [each.id for each in listed].index(ours.id) == 1
        for batch in (listed[0], listed[2]):
            got = outcomes(await results(client, batch))
            assert got == dict.fromkeys(("other-0", "other-1", "other-2"), "succeeded")
            assert simulator.log.batches[batch.id].foreign
    assert simulator.log.dollars == 0
    assert not simulator.log.batches[ours.id].foreign


# ---------------------------------------------------------------- faults


async def test_a_batch_whose_creation_was_not_answered_may_exist() -> None:
    faults = [
        {"step": "create", "nth": [1], "fault": "drop"},
        {"step": "create", "nth": [2], "fault": "drop", "after": True},
        {"step": "create", "nth": [3], "status": 529, "after": True},
        {"step": "create", "nth": [4], "fault": "hang", "seconds": 9, "after": True},
    ]
    async with serving(faults=faults) as (simulator, client):
        for expected in (0, 1, 2, 3):
            with pytest.raises((anthropic.APIConnectionError, anthropic.OverloadedError)):
                await client.with_options(timeout=0.3).messages.batches.create(requests=rows(2))
            assert len((await client.messages.batches.list()).data) == expected
        told = await created(client, 2)
    made = simulator.log.batches
    assert [each.told for each in made.values()] == [False] * 3 + [True]
    assert [*made][-1] == told.id
    assert simulator.log.steps["create"] == 5


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_every_endpoint_can_fail_with_a_status_and_then_answer(status: int) -> None:
    steps = ("create", "retrieve", "list", "cancel", "delete", "results")
    faults = [{"step": step, "first": 1, "status": status} for step in steps]
    async with serving(faults=faults) as (simulator, client):
        client = client.with_options(max_retries=1)
        batches = client.messages.batches
        wait = {"retry-after-ms": "1"}
        simulator.script = Script.model_validate(
            {"batches": {"seconds": 0.2, "faults": [{**each, "headers": wait} for each in faults]}}
        )
        batch = await batches.create(requests=rows(1))
        await batches.retrieve(batch.id)
        assert len((await batches.list()).data) == 1
        await batches.cancel(batch.id)
        assert len(await results(client, batch)) == 1
        await batches.delete(batch.id)
    assert min(simulator.log.steps[step] for step in steps) == 2


async def test_results_can_break_off_in_every_way_and_are_whole_the_next_time() -> None:
    faults = [
        {"step": "results", "nth": [number], "fault": fault, "at": 0.5}
        for number, fault in enumerate(("cut", "end", "short", "stall"), 1)
    ]
    async with serving(faults=faults) as (simulator, client):
        batch = await ended(client, await created(client, 10))
        hasty = client.with_options(timeout=0.3)

        async def read() -> tuple[int, type[Exception] | None]:
            got = 0
            try:
                async for _ in await hasty.messages.batches.results(batch.id):
                    got += 1
            except (httpx2.HTTPError, ValueError) as error:
                return got, type(error)
            return got, None

        assert [await read() for _ in range(5)] == [
            (5, httpx2.RemoteProtocolError),
            (5, json.JSONDecodeError),
            (5, None),
            (5, httpx2.ReadTimeout),
            (10, None),
        ]
    assert (simulator.log.batches[batch.id].fetched, simulator.log.batches[batch.id].complete) == (
        5,
        1,
    )
    log = simulator.log.report()
    assert (log["admitted"], log["delivered"], log["again"]) == (10, 10, 0)


async def test_requests_and_what_they_queue_are_limited_by_workspace() -> None:
    async with serving(hold=True, queued=5) as (simulator, client):
        first = await created(client, 3)
        with pytest.raises(anthropic.RateLimitError):
            await created(client, 3)
        async with client_of(simulator, "another") as another:
            await created(another, 3)
        simulator.batches.release(first.id)
        await ended(client, first)
        await created(client, 3)
    async with serving(rate=0.1, burst=2, script={"limits": True}) as (_, client):
        listed = await client.messages.batches.with_raw_response.list()
        assert listed.headers["anthropic-ratelimit-requests-remaining"] == "1"
        await client.messages.batches.list()
        with pytest.raises(anthropic.RateLimitError) as refused:
            await client.messages.batches.list()
        assert 1 <= int(refused.value.response.headers["retry-after"]) <= 10


@pytest.mark.parametrize(
    "fault",
    [{"step": "create"}, {"step": "create", "fault": "cut"}, {"step": "pay", "status": 500}],
)
def test_a_fault_that_cannot_be_is_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Batches.model_validate({"faults": [fault]})


# ---------------------------------------------------------------- the cache, bills, cassettes


def marked(number: int, ttl: str = "1h") -> Any:
    mark = {"type": "ephemeral", "ttl": ttl}
    preamble = {"type": "text", "text": "You answer in kind. " * 400, "cache_control": mark}
    return row(number, system=[preamble])


async def test_a_warmed_preamble_is_read_by_the_share_of_a_batch_that_finds_it() -> None:
    requests = [marked(number) for number in range(60)]
    async with serving(hits=0.5) as (simulator, client):
        warm = await client.messages.create(**requests[0]["params"])
        assert warm.usage.cache_creation is not None
        written = warm.usage.cache_creation.ephemeral_1h_input_tokens
        assert written == warm.usage.cache_creation_input_tokens > 2_000
        got = await results(client, await client.messages.batches.create(requests=requests))
    reads = Counter(
        each.result.message.usage.cache_read_input_tokens
        for each in got
        if each.result.type == "succeeded"
    )
    assert set(reads) == {0, written}
    assert 18 <= reads[written] <= 42
    assert simulator.log.usage.cache_read_tokens == written * reads[written]


async def test_an_hour_in_the_cache_costs_twice_the_input_and_half_of_that_in_a_batch() -> None:
    spent = []
    async with serving() as (simulator, client):
        for ttl in ("5m", "1h"):
            before = simulator.log.dollars
            await client.messages.create(**marked(1, ttl)["params"])
            spent.append(simulator.log.dollars - before)
            simulator.reset()
            await results(client, await client.messages.batches.create(requests=[marked(1, ttl)]))
            spent.append(simulator.log.dollars)
            simulator.reset()
    short, batched, hour, batched_hour = spent
    rounded = Decimal("0.000002")
    assert abs(batched - short / 2) < rounded and abs(batched_hour - hour / 2) < rounded
    # 2,001 tokens at $0.10 the million: 2 in place of 1.25 times.
    assert abs(hour - short - Decimal("0.00015")) < rounded


async def test_an_hour_is_not_asked_for_after_five_minutes() -> None:
    later = marked(1, "5m")["params"]
    mark = {"type": "ephemeral", "ttl": "1h"}
    block = {"type": "text", "text": "Ticket", "cache_control": mark}
    async with serving() as (_, client):
        later["messages"] = [{"role": "user", "content": [block]}]
        with pytest.raises(anthropic.BadRequestError, match="must not come after a ttl='5m'"):
            await client.messages.create(**later)
        with pytest.raises(anthropic.BadRequestError, match="'5m' or '1h'"):
            await client.messages.create(**marked(1, "2h")["params"])


async def test_what_a_batch_asked_and_cost_outlives_the_server(tmp_path: Path) -> None:
    script = Script.model_validate({"batches": {"seconds": 0}, "mark": "Ticket [0-9]+"})
    memory, kept = tmp_path / "charged.jsonl", tmp_path / "requests.jsonl"
    async with (
        Simulator(script, memory=memory, requests=kept) as first,
        client_of(first) as client,
    ):
        await results(client, await client.messages.batches.create(requests=[marked(1), row(2)]))
        await client.messages.create(**row(2)["params"])
        before = first.log.report()
    after = Simulator(script, memory=memory).log.report()
    assert after["dollars"] == before["dollars"] != "0"
    assert after["marks"] == before["marks"]
    assert before["marks"]["Ticket 2"]["calls"] == 2
    asked = [json.loads(line) for line in kept.read_text().splitlines()]
    assert asked == [each["params"] for each in (marked(1), row(2), row(2))]


async def test_a_batch_is_answered_from_a_cassette_and_errs_where_that_has_nothing() -> None:
    async with serving() as (_, client):
        said = await client.messages.create(**row(1)["params"])
    cassette = Cassette()
    cassette.record(row(1)["params"], said.to_dict())
    async with Simulator(cassette=cassette) as simulator, client_of(simulator) as client:
        got = {each.custom_id: each for each in await results(client, await created(client, 2))}
    assert text_of(got["row-1"]).startswith("(scripted) Ticket 1")
    failed = got["row-0"].result
    assert failed.type == "errored" and "not on the cassette" in failed.error.error.message


@pytest.mark.long
async def test_ten_thousand_requests_cost_little() -> None:
    async with serving() as (simulator, client):
        began = time.process_time()
        batch = await created(client, 10_000)
        await ended(client, batch)
        assert time.process_time() - began < 6
        assert simulator.log.report()["admitted"] == 10_000
