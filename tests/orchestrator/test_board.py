"""What the Web UI is given: the board, and the line of each activity in the timeline."""

from __future__ import annotations

from decimal import Decimal

import pytest

from boards import row, view
from holdfast.calls import KINDS
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, ModelCard, Subtask
from holdfast.rendering.board import ANSWER_CHARACTERS, board, call_summary, lens_summary

MODEL = ModelCard(tier="sonnet", id="a-model")


def test_a_dollar_sign_does_not_begin_mathematics() -> None:
    shown = board(view(row(dollars=Decimal("0.0123")), dollars_spent="0.0123", model_calls=1))
    assert shown.count("\\$") == shown.count("$") == 3


def test_a_price_that_is_partly_assumed_is_an_upper_bound_on_the_board() -> None:
    lost = row(dollars=Decimal("0.0873"), assumed=Decimal("0.0855"))
    assert "≤\N{NO-BREAK SPACE}\\$0.0873" in board(view(lost)), "in a line of its cell"
    assert "≤" not in board(view(row(dollars=Decimal("0.0873"))))


def test_what_runs_shows_no_clock_that_stands_still() -> None:
    assert "4.2" in board(view(row(seconds=4.2)))
    assert "4.2" not in board(view(row(seconds=4.2, status="running")))


def test_a_run_of_tools_alone_speaks_of_no_money() -> None:
    shown = board(view(row(tier="none", role="bugs")))
    assert "no model is asked" in shown and "$" not in shown and "price" not in shown


def test_every_line_of_the_table_has_as_many_cells_as_its_head() -> None:
    for rows in ((row(tier="none"),), (row(tier="none"), row(id="t2", note="a | b"))):
        table = [each for each in board(view(*rows)).splitlines() if each.startswith("|")]
        assert len(table) == 2 + len(rows)
        assert len({each.replace("\\|", "").count("|") for each in table}) == 1


def test_the_board_says_why_a_subtask_is_there_until_it_has_more_to_say() -> None:
    why = "Prices differ, and an analyst can compare them."
    assert why in board(view(row(why=why, status="running", note="")))
    assert why not in board(view(row(why=why, status="running", note="asked again")))
    assert why not in board(view(row(why=why, note="")))


def test_an_unknown_price_is_never_zero_on_the_board() -> None:
    shown = board(view(row(dollars=None), dollars_spent=None, model_calls=1))
    assert shown.count("unpriced") == 2 and "0.0000" not in shown


@pytest.mark.parametrize("hostile", ["![x](http://h/x)", "\\![x](http://h/x)", "<img src=x>"])
def test_an_answer_can_make_the_browser_load_nothing(hostile: str) -> None:
    shown = board(view(row(), phase="closed", status="complete", answer=f"Good. {hostile}"))
    assert "Good." in shown
    assert "![" not in shown and "<img" not in shown


def test_the_board_of_a_review_begins_with_its_verdict_and_names_quiet_lenses_in_a_line() -> None:
    rows = [row(id=each, tier="none", note="no remarks") for each in ("bugs", "shell")]
    rows += [row(id="security", tier="none", note="5 seen")]
    said = "3 critical, 5 warnings in 6 files."
    ended = {"phase": "closed", "status": "complete", "verdict": said}
    shown = board(view(*rows, **ended, answer=f"**{said}**\n\nThe rest."))
    assert shown.startswith(f"**{said}**\n\nComplete · no model is asked\n\n")
    assert shown.count(said) == 1 and "The rest." in shown
    assert "✓ 2 lenses without remarks: bugs, shell." in shown
    assert shown.count("\n| ✓") == 1, "the table has what saw something"


def test_a_long_answer_is_cut_and_the_cut_is_said() -> None:
    whole = board(view(row(), answer="x" * ANSWER_CHARACTERS))
    cut = board(view(row(), answer="x" * (ANSWER_CHARACTERS + 1_234)))
    assert "more characters" not in whole
    assert "1,234 more characters are in the report" in cut
    assert len(cut.encode()) < 20_000


def test_of_a_thousand_subtasks_a_board_shows_what_needs_a_look_and_counts_the_rest() -> None:
    rows = [row(id=f"t{number}", title="x" * 200, status="complete") for number in range(1_000)]
    rows[7] = row(id="t7", status="failed", note="no data " * 100)
    rows[999] = row(id="t999", status="running")
    notes = tuple(f"note {number} " + "y" * 400 for number in range(100))
    shown = board(view(*rows, notes=notes, answer="z" * 20_000))
    assert "| t7\N{NO-BREAK SPACE}" in shown and "| t999\N{NO-BREAK SPACE}" in shown
    assert shown.count("\n| ✓") == 38
    assert "… and 960 more subtasks: 960 complete." in shown
    assert "note 19 " in shown and "note 20 " not in shown and "and 80 more notes" in shown
    assert len(shown.encode()) < 30_000
    few = board(view(*rows[:40]))
    assert few.count("\n| ") == 41 and "more subtasks" not in few


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"kind": "work", "subtask_id": "t3", "role": "analyst"}, "t3 analyst · sonnet"),
        ({"kind": "work", "subtask_id": "t3", "number": 2}, "t3 · sonnet · 2"),
        ({"kind": "synthesize"}, "one answer from all findings · sonnet"),
        ({"kind": "synthesize", "model": None}, "merge by template"),
        (
            {"mending": True, "kind": "work", "subtask_id": "t3", "role": "analyst"},
            "t3 analyst, its shape mended · sonnet",
        ),
    ],
)
def test_a_line_of_the_timeline_says_more_than_its_activity_type(
    fields: dict[str, object], shown: str
) -> None:
    base: dict[str, object] = {"purpose": "work-t3", "model": MODEL}
    call = Call.model_validate({**base, **fields})
    assert call_summary(call) == shown


def test_the_line_of_work_has_its_title_and_says_that_it_was_begun_otherwise() -> None:
    call = Call(kind="work", purpose="work-t3", number=2, subtask_id="t3", model=MODEL)
    subtask = Subtask(id="t3", title="Find\n\u202ebugs", instruction="i", role="analyst")
    shown = call_summary(call, WorkMaterial(subtask=subtask), anew=True)
    assert shown == "t3 · sonnet · as planned anew · Find \\u202ebugs"
    assert call_summary(call, WorkMaterial(subtask=subtask)) == "t3 · sonnet · 2 · Find \\u202ebugs"


def test_a_call_of_every_kind_has_its_line() -> None:
    for kind in KINDS:
        call = Call(purpose="x", kind=kind, model=MODEL)
        assert call_summary(call)


def test_a_line_for_a_tool_names_its_subtask_and_shows_hostile_titles_as_text() -> None:
    subtask = Subtask(id="bugs", title="Find\n\u202ebugs", instruction="i", role="bugs")
    assert lens_summary(subtask) == "bugs · Find \\u202ebugs"
