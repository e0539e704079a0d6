"""A test that never ends, for the test of what becomes of such."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fixed() -> AsyncIterator[None]:
    yield
    await asyncio.sleep(0)


async def test_a(fixed: None) -> None:
    await asyncio.Event().wait()


async def test_b(fixed: None) -> None:
    await asyncio.sleep(0)
