"""What a thread shows, as Slack's blocks: pure, and within Slack's limits of a message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from holdfast.client.questions import question_keys
from holdfast.contracts import Report
from holdfast.contracts.orders import Given
from holdfast.contracts.view import PreviewRow, Question, Row, RunView
from holdfast.deployment.invocation import STARTER, to_type
from holdfast.doors.slack.words import MOST_SECTION, cut, divide, escape, from_markdown
from holdfast.ledger.ranges import format_price
from holdfast.rendering import markdown
from holdfast.rendering.amounts import at_most, money, seconds
from holdfast.rendering.orders import lines as order_lines
from holdfast.rendering.preview import totals
from holdfast.rendering.report import answer_of, missing
from holdfast.rendering.status import SETTLED, SIGNS, question_text, standing, verdict
from holdfast.text import visible

Block = dict[str, Any]
MOST_TITLE = 150
"""Characters of a header."""
MOST_BLOCKS = 50
MOST_ROWS = 30
MOST_QUESTIONS = 5
MOST_INSTRUCTION = 160
MOST_ORDERS = 8
MOST_ANSWER = 8_000
"""Characters of an answer. A whole message has room for about 13,000, of which each part of it has
its share.
"""
MOST_PLAN, MOST_SUMS, MOST_ASKED, MOST_NOTES = 4_500, 1_500, 3_000, 1_000
MOST_LACKS = 2_000
MOST_TEXT = 1_000
ACTION = "holdfast_"
"""What the names of our buttons and dialogs begin with."""


@dataclass(frozen=True)
class Message:
    """A message: its blocks, and a line of text for notifications."""

    text: str
    blocks: tuple[Block, ...] = ()


# ---------------------------------------------------------------- the board


def board(
    view: RunView, highest: Decimal, held: Sequence[str], orders: tuple[Given, ...]
) -> Message:
    """Return a run as it stands. `highest`: the cap that it can be raised to here; `held`: why it
    does not go on; `orders`: what people told it.
    """
    title = " ".join((view.title or view.goal).split())
    over = view.phase == "closed"
    blocks = [
        {"type": "header", "text": _plain(title or view.run_id, MOST_TITLE)},
        _context(_standing(view)),
    ]
    blocks += _sections(cut("\n".join(_rows(view)), MOST_PLAN))
    said: list[str] = []
    if view.phase == "approval" and view.preview:
        first, *said = totals(view.preview, view.dollars_cap)
        sums = cut(escape("\n".join(said), lines=True), MOST_SUMS)
        blocks += [*_sections(f"*{escape(first)}*"), _context(sums)]
    if not over:
        blocks += _questions(view)
        notes = [each for each in dict.fromkeys((*held, *view.notes)) if each not in said]
        blocks += [_context(cut(escape(each), MOST_NOTES // 5)) for each in notes[:5]]
    if orders:
        told = _listed([*order_lines(orders)][-MOST_ORDERS:])
        blocks.append(_context(cut(told, MOST_NOTES)))
    if not over:
        blocks.append(_steering(view, highest))
    return Message(
        cut(f"{escape(title)}: {_standing(view)}", MOST_TEXT), tuple(blocks[:MOST_BLOCKS])
    )


def _standing(view: RunView) -> str:
    cap = f" of at most {money(view.dollars_cap)}" if view.use_models else ", no model is asked"
    paid = at_most(view.dollars_spent, view.assumed)
    said = standing(view)
    return f"*{escape(said[:1].upper() + said[1:])}* · {paid}{cap} · `{escape(view.run_id)}`"


def _rows(view: RunView) -> Iterator[str]:
    """Yield the subtasks, a line or two each."""
    planned = {row.id: row for row in view.preview.subtasks} if view.preview else {}
    told = {each.id: each.instruction for each in _plan(view)} if view.phase == "approval" else {}
    for row in view.rows[:MOST_ROWS]:
        yield _row(row, planned.get(row.id))
        if row.id in told:
            yield f"      {escape(cut(' '.join(told[row.id].split()), MOST_INSTRUCTION))}"
        elif row.note and row.status != "waiting":
            yield f"      _{escape(cut(row.note, MOST_INSTRUCTION))}_"
    if len(view.rows) > MOST_ROWS:
        yield f"… and {len(view.rows) - MOST_ROWS} more subtasks"


def _plan(view: RunView) -> Iterable[Any]:
    plan = view.preview.plan if view.preview else None
    return plan.subtasks[:12] if plan else ()


def _row(row: Row, planned: PreviewRow | None) -> str:
    who = row.who if row.tier == "none" else f"{row.who}, {row.tier}"
    facts = [escape(who)]
    if row.status in SETTLED and row.status != "skipped":
        facts.append(seconds(row.seconds))
        facts += [at_most(row.dollars, row.assumed)] if row.dollars != 0 else []
    elif planned and planned.asks:
        facts.append(f"about {format_price(planned.expected)}")
    if row.depends_on and row.status == "waiting":
        facts.append(f"after {escape(', '.join(row.depends_on))}")
    if row.try_number > 1:
        facts.append(f"try {row.try_number}")
    title = escape(cut(row.title, 100))
    return f"{SIGNS[row.status]} *{escape(row.id)}* {title} · {' · '.join(facts)}"


# ---------------------------------------------------------------- what people press


def _questions(view: RunView) -> Iterator[Block]:
    """Yield what the run asks, each with its buttons."""
    keys = question_keys(view)
    share = MOST_ASKED // max(1, min(len(keys), MOST_QUESTIONS))
    for key, each in [*keys.items()][:MOST_QUESTIONS]:
        # The price of the plan stands above it.
        said = asked(each, None if each.kind == "plan" else view, share)
        yield from _sections(f"*{said}.*" if each.kind == "plan" else said)
        buttons = [*_buttons(each, f"{view.run_id} {key}")]
        if buttons:
            yield {"type": "actions", "block_id": key, "elements": buttons}
    if len(keys) > MOST_QUESTIONS:
        yield _context(
            f"… and {len(keys) - MOST_QUESTIONS} more questions: `{escape(STARTER)} inbox`"
        )


def asked(question: Question, view: RunView | None, most: int = MOST_SECTION) -> str:
    """Return a question in a line."""
    said = question_text(question, view)
    begun = said if question.subtask_id else f"{said[:1].upper()}{said[1:]}"
    return cut(escape(begun), most - 10)


def _buttons(question: Question, value: str) -> Iterator[Block]:
    match question.kind:
        case "plan":
            yield _button("approve", "Approve", value, style="primary")
            yield _button("reject", "Reject", value)
        case "call":
            yield _button("approve", "Approve", value, style="primary")
            yield _button("decline", "Decline", value)
        case "subtask" | "decision":
            yield _button("answer", "Answer", value, style="primary")
        case "paused":
            yield _button("resume", "Resume", value, style="primary")


def _steering(view: RunView, highest: Decimal) -> Block:
    """Return the buttons that an open run always has."""
    value = f"{view.run_id} run"
    raise_cap = view.use_models and view.dollars_cap < highest
    waits = any(each.kind == "budget" for each in view.waiting)
    buttons = [_button("raise", "Raise the cap", value, **({"style": "primary"} if waits else {}))]
    confirm = {
        "title": _plain("Cancel this run?", 100),
        "text": _plain("What is finished stays in its report.", 300),
        "confirm": _plain("Cancel the run", 30),
        "deny": _plain("Let it go on", 30),
    }
    cancel = _button("cancel", "Cancel", value, style="danger", confirm=confirm)
    return {"type": "actions", "block_id": "run", "elements": [*buttons * raise_cap, cancel]}


def _button(name: str, words: str, value: str, **more: Any) -> Block:
    shown = {"type": "button", "action_id": f"{ACTION}{name}", "text": _plain(words, 75)}
    return {**shown, "value": value, **more}


# ---------------------------------------------------------------- other messages


def ask(question: Question, view: RunView, person: str) -> Message:
    """Return the line that calls a person to what a run asks: who edits a message tells nobody."""
    called = f"<@{person}> " if person else ""
    said = f"{called}{asked(question, view)}"
    return Message(said, (*_sections(said),))


def line(text: str) -> Message:
    """Return a message of one line of ours."""
    said = cut(escape(text), MOST_SECTION)
    return Message(said, (*_sections(said),))


def root(goal: str, person: str, why: str = "") -> Message:
    """Return the first message of a thread, where no person's is: who asked for what, and why it
    is here.
    """
    who = f"<@{person}> asks: " if person else ""
    said = f"{who}{cut(escape(goal), MOST_LACKS)}{f' ({escape(why)})' if why else ''}"
    return Message(said, (*_sections(said),))


def report(made: Report) -> Message:
    """Return the report of a run: how it ended, its answer as far as there is room, and what is
    missing.
    """
    whole = to_type("report", made.run_id)
    sure = "" if made.confidence is None else f" · confidence {made.confidence} of 100"
    facts = f"{at_most(made.dollars, made.assumed)} · {seconds(made.timings.makespan)}{sure}"
    answer = _answer(made)
    parts = divide(cut(answer, MOST_ANSWER))
    lacks = cut(from_markdown(markdown.write(missing(made))), MOST_LACKS)
    notes = cut(_listed(made.notes), MOST_NOTES)
    more = "The answer goes on: " if len(answer) > MOST_ANSWER else "All of it: "
    said = verdict(made)
    blocks = [
        *_sections(f"*{escape(said)}* · {facts}"),
        *([{"type": "divider"}] if parts else []),
        *(_section(each) for each in parts),
        *_sections(lacks),
        *([_context(notes)] if notes else []),
        _context(f"{more}`{escape(whole)}`"),
    ]
    return Message(cut(f"{escape(said)}: {answer}", MOST_TEXT), tuple(blocks[:MOST_BLOCKS]))


def failed(run_id: str, why: str) -> Message:
    """Return the end of a run that has no report."""
    said = f"*Failed* · {cut(escape(why), MOST_LACKS)}"
    return Message(said, (*_sections(said), _context(f"`{escape(run_id)}`")))


def _answer(made: Report) -> str:
    if made.form.is_data and made.document is not None:
        data = json.dumps(made.document, ensure_ascii=False, indent=1)
        return from_markdown(f"~~~~\n{data}\n~~~~")
    return from_markdown(answer_of(made, to_type))


# ---------------------------------------------------------------- dialogs


def dialog(
    name: str, question: Question | None, context: Mapping[str, str], cap: str = ""
) -> Block:
    """Return the dialog that a button opens. `context`: what comes back with what was typed;
    `cap`: what the cap is and may become.
    """
    titles = {"reject": "Reject the plan", "decline": "Decline the call", "raise": "Raise the cap"}
    said = question_text(question, None) if question else ""
    shown = [{"type": "section", "text": _plain(said, MOST_SECTION)}] if said else []
    return {
        "type": "modal",
        "callback_id": f"{ACTION}{name}",
        "private_metadata": json.dumps(context),
        "title": _plain(titles.get(name, "Answer"), 24),
        "submit": _plain("Send", 24),
        "close": _plain("Back", 24),
        "blocks": [*shown, *_fields(name, question, cap)],
    }


def _fields(name: str, question: Question | None, cap: str) -> Iterator[Block]:
    if name == "raise":
        field = {"type": "plain_text_input", "action_id": "value", "max_length": 20}
        yield _input("dollars", "New cap in dollars", field, hint=cap)
        return
    if name == "answer":
        options = [_option(key, words) for key, words in choices(question).items()]
        field = {"type": "static_select", "action_id": "value", "options": options}
        yield _input("choice", "What to do", {**field, "initial_option": options[0]})
    words = {"type": "plain_text_input", "action_id": "value", "multiline": True}
    label = "Words" if name == "answer" else "Why"
    yield _input("text", label, {**words, "max_length": 3_000}, optional=True)


def choices(question: Question | None) -> dict[str, str]:
    """Return what can be done about a subtask that asks, each with its words; first the usual."""
    found = {"answer": "Answer it"}
    if question and question.kind == "decision":
        found = {"answer": "Advise it, and let it try again", "retry": "Let it try again as it is"}
        found |= {f"hand:{role}": f"Hand it to {role}" for role in question.roles[:40]}
    return {**found, "supply": "My words are its finding", "skip": "Go on without it"}


NEED_WORDS = ("answer", "supply")
"""The choices that mean nothing without words."""


def _option(value: str, words: str) -> Block:
    return {"text": _plain(words, 75), "value": value[:150]}


def _input(
    name: str, label: str, element: Block, *, optional: bool = False, hint: str = ""
) -> Block:
    shown = {"type": "input", "block_id": name, "label": _plain(label, 200), "element": element}
    return {**shown, "optional": optional, **({"hint": _plain(hint, 200)} if hint else {})}


# ---------------------------------------------------------------- blocks


def _listed(lines: Iterable[str]) -> str:
    """Return lines of Markdown as a list."""
    return from_markdown("\n".join(f"- {each}" for each in lines))


def _plain(text: str, most: int) -> Block:
    shown = cut(visible(" ".join(text.split())), most) or " "
    return {"type": "plain_text", "text": shown, "emoji": False}


def _mrkdwn(text: str) -> Block:
    # Verbatim: what looks like an address, a channel or a person stays text.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _section(text: str) -> Block:
    return {"type": "section", "text": _mrkdwn(text)}


def _sections(text: str) -> list[Block]:
    return [_section(each) for each in divide(text)]


def _context(text: str) -> Block:
    return {"type": "context", "elements": [_mrkdwn(text)]}
