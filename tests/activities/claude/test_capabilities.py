"""What an endpoint understands, found out without paying."""

from __future__ import annotations

from pathlib import Path

import pytest

from calling import PLAIN
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.endpoint import FULL, find_capabilities
from holdfast.activities.model_endpoint import model_endpoint
from holdfast.contracts import Capabilities
from holdfast.deployment.settings import Settings
from holdfast.simulator.server import Simulator

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


async def test_a_model_that_is_set_to_plan_counts_among_those_in_use(
    tmp_path: Path,
) -> None:
    found = []
    async with Simulator() as simulator:
        base = Settings(_env_file=None, state_dir=tmp_path, anthropic_base_url=simulator.url)
        for planner in ("claude-opus-5-5", "unlisted"):
            settings = base.model_copy(update={"model_planner": planner})
            found.append(await model_endpoint(settings, Prices.of(settings)).capabilities())
    assert [each.schema_mode for each in found] == ["native", "prompt"]
