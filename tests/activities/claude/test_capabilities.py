"""What an endpoint understands, found out without paying."""

from __future__ import annotations

import pytest

from calling import PLAIN
from holdfast.activities.claude.endpoint import FULL, find_capabilities
from holdfast.contracts import Capabilities
from simulator.server import Simulator

pytestmark = pytest.mark.anyio


async def test_the_official_host_understands_everything_and_is_not_probed() -> None:
    assert await find_capabilities("", "", "auto", ["claude-haiku-5-5"]) == FULL


async def test_an_endpoint_is_asked_what_its_models_understand_without_paying() -> None:
    async with Simulator() as simulator:
        found = await find_capabilities("k", simulator.url, "auto", ["claude-haiku-5-5"])
        unknown = await find_capabilities("k", simulator.url, "auto", ["claude-haiku-5-5", "x"])
    assert found == FULL
    assert unknown == PLAIN.model_copy(update={"token_counting": True})
    assert simulator.log.report()["requests"] == 0


async def test_an_endpoint_that_does_not_answer_understands_text() -> None:
    assert await find_capabilities("", "http://127.0.0.1:9", "auto", ["m"]) == PLAIN


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ("full", FULL),
        ("none", PLAIN),
        ("effort,counting", PLAIN.model_copy(update={"effort": True, "token_counting": True})),
        ("caching", PLAIN.model_copy(update={"caching": True})),
        ("schemas", Capabilities(effort=False, token_counting=False)),
    ],
)
async def test_capabilities_can_be_configured(configured: str, expected: Capabilities) -> None:
    assert await find_capabilities("", "http://127.0.0.1:9", configured, []) == expected


async def test_a_misspelt_capability_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"\['schema'\].*schemas"):
        await find_capabilities("", "", "schema,effort", [])
