"""The rows of a map as batches: made once, found again, paid once."""

from __future__ import annotations

import asyncio
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from calling import claude
from desk import Desk
from holdfast.activities.asking.allowance import Allowance
from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.purses import Purses
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.mapping import batch as batch_lane
from holdfast.activities.mapping.maps import Maps
from holdfast.calls.rows import (
    BatchesLooked,
    BatchesMaterial,
    CollectMaterial,
    RowsDone,
    RowsMaterial,
    Submitted,
)
from holdfast.contracts.errors import NoRoom, NotBilled
from holdfast.contracts.treasury import Asked
from holdfast.ports import BatchState, ModelRequest
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.storage.directory import DirectoryStore
from mapping import PRICES, chunk_of, items, maps_on, material, outcomes, run

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_lane.BatchLane, "looks", (0.0, 0.05, 0.1))
    monkeypatch.setattr(batch_lane, "AGAIN", (0.05, 0.2, 0.5))
    monkeypatch.setattr(batch_lane, "LONGEST_PAUSE", 0.05)


def scripted(batches: dict[str, Any] | None = None, *rules: dict[str, Any]) -> Simulator:
    script = {"mark": "row [0-9]+", "rules": [*rules], "batches": {"seconds": 0, **(batches or {})}}
    return Simulator(Script.model_validate(script))


def with_batches(folder: Path, model: Claude, **more: Any) -> Maps:
    return maps_on(folder, model, batches=model.batches, **more)


async def rows_of(folder: Path, count: int) -> RowsMaterial:
    return material(await chunk_of(DirectoryStore(folder / "store"), items(count)))


async def ended(maps: Maps, told: RowsMaterial, *ids: str) -> None:
    looking = BatchesMaterial(call=told.call, batches=ids)
    while True:
        looked: BatchesLooked = await run(maps.look_at_batches, looking)
        if all(each.ended for each in looked.looks) and len(looked.looks) == len(ids):
            return
        await asyncio.sleep(0.02)


async def collect(maps: Maps, told: RowsMaterial, made: Submitted) -> RowsDone:
    await ended(maps, told, *([made.batch] if made.batch else made.suspects))
    collecting = CollectMaterial(rows=told, batch=made.batch, suspects=made.suspects)
    done: RowsDone = await run(maps.collect_rows, collecting, activity_id="another")
    return done


def paid_once(simulator: Simulator, rows: int) -> bool:
    return [mark.calls for mark in simulator.log.marks.values()] == [1] * rows


def untouched(simulator: Simulator) -> bool:
    return not any(
        each.canceled or each.deleted for each in simulator.log.batches.values() if each.foreign
    )


async def test_a_batch_brings_each_row_at_half_the_price(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 40)
    async with scripted() as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model)
        made: Submitted = await run(maps.submit_rows, told)
        again: Submitted = await run(with_batches(tmp_path, model).submit_rows, told, attempt=2)
        done = await collect(maps, told, made)
        twice = await collect(maps, told, made)
    assert made.batch == again.batch and again.found and made.rows == 40
    assert done.complete == 40 and done.bill.calls == 40 and not done.left
    assert done.bill.dollars == pytest.approx(simulator.log.dollars, abs=Decimal("0.00005"))
    assert paid_once(simulator, 40) and simulator.log.steps["create"] == 1
    assert twice.outcomes == done.outcomes
    # Who reads it once more goes on from a point before that, and has paid it already.
    assert (done.bill.earlier, twice.bill.earlier) == (False, True)
    full = [PRICES.price(told.call.model.id, done.bill.usage)] if told.call.model else []
    assert full[0] and done.bill.dollars and full[0] > Decimal("1.9") * done.bill.dollars


