"""A deployment's own limits: what leaves in a time and what is in flight, for all its processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from conftest import Runs
from holdfast.activities.gate.own_limit import OwnLimit, Place, own_limits
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.contracts import Goal, Tier
from holdfast.contracts.errors import NotBilled
from holdfast.deployment.pacing import TIERS, Pace, paces, read_in_flight, read_rates
from holdfast.deployment.settings import Settings
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def leaves(limit: OwnLimit) -> bool:
    return isinstance(limit.enter(), Place)


def test_calls_leave_evenly_and_no_time_without_calls_is_made_up_for(tmp_path: Path) -> None:
    clock = Clock()
    limit = OwnLimit("haiku", Pace(per_second=1.0, rate="60/min"), tmp_path / "pace", clock)
    assert leaves(limit)
    clock.now += 0.75
    assert limit.enter() == pytest.approx(0.25)
    clock.now += 3_600.0
    assert [leaves(limit) for _ in range(3)] == [True, False, False]


def test_a_clock_that_is_set_back_holds_nobody_for_longer_than_one_turn(tmp_path: Path) -> None:
    clock = Clock()
    limit = OwnLimit("haiku", Pace(per_second=1.0, rate="60/min"), tmp_path / "pace", clock)
    assert leaves(limit)
    clock.now -= 900.0
    assert leaves(limit)


def test_what_is_in_flight_is_bounded_and_a_place_that_is_left_is_free(tmp_path: Path) -> None:
    limit = OwnLimit("haiku", Pace(in_flight=2), tmp_path / "pace")
    first, second = limit.enter(), limit.enter()
    assert isinstance(first, Place) and isinstance(second, Place)
    assert not leaves(limit)
    first.leave()
    assert leaves(limit)


def _leave(calls: int, seconds: float, folder: str) -> list[float]:
    """The moments at which calls of this process left, each in flight for so long."""
    limit = OwnLimit("haiku", Pace(20.0, "20/s", in_flight=1), Path(folder))
    left = list[float]()
    while len(left) < calls:
        place = limit.enter()
        if isinstance(place, Place):
            left.append(time.time())
            time.sleep(seconds)
            place.leave()
        else:
            time.sleep(place)
    return left


@pytest.mark.long
def test_processes_of_one_state_directory_keep_one_rate_and_one_limit(tmp_path: Path) -> None:
    seconds = 0.01
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        moments = pool.starmap(_leave, [(20, seconds, str(tmp_path / "pace"))] * 2)
    every = sorted(each for found in moments for each in found)
    # Each moment is read a little after the turn was taken.
    assert len(every) <= 20 * (every[-1] - every[0]) + 2
    assert all(later - sooner >= seconds for sooner, later in pairwise(every))


async def test_a_call_waits_here_for_its_turn_and_goes_back_if_that_is_far_away(
    tmp_path: Path,
) -> None:
    gate = RateGate(own=own_limits("haiku=4/s, opus=1/min", "", tmp_path / "pace"))
    loop = asyncio.get_running_loop()
    began = loop.time()
    waited = await asyncio.gather(*(gate.turn("haiku") for _ in range(4)))
    assert loop.time() - began >= 0.75
    line = "haiku held to this deployment's own limit, 4/s"
    assert waited == ["", line, line, line]
    assert await gate.turn("opus") == ""
    with pytest.raises(NotBilled, match=r"not sent yet: opus held to .* own limit, 1/min") as back:
        await gate.turn("opus")
    assert back.value.throttled and back.value.next_retry_delay is not None
    assert await gate.turn("sonnet") == "", "which has no such limit"


async def test_a_place_is_free_again_when_its_call_ends(tmp_path: Path) -> None:
    gate = RateGate(own=own_limits("", "haiku=1", tmp_path / "pace"))
    await gate.turn("haiku")
    second = asyncio.create_task(gate.turn("haiku"))
    await asyncio.sleep(0.1)
    assert gate.slowed() == {"haiku": "haiku held to this deployment's own limit, 1 in flight"}
    gate.ended()
    assert "1 in flight" in await second
    assert gate.slowed() == {}


async def test_the_report_says_that_calls_waited_for_the_deployments_own_rate(runs: Runs) -> None:
    model = ScriptedModel(
        {
            **{f"t{number}": [works("found")] for number in (1, 2, 3)},
            "synthesize": [synthesizes("all [t1] [t2] [t3]")],
        }
    )
    plan = ready(*(subtask(f"t{number}") for number in (1, 2, 3)))
    goal = Goal.model_validate({"text": "Compare", "use_models": True, "plan": plan})
    gate = RateGate(own=own_limits("sonnet=4/s", "", runs.folder / "pace"))
    report = await runs.run(goal, model, gate=gate)
    assert report.status == "complete"
    (note,) = [each for each in report.notes if "own limit" in each]
    assert "calls, each: sonnet held to this deployment's own limit, 4/s (" in note


def test_the_tiers_are_those_that_models_have() -> None:
    assert get_args(Tier) == TIERS
    assert paces("haiku=90/h", "opus=2") == {
        "haiku": Pace(per_second=0.025, rate="90/h"),
        "opus": Pace(in_flight=2),
    }


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("haiku=0/min", "haiku=0/min lets no call leave"),
        ("haiku=١/s", "haiku=١/s"),
        ("haiku=-5/min", "haiku=-5/min is no rate"),
        ("haiku=5", "haiku=5 is no rate"),
        ("haiku=1/day", "is no rate"),
        ("gold=5/min", "there is no tier 'gold'"),
        ("haiko=5/min", "(did you mean 'haiku'?)"),
        ("60/min", "give pairs of tier and limit"),
        ("haiku=5/min,haiku=6/min", "haiku is given twice"),
    ],
)
def test_a_rate_that_cannot_be_kept_is_refused_with_what_is_wrong(rate: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_rates(rate)


@pytest.mark.parametrize(
    "given", ["haiku=0", "haiku=-1", "haiku=x", "haiku=1001", "haiku", "haiku=٣"]
)
def test_a_limit_in_flight_that_cannot_be_kept_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="haiku"):
        read_in_flight(given)
    with pytest.raises(ValidationError):
        Settings(_env_file=None, project=None, in_flight=given)
