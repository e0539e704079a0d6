"""The plain twin of the Python door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import holdfast
from conftest import Runs
from holdfast import Holdfast
from holdfast.client import plain
from holdfast.intake.connection import Connection
from steered import script

pytestmark = pytest.mark.anyio


async def test_a_script_is_told_what_its_run_waits_for(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Holdfast]:
        yield Holdfast.on(connection)

    # The script's wait for the report would skip the time in which a person decides.
    monkeypatch.setattr(plain, "Holdfast", opened)
    async with runs.worker(script()), asyncio.timeout(60):
        with runs.env.with_time_skipping_disabled():
            asked = asyncio.to_thread(
                holdfast.run, "Compare three engines", approval="always", id="plain-waits"
            )
            waiting = asyncio.create_task(asked)
            said = ""
            while "waits" not in said:
                await asyncio.sleep(0.05)
                said += capsys.readouterr().err
        assert "Run plain-waits waits; why: " in said and "show plain-waits" in said
        await (await Holdfast.on(connection).run_of("plain-waits")).approve()
        assert (await waiting).status == "complete"
