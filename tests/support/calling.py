"""What tests of the adapter ask, and of whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.calls.work import WorkAnswer
from holdfast.contracts import Bill, Capabilities
from holdfast.contracts.errors import OrchestrationError
from holdfast.deployment.settings import Settings
from holdfast.ports import ModelRequest
from holdfast.simulator.script import Rule, Script
from holdfast.simulator.server import Simulator

KEY = "sk-ant-0123456789"
SPEND_TEXT = "You have reached your specified API usage limits."
PLAIN = Capabilities(schema_mode="prompt", effort=False, token_counting=False)
REQUEST = ModelRequest(
    model="claude-sonnet-5-5",
    system="You are an analyst. " + "You weigh evidence. " * 150,
    prompt="<instruction>\nCompare the three offers.\n</instruction>",
    schema=WorkAnswer.model_json_schema(),
    max_output=4_000,
    deadline_seconds=30.0,
)
price = Prices.of(Settings(_env_file=None)).price


@asynccontextmanager
async def claude(url: str, **options: Any) -> AsyncIterator[Claude]:
    model = Claude(key=KEY, base_url=url, price=price, **options)
    try:
        yield model
    finally:
        await model.aclose()


async def failure(
    rule: Rule, request: ModelRequest = REQUEST, **options: Any
) -> tuple[OrchestrationError, Simulator]:
    """The error of one call to a simulator with this rule, and the simulator, stopped."""
    script = Script(rules=(rule,), ping_seconds=0.05)
    async with Simulator(script) as simulator, claude(simulator.url, **options) as model:
        with pytest.raises(OrchestrationError) as raised:
            await model.ask(request)
    return raised.value, simulator


def bill_of(error: OrchestrationError) -> Bill:
    bill = error.details[0]
    assert isinstance(bill, Bill)
    return bill
