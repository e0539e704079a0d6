"""A server that an older version has started is used on: it is given the search attributes that it
lacks.
"""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.client import Client

from holdfast.contracts.search import PLAN, SEARCH_ATTRIBUTES
from holdfast.embedded import server

pytestmark = pytest.mark.anyio


class OlderServer:
    """Has these search attributes, and takes more."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.operator_service = self.workflow_service = self

    async def list_search_attributes(self, request: Any, timeout: timedelta) -> Any:
        return SimpleNamespace(custom_attributes=dict.fromkeys(self.names))

    async def add_search_attributes(self, request: Any, timeout: timedelta) -> None:
        self.names |= {*request.search_attributes}

    async def describe_namespace(self, request: Any, timeout: timedelta) -> Any:
        kept = SimpleNamespace(ToTimedelta=lambda: server.RETENTION)
        config = SimpleNamespace(workflow_execution_retention_ttl=kept)
        return SimpleNamespace(config=config)


@pytest.mark.parametrize("starting", [False, True])
async def test_it_is_given_what_it_lacks_unless_it_only_starts(
    monkeypatch: pytest.MonkeyPatch, starting: bool
) -> None:
    older = OlderServer(set() if starting else {*SEARCH_ATTRIBUTES} - {PLAN.name})

    async def connect(address: str) -> OlderServer:
        return older

    monkeypatch.setattr(Client, "connect", connect)
    assert not await server._answers("")
    assert (PLAN.name in older.names) is not starting
    assert await server._answers("") is not starting
