"""Server, worker, both and the starter killed with -9 in the middle of a run: it completes by
itself, and nothing that had finished is done again. Real processes, the real code-review playbook,
slow tools in place of the analysers. The scenarios run side by side, because they mostly wait.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.service import RPCError

from holdfast.contracts import Report
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import down, status
from holdfast.errors import Unreachable
from holdfast.temporal.connection import connect

VICTIMS = {
    "worker": ("worker",),
    "server": ("server",),
    "server and worker": ("server", "worker"),
    "starter": ("starter",),
    "worker, politely": ("worker",),
}
POLITELY = "worker, politely"
"""SIGTERM instead: it drains, and finishes what it has in hand."""
STARTER = """
import runpy, sys
from pathlib import Path
from holdfast.embedded import supervision
supervision.WORKER = (sys.executable, str(Path("tests/support/slow_worker.py").absolute()))
runpy.run_path("starter.py", run_name="__main__")
"""
"""The real starter, except for the worker that it starts."""
RUN_ID = "survivor"
DIED = "its worker died"
SECONDS = 200


@dataclass(frozen=True)
class Outcome:
    """What a scenario left behind."""

    exit_code: int
    report: Report
    finished_before: frozenset[str]
    """Tools whose completion was in the history when the blow fell."""
    starts: Counter[str]
    """How often each tool ran."""
    history: WorkflowHistory


def starter(state: Path, *arguments: str) -> subprocess.Popen[str]:
    # On a busy machine a blow falls late: then some tools must still be at work.
    slow = {"HOLDFAST_IDLE_SECONDS": "60", "SLOW_SECONDS": "8"}
    environment = os.environ | {"HOLDFAST_STATE_DIR": str(state)} | slow
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        environment.pop(name, None)
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, *arguments, "--embedded", "--json"],
        cwd=HOME,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def history(settings: Settings) -> WorkflowHistory:
    async def fetched() -> WorkflowHistory:
        endpoint = status(settings).endpoint
        assert endpoint
        client = await connect(endpoint.target)
        return await client.get_workflow_handle(RUN_ID).fetch_history()

    return asyncio.run(fetched())


def tools_completed(history: WorkflowHistory) -> frozenset[str]:
    """Tools whose completion the server knows."""
    names = {
        event.event_id: event.activity_task_scheduled_event_attributes.activity_id
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    }
    done = [
        names[event.activity_task_completed_event_attributes.scheduled_event_id]
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
    ]
    return frozenset(each.split("-")[1] for each in done if each.startswith("examine-"))


def lost(history: WorkflowHistory) -> list[str]:
    """Why each activity that took another attempt did."""
    started = [
        event.activity_task_started_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
    ]
    assert all(each.attempt <= 2 for each in started)
    return [each.last_failure.message for each in started if each.attempt > 1]


async def some_done(settings: Settings, running: subprocess.Popen[str]) -> frozenset[str]:
    """The tools that are done, once some are and some are not."""
    deadline, client = time.monotonic() + SECONDS, None
    while True:
        assert time.monotonic() < deadline and running.poll() is None, "the run never got going"
        with suppress(RPCError, Unreachable):
            endpoint = status(settings).endpoint
            if client is None and endpoint is not None:
                client = await connect(endpoint.target)
            if client is not None:
                seen = await client.get_workflow_handle(RUN_ID).fetch_history()
                done = tools_completed(seen)
                if 2 <= len(done) < 6:
                    return done
        await asyncio.sleep(0.1)


def struck(settings: Settings, running: subprocess.Popen[str], name: str) -> frozenset[str]:
    """Wait until some tools are done and some are not, then kill; the tools that were done."""
    done = asyncio.run(some_done(settings, running))
    now = status(settings)
    pids = {"server": now.server_pid, "worker": now.worker_pid, "starter": running.pid}
    for victim in VICTIMS[name]:
        pid = pids[victim]
        assert pid, f"{victim} does not run"
        os.kill(pid, signal.SIGTERM if name == POLITELY else signal.SIGKILL)
    return done


def scenario(state: Path, repository: Path, name: str) -> Outcome:
    settings = Settings(_env_file=None, state_dir=state)
    goal = ("run", "--playbook", "code-review", "--input", f"repo={repository}", "--id", RUN_ID)
    running = starter(state, *goal)
    try:
        done = struck(settings, running, name)
        if "starter" in VICTIMS[name]:
            running.communicate()
            running = starter(state, "watch", RUN_ID)
        printed, _ = running.communicate(timeout=SECONDS)
        lines = (state / "calls").read_text().splitlines()
        return Outcome(
            exit_code=running.returncode,
            report=Report.model_validate_json(printed),
            finished_before=done,
            starts=Counter(line.removeprefix("start ") for line in lines if "start" in line),
            history=history(settings),
        )
    finally:
        running.kill()
        running.communicate()
        down(settings)


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Future[Outcome]]:
    """Of each scenario that is wanted."""
    ours = [each for each in request.session.items if each.path == request.path]
    victims = [name for name in VICTIMS if any(f"[{name}]" in each.name for each in ours)]
    place = tmp_path_factory.mktemp("survival")
    repository = place / "repository"
    repository.mkdir()
    (repository / "code.py").write_text("print('hello')\n")
    for command in (
        ["init", "-q"],
        ["add", "code.py"],
        ["-c", "user.name=A", "-c", "user.email=a@b.example", "commit", "-qm", "One file"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    with ThreadPoolExecutor(len(victims)) as pool:
        return {
            name: pool.submit(scenario, place / str(number), repository, name)
            for number, name in enumerate(victims)
        }


@pytest.mark.parametrize(
    "victim",
    [
        "worker",
        "server",
        *(pytest.param(name, marks=pytest.mark.long) for name in [*VICTIMS][2:]),
    ],
)
@pytest.mark.long
def test_a_run_survives_the_death_of_the(victim: str, outcomes: dict[str, Future[Outcome]]) -> None:
    outcome = outcomes[victim].result()
    assert outcome.exit_code == 0
    assert outcome.report.status == "complete"
    assert {finding.status for finding in outcome.report.findings} == {"complete"}
    assert len(outcome.finished_before) >= 2
    again = {name for name, count in outcome.starts.items() if count > 1}
    assert again & outcome.finished_before == set(), "what had finished is not done again"
    assert max(outcome.starts.values()) <= 2
    if "worker" in VICTIMS[victim] and victim != POLITELY:
        assert again, "what was in flight is done again"
        assert lost(outcome.history)
        # Who is quicker, the next worker's look at the dead one's lease or the server's deadline
        # for heartbeats, decides which of both sentences it is; a history tells that it is said.
        told = "A worker died" if DIED in lost(outcome.history) else "Nothing was heard of a worker"
        assert sum(each.startswith(told) for each in outcome.report.notes) == 1
    else:
        assert again == set(), "the worker lived and kept what it had in hand"
        # What the server was just handing over to a worker that ends gets lost, and never begins.
        assert not any("A worker died" in each for each in outcome.report.notes)
        on_the_way = {"activity Heartbeat timeout"} if victim == POLITELY else set()
        assert set(lost(outcome.history)) <= on_the_way
