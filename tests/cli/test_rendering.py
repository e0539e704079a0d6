"""What a terminal shows of runs and reports, hostile text included."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from drawn import HOSTILE, OUR_STYLES, START, UNSEEN, drawn, row, view
from holdfast.cli.checks.endpoint import mask
from holdfast.cli.commands.runs.inbox import WaitingRun, as_data
from holdfast.cli.screen.board import board, changes
from holdfast.cli.screen.exits import Code, code_of
from holdfast.cli.screen.waiting import reminders
from holdfast.cli.shared.follow import LiveBoard
from holdfast.contracts.view import Question
from holdfast.deployment.address import address_of
from holdfast.deployment.invocation import STARTER
from holdfast.rendering.amounts import money, seconds

# ---------------------------------------------------------------- the board


def test_a_row_shows_title_role_tier_status_seconds_price_and_note() -> None:
    shown = drawn(
        board(view(row(status="complete", seconds=3.2, dollars="0.0123", note="7 remarks")))
    )
    for part in ("t1", "Subtask t1", "analyst · sonnet", "complete", "3.2 s", "$0.0123", "7 rem"):
        assert part in shown


def test_hostile_text_reaches_the_terminal_as_escapes_on_one_line() -> None:
    hostile = row(title=HOSTILE, role=HOSTILE, note=HOSTILE)
    shown = drawn(board(view(hostile, notes=(HOSTILE,)), notes=(HOSTILE,), width=400), width=400)
    assert UNSEEN.search(OUR_STYLES.sub("", shown)) is None
    assert "\\x1b[2J" in shown and "\\u202e" in shown
    assert "[bold]hi[/bold] :smile:" in shown
    assert len(shown.strip().splitlines()) == 4


@pytest.mark.parametrize("width", [40, 79, 80, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    rows = [row(f"t{number}", title="Long " * 30, note="note " * 30) for number in range(30)]
    shown = drawn(board(view(*rows), width=width), width=width)
    assert max(len(OUR_STYLES.sub("", line)) for line in shown.splitlines()) <= width


def test_the_clock_of_what_runs_goes_on_between_two_views() -> None:
    running, done = row("t1", seconds=5), row("t2", status="complete", seconds=5)
    shown = drawn(board(view(running, done), at=START + timedelta(seconds=40)))
    first, second, third = shown.strip().splitlines()
    assert "40 s" in first and "35 s" in second and "5.0 s" in third


def test_lenses_that_begin_or_see_nothing_at_the_same_moment_share_a_line_of_a_log() -> None:
    names = ("bugs", "shell", "security")
    before = view(*(row(each, tier="none") for each in names))
    told = [line.split("s  ", 1)[1] for line in changes(None, before)]
    assert "▸ bugs, shell, security: running" in told
    notes = ("no remarks", "no remarks", "5 seen")
    ended = [
        row(id, tier="none", status="complete", note=n) for id, n in zip(names, notes, strict=True)
    ]
    told = [line.split("s  ", 1)[1] for line in changes(before, view(*ended))]
    assert told[0] == "✓ 2 lenses without remarks: bugs, shell"
    assert len(told) == 2 and told[1].endswith("complete, 5 seen")
    screen = drawn(board(view(*ended, phase="closed", verdict="5 warnings in 1 file.")))
    first, second, *_ = screen.strip().splitlines()
    assert "5 warnings in 1 file." in first and "closed · 3 of 3 settled" in second
    assert "✓ 2 lenses without remarks: bugs, shell" in screen


def test_a_run_without_models_speaks_of_no_money() -> None:
    shown = drawn(board(view(row(tier="none"))))
    assert "$" not in shown and "model" not in shown


def test_an_unknown_price_is_never_zero() -> None:
    shown = drawn(board(view(row(dollars=None), dollars_spent=None, model_calls=1)))
    assert shown.count("unpriced") == 2
    assert "$0" not in shown


# ---------------------------------------------------------------- what is asked of a person


def about(subtask_id: str, text: str) -> Question:
    return Question(kind="subtask", subtask_id=subtask_id, text=text)


@pytest.mark.parametrize(
    ("question", "fields", "text", "command"),
    [
        (
            Question(kind="plan"),
            {"phase": "approval"},
            "the plan waits",
            "approve run-1",
        ),
        (Question(kind="paused"), {}, "the run is paused", "resume run-1"),
        (
            Question(kind="budget", text="no call fits"),
            {"model_calls": 50, "dollars_spent": Decimal("0.10")},
            "no call fits",
            "raise run-1 --limits model_calls=120",
        ),
        (
            Question(kind="budget", text="no call fits"),
            {"model_calls": 2, "dollars_spent": Decimal("1.90")},
            "no call fits",
            "raise run-1 --limits dollars=4.00",
        ),
        (
            Question(kind="budget", text="no call fits", least=Decimal("0.018")),
            {"model_calls": 0, "dollars_spent": Decimal(0), "dollars_cap": Decimal("0.01")},
            "no call fits",
            "raise run-1 --limits dollars=0.018",
        ),
        (
            Question(kind="budget", text="no call fits", least=Decimal("4.5")),
            {"model_calls": 2, "dollars_spent": Decimal("1.90")},
            "no call fits",
            "raise run-1 --limits dollars=4.5",
        ),
        (about("t1", "which year?"), {}, "t1 asks: which year?", 'answer run-1 t1 "your answer"'),
        (
            Question(kind="call", subtask_id="t1", text='write {"text": "40"}', call=3),
            {},
            't1 wants to make call 3: write {"text": "40"}',
            "approve run-1 3",
        ),
        (
            about("plan", "which one?"),
            {},
            "plan asks: which one?",
            'answer run-1 plan "your answer"',
        ),
    ],
)
def test_every_question_comes_with_the_command_that_answers_it(
    question: Question, fields: dict[str, object], text: str, command: str
) -> None:
    (asked,) = reminders(view().model_copy(update={"waiting": (question,), **fields}))
    assert text in asked.text
    assert asked.command == f"{STARTER} {command}"
    others = [each for each in asked.others.split(", ") if each]
    assert all(each.startswith(f"{STARTER} ") and " run-1" in each for each in others), "as typed"


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ('{"text": "40", "to": ["ann"]}', {"text": "40", "to": ["ann"]}),
        ('{"key": [redacted]}', '{"key": [redacted]}'),
    ],
)
def test_a_call_that_waits_is_told_to_programs_as_fields(said: str, arguments: object) -> None:
    question = Question(kind="call", subtask_id="t1", text=f"write {said}", call=3)
    asking = WaitingRun("run-1", "Compare", reminders(view(waiting=(question,))))
    assert "unreadable" not in as_data(asking)
    assert as_data(WaitingRun("run-1", "", (), "no key"))["unreadable"] == "no key"
    assert as_data(asking)["waiting"] == [
        {
            "question": f"t1 wants to make call 3: write {said}",
            "command": f"{STARTER} approve run-1 3",
            "decline": f"{STARTER} decline run-1 3",
            "call": 3,
            "subtask": "t1",
            "tool": "write",
            "arguments": arguments,
        }
    ]


@pytest.mark.parametrize("width", [60, 100])
def test_what_an_agent_is_at_has_a_line_of_its_own_below_the_board(width: int) -> None:
    at = 'turn 3 of 10, search_files "rate limit"'
    working = row(status="running", doing=at)
    shown = drawn(board(view(working, row(id="t2")), width=width), width=width)
    assert f"  t1  {at}" in OUR_STYLES.sub("", shown).splitlines()
    hostile = drawn(board(view(row(status="running", doing=HOSTILE)), width=400), width=400)
    assert not UNSEEN.search(OUR_STYLES.sub("", hostile))


LETTER = "ß"
"""That no folder of a checkout has in its name: the hints show where the program is."""


def test_a_screen_that_is_redrawn_cuts_a_long_question_and_says_where_it_is_whole() -> None:
    question = Question(kind="call", subtask_id="t1", text="write " + LETTER * 3_000, call=3)
    asking = view(waiting=(question,))
    live = LiveBoard(asking).frame()
    assert drawn(live).count(LETTER) < 500 and "`show run-1` has all of it" in drawn(live)
    assert drawn(board(asking)).count(LETTER) == 3_000


def test_a_new_question_is_a_line_and_an_old_one_is_none() -> None:
    before, after = view(), view(waiting=(Question(kind="paused"),))
    (line,) = changes(before, after)
    assert line.endswith(f"? the run is paused: {STARTER} resume run-1")
    assert changes(after, after) == []


# ---------------------------------------------------------------- plain lines


def test_each_change_is_one_line_and_what_did_not_change_is_none() -> None:
    before = view(row("t1"), row("t2", status="waiting"))
    after = view(row("t1", status="failed", note="no answer"), row("t2", status="waiting"))
    assert len(changes(None, before)) == 2
    assert changes(before, before) == []
    (line,) = changes(before, after)
    assert "✗ t1 Subtask t1 (analyst · sonnet): failed" in line and "no answer" in line


def test_a_second_try_and_a_new_note_are_changes() -> None:
    before = view(row(try_number=1))
    after = view(row(try_number=2), notes=("haiku throttled 12 s",))
    assert [line.strip().split("  ")[1] for line in changes(before, after)] == [
        "▸ t1 Subtask t1 (analyst · sonnet · try 2): running",
        "! haiku throttled 12 s",
    ]


def test_a_note_is_dated_by_the_readers_clock_because_it_is_no_event_of_the_run() -> None:
    before = view(row())
    after = before.model_copy(update={"notes": ("haiku throttled 12 s",)})
    (line,) = changes(before, after, at=after.started + timedelta(seconds=42))
    assert line.split() == ["42", "s", "!", "haiku", "throttled", "12", "s"]


def test_hostile_text_in_a_change_stays_on_its_line() -> None:
    lines = changes(None, view(row(title=HOSTILE, note=HOSTILE), notes=(HOSTILE,)))
    assert all(UNSEEN.search(line) is None and "\n" not in line for line in lines)


# ---------------------------------------------------------------- small words


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "unpriced"),
        ("0", "$0.00"),
        ("0.00004", "$0.0001"),
        ("0.5", "$0.50"),
        ("2", "$2.00"),
    ],
)
def test_money_reads_well(amount: str | None, shown: str) -> None:
    assert money(None if amount is None else Decimal(amount)) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0.41, "0.4 s"),
        (12.4, "12 s"),
        (59.7, "1 min 00 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 05 min"),
    ],
)
def test_a_duration_reads_well(amount: float, shown: str) -> None:
    assert seconds(amount) == shown


def test_every_status_of_a_report_has_its_exit_code() -> None:
    assert code_of("complete") == Code.COMPLETE
    assert code_of("complete_with_gaps") == code_of("budget_stopped") == Code.PARTIAL
    assert code_of("deadline_partial") == Code.PARTIAL
    assert [code_of("failed"), code_of("declined"), code_of("cancelled")] == [1, 4, 6]


def test_a_secret_is_never_shown() -> None:
    assert mask("sk-ant-0123456789abcdef") == "…cdef (23 characters)"
    assert mask("hunter2") == "…"
    address = "http://user:pass@proxy:8080/v1"  # pragma: allowlist secret
    assert address_of(address) == "http://proxy:8080/v1"
