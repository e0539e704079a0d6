"""Blocks and their writers: one sign, one wording and one table in every form that a run has."""

from __future__ import annotations

import re
from html import unescape
from typing import get_args

import pytest
from htpy import div
from markdown_it import MarkdownIt

from drawn import HOSTILE, OUR_STYLES, UNSEEN, drawn, row, view
from holdfast.cli.screen import tables
from holdfast.cli.screen.board import board as terminal
from holdfast.cli.screen.looks import ASCII
from holdfast.cli.screen.waiting import reminders
from holdfast.contracts import ReportStatus, Severity
from holdfast.contracts.view import Phase, Question, QuestionKind, RowStatus
from holdfast.rendering import blocks, markdown, status
from holdfast.rendering.blocks import Code, Column, Heading, Line, Marked, Paragraph, Prose, listed
from holdfast.rendering.board import board
from holdfast.rendering.html.blocks import write
from holdfast.rendering.html.steering import Live, steering
from holdfast.rendering.many import FIRST
from paged import HARM, shown

COLUMNS = (Column("", "ids"), Column("subtask"), Column("status", "status"), Column("a", "number"))
QUESTIONS = (
    (Question(kind="plan"), "the plan waits for approval"),
    (Question(kind="budget", text="no call fits"), "no call fits"),
    (Question(kind="paused"), "the run is paused"),
    (Question(kind="call", subtask_id="t1", text="act 40", call=3), "t1 wants to make call 3: "),
    (Question(kind="subtask", subtask_id="plan", text="which?"), "plan asks: which?"),
    (Question(kind="decision", subtask_id="t1", text="failed: gone"), "t1 failed: gone"),
)


def everything(text: str) -> list[blocks.Block]:
    """Each block with a text that others wrote."""
    line = Line((text, text, text, "4.2 s"), "failed", why=text)
    return [
        Heading(text),
        Paragraph(text),
        *listed([text, blocks.Item(text, (text,))], text, 3),
        blocks.table(COLUMNS, [line]),
        Prose(text),
        Prose(text, quoted=True),
    ]


@pytest.mark.parametrize("text", [HOSTILE, HARM])
def test_what_others_wrote_is_text_in_every_block_of_every_form(text: str) -> None:
    made = everything(text)
    tokens = [
        part
        for each in MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .parse(markdown.write(made))
        for part in (each, *(each.children or ()))
    ]
    assert not {each.type for each in tokens} & {"image", "html_inline", "html_block"}
    assert all(
        re.match("https?:|mailto:", str(each.attrs["href"]))
        for each in tokens
        if "href" in each.attrs
    )
    page = str(div[write(shown(1), made)])
    tags = " ".join(re.findall(r"<[a-z][^>]*>", page))
    assert not re.search(r"(?i)<(script|img|iframe)|\son\w+=|javascript:", tags)
    table = blocks.table(COLUMNS, [Line((text, text, text, "4.2 s"), "failed")])
    on_screen = drawn(tables.drawn(table, 400, wide=80, heads=True), width=400)
    assert UNSEEN.search(OUR_STYLES.sub("", on_screen)) is None
    assert len(on_screen.splitlines()) == 2, "a line of a table is one line"


def test_a_line_of_ours_keeps_its_markup_and_a_plain_one_shows_it() -> None:
    ours, plain = Marked("**bold** \\[t1\\]"), "**bold**"
    assert markdown.write([Paragraph(ours), Paragraph(plain)]) == f"{ours}\n\n\\*\\*bold\\*\\*"
    said = str(div[write(shown(1), [Paragraph(ours), Paragraph(plain)])])
    assert said.count("<strong>bold</strong>") == 1 and "<p>**bold**</p>" in said
    assert '[<a class="cite" href="#subtask-1">t1</a>]' in said


def test_a_column_that_says_nothing_of_any_line_is_left_out() -> None:
    made = blocks.table(COLUMNS, [Line(("t1", "", "failed", "")), Line(("t2", "", "failed", "$3"))])
    assert [each.title for each in made.columns] == ["", "status", "a"]
    assert markdown.write([made]).splitlines()[-1] == "| t2 | failed | \\$3 |"


def test_a_number_begins_no_list_and_a_difference_stays_as_it_is() -> None:
    line = Line(("t1", "One", "failed", "4.2 s"))
    assert "| 4.2 s |" in markdown.write([blocks.table(COLUMNS, [line])])
    assert markdown.write([Code("-a\n+```")]) == "    -a\n    +```"


def test_every_status_has_its_sign_its_words_and_its_place() -> None:
    statuses = set(get_args(RowStatus))
    assert set(status.SIGNS) == set(tables.STYLES) == set(FIRST) == statuses
    assert len(set(status.SIGNS.values())) == len(statuses), "no two look alike"
    signs = {*status.SIGNS.values(), *status.SEVERITY_SIGNS.values()}
    assert all(each.isascii() or each in ASCII for each in signs), "also where ASCII is all"
    assert set(status.STATUS) == set(status.OF_REPORT) == set(get_args(ReportStatus))
    assert set(status.PHASES) == set(get_args(Phase))
    assert set(status.ANSWERED_BY) == set(get_args(QuestionKind))
    assert set(status.SEVERITY_SIGNS) == set(get_args(Severity))


@pytest.mark.parametrize("state", get_args(RowStatus))
def test_a_subtask_has_the_same_sign_and_word_on_the_board_and_on_a_terminal(
    state: RowStatus,
) -> None:
    seen = view(row(status=state))
    for form in (board(seen), OUR_STYLES.sub("", drawn(terminal(seen)))):
        assert status.SIGNS[state] in form and state in form


@pytest.mark.parametrize(("question", "said"), QUESTIONS)
def test_a_question_is_asked_in_the_same_words_wherever_a_person_reads_it(
    question: Question, said: str
) -> None:
    seen = view(row(), waiting=(question,))
    run = shown(1)
    run = type(run)(run.report, run.to_type, view=seen, over=False)
    page = unescape(re.sub("<[^>]*>", "", str(steering(run, Live("token", "nonce")))))
    terminal_says = OUR_STYLES.sub("", drawn(terminal(seen)))
    assert f"**waits for a person** {said}" in board(seen)
    assert said in terminal_says and said in reminders(seen)[0].text
    assert said[:1].upper() + said[1:] in page
