"""What closed runs took, told at their end, and learned by the previews of later ones."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from test_map_preview import planned as planned_map

from driving import BRIEFING, TEAM, Drive, model, subtask
from holdfast.calls.rows import MapTable, RowCounts
from holdfast.cli.checks.previews import check_previews
from holdfast.contracts import Bill, Briefing, Finding, Fork, Goal, Plan, Report, Subtask
from holdfast.contracts.goals import RoleAsWas
from holdfast.contracts.past import RowTook, RunTook, Took
from holdfast.contracts.search import MEMO_TOOK
from holdfast.contracts.view import Preview
from holdfast.ledger.ranges import total_of
from holdfast.rendering.listing import memo
from holdfast.rendering.preview import totals
from holdfast.rules.past import (
    LEAST,
    MOST_ALIKE,
    MOST_TOLD,
    calibrate,
    learn,
    mark_of,
    read_told,
    spread,
    tell_run,
)
from holdfast.rules.preview import predict
from holdfast.state.events import TeamEnded
from holdfast.state.moves import StartTeam
from holdfast.state.run import State
from holdfast.state.work import Work
from holdfast.temporal.connection import Target
from holdfast.temporal.past import ClosedRuns, read_past
from outcomes import AMPLE, begun, end, in_flight

COST = st.lists(st.integers(0, 10**9), min_size=LEAST, max_size=60)
GOAL = Goal(text="Compare")
TWO = (subtask("a"), subtask("b"))


def ended(*subtasks: Subtask, outcome: str = "complete") -> State:
    """A run of these subtasks that is over, in which each call cost all that was reserved."""
    run = begun(*(subtasks or TWO), replans=0)
    while not run.closed:
        for each in in_flight(run):
            end(run, each, outcome if each.startswith("work") else "complete")
    return run.state


def told(state: State) -> RunTook:
    run = read_told(tell_run(state))
    assert run is not None
    return run


def after(runs: int, past: State, *subtasks: Subtask) -> State:
    """A run of these subtasks that has begun after so many like a closed one."""
    brief = BRIEFING.model_copy(update={"past": learn([told(past)] * runs, BRIEFING, GOAL)})
    return Drive(Plan(goal="Compare", subtasks=subtasks or TWO), AMPLE, brief).state


def preview_of(state: State) -> Preview:
    assert state.estimate is not None
    return state.estimate


@settings(deadline=None, database=None, max_examples=40)
@given(COST)
def test_quantiles_lie_around_the_median_and_closer_where_there_are_more(costs: list[int]) -> None:
    low, expected, high = spread(costs)
    assert 0 <= low <= expected <= high
    narrower = spread(costs * 10)
    assert narrower[1] == pytest.approx(expected, rel=0.2, abs=max(costs) * 0.2)
    # Equal costs are still no certainty, and the less so the fewer they are.
    same = spread([1_000] * len(costs))
    assert same[0] == pytest.approx(1_000 - 1_000 / len(costs)) and same[2] > 1_000


def test_a_closed_run_tells_sorts_sizes_and_amounts_and_no_text() -> None:
    state = ended()
    run = told(state)
    assert memo(state)[MEMO_TOOK] == tell_run(state)
    assert {row.sort for row in run.rows} == {"subtask", "synthesis", "critique"}
    assert run.paid == round(state.ledger.paid.dollars * 1_000_000)
    works = [row for row in run.rows if row.sort == "subtask"]
    paid = state.work["a"].paid.dollars
    assert paid and [row.price for row in works] == [round(paid * 1_000_000)] * 2
    assert all((row.role, row.tier) == ("analyst", "sonnet") for row in works)
    assert run.said is not None and run.said[0] < run.said[1] < run.said[2]
    assert "Compare" not in tell_run(state) and "Find out" not in tell_run(state)


def test_what_is_not_complete_or_was_only_planned_teaches_no_price() -> None:
    failed = read_told(tell_run(ended(outcome="failed")))
    assert failed is None or not [row for row in failed.rows if row.sort == "subtask"]
    state = ended()
    dry = replace(state, goal=state.goal.model_copy(update={"plan_only": True}))
    assert tell_run(dry) == "" and MEMO_TOOK not in memo(dry)


def test_a_fork_that_tries_another_role_teaches_nothing_and_learns_where_it_is_as_others_are() -> (
    None
):
    state, runs = ended(), [told(ended())] * 10
    role = RoleAsWas(name="analyst", tier="opus", effort="high", prompt="ab", model="another")
    tried = GOAL.model_copy(update={"fork": Fork(run_id="before", roles=(role,))})
    assert tell_run(replace(state, goal=state.goal.model_copy(update={"fork": tried.fork}))) == ""
    known = learn(runs, BRIEFING, tried)
    (card,) = (each for each in BRIEFING.roles if each.name == "analyst")
    other = card.model_copy(update={"effort": "high" if card.effort != "high" else "low"})
    cards = tuple(other if each is card else each for each in BRIEFING.roles)
    left = learn(runs, BRIEFING.model_copy(update={"roles": cards}), tried)
    assert left == tuple(each for each in known if each.role != "analyst") != known


def test_a_name_beyond_all_bounds_stops_no_run_that_closes() -> None:
    state = ended()
    named = replace(state, goal=state.goal.model_copy(update={"playbook": "x" * 101}))
    assert tell_run(named) == "" and MEMO_TOOK not in memo(named)


def test_many_alike_rows_do_not_fill_the_list() -> None:
    run = told(ended(*(subtask(f"t{n}") for n in range(30))))
    assert len([row for row in run.rows if row.sort == "subtask"]) == MOST_ALIKE
    assert len(run.rows) <= MOST_TOLD and len(tell_run(ended())) < 1_500


def test_eight_rows_of_the_past_replace_the_range_and_seven_do_not() -> None:
    past = ended()
    short, enough = (preview_of(after(runs, past)) for runs in (LEAST // 2 - 1, LEAST // 2))
    assert [row.past for row in short.rows] == [0] * len(short.rows)
    paid = past.work["a"].paid.dollars
    assert paid is not None
    for row in enough.subtasks:
        assert (row.past, row.worst) == (LEAST, short.subtasks[0].high)
        assert row.expected == pytest.approx(paid, rel=Decimal("0.01"))
        assert row.low and row.high and row.low < paid < row.high
    # Of the run's own calls there are four of each kind, which is too few.
    assert [row.past for row in enough.rows if not row.of_plan] == [0, 0]
    assert enough.expected == total_of([row.expected for row in enough.rows])


def test_ten_runs_teach_the_price_of_an_eleventh() -> None:
    past = ended()
    preview = preview_of(after(10, past))
    assert all(row.past >= 10 for row in preview.rows)
    assert preview.expected == pytest.approx(past.ledger.paid.dollars, rel=Decimal("0.01"))


def test_what_is_reserved_remains_the_worst_case() -> None:
    past = ended()
    free = tuple(
        each.model_copy(
            update={"low": Decimal(0), "expected": Decimal("0.0001"), "high": Decimal("0.0001")}
        )
        for each in learn([told(past)] * 10, BRIEFING, GOAL)
    )
    cheap = BRIEFING.model_copy(update={"past": free})
    plan = Plan(goal="Compare", subtasks=TWO)
    states = [Drive(plan, AMPLE, brief).state for brief in (BRIEFING, cheap)]
    without, with_past = states
    assert without.ledger == with_past.ledger and without.ledger.reserved
    assert without.flights == with_past.flights
    assert preview_of(with_past).expected < preview_of(without).expected  # type: ignore[operator]
    highs = [row.high for row in preview_of(without).rows]
    assert [row.worst for row in preview_of(with_past).rows] == highs


@pytest.mark.parametrize(
    "change",
    [
        {"models": (model("haiku", 1), model("sonnet", 4), model("opus", 5))},
        {"endpoint": "http://127.0.0.1:9"},
        {"roles": tuple(r.model_copy(update={"effort": "high"}) for r in BRIEFING.roles)},
    ],
)
def test_another_price_endpoint_or_effort_has_no_past(change: dict[str, object]) -> None:
    now = BRIEFING.model_copy(update=change)
    assert mark_of(BRIEFING, "analyst", "sonnet") != mark_of(now, "analyst", "sonnet")
    runs = [told(ended())] * 10
    assert not [each for each in learn(runs, now, GOAL) if each.role == "analyst"]
    assert learn(runs, BRIEFING, GOAL)
    for name in ("playbook", "project"):
        assert not learn(runs, BRIEFING, GOAL.model_copy(update={name: "research"}))


def test_the_preview_says_which_prices_closed_runs_paid() -> None:
    past = ended()
    said = totals(preview_of(after(4, past)), Decimal(100))
    assert "Priced by closed runs: a and b as 8 such subtasks took; the rest by sizes alone" in said
    assert any(
        line == "In no row: a changed plan; in none by sizes alone: "
        "a subtask tried again, a revised answer."
        for line in said
    )
    whole = totals(preview_of(after(10, past)), Decimal(100))
    assert any(
        line.startswith("Priced by closed runs: a and b as 20 such subtasks took; ")
        and line.endswith("as 10 such calls took")
        for line in whole
    )
    assert "In no row: a changed plan." in whole


def test_what_nobody_has_run_is_compared_at_the_share_that_the_plan_costs() -> None:
    before, past = preview_of(after(0, ended())), ended()
    now = preview_of(after(10, past))
    assert before.expected and now.expected and before.alone and now.alone
    share = now.expected / before.expected
    assert share > Decimal("1.5"), "calls that cost all that was reserved are dear"
    for tier, amount in now.by_tier.items():
        due = before.by_tier[tier]
        assert amount and due and amount / due == pytest.approx(share, rel=Decimal("0.01"))
    assert now.alone.expected and before.alone.expected
    alone = now.alone.expected / before.alone.expected
    assert now.alone.past or alone == pytest.approx(share, rel=Decimal("0.01"))


def test_a_map_costs_what_its_items_cost_before_in_each_lane() -> None:
    state = planned_map()
    (row,) = predict(state).subtasks
    assert row.map is not None and row.map.takes == "batch" and row.map.asked == 9_997
    now, batch = row.map.lanes
    took = Took(
        sort="map batch",
        role=row.role,
        tier=row.tier,
        size=row.tokens.bit_length(),
        count=9,
        low=Decimal("0.0004"),
        expected=Decimal("0.0005"),
        high=Decimal("0.0008"),
    )
    brief = state.brief.model_copy(update={"past": (took,)})
    (learned,) = predict(replace(state, briefing=brief)).subtasks
    assert learned.map is not None
    prices = [learned.low, learned.expected, learned.high]
    assert prices == [9_997 * each for each in (took.low, took.expected, took.high)]
    assert (learned.past, learned.worst, learned.slice) == (9, row.high, row.slice)
    dear, cheap = learned.map.lanes
    assert cheap.expected == learned.expected
    assert batch.expected and now.expected and dear.expected and cheap.expected
    share = cheap.expected / batch.expected
    assert dear.expected / now.expected == pytest.approx(share, rel=Decimal("0.001"))
    said = totals(predict(replace(state, briefing=brief)), Decimal(100))
    assert any("classify as 9 such maps took" in line for line in said)


def test_a_team_tells_what_it_cost_as_a_whole() -> None:
    run = begun(subtask("a", role=TEAM.name))
    (move,) = run.teams
    assert isinstance(move, StartTeam)
    done = Report(
        status="complete",
        run_id="below",
        goal="a",
        answer="found",
        dollars=Decimal("0.25"),
        model_calls=3,
        confidence=90,
    )
    run.put(TeamEnded(move, done))
    while not run.closed:
        for each in in_flight(run):
            end(run, each)
    assert [(row.sort, row.price) for row in told(run.state).rows if row.role == TEAM.name] == [
        ("team", 250_000)
    ]


def test_a_map_tells_what_one_of_the_items_cost_that_were_asked() -> None:
    state, counts = planned_map(), RowCounts(items=120, complete=101, failed=9, broken=4, reused=6)
    state = replace(state, estimate=predict(state))
    (progress,) = state.work.values()
    ended = replace(
        progress,
        finding=Finding(subtask_id="classify", status="complete"),
        paid=Bill(calls=100, dollars=Decimal("0.002035")),
        mapped=replace(progress.mapped, table=MapTable(counts=counts)),
    )
    state = replace(state, work=Work({"classify": ended}, ()))
    (row,) = told(state).rows
    assert (row.sort, row.price) == ("map batch", 20.35)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"rows": [["subtask"]]}',
        '{"rows": [["subtask", "a", "sonnet", 11, "ff", -1, 0.0]]}',
        '{"rows": [["subtask", "a", "sonnet", 11, "ff", 1, "NaN"]]}',
        '{"said": [1, 2], "paid": 1}',
        '{"paid": 1e400}',
        '{"rows": '
        + str([["subtask", "a", "sonnet", 11, "ff", 1, 0.0]] * 101).replace("'", '"')
        + "}",
    ],
)
def test_a_memo_that_is_none_of_ours_teaches_nothing(text: str) -> None:
    assert read_told(text) is None


@settings(deadline=None, database=None, max_examples=12)
@given(
    st.lists(
        st.builds(
            RowTook,
            st.sampled_from(("subtask", "map now", "synthesis", "")),
            st.sampled_from(("analyst", "nobody", "")),
            st.sampled_from(("sonnet", "none")),
            st.integers(0, 64),
            st.sampled_from((mark_of(BRIEFING, "analyst", "sonnet"), "")),
            st.integers(0, 10**12),
        ),
        max_size=30,
    )
)
def test_whatever_the_past_holds_previews_are_made(rows: list[RowTook]) -> None:
    run = read_told(RunTook(rows=tuple(rows)).model_dump_json())
    assert run is not None and len(run.rows) == len(rows)
    brief: Briefing = BRIEFING.model_copy(update={"past": learn([run] * 3, BRIEFING, GOAL)})
    for row in preview_of(Drive(Plan(goal="Compare", subtasks=TWO), AMPLE, brief).state).rows:
        assert row.low is not None and row.expected is not None and row.high is not None
        assert 0 <= row.low <= row.expected <= row.high


def test_previews_are_held_against_what_runs_paid() -> None:
    said = (100, 200, 400)
    runs = [RunTook(said=said, paid=paid) for paid in (100, 190, 210, 400, 401)]
    found = calibrate([*runs, RunTook(paid=5)])
    assert found is not None and (found.runs, found.within, found.off) == (5, 4, 0.5)
    assert calibrate([RunTook(paid=5)]) is None


class Listing:
    """A server that lists runs by their memos; one that is an error cannot be decoded."""

    def __init__(self, *memos: object) -> None:
        self.memos = memos

    async def list_workflows(self, *_: object, **__: object) -> AsyncIterator[object]:
        for kept in self.memos:
            if isinstance(kept, RPCError):
                raise kept

            async def value(*_: object, kept: object = kept, **__: object) -> object:
                if isinstance(kept, Exception):
                    raise kept
                return kept

            yield SimpleNamespace(id="run", memo_value=value)


@pytest.mark.anyio
async def test_a_memo_that_cannot_be_read_hides_no_other_run() -> None:
    text = tell_run(ended())
    client: Any = Listing("{", RuntimeError("no such encoding"), text, "", 7, text)
    assert await read_past(client, "queue") == (read_told(text),) * 2


@pytest.mark.anyio
async def test_doctor_says_why_it_knows_nothing_of_previews() -> None:
    refused: Any = Listing(RPCError("no visibility", RPCStatusCode.UNIMPLEMENTED, b""))
    target = Target("", embedded=False)
    (check,) = await check_previews(refused, target)
    assert (check.mark, check.name) == ("note", "previews") and "no visibility" in check.detail
    assert await check_previews(Listing(), target) == []  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_a_server_that_lists_nothing_costs_a_preview_its_past_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = []

    def client() -> Client:
        asked.append(1)
        raise RuntimeError("no list")

    past = ClosedRuns(client, lambda: "queue")
    with caplog.at_level(logging.WARNING):
        assert [await past.read(), await past.read()] == [(), ()]
    assert len(asked) == 1, "it is asked again only after a while"
    assert "previews go by sizes alone: no list of closed runs: no list" in caplog.text
