"""Ctrl-C ends a watcher also when the run changes in the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.cli.shared import follow
from holdfast.client.reading import Look, Reader

pytestmark = pytest.mark.anyio


class Changing(Reader):
    """A reader whose run changes when it is told to."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection, "run")
        self.looked = asyncio.Event()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        yield

    async def look(self) -> Look:
        self.looked.set()
        return Look()


async def test_a_cancellation_that_comes_with_a_change_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing: Any = None
    reader = Changing(nothing)
    monkeypatch.setattr(follow, "Reader", lambda *_: reader)
    watching = asyncio.create_task(
        follow.watch(nothing, "run", follow.Lines(), lambda _: False), name="watching"
    )
    await reader.looked.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    reader.changed.set()
    watching.cancel()
    done, _ = await asyncio.wait([watching], timeout=1)
    assert done and watching.cancelled()