async def test_each_row_of_a_batch_is_in_exactly_one_group(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 6)
    rules: tuple[dict[str, Any], ...] = (
        {"lane": "batch", "text": "row 1 ", "outcome": "expired"},
        {"lane": "batch", "text": "row 2 ", "status": 400},
        {"lane": "batch", "text": "row 3 ", "status": 500},
        {"lane": "batch", "text": "row 4 ", "answer": "malformed"},
        {"lane": "batch", "text": "row 5 ", "outcome": "canceled"},
    )
    async with scripted(None, *rules) as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model)
        done = await collect(maps, told, await run(maps.submit_rows, told))
    assert (done.complete, done.failed, done.hopeless, done.left) == (1, (4,), 1, (1, 3, 5))
    assert not done.lost and done.bill.calls == 2
    found = await outcomes(DirectoryStore(tmp_path / "store"), done)
    assert found[2].dollars == 0 and found[4].raw


async def test_a_batch_whose_answer_was_lost_is_found_among_those_of_others(
    tmp_path: Path,
) -> None:
    told = await rows_of(tmp_path, 10)
    lost = {"step": "create", "first": 1, "fault": "drop", "after": True}
    batches = {"faults": [lost], "foreign": 2, "behind": 0.1}
    async with scripted(batches) as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model)
        made: Submitted = await run(maps.submit_rows, told)
        done = await collect(maps, told, made)
        foreign = [each for each in simulator.log.batches.values() if each.foreign]
    assert not made.batch and len(made.suspects) == 3
    assert done.complete == 10 and paid_once(simulator, 10) and untouched(simulator)
    assert simulator.log.steps["create"] == 1 and len(foreign) == 2


@pytest.mark.parametrize("reached", [True, False])
async def test_a_mark_without_a_record_makes_no_second_batch(tmp_path: Path, reached: bool) -> None:
    """The worker is killed after its mark: once after the batch was made, and once before."""
    told = await rows_of(tmp_path, 10)
    async with scripted({"foreign": 1}) as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model)

        class Killed(Exception):
            """What no code of the activity sees."""

        class Dies:
            async def create(self, requests: list[tuple[str, ModelRequest]]) -> str:
                if reached:
                    await model.batches.create(requests)
                raise Killed

        dying = maps_on(tmp_path, model, batches=Dies())
        with pytest.raises(Killed):
            await run(dying.submit_rows, told)
        made: Submitted = await run(maps.submit_rows, told, attempt=2)
        assert bool(made.suspects) == reached and bool(made.batch) != reached
        done = await collect(maps, told, made)
    assert done.complete == 10 and paid_once(simulator, 10) and untouched(simulator)


async def test_what_a_worker_elsewhere_has_submitted_is_looked_for_first(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 5)
    async with scripted() as simulator, claude(simulator.url) as model:
        here, there = tmp_path / "here", tmp_path / "there"
        for each in (here, there):
            each.mkdir()
            (each / "store").symlink_to(tmp_path / "store")
        await run(with_batches(there, model).submit_rows, told)
        past = Past(sent=1, machine=1, process=1)
        maps = with_batches(here, model)
        made: Submitted = await run(maps.submit_rows, told, attempt=2, details=astuple(past))
        done = await collect(maps, told, made)
    assert made.suspects and done.complete == 5 and paid_once(simulator, 5)


async def test_suspects_of_others_are_left_alone_and_the_rows_come_back(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 5)
    async with scripted({"foreign": 2}) as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model)
        other = material(told.chunks[0])
        other = other.model_copy(
            update={"call": other.call.model_copy(update={"purpose": "rows-other"})}
        )
        made: Submitted = await run(maps.submit_rows, other)
        foreign = tuple(each for each, told in simulator.log.batches.items() if told.foreign)
        done = await collect(maps, told, Submitted(batch="", suspects=(*foreign, made.batch)))
    assert done.left == (0, 1, 2, 3, 4) and not done.bill.calls and done.bill.dollars == 0
    assert untouched(simulator)


@pytest.mark.parametrize("fault", ["cut", "end", "short"])
async def test_results_that_end_too_early_are_read_again(tmp_path: Path, fault: str) -> None:
    told = await rows_of(tmp_path, 20)
    broken = {"step": "results", "first": 1, "fault": fault, "at": 0.5}
    async with scripted({"faults": [broken]}) as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model)
        made: Submitted = await run(maps.submit_rows, told)
        with pytest.raises(NotBilled):
            await collect(maps, told, made)
        done = await collect(maps, told, made)
    assert done.complete == 20 and paid_once(simulator, 20)


