"""What the heads of answers say of an endpoint's limits; what cannot be read says nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calling import REQUEST, claude
from holdfast.activities.claude.classify import LONGEST_WAIT
from holdfast.activities.claude.quotas import NAMES, read_head
from holdfast.contracts.errors import NotBilled
from holdfast.ports import Head, Quota
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 10, 14, 12, 0, 0, tzinfo=UTC)
PREFIX = "anthropic-ratelimit-"


def said(limit: str, remaining: str, reset: str, name: str = "requests") -> dict[str, str]:
    values = {"limit": limit, "remaining": remaining, "reset": reset}
    return {f"{PREFIX}{name}-{part}": value for part, value in values.items()}


def test_every_limit_of_the_api_is_read() -> None:
    headers: dict[str, str] = {}
    for name in NAMES.values():
        headers |= said("1000", "250", "2026-10-14T12:00:45Z", name)
    head = read_head(200, headers, NOW)
    assert head == Head(True, dict.fromkeys(NAMES, Quota(1_000, 250, 45.0)))


def test_a_refusal_says_it_too() -> None:
    head = read_head(429, said("5", "0", "2026-10-14T12:00:00.500Z"), NOW)
    assert head == Head(False, {"requests": Quota(5, 0, 0.5)})


def test_a_clock_that_is_wrong_here_is_told_by_the_servers_own() -> None:
    headers = said("5", "0", "2026-10-14T12:00:30Z") | {"date": "Wed, 14 Oct 2026 12:00:00 GMT"}
    wrong = NOW.replace(year=2020)
    assert read_head(200, headers, wrong).quotas["requests"].seconds == 30
    close = NOW.replace(microsecond=900_000)
    assert read_head(200, headers, close).quotas["requests"].seconds == pytest.approx(29.1)


@pytest.mark.parametrize(
    "headers",
    [
        said("", "1", "2026-10-14T12:00:30Z"),
        said("many", "1", "2026-10-14T12:00:30Z"),
        said("-5", "1", "2026-10-14T12:00:30Z"),
        said("1e3", "1", "2026-10-14T12:00:30Z"),
        said("0", "0", "2026-10-14T12:00:30Z"),
        said("٥", "1", "2026-10-14T12:00:30Z"),
        said("5", "1", "soon"),
        said("5", "1", "60"),
        said("5", "1", "2026-13-14T12:00:30Z"),
        said("5", "1", "2026-10-14T12:00:30"),
        said("5, 5", "1, 1", "2026-10-14T12:00:30Z"),
        {f"{PREFIX}requests-limit": "5"},
    ],
)
def test_nonsense_says_nothing(headers: dict[str, str]) -> None:
    assert read_head(200, headers, NOW) == Head(True)


def test_no_bucket_is_larger_than_its_limit_or_fills_for_days() -> None:
    head = read_head(200, said("5", "900", "9999-12-31T23:59:59Z"), NOW)
    assert head.quotas["requests"] == Quota(5, 5, LONGEST_WAIT)
    assert read_head(200, said("5", "1", "0001-01-01T00:00:00+23:59"), NOW).quotas
    assert (
        read_head(200, said("5", "1", "2026-10-14T11:00:00Z"), NOW).quotas["requests"].seconds == 0
    )


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_no_header_makes_it_fail(limit: str, remaining: str, reset: str, date: str) -> None:
    read_head(200, said(limit, remaining, reset) | {"date": date}, NOW)


async def test_the_head_of_an_answer_and_of_a_refusal_is_heard_in_the_task_that_asks() -> None:
    heads: list[tuple[Head, asyncio.Task[None] | None]] = []
    request = replace(REQUEST, heard=lambda head: heads.append((head, asyncio.current_task())))
    script = Script(rate=1, burst=2, limits=True)
    async with Simulator(script) as simulator, claude(simulator.url) as model:
        await model.ask(request)
        await model.ask(request)
        with pytest.raises(NotBilled):
            await model.ask(request)
    assert [head.taken for head, _ in heads] == [True, True, False]
    assert [head.quotas["requests"].remaining for head, _ in heads] == [1, 0, 0]
    assert all(head.quotas["requests"].limit == 2 for head, _ in heads)
    assert 1.5 < heads[-1][0].quotas["requests"].seconds <= 2
    assert {task for _, task in heads} == {asyncio.current_task()}


async def test_an_endpoint_that_says_nothing_of_its_limits_is_heard_to_say_nothing() -> None:
    heads: list[Head] = []
    async with Simulator(Script(rate=5, burst=5)) as simulator, claude(simulator.url) as model:
        await model.ask(replace(REQUEST, heard=heads.append))
    assert heads == [Head(True)]
