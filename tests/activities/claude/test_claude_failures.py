"""Calls that fail: what each failure costs, and what it says."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calling import KEY, REQUEST, SPEND_TEXT, bill_of, claude, failure
from holdfast.contracts import Unreached, Usage
from holdfast.contracts.errors import (
    AuthenticationRefused,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    SpendLimitReached,
    TookTooLong,
)
from holdfast.simulator.script import Rule, Script
from holdfast.simulator.server import Simulator

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("rule", "error", "wait"),
    [
        (Rule(status=400), CallRefused, None),
        (Rule(status=400, message=SPEND_TEXT), SpendLimitReached, None),
        (Rule(status=400, error_code="request_body_timeout"), NotBilled, 2.0),
        (Rule(status=401), AuthenticationRefused, None),
        (Rule(status=402), SpendLimitReached, None),
        (Rule(status=404, message="model: none"), CallRefused, None),
        (Rule(status=413), CallRefused, None),
        (Rule(status=429, headers={"retry-after": "7"}), NotBilled, 7.0),
        (Rule(status=429, headers={"retry-after-ms": "1500"}), NotBilled, 1.5),
        (Rule(status=429, error_code="enforced_spend_limit_reached"), SpendLimitReached, None),
        (Rule(status=500), NotBilled, None),
        (Rule(status=503, headers={"retry-after": "3"}), NotBilled, 3.0),
        (Rule(status=529), NotBilled, 1.0),
    ],
)  # fmt: skip
async def test_a_refusal_before_the_first_event_costs_nothing_and_is_sent_once(
    rule: Rule, error: type[OrchestrationError], wait: float | None
) -> None:
    raised, simulator = await failure(rule)
    assert type(raised) is error
    assert (raised.next_retry_delay.total_seconds() if raised.next_retry_delay else None) == wait
    assert raised.details == ()
    assert simulator.log.report()["requests"] == 1
    assert simulator.log.dollars == 0


@pytest.mark.parametrize(
    "rule",
    [
        Rule(status=408), Rule(status=409), Rule(status=504), Rule(status=524),
        Rule(fault="html_502"), Rule(fault="drop_before_headers"), Rule(fault="drop_mid_headers"),
        Rule(fault="hang"), Rule(fault="html_200"),
    ],
    ids=lambda rule: rule.fault or str(rule.status),
)  # fmt: skip
async def test_an_answer_lost_before_it_began_may_be_billed_and_its_usage_is_unknown(
    rule: Rule,
) -> None:
    raised, simulator = await failure(rule, stall_seconds=0.3)
    assert type(raised) is PossiblyBilled
    assert (bill_of(raised).calls, bill_of(raised).usage) == (1, Usage())
    assert simulator.log.report()["requests"] == 1


@pytest.mark.parametrize(
    "fault",
    [
        "drop_mid_stream",
        "end_mid_stream",
        "error_mid_stream",
        "stall_mid_stream",
        "bad_json",
        "slow_pings",
    ],
)
async def test_an_answer_lost_in_its_middle_says_what_was_seen_and_not_the_price(
    fault: Any,
) -> None:
    request = replace(REQUEST, deadline_seconds=1.0)
    raised, simulator = await failure(Rule(fault=fault), request, stall_seconds=0.3)
    assert type(raised) is (TookTooLong if fault == "slow_pings" else PossiblyBilled)
    bill = bill_of(raised)
    charged = simulator.log.usage
    assert bill.calls == 1
    assert bill.usage.input_tokens == charged.input_tokens > 0
    assert 0 < bill.usage.output_tokens < REQUEST.max_output
    assert (bill.dollars, bill.final) == (None, False)
    assert simulator.log.report()["requests"] == 1


@pytest.mark.parametrize(
    "rule",
    [
        *(Rule(status=status) for status in (408, 500, 504, 524, 529)),
        *(Rule(fault=fault) for fault in ("html_502", "html_200", "hang", "drop_before_headers")),
        *(Rule(fault=fault) for fault in ("drop_mid_stream", "stall_mid_stream", "bad_json")),
    ],
    ids=lambda rule: rule.fault or str(rule.status),
)
async def test_what_the_endpoint_loses_says_so_and_that_a_list_of_models_proves_nothing(
    rule: Rule,
) -> None:
    raised, _ = await failure(rule, stall_seconds=0.3)
    found = [each for each in raised.details if isinstance(each, Unreached)]
    # A call that Temporal tries again tells it with the last try.
    unreached = raised.unreached if isinstance(raised, NotBilled) else found[0]
    assert unreached is not None and unreached.lost and unreached.address.startswith("http://127")
    assert "claude" not in unreached.why, "it is the endpoint's, not this call's"


@pytest.mark.parametrize(
    "rule",
    [
        Rule(status=429),
        Rule(status=429, headers={"retry-after": "1"}),
        Rule(status=529, headers={"retry-after": "1"}),
        Rule(status=503, headers={"retry-after": "1"}),
    ],
)
async def test_who_refuses_for_the_rate_or_names_a_wait_is_no_outage(rule: Rule) -> None:
    raised, _ = await failure(rule)
    assert isinstance(raised, NotBilled) and raised.unreached is None
    assert raised.named == bool(rule.headers)


async def test_a_page_in_place_of_an_answer_is_named() -> None:
    raised, _ = await failure(Rule(fault="html_200"))
    assert "what came back is not a message (text/html" in str(raised)


async def test_a_call_in_whose_whole_time_nothing_came_is_lost_and_a_slow_one_is_not() -> None:
    request = replace(REQUEST, deadline_seconds=0.4)
    silent, _ = await failure(Rule(fault="hang"), request)
    slow, _ = await failure(Rule(fault="slow_pings"), request)
    assert type(silent) is type(slow) is TookTooLong
    assert [isinstance(each, Unreached) for each in silent.details] == [False, True]
    assert [isinstance(each, Unreached) for each in slow.details] == [False]


async def test_where_no_messages_api_answers_the_address_is_named_with_what_is_wrong() -> None:
    async with Simulator() as simulator, claude(f"{simulator.url}/v1") as model:
        with pytest.raises(EndpointUnreachable) as raised:
            await model.ask(REQUEST)
    said = raised.value.unreached
    assert said.mistaken and said.address.endswith("/v1") and not said.lost
    assert "no Messages API answers there, but 404" in said.why and "leave out /v1" in said.why


async def test_a_gateway_that_knows_no_path_any_more_is_an_outage_once_it_has_answered() -> None:
    rules = [Rule(fault="html_404", nth=(2,))]
    async with Simulator(Script(rules=rules)) as simulator, claude(simulator.url) as model:
        await model.ask(REQUEST)
        with pytest.raises(EndpointUnreachable) as raised:
            await model.ask(REQUEST)
    assert not raised.value.unreached.mistaken and "404" in raised.value.unreached.why
    assert simulator.log.dollars > 0


async def test_a_name_that_is_gone_is_an_outage_once_anything_was_heard_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after this process: a deployment remembers who has answered it."""
    kept = tmp_path / "heard"

    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def asks(url: str) -> bool:
        async with claude(url, heard=kept) as model:
            with pytest.raises(EndpointUnreachable) as raised:
                await model.ask(REQUEST)
        return raised.value.unreached.mistaken

    async with Simulator() as simulator:
        url = simulator.url.replace("127.0.0.1", "localhost")
        with monkeypatch.context() as away:
            away.setattr(socket, "getaddrinfo", nobody)
            assert await asks(url), "never heard: most likely a mistake"
        async with claude(url, heard=kept) as model:
            assert await model.reach() == ""
        with monkeypatch.context() as away:
            away.setattr(socket, "getaddrinfo", nobody)
            assert not await asks(url)
    assert kept.read_text() == f"{url}\n" and kept.stat().st_mode & 0o777 == 0o600


