"""Fixtures for pytest: `pytest_plugins = ["holdfast.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.testing.deployment import Deployment, deployed


@pytest.fixture
async def deployment(request: pytest.FixtureRequest) -> AsyncIterator[Deployment]:
    """A deployment of the test's own. `@pytest.mark.scripted(rules=[...])` gives its script,
    `@pytest.mark.cassette("FILE")`, beside the test's module, what models answered;
    `pytest --record-cassettes` asks them, and writes the file.
    """
    script = request.node.get_closest_marker("scripted")
    cassette = request.node.get_closest_marker("cassette")
    given: dict[str, Any] = {}
    if cassette:
        path = request.path.parent / cassette.args[0]
        record = request.config.getoption("--record-cassettes")
        given = {**cassette.kwargs, "cassette": path, "record": record}
    async with deployed(script.kwargs if script else None, **given) as made:
        yield made


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-cassettes",
        action="store_true",
        help="holdfast: ask the models, and write the cassettes of the tests that run",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "scripted(**script): what the scripted endpoint answers")
    config.addinivalue_line("markers", "cassette(file, inputs=False): what models answered")
