"""Slack's door is killed with -9 while it starts runs and writes threads: nothing is there twice,
and nothing is missing once a door is back.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs
from holdfast.contracts.search import RUNS
from holdfast.doors.slack.places import of_mention
from holdfast.intake.connection import Connection
from scripted import ScriptedModel, plans, subtask, synthesizes, works
from slack_stand_in import ADA, BOT_USER, Slack, slack

pytestmark = [pytest.mark.anyio, pytest.mark.long]
PROGRAM = Path(__file__).resolve().parents[1] / "support" / "slack_process.py"
KILLS = 4


@asynccontextmanager
async def door(stand: Slack, connection: Connection, project: Path) -> AsyncIterator[None]:
    """Have a door until the block ends, which kills it."""
    target = connection.target
    given = (target.address, target.task_queue, target.store_url)
    places = (project, connection.settings.state_dir, f"{stand.address}/api/")
    process = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, *map(str, (*given, *places)), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert b"Socket Mode" in await process.stdout.readline()
        yield
    finally:
        process.kill()
        await process.wait()
        await stand.until(lambda: not stand.sockets)


async def deliver(stand: Slack, said: dict[str, Any], retry: int) -> bool:
    """Return True if the message was acknowledged."""
    with suppress(TimeoutError, ConnectionError, IndexError):
        await stand.event(said, retry)
        return True
    return False


async def test_a_door_that_is_killed_again_and_again_starts_one_run_and_tells_it_once(
    connection: Connection, runs: Runs, tmp_path: Path
) -> None:
    chance = random.Random(7)
    lines = {
        "plan": [plans(subtask("t1"))],
        "t1": [works("2.5")],
        "synthesize": [synthesizes("It rose.")],
    }
    project = tmp_path / "shop"
    project.mkdir()
    stand = Slack()
    (project / "holdfast.toml").write_text(
        f'[slack.{stand.channel}]\npeople = ["{ADA}"]\ndollars = 1\n'
    )
    async with slack(stand), runs.worker(ScriptedModel(lines), projects=(project,)):
        said = stand.write(f"<@{BOT_USER}> Which rates changed?")
        place = of_mention(stand.channel, said["event"]["ts"])
        assert place
        ts, heard = said["event"]["ts"], False
        with runs.env.with_time_skipping_disabled():
            for kill in range(KILLS):
                async with door(stand, connection, project):
                    if not heard:
                        delivering = asyncio.create_task(deliver(stand, said, kill))
                    await asyncio.sleep(chance.uniform(0.0, 0.5))
                heard = heard or await delivering
            async with door(stand, connection, project):
                heard = heard or await deliver(stand, said, KILLS)
                assert heard

                def waiting() -> dict[str, Any] | None:
                    found = stand.part(ts, "board")
                    return found[0] if found and "holdfast_approve" in json.dumps(found) else None

                board = await stand.until(waiting, 60)
                await stand.interact(stand.press(board, "approve"))
                await connection.handle(place.run_id).result()
            async with door(stand, connection, project):
                await stand.until(lambda: stand.part(ts, "report"), 60)
                await stand.until(lambda: stand.is_single(said["event"]))
        runs.handles.append(connection.handle(place.run_id))
        found = await runs.client.count_workflows(f"{RUNS} AND TaskQueue = '{runs.queue}'")
    assert found.count == 1
    parts = {each["metadata"]["event_payload"]["part"].split()[0] for each in stand.thread(ts)}
    assert parts == {"board", "ask", "report"}
    assert "holdfast_" not in json.dumps(stand.part(ts, "board")[0]["blocks"])