async def test_an_overload_reported_inside_a_stream_is_named_in_the_error() -> None:
    raised, _ = await failure(Rule(fault="error_mid_stream"))
    assert "overloaded_error" in str(raised)


async def test_a_connection_that_cannot_be_made_was_not_billed() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with claude(url) as model:
        with pytest.raises(EndpointUnreachable) as raised:
            await model.ask(REQUEST)
    assert raised.value.unreached == Unreached(address=url, why="Connection refused")
    assert raised.value.non_retryable


async def test_waiting_for_a_free_connection_in_vain_was_not_billed() -> None:
    script = Script(rules=(Rule(fault="hang"),))
    options = {"connections": 1, "pool_seconds": 0.1}
    async with Simulator(script) as simulator, claude(simulator.url, **options) as model:
        first = asyncio.create_task(model.ask(REQUEST))
        await until(lambda: simulator.log.now == 1)
        with pytest.raises(NotBilled):
            await model.ask(REQUEST)
        first.cancel()
        with pytest.raises(PossiblyBilled):
            await first


async def test_an_address_that_is_none_is_refused_for_good() -> None:
    async with claude("ftp://127.0.0.1") as model:
        with pytest.raises(CallRefused):
            await model.ask(REQUEST)


async def test_an_error_tells_what_to_do_and_never_the_key() -> None:
    raised, _ = await failure(Rule(status=401, message=f"invalid key {KEY}"))
    assert "ANTHROPIC_API_KEY" in str(raised)
    assert "invalid key [redacted]" in str(raised)
    assert KEY not in str(raised)
    assert raised.__cause__ is None


async def test_the_wait_is_what_the_server_asks() -> None:
    raised, _ = await failure(Rule(status=429, headers={"retry-after": "8"}))
    assert isinstance(raised, NotBilled) and raised.throttled
    assert raised.next_retry_delay is not None
    assert raised.next_retry_delay.total_seconds() == 8.0


async def test_a_wait_of_days_is_cut_and_said() -> None:
    raised, _ = await failure(Rule(status=429, headers={"retry-after": "604800"}))
    assert raised.next_retry_delay is not None
    assert raised.next_retry_delay.total_seconds() == 300.0
    assert "(asked to wait 604800 s; tried again after 300 s)" in str(raised)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is awaited is in the server
        await asyncio.sleep(0.01)


async def test_a_cancelled_call_closes_its_connection_and_returns_the_usage_so_far() -> None:
    script = Script(rules=(Rule(fault="slow_pings"),), ping_seconds=0.02)
    async with Simulator(script) as simulator, claude(simulator.url) as model:
        call = asyncio.create_task(model.ask(REQUEST))
        await until(lambda: simulator.log.now == 1)
        # The first events are on their way; nothing tells when this side has read them.
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(PossiblyBilled, match="cancellation") as raised:
            await call
        await until(lambda: simulator.log.now == 0)
    assert bill_of(raised.value).usage.input_tokens > 0


async def test_the_deadline_ends_a_stream_that_never_stalls() -> None:
    request = replace(REQUEST, deadline_seconds=0.4)
    raised, _ = await failure(Rule(fault="slow_pings"), request)
    assert "deadline of 0.4 s" in str(raised)
