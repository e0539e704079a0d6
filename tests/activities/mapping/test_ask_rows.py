"""The rows of a map asked one by one: each is paid once, and in exactly one group."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from calling import claude
from holdfast.activities.asking import senders
from holdfast.activities.mapping.tally import Tally
from holdfast.activities.mapping.wanted import read_wanted
from holdfast.activities.prompts.files import system_prompts
from holdfast.calls.about import About
from holdfast.calls.row import shared_bytes
from holdfast.calls.rows import Merging, Outcome, RowsBeat, RowsDone
from holdfast.contracts import Bill, Check, RoleCard, Unreached, Usage
from holdfast.contracts.errors import (
    AllowanceReached,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    PossiblyBilled,
)
from holdfast.ledger.rows import RowSizes, worst_rows
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.storage.directory import DirectoryStore
from mapping import CARD, Saying, chunk_of, items, maps_on, material, outcomes, run

pytestmark = pytest.mark.anyio
GOOD: dict[str, Any] = {"result": {"label": "tea"}, "why_failed": "", "status": "complete"}


def said(answer: Any = None, **usage: int) -> ModelAnswer:
    counted = Usage(**{"input_tokens": 300, "output_tokens": 20, **usage})
    text = answer if isinstance(answer, str) else json.dumps(answer or GOOD)
    return ModelAnswer(text, "end_turn", CARD.id, counted)


def place_of(request: ModelRequest) -> int:
    return int(request.prompt.split("row ")[1].split(" ")[0])


async def test_each_row_is_answered_and_paid_once_and_an_attempt_after_it_pays_nothing(
    tmp_path: Path,
) -> None:
    script = Script.model_validate(
        {"mark": "row [0-9]+", "rules": [{"fields": {"result": {"label": "tea"}}}]}
    )
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(30)), at_once=10, caching="5m")
    async with Simulator(script) as simulator, claude(simulator.url) as model:
        long = {"classifier": "You classify tickets. " * 200}
        done: RowsDone = await run(maps_on(tmp_path, model, roles=long).ask_rows, told)
        later = maps_on(tmp_path, model, roles=long)
        again: RowsDone = await run(later.ask_rows, told, attempt=2)
    assert done.complete == 30 and done.bill.calls == 30 and not done.bill.assumed
    assert done.bill.dollars == pytest.approx(
        Decimal(str(simulator.log.dollars)), abs=Decimal("0.00004")
    )
    assert done.bill.dollars and done.bill.dollars <= told.call.ceiling
    found = await outcomes(store, done)
    assert [*found] == [*range(30)] and found[7].result == {"label": "tea"}
    assert again.model_copy(update={"finished": None}) == done.model_copy(update={"finished": None})
    assert all(mark.calls == 1 for mark in simulator.log.marks.values())
    assert len(simulator.log.marks) == 30
    # What all begin with is read from the cache once a first answer has begun.
    assert done.cached > 0


async def test_every_row_is_in_exactly_one_group(tmp_path: Path) -> None:
    lost = Unreached(address="http://a", why="gone", lost=True)
    answers: dict[int, Any] = {
        1: said("no JSON"),
        2: said({**GOOD, "status": "failed", "result": "", "why_failed": "it is empty"}),
        3: CallRefused("400 too long"),
        4: PossiblyBilled("cut", lost_bill()),
        5: said({**GOOD, "result": {"label": "beer"}}),
        6: ModelAnswer("", "refusal", CARD.id, Usage(input_tokens=10)),
        7: PossiblyBilled("dropped", lost_bill(), lost),
    }
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(10)), rows=tuple(range(9)))
    model = Saying(lambda request: answers.get(place_of(request)) or said())
    done: RowsDone = await run(maps_on(tmp_path, model).ask_rows, told)
    assert (done.complete, done.failed, done.declined) == (2, (1, 5, 6), (2,))
    assert (done.hopeless, done.lost, done.left) == (1, (4, 7), ())
    found = await outcomes(store, done)
    assert [*found] == [0, 1, 2, 3, 5, 6, 8]
    assert found[3].dollars == 0 and "too long" in found[3].why
    assert found[1].raw == "no JSON" and found[2].why == "it is empty"
    # A row whose answer is lost counts at its own most, which nobody else has used.
    assert done.bill.assumed > 0 and done.bill.dollars is not None
    assert done.bill.assumed < done.bill.dollars <= told.call.ceiling
    assert done.bill.calls == 8


async def test_a_mended_row_goes_on_from_its_answer_and_says_what_is_wrong(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    chunk = await chunk_of(store, items(3))
    check = Check(kind="contains", argument="coffee")
    model = Saying(lambda _: said())
    maps = maps_on(tmp_path, model)
    first: RowsDone = await run(maps.ask_rows, material(chunk, checks=(check,)))
    assert first.failed == (0, 1, 2)
    model.answer = lambda _: said({**GOOD, "result": {"label": "coffee"}})
    mending = material(
        chunk, checks=(check,), rows=first.failed, before=(first.outcomes,), mending=True
    )
    second: RowsDone = await run(maps.ask_rows, mending)
    kept = [*(await outcomes(store, second)).values()]
    assert second.complete == 3 and {each.tries for each in kept} == {2}
    # A row's price is that of all its answers: together they are what was paid.
    paid = (first.bill.dollars or 0) + (second.bill.dollars or 0)
    assert 0 < paid == sum(each.dollars or 0 for each in kept)
    user, assistant, wrong = model.requests[-1].messages
    assert assistant["content"] == json.dumps(GOOD) and "coffee" in wrong["content"]
    assert user["content"] == model.requests[2].prompt


async def test_of_very_many_answers_only_those_that_are_asked_again_are_kept(
    tmp_path: Path,
) -> None:
    store = DirectoryStore(tmp_path / "store")
    long = "no JSON " * 800
    blobs = []
    for first in range(0, 2_000, 100):
        failed = (
            Outcome(n=n, id=f"t-{n}", status="failed", why="no JSON", raw=long)
            for n in range(first, first + 100)
        )
        lines = b"".join(each.model_dump_json().encode() + b"\n" for each in failed)
        blobs.append(await store.put(lines))
    told = material(await chunk_of(store, items(2_000)), rows=(7, 1_999), before=tuple(blobs))
    told = told.model_copy(update={"mending": True})
    tracemalloc.start()
    try:
        roles = {"classifier": "You classify."}
        reading = ActivityEnvironment().run(read_wanted, store, told, system_prompts(), roles)
        wanted = await reading
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [row.n for row in wanted.rows] == [7, 1_999] and all(row.said for row in wanted.rows)
    assert peak < 4 * 2**20 < len(blobs) * 100 * len(long), "a blob at a time"


async def test_a_row_whose_result_is_text_is_told_its_room_and_again_where_it_is_mended(
    tmp_path: Path,
) -> None:
    store = DirectoryStore(tmp_path / "store")
    chunk = await chunk_of(store, items(1))
    room = "has room for 300 tokens; a longer one is cut off"
    model = Saying(lambda _: ModelAnswer("It goes on", "max_tokens", CARD.id, Usage()))
    maps = maps_on(tmp_path, model)
    first: RowsDone = await run(maps.ask_rows, material(chunk, form={}, max_output=300))
    assert first.failed == (0,)
    again = {"rows": (0,), "before": (first.outcomes,), "mending": True, "max_output": 300}
    await run(maps.ask_rows, material(chunk, form={}, **again))
    await run(maps.ask_rows, material(chunk, max_output=300))
    text, mended, labelled = model.requests
    assert room in text.system and room in mended.messages[-1]["content"]
    assert "has room for" not in labelled.system, "a form needs little of it"


async def test_a_merging_call_is_told_its_own_rules_and_how_many_items_have_no_text(
    tmp_path: Path,
) -> None:
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(1)), form={})
    model = Saying(lambda _: said({**GOOD, "result": "All of it."}))
    maps = maps_on(tmp_path, model)
    await run(maps.ask_rows, told.model_copy(update={"merging": Merging(items=9, without=2)}))
    await run(maps.ask_rows, told)
    merge, row = (each.system for each in model.requests)
    assert "You merge texts" in merge and "9 items in all, of which 2 have no text." in merge
    assert "You classify tickets." not in merge and "one item of many" not in merge
    assert "You classify tickets." in row and "You merge texts" not in row


async def test_a_row_is_told_neither_the_goal_nor_what_the_answer_is_to_be(tmp_path: Path) -> None:
    role, sizes = RoleCard(name="classifier", description="Classifies."), []
    for alone in (True, False):
        about = About(today="2026-11-23", goal="Label all", answer="A page " * 99, alone=alone)
        store = DirectoryStore(tmp_path / str(alone) / "store")
        told = material(await chunk_of(store, items(1)))
        work = told.work.model_copy(update={"about": about})
        model = Saying(lambda _: said())
        maps = maps_on(tmp_path / str(alone), model)
        await run(maps.ask_rows, told.model_copy(update={"work": work}))
        (request,) = model.requests
        assert "2026-11-23" in request.system and "your role says of tools" in request.system
        assert "Label all" not in request.system and "A page" not in request.system
        sizes.append(shared_bytes(work, role))
    assert sizes[0] == sizes[1] < shared_bytes(told.work, role) + 100


async def test_an_attempt_after_a_death_asks_only_rows_that_were_not_sent(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(12)), at_once=1)
    dead = asyncio.Event()

    class Dies(Saying):
        async def ask(self, request: ModelRequest) -> ModelAnswer:
            if len(self.requests) == 5:
                dead.set()
                await asyncio.Event().wait()
            return await super().ask(request)

    environment = ActivityEnvironment()
    first = asyncio.create_task(
        run(maps_on(tmp_path, Dies(lambda _: said())).ask_rows, told, environment=environment)
    )
    await dead.wait()
    model = Saying(lambda _: said())
    done: RowsDone = await run(maps_on(tmp_path, model).ask_rows, told, attempt=2)
    assert (done.complete, done.lost, len(model.requests)) == (11, (5,), 6)
    assert done.bill.assumed > 0
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


@pytest.mark.parametrize("machine", [1, senders.this_machine()])
@pytest.mark.parametrize("same", [False, True])
async def test_what_was_sent_by_another_journal_is_not_sent_again(
    same: bool, machine: int, tmp_path: Path
) -> None:
    """Two workers of one machine may have a state directory each."""
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(6)), at_once=2)
    model = Saying(lambda _: said())
    maps = maps_on(tmp_path, model)
    journal = maps.journal.place if same else 1
    beat = RowsBeat(done=2, machine=machine, process=1, journal=journal, sent=f"{0b000111:x}")
    details = (beat.model_dump(mode="json"),)
    done: RowsDone = await run(maps.ask_rows, told, attempt=2, details=details)
    # The same one knows that none was.
    assert (done.complete, done.lost) == ((6, ()) if same else (3, (0, 1, 2)))


@pytest.mark.parametrize(
    ("error", "stopping", "away"),
    [
        (EndpointUnreachable(Unreached(address="http://a", why="gone")), "", True),
        (AllowanceReached("the day is spent"), "allowance", False),
        (NotBilled("500", final=True), "", False),
    ],
)
async def test_what_every_further_row_would_meet_leaves_them_all(
    tmp_path: Path, error: Exception, stopping: str, away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.asking.sending.BLIP_SECONDS", 0.0)
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(20)))
    model = Saying(lambda request: error if place_of(request) > 3 else said())
    done: RowsDone = await run(maps_on(tmp_path, model).ask_rows, told)
    assert done.complete == 4 and done.left == tuple(range(4, 20)) and not done.lost
    assert done.stopping == stopping and bool(done.unreached) == away and done.why
    assert len(model.requests) == 5


async def test_no_row_is_sent_that_what_is_left_of_the_reservation_does_not_cover(
    tmp_path: Path,
) -> None:
    store = DirectoryStore(tmp_path / "store")
    whole = material(await chunk_of(store, items(20)), at_once=5)
    told = material(whole.chunks[0], at_once=5, ceiling=whole.call.ceiling / 10)
    dear = Usage(input_tokens=1_500, output_tokens=200)
    model = Saying(lambda _: ModelAnswer(json.dumps(GOOD), "end_turn", CARD.id, dear))
    done: RowsDone = await run(maps_on(tmp_path, model).ask_rows, told)
    assert done.bill.dollars is not None and done.bill.dollars <= told.call.ceiling
    assert 0 < done.complete < 20 and len(done.left) == 20 - done.complete


async def test_a_cut_lets_rows_in_flight_end_and_begins_no_more(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(50)), at_once=4)
    begun, go = asyncio.Event(), asyncio.Event()

    class Slow(Saying):
        async def ask(self, request: ModelRequest) -> ModelAnswer:
            answer = await super().ask(request)
            if len(self.requests) == 4:
                begun.set()
            await go.wait()
            return answer

    environment = ActivityEnvironment()
    model = Slow(lambda _: said())
    asking = asyncio.create_task(
        run(maps_on(tmp_path, model).ask_rows, told, environment=environment)
    )
    await begun.wait()
    environment.cancel()
    await asyncio.sleep(0)
    go.set()
    done: RowsDone = await asking
    assert (done.complete, len(done.left), len(model.requests)) == (4, 46, 4)


async def test_a_throttled_row_waits_and_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(3)))
    refused = NotBilled("429", retry_after=timedelta(milliseconds=5), throttled=True)
    answers: list[ModelAnswer | Exception] = [said(), refused, refused]
    model = Saying(lambda _: answers.pop(0) if answers else said())
    done: RowsDone = await run(maps_on(tmp_path, model).ask_rows, told)
    assert done.complete == 3 and len(model.requests) == 5 and done.bill.calls == 3


def lost_bill() -> Bill:
    return Bill(model=CARD.id, calls=1, dollars=None, final=False)


async def test_what_is_reserved_for_rows_covers_each_of_them_at_its_worst(tmp_path: Path) -> None:
    """With what the workflow knows: bytes of the material, of the role and of the items."""
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(30)))
    maps = maps_on(tmp_path, Saying(lambda _: said()))
    role = told.role.model_copy(update={"prompt_bytes": len(maps.roles["classifier"])})
    chunk = told.chunks[0]
    sizes = RowSizes(30, shared_bytes(told.work, role), chunk.bytes, chunk.longest, 200)

    async def tallied() -> Tally:
        return await maps._tally(told, "batch")

    tally: Tally = await ActivityEnvironment().run(tallied)
    most = [tally.most_of(row) for row in tally.wanted.rows]
    reserved = worst_rows(CARD, sizes, "batch")
    assert sum(each.dollars for each in most) <= reserved.dollars
    assert sum(each.tokens for each in most) <= reserved.tokens


async def test_a_check_that_the_item_itself_fails_ends_without_a_stronger_model(
    tmp_path: Path,
) -> None:
    store = DirectoryStore(tmp_path / "store")
    chunk, check = await chunk_of(store, items(2)), Check(kind="contains", argument="coffee")
    model = Saying(lambda request: said() if place_of(request) else said("no JSON"))
    maps = maps_on(tmp_path, model)
    first: RowsDone = await run(maps.ask_rows, material(chunk, checks=(check,)))
    model.answer = lambda _: said({"result": "", "why_failed": "it says tea", "status": "failed"})
    again: dict[str, Any] = {"rows": first.failed, "before": (first.outcomes,), "mending": True}
    second: RowsDone = await run(maps.ask_rows, material(chunk, checks=(check,), **again))
    # The row whose form alone was wrong has told of its item for the first time.
    assert first.failed == (0, 1) and (second.declined, second.hopeless) == ((0,), 1)
    assert (await outcomes(store, second))[1].why == "it says tea"
    form, checked = (request.messages[-1]["content"] for request in model.requests[2:])
    assert form.endswith("in the right form.") and "change nothing to fit" not in form
    assert "change nothing to fit and answer failed" in checked


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('```json\n{"label": "tea"}\n```', "lacks result, why_failed, status; the answer has"),
        (f"Here:\n{json.dumps({**GOOD, 'result': {'label': 'beer'}})}", "must be one of"),
        (f"```json\n{json.dumps(GOOD)}\n```", "give the object alone"),
    ],
)
async def test_a_fenced_object_is_judged_itself_so_that_one_mend_is_enough(
    tmp_path: Path, answer: str, why: str
) -> None:
    store = DirectoryStore(tmp_path / "store")
    told = material(await chunk_of(store, items(1)))
    done: RowsDone = await run(maps_on(tmp_path, Saying(lambda _: said(answer))).ask_rows, told)
    found = (await outcomes(store, done))[0].why
    assert why in found and "Invalid JSON" not in found and done.failed == (0,)
