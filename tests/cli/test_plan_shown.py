"""What a terminal shows of a plan before it runs."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from drawn import HOSTILE, OUR_STYLES, UNSEEN, drawn, view
from holdfast.cli.screen.board import board
from holdfast.cli.screen.tables import preview
from holdfast.contracts import Check, Plan, Subtask
from holdfast.contracts.view import Preview, Question
from holdfast.deployment.invocation import STARTER


def planned(*rows: dict[str, object], **fields: object) -> Preview:
    base = {"title": "Subtask", "role": "analyst", "tier": "sonnet", "seconds": 20.0}
    prices = {"low": "0.01", "expected": "0.02", "high": "0.10"}
    return Preview.model_validate(
        {
            "rows": [{**base, **prices, **each} for each in rows],
            "low": "0.10",
            "expected": "0.30",
            "high": "1.20",
            "makespan": 80.0,
            **fields,
        }
    )


DIAMOND = planned(
    {"id": "t1"},
    {"id": "t2", "depends_on": ["t1"]},
    {"id": "t3", "depends_on": ["t1"], "seconds": 40.0},
    {"id": "t4", "depends_on": ["t2", "t3"]},
    critical_path=["t1", "t3", "t4"],
    leaves=["notes (120 bytes)"],
    endpoint="http://models",
)


def test_a_plan_shows_its_prices_its_graph_its_critical_path_and_what_is_sent() -> None:
    waits = view(phase="approval", preview=DIAMOND, waiting=(Question(kind="plan"),))
    shown = OUR_STYLES.sub("", drawn(board(waits, width=110), width=110))
    for part in (
        "$0.0100   $0.0200  $0.1000  20 s",
        "Expected: $0.3000 ($0.1000 to $1.2000), never above $2.00 · about 1 min 20 s of work",
        "Critical path: t1 → t3 → t4",
        "Sent to the models at http://models: notes (120 bytes)",
        f"{STARTER} approve run-1",
    ):
        assert part in shown
    assert [line.rstrip() for line in shown.splitlines() if "──" in line] == [
        "└── t1 Subtask",
        "    ├── t2 Subtask",
        "    └── t3 Subtask",
        "        └── t4 Subtask  + t2",
    ]


def test_a_finding_that_is_there_already_has_neither_price_nor_time() -> None:
    reused = planned(
        {"id": "t1", "seconds": 0.0, "reused": True}, {"id": "t2", "depends_on": ["t1"]}
    )
    first = drawn(preview(reused, Decimal(2), width=110), width=110).splitlines()[1]
    assert "reused" in first and "$" not in first


def test_a_plan_for_tools_alone_speaks_of_no_money() -> None:
    free = planned({"id": "bugs", "tier": "none"}, low="0", expected="0", high="0")
    shown = drawn(preview(free, Decimal(2), width=110), width=110)
    assert "nothing leaves the machines of this deployment" in shown and "$" not in shown


def test_what_each_subtask_is_told_is_shown_on_demand() -> None:
    told = Plan(
        goal="g",
        synthesis_instruction="Answer in a table.",
        subtasks=(
            Subtask(
                id="t1",
                title="Look",
                role="analyst",
                instruction="Read it.\nThen say so.",
                inputs=("notes",),
                acceptance_criteria="It is short.",
                checks=(Check(kind="max_words", argument="50"),),
            ),
        ),
    )
    plan = planned({"id": "t1"}).model_copy(update={"plan": told})
    first = ("Read it.", "Then say so.", "inputs: notes", "must meet: It is short.")
    parts = (*first, "checked by code: max_words 50", "Answer in a table.")
    shown = drawn(preview(plan, Decimal(2), width=110, full=True), width=110)
    assert all(part in shown for part in parts)
    assert "Read it." not in drawn(preview(plan, Decimal(2), width=110), width=110)


@pytest.mark.parametrize("kind", ["synthesis", "reading", "judge", "digest"])
def test_a_preview_with_any_call_to_come_is_neither_free_nor_private(kind: str) -> None:
    rows: tuple[dict[str, object], ...] = (
        {"id": "bugs", "tier": "none"},
        {"id": kind, "kind": kind},
    )
    plan = planned(*rows, leaves=["the goal", "the findings"], endpoint="http://models")
    shown = drawn(preview(plan, Decimal(2), width=110), width=110)
    assert "free" not in shown and "nothing leaves" not in shown
    assert "Sent to the models at http://models: the goal, the findings" in shown


def test_what_tools_send_out_is_said_besides() -> None:
    plan = planned({"id": "a", "kind": "agent"}, leaves=["the goal"], reached=["x, to \x1b y"])
    shown = drawn(preview(plan, Decimal(2), width=110), width=110)
    assert "Reached by tools: x, to \\x1b y" in shown


def test_what_was_paid_and_what_is_a_team_are_said_as_what_they_are() -> None:
    rows: tuple[dict[str, object], ...] = (
        {"id": "planning", "kind": "planning", "title": "making this plan", "paid": True},
        {"id": "t1", "kind": "team", "high": "0.80"},
        {"id": "t2", "kind": "team", "high": "0.10", "worst": "0.90", "past": 8},
    )
    shown = OUR_STYLES.sub("", drawn(preview(planned(*rows), Decimal(2), width=110), width=110))
    assert re.search(r"making this plan .* paid", shown)
    assert "t1 is a team: a run of its own, with its own plan and subtasks, for up to $0.8000" in (
        shown
    )
    assert "subtasks, for up to $0.9000" in shown, "which closed teams, at $0.10, are no bound of"


def test_a_plan_without_known_prices_says_so() -> None:
    unknown = {"low": None, "expected": None, "high": None}
    shown = drawn(preview(planned({"id": "t1", **unknown}, **unknown), Decimal(2), width=110))
    assert "Expected: unpriced" in shown and "$0.0" not in shown


@pytest.mark.parametrize("width", [40, 99, 100, 140])
@pytest.mark.parametrize("reach", [1, 12])
def test_thirty_subtasks_fit_any_screen_and_each_is_in_the_tree_once_if_there_is_room(
    width: int, reach: int
) -> None:
    ids = [f"t{number}" for number in range(30)]
    rows: list[dict[str, object]] = [
        {"id": id, "title": "Long " * 30, "depends_on": ids[max(0, place - reach) : place : 3]}
        for place, id in enumerate(ids)
    ]
    shown = OUR_STYLES.sub("", drawn(preview(planned(*rows), Decimal(2), width=width), width))
    assert max(map(len, shown.splitlines())) <= width
    tree = [line.split("── ")[1].split()[0] for line in shown.splitlines() if "── " in line]
    assert sorted(tree) == sorted(ids) if reach > 1 and width > 60 else not tree


def test_hostile_text_in_a_plan_or_a_question_reaches_the_terminal_as_escapes() -> None:
    hostile = planned({"id": "t1", "title": HOSTILE, "role": HOSTILE}, leaves=[HOSTILE])
    asked = Question(kind="subtask", subtask_id="t1", text=HOSTILE)
    waits = view(phase="approval", preview=hostile, waiting=(asked,))
    shown = drawn(board(waits, width=400), width=400)
    assert UNSEEN.search(OUR_STYLES.sub("", shown)) is None
    assert "\\u202e" in shown
