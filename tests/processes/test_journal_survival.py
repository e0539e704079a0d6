"""No paid answer is lost: real workers with the real adapter, struck where it would cost most.

Each scenario is a run of three subtasks, whose calls take 0.1, 3 and 3 seconds, against a simulator
in a process of its own that counts what it would have charged. The scenarios run side by side.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bench.instruments.deployment import Deployment, deployed, parallel
from holdfast.activities.asking.heartbeat import SOON
from holdfast.contracts import Report

pytestmark = pytest.mark.long

SUBTASKS = 3
SCRIPT = {
    "latencies": {"work": [3, 3]},
    "rules": [{"call": "work", "text": "part 1 of", "latency": [0.1, 0.1]}],
}
OUTAGE_SECONDS = 12.0
"""A worker gives up handing over a result after about 10."""
HESITANT = Path(__file__).parents[1] / "support" / "hesitant_worker.py"


@dataclass(frozen=True)
class Outcome:
    """What a scenario left behind: the report, and what the simulator counted."""

    report: Report
    log: dict[str, Any]


async def until(holds: Callable[[], bool]) -> None:
    """Return once this holds; the test's own time limit is the only one."""
    while True:
        if await asyncio.to_thread(holds):
            return
        await asyncio.sleep(0.2)


def asked(deployment: Deployment) -> int:
    """How many calls of subtasks the simulator has begun to answer."""
    bodies = deployment.simulator.log()["bodies"].values()
    return sum(body["admitted"] for body in bodies if body["call"] == "work")


def answers(deployment: Deployment) -> int:
    """How many answers have arrived and are recorded."""
    return len(list((deployment.settings.state_dir / "journal").glob("*.answer")))


async def killed_between_sent_and_answer(deployment: Deployment) -> None:
    """With its whole machine: the next worker has another journal, and only heartbeats tell."""
    await until(lambda: asked(deployment) == SUBTASKS and answers(deployment) == 1)
    # What left within the last moment can be paid twice: its heartbeat has yet to pass.
    await asyncio.sleep(2 * SOON)
    deployment.kill_worker()
    for each in ("journal", "held"):
        shutil.rmtree(deployment.settings.state_dir / each)


async def killed_alone(deployment: Deployment) -> None:
    await until(lambda: asked(deployment) == SUBTASKS and answers(deployment) == 1)
    deployment.kill_worker()


async def killed_between_answer_and_completion(deployment: Deployment) -> None:
    noted = deployment.settings.state_dir / "hesitating"
    await until(lambda: noted.exists() and len(noted.read_text().splitlines()) == SUBTASKS)
    (noted.parent / "hesitate").unlink()
    deployment.kill_worker()


async def answered_during_an_outage(deployment: Deployment) -> None:
    await until(lambda: asked(deployment) == SUBTASKS and answers(deployment) == 1)
    await deployment.outage(OUTAGE_SECONDS)


Strike = Callable[[Deployment], Awaitable[None]]
STRIKES: tuple[Strike, ...] = (
    killed_between_sent_and_answer,
    killed_alone,
    killed_between_answer_and_completion,
    answered_during_an_outage,
)


async def scenario(place: Path, strike: Strike) -> Outcome:
    place.mkdir()
    async with deployed(place, SCRIPT, HESITANT) as deployment:
        if strike is killed_between_answer_and_completion:
            (deployment.settings.state_dir / "hesitate").touch()
        handle = await deployment.start(parallel(SUBTASKS))
        await strike(deployment)
        report = await deployment.result(handle)
        return Outcome(report, await asyncio.to_thread(deployment.simulator.log))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[Strike, Future[Outcome]]:
    place = tmp_path_factory.mktemp("journal")
    pool = ThreadPoolExecutor(len(STRIKES))
    return {
        strike: pool.submit(lambda each: asyncio.run(scenario(place / each.__name__, each)), strike)
        for strike in STRIKES
    }


@pytest.mark.parametrize("strike", STRIKES)
def test_the_ledger_knows_whatever_was_paid(
    strike: Strike, outcomes: dict[Strike, Future[Outcome]]
) -> None:
    report, log = outcomes[strike].result().report, outcomes[strike].result().log
    assert report.status == "complete"
    assert {finding.status for finding in report.findings} == {"complete"}
    assert report.model_calls >= log["admitted"] >= SUBTASKS
    assert report.dollars is not None
    assert report.dollars >= Decimal(log["dollars"]) > 0


@pytest.mark.parametrize("strike", [killed_between_sent_and_answer, killed_alone])
def test_of_what_was_in_flight_when_its_worker_died_nothing_else_is_paid_again(
    strike: Strike, outcomes: dict[Strike, Future[Outcome]]
) -> None:
    log = outcomes[strike].result().log
    assert log["duplicates"] == SUBTASKS - 1, "one answer had arrived"


@pytest.mark.parametrize(
    "strike", [killed_between_answer_and_completion, answered_during_an_outage]
)
def test_no_answer_that_arrived_is_paid_again(
    strike: Strike, outcomes: dict[Strike, Future[Outcome]]
) -> None:
    outcome = outcomes[strike].result()
    assert outcome.log["duplicates"] == 0
    assert outcome.report.model_calls == outcome.log["admitted"]
