"""What no finding supports is marked where it stands, in every form that a run is shown in."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from driving import START
from holdfast.client.documents import as_markdown
from holdfast.contracts import Report, Timings
from holdfast.contracts.view import RunView
from holdfast.rendering.amounts import money
from holdfast.rendering.board import board, spent
from holdfast.rendering.html.page import as_html
from holdfast.rendering.html.pictured import Pictured
from holdfast.text.marks import MARK, mark_unsupported

ANSWER = "It costs 4,711 a month [t1]."
FLAG = "gives the number 4,711, which no finding contains"
PLAIN = re.compile(r"<[^>]+>")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("It is 77 of 100.", f"It is 77 {MARK} of 100."),
        ("**77%** and 770", f"**77% {MARK}** and 770"),
        ("| 77 | 5 |\n", f"| 77 {MARK} | 5 |\n"),
        ("As [t1, T9] say.", f"As [t1, T9] {MARK} say."),
        ("See https://x.example/77, and go.", f"See https://x.example/77, {MARK} and go."),
        ("[here](https://x.example/77) it is", f"[here](https://x.example/77) {MARK} it is"),
        ("<https://x.example/77> it is", f"<https://x.example/77> {MARK} it is"),
        ("Set `limit = 77` now", f"Set `limit = 77` {MARK} now"),
        ("```\n77\n```\n77", f"```\n77\n```\n77 {MARK}"),
        ("~~~~\n```\n77\n~~~~\n77\n", f"~~~~\n```\n77\n~~~~\n77 {MARK}\n"),
        ("[77 things](https://y.example)", f"[77 {MARK} things](https://y.example)"),
        ("https://y.example/77 and v77 and 1.77", "https://y.example/77 and v77 and 1.77"),
    ],
)
def test_a_word_is_marked_behind_it_and_nothing_that_people_copy_changes(
    answer: str, shown: str
) -> None:
    assert mark_unsupported(answer, ("77", "[t9]", "https://x.example/77")) == shown
    assert mark_unsupported(answer, ()) == answer


def page_of(report: Report) -> str:
    return as_html(Pictured(report, lambda command, run_id: f"{command} {run_id}"))


def run_of(answer: str = ANSWER, *flags: tuple[str, str]) -> tuple[Report, RunView]:
    said = {
        "doubtful": tuple(word for word, _ in flags),
        "flags": tuple(flag for _, flag in flags),
        "answer": answer,
        "status": "complete",
        "run_id": "run-1",
        "goal": "What does it cost?",
    }
    report = Report.model_validate({**said, "timings": Timings()})
    view = RunView.model_validate({**said, "phase": "closed", "started": START, "now": START})
    return report, view


def test_the_invented_figure_is_marked_in_the_answer_and_named_above_it_in_every_form() -> None:
    report, view = run_of(ANSWER, ("4,711", FLAG))
    page = PLAIN.sub("", page_of(report))
    for shown in (as_markdown(report), board(view), page):
        assert f"4,711 {MARK} a month" in shown
        assert "1 statement that no finding supports" in shown.partition("4,711")[0], "in the head"
        before = shown.partition(f"4,711 {MARK}")[0]
        assert "Look here first: not supported by any finding" in before and FLAG in before
    assert '"s-complete' not in page_of(report).partition("</header>")[0]
    assert report.answer == ANSWER, "programs read it as it was written"


def test_an_answer_that_is_supported_has_no_mark_and_is_green() -> None:
    report, view = run_of()
    page = page_of(report)
    assert "chip s-complete verdict" in page and "Look here first" not in page
    for shown in (as_markdown(report), board(view), page):
        assert MARK not in shown and "⚠" not in shown


def test_a_board_rounds_prices_up_as_every_other_form_does() -> None:
    amount = Decimal("0.012301")
    view = run_of()[1].model_copy(update={"dollars_spent": amount, "model_calls": 1})
    assert spent(view).startswith("$0.0124 ") and money(amount) == "$0.0124"
