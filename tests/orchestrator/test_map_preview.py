"""The price of a map before it is paid: rows by both lanes, cached or not, and what is chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import JsonValue

from driving import BRIEFING, START, subtask
from holdfast.activities.mapping.wanted import shape_of
from holdfast.activities.prompts.files import system_prompts
from holdfast.calling import gathering
from holdfast.calls.row import ROW, row_beginning
from holdfast.calls.rows import asked_of
from holdfast.calls.work import Told
from holdfast.contracts import Capabilities, Goal, Limits, PinnedInput, Plan, Subtask
from holdfast.contracts.goals import ItemsFound, KeptItems, Reuse
from holdfast.contracts.plans import Lane, MapSpec
from holdfast.contracts.view import MapPreview, PreviewRow
from holdfast.ledger.rows import WRITTEN, usual_written
from holdfast.rendering.markdown import write
from holdfast.rendering.preview import lane_tables, plan_table, totals
from holdfast.rendering.running import run_view
from holdfast.rules.next_moves import next_moves
from holdfast.rules.preview import predict
from holdfast.rules.reducer import apply
from holdfast.state.events import Prepared, Started
from holdfast.state.moves import AskRaise, Prepare, StartMap
from holdfast.state.run import State, first_state

FOUND = ItemsFound(
    by="records",
    count=10_000,
    fields=("subject", "text"),
    bytes={"subject": 300_000, "text": 3_700_000},
    most={"subject": 90, "text": 4_000},
    longest=4_090,
    broken=3,
    samples=("line 17: not JSON",),
    note="is no UTF-8 (line 3), and is read as Windows-1252",
)
BATCHES = Capabilities(caching=True, batches=True)


def planned(
    found: ItemsFound | None = FOUND,
    lane: Lane = "auto",
    asked: Lane | None = None,
    hours: float = 26,
    capabilities: Capabilities = BATCHES,
    instruction: str = "Say in one word which kind of ticket {subject} with {text} is",
    after: tuple[Subtask, ...] = (),
    size: int = 4_000_000,
    reuse: Reuse | None = None,
    **spec: object,
) -> State:
    over = MapSpec.model_validate({"over": "tickets", "by": "records", "lane": lane, **spec})
    one = subtask("classify", role="researcher")
    one = one.model_copy(update={"map": over, "instruction": instruction})
    pinned = PinnedInput(name="tickets", kind="file", size=size, digest="ab", items=found)
    limits = Limits(deadline_seconds=int(hours * 3_600), concurrency=5, dollars=Decimal(100))
    plan = Plan(goal="Sort the tickets", subtasks=(one, *after))
    goal = Goal(text="Sort the tickets", plan=plan, use_models=True, limits=limits, lane=asked)
    goal = goal.model_copy(update={"reuse": reuse})
    brief = BRIEFING.model_copy(update={"inputs": (pinned,), "capabilities": capabilities})
    state = first_state("r", goal, START, "first")
    return apply(apply(state, Started(Prepare())), Prepared(brief))


def with_cap(state: State, dollars: Decimal) -> State:
    """Return a state that waits for a higher cap, where this one does not do."""
    limits = state.goal.limits.model_copy(update={"dollars": dollars})
    goal = state.goal.model_copy(update={"limits": limits, "wait_for_raise": True})
    ledger = replace(state.ledger, cap=replace(state.ledger.cap, dollars=dollars))
    return replace(state, goal=goal, ledger=ledger)


def mapped(state: State) -> tuple[PreviewRow, MapPreview]:
    (row,) = predict(state).subtasks
    assert row.map is not None
    return row, row.map


def test_both_lanes_stand_side_by_side_and_a_batch_is_half_the_price() -> None:
    row, about = mapped(planned())
    now, batch = about.lanes
    assert (now.lane, batch.lane, about.takes) == ("now", "batch", "batch")
    assert now.expected and batch.expected and now.high and batch.high and now.low
    assert batch.expected * 2 == pytest.approx(now.expected, rel=Decimal("0.002"))
    assert now.low < now.expected < now.high
    assert (row.low, row.expected, row.high) == (batch.low, batch.expected, batch.high)
    # 9,997 rows of 400 bytes and what all begin with, 200 tokens each, at $1 and $5 a million.
    assert Decimal(14) < now.expected < Decimal(18)
    assert row.kind == "map" and row.slice and row.slice < batch.high
    assert now.seconds == pytest.approx(10_000, rel=0.01)


def test_the_sum_of_the_run_has_the_lane_that_is_taken() -> None:
    assert predict(planned(lane="batch")).expected == mapped(planned(lane="batch"))[0].expected
    dearer, cheaper = predict(planned(asked="now")), predict(planned(asked="batch"))
    assert dearer.expected and cheaper.expected and dearer.expected > cheaper.expected


@pytest.mark.parametrize(
    ("given", "takes", "why"),
    [
        ({"hours": 26}, "batch", "half the price, and 20.8 h are left for its rows"),
        (
            {"hours": 0.5},
            "now",
            "24 min are left for its rows, and batches are worth it from 2 h on",
        ),
        ({"lane": "now"}, "now", "as was asked"),
        ({"lane": "now", "asked": "batch"}, "batch", "as was asked"),
        ({"capabilities": Capabilities()}, "now", "the endpoint is not known to take batches"),
    ],
)
def test_the_lane_is_chosen_by_endpoint_and_time_and_says_why(
    given: dict[str, object], takes: str, why: str
) -> None:
    state = planned(**given)  # type: ignore[arg-type]
    _, about = mapped(state)
    assert (about.takes, about.why) == (takes, why)
    how = "goes by batches" if takes == "batch" else "asks at once"
    assert f"classify {how}: {why}" in totals(predict(state), Decimal(100))


def test_a_long_beginning_is_priced_from_the_cache_and_says_what_that_saves() -> None:
    _, short = mapped(planned())
    assert [each.uncached for each in short.lanes] == [None, None]
    long = "Say in one word which kind of ticket this is: " + "a rule of the house; " * 1_000
    _, about = mapped(planned(instruction=long))
    for each in about.lanes:
        assert each.uncached and each.expected and each.uncached > 2 * each.expected
    _, other = mapped(planned(instruction=long, capabilities=Capabilities(batches=True)))
    assert other.lanes[0].uncached is None
    assert other.lanes[0].expected == about.lanes[0].uncached


def test_only_the_fields_that_are_named_are_paid() -> None:
    few, _ = mapped(planned(instruction="Say in one word which kind of ticket {subject} is"))
    all_, _ = mapped(planned())
    assert few.expected and all_.expected and few.expected < all_.expected


def test_what_is_not_asked_and_both_lanes_are_shown_before_anything_is_paid() -> None:
    plan = predict(planned())
    lines = totals(plan, Decimal(100))
    assert (
        "classify is a map: 10,000 items, 3 of which cannot be asked, each asked of haiku, at most"
        " 5 at once" in lines
    )
    assert "  not asked: line 17: not JSON" in lines
    assert "  tickets is no UTF-8 (line 3), and is read as Windows-1252" in lines
    shown = write([plan_table(plan, Decimal(100)), *lane_tables(plan)])
    assert "classify batch ◂" in shown and "classify now" in shown
    assert "(at most 24 h)" in shown


def test_what_nobody_has_counted_may_take_the_whole_cap() -> None:
    row, about = mapped(planned(found=None))
    assert (about.items, row.expected, row.high) == (0, Decimal(100), Decimal(100))
    assert any(
        "may take the whole cap" in each for each in totals(predict(planned(None)), Decimal(1))
    )


def test_texts_that_are_merged_are_paid_level_by_level() -> None:
    alone, _ = mapped(planned())
    merged, _ = mapped(planned(reduce="Say in one text what these have in common"))
    assert alone.expected and merged.expected and merged.high and alone.high
    # 10,000 texts of 200 tokens are read once at the first level, and few at the others.
    assert Decimal(1) < merged.expected - alone.expected < Decimal(2)


def test_the_input_of_a_map_is_used_and_sent() -> None:
    plan = predict(planned())
    assert plan.without == ()
    assert any(each.startswith("tickets (4,000,000 bytes") for each in plan.leaves)


def test_beside_a_map_nobody_is_told_that_one_agent_would_do_or_what_it_would_cost() -> None:
    few = FOUND.model_copy(update={"count": 200, "bytes": {"subject": 4_000, "text": 9_000}})
    after = (subtask("day", "classify", role="analyst"),)
    preview = predict(planned(few, size=36_000, after=after))
    assert len(preview.subtasks) == 2
    assert preview.alone is None and not preview.overstaffed


def test_whoever_judges_is_not_shown_the_input_of_a_map_but_told_its_name() -> None:
    state = planned(size=4_000)
    sources = gathering.for_judge(state, "Which is right?", None).sources
    assert (sources.inputs, sources.unseen) == ((), ("tickets",))


def test_rows_with_a_short_form_are_priced_at_its_length_and_not_at_that_of_a_text() -> None:
    kinds: JsonValue = {"type": "string", "enum": ["billing", "bug", "other"]}
    form: dict[str, JsonValue] = {"type": "object", "properties": {"kind": kinds}}
    low, expected = usual_written(form)
    # {"result": {"kind": "billing"}, "why_failed": "", "status": "complete"} has 71 characters.
    assert 71 / 4 < low == expected < 71 / 4 * 1.05
    short = mapped(planned(lane="now", result=form))[1].lanes[0]
    text = mapped(planned(lane="now"))[1].lanes[0]
    assert short.expected and text.expected and short.expected < text.expected
    assert usual_written({}) == WRITTEN


BEFORE = Reuse(run="before", tables={"classify": "ab"})


def with_kept(kept: KeptItems, **more: object) -> State:
    found = FOUND.model_copy(update={"kept": {"classify": kept}})
    return planned(found, lane="now", reuse=BEFORE, **more)  # type: ignore[arg-type]


def test_only_the_rows_that_an_earlier_run_does_not_have_are_priced() -> None:
    (progress,) = planned().work.values()
    asked = asked_of(gathering.for_map(planned(), progress))
    kept = KeptItems(rows=9_987, bytes=3_990_000, asked=asked)
    whole, _ = mapped(planned(lane="now"))
    row, about = mapped(with_kept(kept))
    assert whole.expected and row.expected and row.low and row.high
    assert row.expected < whole.expected / 500 and row.low <= row.expected <= row.high
    assert (about.reused, about.unused, row.seconds) == (9_987, "", 10.0)
    assert (
        "classify is a map: 10,000 items, 3 of which cannot be asked, 9,987 taken over from before,"
        " each other asked of haiku, at most 5 at once"
        in totals(predict(with_kept(kept)), Decimal(100))
    )
    all_of_it = kept.model_copy(update={"rows": 9_997})
    nothing, _ = mapped(with_kept(all_of_it))
    assert nothing.high == 0 and nothing.seconds == 0
    # The texts of all rows are merged anew, whoever has paid for them.
    merged, _ = mapped(with_kept(all_of_it, reduce="Say in one text what these have in common"))
    assert merged.expected and merged.expected > 1


def test_few_rows_to_come_may_find_their_beginning_in_the_cache_of_the_run_before() -> None:
    long = "Say in one word which kind of ticket this is: " + "a rule of the house; " * 1_000
    (progress,) = planned(instruction=long).work.values()
    asked = asked_of(gathering.for_map(planned(instruction=long), progress))
    kept = KeptItems(rows=9_995, bytes=3_998_000, asked=asked)
    row, _ = mapped(with_kept(kept, instruction=long))
    uncached, _ = mapped(with_kept(kept, instruction=long, capabilities=Capabilities()))
    assert row.low and row.expected and row.low < row.expected / 5
    assert (row.expected, row.high) == (uncached.expected, uncached.high)


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (KeptItems(rows=9, asked="otherwise"), "the earlier run asked something else"),
        (KeptItems(unused="its store has lost them"), "its store has lost them"),
        (KeptItems(asked="x"), "no item is equal to one of the earlier run that was complete"),
    ],
)
def test_where_nothing_is_taken_over_the_preview_prices_all_rows_and_says_why(
    kept: KeptItems, why: str
) -> None:
    row, about = mapped(with_kept(kept))
    assert about.reused == 0 and row.expected == mapped(planned(lane="now"))[0].expected
    lines = totals(predict(with_kept(kept)), Decimal(100))
    assert any(f"nothing is taken over from before: {why}" in each for each in lines)


def test_more_broken_items_than_may_fail_are_said_before_anything_is_paid() -> None:
    told = totals(predict(planned(tolerate=0.01)), Decimal(100))
    assert (
        "  nothing is paid as it stands: 3 of 10,000 records cannot be asked, more than the 0.01 %"
        " of classify that may fail; mend them, raise its `tolerate`, or decide about them with"
        " --ask" in told
    )
    asks = planned(tolerate=0.01)
    asks = replace(asks, goal=asks.goal.model_copy(update={"ask_people": True}))
    assert mapped(asks)[1].barred.endswith("may fail; a person is asked first")
    assert mapped(planned(tolerate=0.03))[1].barred == ""


def test_a_map_that_cannot_begin_names_the_least_cap_under_which_it_does() -> None:
    after = (subtask("day", "classify", role="analyst"),)
    state = planned(lane="now", after=after)
    (asked,) = next_moves(with_cap(state, Decimal("0.001")))
    assert isinstance(asked, AskRaise) and asked.least is not None
    (waiting,) = run_view(apply(with_cap(state, Decimal("0.001")), Started(asked))).waiting
    assert waiting.least is not None and waiting.least - asked.least < Decimal("0.001")
    assert isinstance(next_moves(with_cap(state, waiting.least))[0], StartMap)
    less = with_cap(state, asked.least - Decimal("0.0001"))
    assert isinstance(next_moves(less)[0], AskRaise)


def test_rows_are_priced_at_what_they_are_told_and_at_the_answers_that_their_plan_states() -> None:
    text: JsonValue = {"type": "string"}
    form: dict[str, JsonValue] = {"type": "object", "properties": {"label": text, "note": text}}
    state = planned(lane="now", result=form, usual_output=210)
    now = mapped(state)[1].lanes[0]
    work = gathering.for_work(state, state.work["classify"])
    role = Told({}, role="x" * state.brief.role("researcher").prompt_bytes)
    told = row_beginning(work, role, system_prompts()[ROW.prompt])
    shared = len(told.encode()) + len(json.dumps(shape_of(form).asked))
    read = shared * FOUND.asked + FOUND.shown(("subject", "text"))
    bill = (Decimal(read) / 4 + 5 * 210 * FOUND.asked) / 1_000_000
    assert now.expected == pytest.approx(bill, rel=Decimal("0.05"))
    assert now.low and now.low < now.expected


def test_an_assumed_length_of_answers_is_said_and_a_stated_one_is_not() -> None:
    said = "an answer is taken to have 200 tokens; if you know better, say `usual_output`"
    assert said in "\n".join(totals(predict(planned()), Decimal(100)))
    stated = "\n".join(totals(predict(planned(usual_output=80)), Decimal(100)))
    assert "is taken to have" not in stated
