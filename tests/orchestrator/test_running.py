"""What readers are shown of a run while it runs."""

from __future__ import annotations

from decimal import Decimal

from driving import subtask
from holdfast.contracts import Order
from holdfast.rendering import running
from holdfast.rules import steering
from holdfast.state.events import Steered
from outcomes import DRAFTS, begun, end, in_flight


def test_the_view_shows_each_subtask_as_it_stands() -> None:
    run = begun(
        *(subtask("a"), subtask("b", role="scanner"), subtask("c", "a")),
        *(subtask("d"), subtask("e", "d")),
    )
    end(run, "work-a-1", "unsure")
    found = DRAFTS["complete"]("examine-b-1").model_copy(update={"data": {"remarks": [1]}})
    end(run, "examine-b-1", value=found)
    end(run, "work-d-1", "refused")
    run.wait(5)
    run.put(Steered(1, "pause", Order()))
    view = running.run_view(run.state)
    rows = {row.id: row for row in view.rows}
    assert {id: row.status for id, row in rows.items()} == {
        "a": "running",
        "b": "complete",
        "c": "waiting",
        "d": "failed",
        "e": "skipped",
    }
    assert (rows["a"].try_number, rows["a"].tier, rows["a"].seconds) == (2, "opus", 5.0)
    assert rows["a"].note == "confidence 10 is below 60"
    assert rows["b"].note == "1 seen"
    assert rows["d"].note == "it was refused"
    assert (view.phase, view.status) == ("working", None)


def test_a_row_has_the_tier_that_is_asked_when_a_small_cap_lets_no_dearer_one() -> None:
    run = begun(subtask("a", tier="sonnet"), subtask("b", "a"), dollars=Decimal("0.2"))
    (ask,) = run.asks["a"]
    rows = {row.id: row for row in running.run_view(run.state).rows}
    assert (ask.call.tier, rows["a"].tier, rows["b"].tier) == ("haiku", "haiku", "sonnet")
    end(run, "work-a-1")
    assert running.run_view(run.state).rows[0].tier == "haiku"


def test_the_status_is_shown_only_when_the_run_is_over() -> None:
    run = begun(subtask("a"))
    assert running.run_view(run.state).status is None
    while run.in_flight:
        end(run, in_flight(run)[0])
    run.wait(60)
    view = running.run_view(run.state)
    assert (view.phase, view.status) == ("closed", "complete")
    assert view.now == run.state.finished, "the clock stops with the run"


def test_an_order_about_a_subtask_that_is_over_says_where_the_run_is() -> None:
    run = begun(subtask("a"), subtask("b"))
    end(run, "work-a-1")
    end(run, "work-b-1")
    assert run.state.phase == "synthesizing"
    order = Order(subtask_id="a", text="40")
    assert steering.refusal(run.state, "answer", order) == (
        "all subtasks are over, and the answer is being written"
    )