@pytest.mark.long
async def test_a_batch_that_is_refused_for_now_is_offered_again(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 3)
    busy = [
        {"step": "create", "nth": [1], "status": 429},
        {"step": "create", "nth": [2], "fault": "drop"},
        {"step": "create", "nth": [3], "status": 529},
    ]
    async with (
        scripted({"faults": busy, "unseen": 0.2}) as simulator,
        claude(simulator.url) as model,
    ):
        maps = with_batches(tmp_path, model)
        made: Submitted = await run(maps.submit_rows, told)
        done = await collect(maps, told, made)
    assert made.batch and simulator.log.steps["create"] == 4
    assert done.complete == 3 and paid_once(simulator, 3)


async def test_an_endpoint_without_room_for_a_batch_gives_everything_back(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 3)
    full = {"faults": [{"step": "create", "status": 429}]}
    async with scripted(full) as simulator, claude(simulator.url) as model:
        made: Submitted = await run(with_batches(tmp_path, model).submit_rows, told)
    assert not made.batch and not made.suspects and "429" in made.why


async def test_a_cancelled_batch_pays_for_what_was_done(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 20)
    batches = {"hold": True, "finishes": 0.4, "cancel_seconds": 0.05, "foreign": 1}
    async with scripted(batches) as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model)
        made: Submitted = await run(maps.submit_rows, told)
        stopping = BatchesMaterial(call=told.call, batches=(made.batch,))
        await run(maps.cancel_batches, stopping)
        await run(maps.cancel_batches, stopping)
        done = await collect(maps, told, made)
        later: BatchesLooked = await run(maps.cancel_batches, stopping)
    assert later.looks[0].ended and untouched(simulator)
    assert 0 < done.complete < 20 and done.complete + len(done.left) == 20
    assert done.bill.dollars == pytest.approx(simulator.log.dollars, abs=Decimal("0.00002"))


async def test_a_day_holds_a_batch_until_it_is_collected_whatever_process_ends(
    tmp_path: Path,
) -> None:
    told, desk = await rows_of(tmp_path, 10), Desk.of()
    async with scripted() as simulator, claude(simulator.url) as model:

        def after_a_start() -> Maps:
            budget = Allowance(PRICES.price, None, Purses(desk))
            return with_batches(tmp_path, model, budget=budget)

        made: Submitted = await run(after_a_start().submit_rows, told)
        desk.now += timedelta(hours=30)
        paid, held = map(Decimal, desk.spent())
        assert not paid and held > 5 * (simulator.log.dollars or Decimal(0))
        done = await collect(after_a_start(), told, made)
    paid, held = map(Decimal, desk.spent())
    assert paid == done.bill.dollars and not held


async def test_a_batch_waits_while_others_hold_the_days_dollars(tmp_path: Path) -> None:
    told, desk = await rows_of(tmp_path, 10), Desk.of()
    held = Asked(slice="other", began=False, needs=Decimal("0.9999"), seconds=3_600)
    await desk.ask([held])
    budget = Allowance(PRICES.price, None, Purses(desk))
    async with scripted() as simulator, claude(simulator.url) as model:
        maps = with_batches(tmp_path, model, budget=budget)
        with pytest.raises(NoRoom, match="set aside for calls under way"):
            await run(maps.submit_rows, told)
        await desk.give_back([held.model_copy(update={"began": True, "needs": Decimal(0)})])
        made: Submitted = await run(maps.submit_rows, told)
        assert [*simulator.log.batches] == [made.batch]


async def test_the_list_of_batches_ends_where_they_are_too_old(tmp_path: Path) -> None:
    told = await rows_of(tmp_path, 2)
    async with scripted() as simulator, claude(simulator.url) as model:
        made: Submitted = await run(with_batches(tmp_path, model).submit_rows, told)
        state = simulator.log.batches[made.batch]
        assert state.counts

        now = datetime.now(UTC)
        since = await model.batches.since(now - timedelta(minutes=1))
        assert [each.id for each in since] == [made.batch] and isinstance(since[0], BatchState)
        assert await model.batches.since(now + timedelta(minutes=1)) == ()
