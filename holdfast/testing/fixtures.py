"""Fixtures for pytest: `pytest_plugins = ["holdfast.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.testing.deployment import Deployment, deployed


@pytest.fixture
async def deployment(request: pytest.FixtureRequest) -> AsyncIterator[Deployment]:
    """A deployment of the test's own. `@pytest.mark.scripted(rules=[...])` gives its script."""
    mark = request.node.get_closest_marker("scripted")
    async with deployed(mark.kwargs if mark else None) as made:
        yield made


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "scripted(**script): what the scripted endpoint answers")
