"""Times of schedules while worker and server are killed, frozen and taken down, and
over both changes of the clocks: each time starts one run. Real processes, real runs.

Times of nights that are gone are a backfill's: Temporal reads the same calendar for them. A clock
that somebody sets is not tried: no process here can have one of its own; to a server that was
frozen it has jumped ahead.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.client import ScheduleBackfill, ScheduleOverlapPolicy
from temporalio.service import RPCError

from holdfast.client.connecting import opened
from holdfast.client.schedules import Schedules, outcome_of, times_gone
from holdfast.deployment.settings import Settings
from holdfast.embedded import down, status
from holdfast.errors import Unreachable
from holdfast.intake import times
from holdfast.intake.requests import RunRequest
from one_lens import PLAN
from repositories import Repository

Answer = TypeVar("Answer")
EVERY, TICKS = 2, 45
NIGHTS = (datetime(2026, 3, 29, 0, tzinfo=UTC), datetime(2026, 10, 25, 0, tzinfo=UTC))
"""An hour before each change of Europe/Berlin."""
NIGHT = timedelta(hours=2, minutes=10)
OF_A_NIGHT = NIGHT // timedelta(minutes=10) + 1
BETWEEN, FROZEN, AWAY = 4, 8, 8
"""Seconds between two blows, that a server stands still, and that nothing runs: every kind of blow
comes at least once.
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    monkeypatch.setattr(times, "LEAST_EVERY", 1)
    ours = Settings(_env_file=None, state_dir=tmp_path / "state")
    yield ours
    down(ours)


def blow(settings: Settings, number: int) -> None:
    """Strike the worker, the server or both, freeze the server, or take all down for a while."""
    now = status(settings)
    kind = ("worker", "server", "both", "frozen", "down")[number % 5]
    if kind == "down":
        down(settings)
        time.sleep(AWAY)
        return
    if kind == "frozen" and now.server_pid:
        os.kill(now.server_pid, signal.SIGSTOP)
        time.sleep(FROZEN)
        os.kill(now.server_pid, signal.SIGCONT)
        return
    pids = {"worker": (now.worker_pid,), "server": (now.server_pid,)}
    for pid in pids.get(kind, (now.worker_pid, now.server_pid)):
        if pid:
            os.kill(pid, signal.SIGKILL)


async def added(settings: Settings, request: RunRequest) -> None:
    async with opened(settings, embedded=True) as connection:
        mine = Schedules(connection)
        nights = "*/10 * * * *"
        await mine.add("nights", request, cron=nights, zone="Europe/Berlin", overlap="allow")
        await mine.pause("nights")
        await mine.add("ticks", request, every=f"{EVERY}s", overlap="allow")
        handle = connection.client.get_schedule_handle("nights")
        await handle.backfill(
            *(
                ScheduleBackfill(night, night + NIGHT, ScheduleOverlapPolicy.ALLOW_ALL)
                for night in NIGHTS
            )
        )


def asked(ask: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
    """Ask the server until it answers: whoever uses it has it back."""
    deadline = time.monotonic() + 90
    while True:
        try:
            return asyncio.run(ask())
        except (Unreachable, RPCError):
            assert time.monotonic() < deadline, "it never came back"
            time.sleep(0.5)


async def outcomes(settings: Settings, name: str) -> dict[datetime, str]:
    """How each time of a schedule has ended, by when it was due; empty: it is open."""
    found: list[tuple[datetime, str]] = []
    async with opened(settings, embedded=True) as connection:
        async for each in times_gone(connection.client, name):
            due = datetime.fromisoformat(each.id.removeprefix(f"{name}-"))
            found.append((due, (await outcome_of(each)).status))
    twice = [due for due, number in Counter(due for due, _ in found).items() if number > 1]
    assert not twice, f"{name}: doubled"
    return dict(found)


async def runs_of(settings: Settings) -> int:
    query = "WorkflowType = 'SupervisorWorkflow'"
    async with opened(settings, embedded=True) as connection:
        return (await connection.client.count_workflows(query)).count


async def paused(settings: Settings, name: str) -> int:
    async with opened(settings, embedded=True) as connection:
        await Schedules(connection).pause(name)
        return (await Schedules(connection).show(name)).missed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_each_time_starts_one_run_whatever_is_killed_and_whichever_way_clocks_go(
    settings: Settings, tmp_path: Path
) -> None:
    repository = Repository.at(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n"})
    request = RunRequest(playbook="code-review", inputs={"repo": str(repository.path)}, plan=PLAN)
    asyncio.run(added(settings, request))
    blows, ends = 0, time.monotonic() + EVERY * TICKS
    while time.monotonic() < ends or blows < 5:
        time.sleep(BETWEEN)
        blow(settings, blows)
        blows += 1
        asked(lambda: runs_of(settings))
    assert asked(lambda: paused(settings, "ticks")) == 0
    due: dict[str, dict[datetime, str]] = {}
    deadline = time.monotonic() + 400
    while not due or not all(status for each in due.values() for status in each.values()):
        assert time.monotonic() < deadline, "some never ended"
        time.sleep(2)
        due = {name: asked(partial(outcomes, settings, name)) for name in ("nights", "ticks")}
    first, last, step = min(due["ticks"]), max(due["ticks"]), timedelta(seconds=EVERY)
    ten = timedelta(minutes=10)
    expected = {
        "nights": [night + ten * n for night in NIGHTS for n in range(OF_A_NIGHT)],
        "ticks": [first + step * n for n in range((last - first) // step + 1)],
    }
    assert {name: sorted(each) for name, each in due.items()} == expected, "missed"
    statuses = Counter(status for each in due.values() for status in each.values())
    assert [*statuses] == ["complete"] and statuses["complete"] >= 2 * OF_A_NIGHT + TICKS // 2
    assert asked(lambda: runs_of(settings)) == statuses["complete"], "one run each"
