"""A run as it stands: its table for every form, and what the Temporal Web UI shows of a run and of
an agent with tools.

The Web UI takes Markdown for the board and plain text for the line of an activity. Its renderer
draws tables without any padding, takes `$` for mathematics, loads images and keeps tags: hence the
hard spaces behind cells, and that none of these gets through.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from holdfast.agent.state import AgentState, UseTool
from holdfast.calls import KINDS
from holdfast.calls.turn import TAKE_TURN, AgentGoal
from holdfast.contracts import Call, Contract, Subtask
from holdfast.contracts.view import Row, RunView
from holdfast.rendering import markdown
from holdfast.rendering.amounts import at_most, calls, hands, money, seconds
from holdfast.rendering.blocks import (
    Block,
    Column,
    Heading,
    Line,
    Marked,
    Paragraph,
    Prose,
    Table,
    listed,
    table,
)
from holdfast.rendering.many import LINES, ROWS, beginning, chosen, fold_quiet
from holdfast.rendering.preview import lane_tables, plan_table, totals
from holdfast.rendering.status import SETTLED, SIGNS, question_text, standing
from holdfast.text import code_span, for_markdown, inline, visible
from holdfast.text.marks import LOOK_FIRST, mark_unsupported

TITLE_LETTERS = 80
TEXT_LETTERS = 600
ANSWER_CHARACTERS = 8_000
"""Longest answer on the board; Temporal refuses details of more than 20,000 bytes."""
COLUMNS = (
    Column("", "status"),
    Column("", "ids"),
    Column("subtask"),
    Column("role", essential=False),
    Column("status", "status"),
    Column("time", "number"),
    Column("price", "number"),
    Column("note", essential=False),
)


def row_table(rows: list[Row], late: float | None = None) -> Table:
    """Return the subtasks as they stand. `late`: seconds by which what runs has run longer; None:
    the table is drawn once, where a clock that stands still would mislead.
    """
    return table(COLUMNS, (_line(each, late) for each in rows))


def _line(row: Row, late: float | None) -> Line:
    settled = row.status in SETTLED
    ran = row.seconds + (late or 0.0 if row.status == "running" else 0.0)
    cells = (
        SIGNS[row.status],
        row.id,
        row.title,
        # A lens is called as its subtask is: once is enough, the title needs the room.
        "" if who(row) == row.id else who(row),
        row.status,
        seconds(ran) if ran and (settled or late is not None) else "",
        price(row),
        # Until there is more to say of it: what it is for.
        row.note or ("" if settled else row.why),
    )
    return Line(cells, row.status)


def who(row: Row) -> str:
    """Return the role, with its tier when a model does the work, the try when it is not the first,
    and what an agent has done with tools.
    """
    parts = [row.who]
    if row.tier not in ("", "none"):
        parts.append(row.tier)
    if row.try_number > 1:
        parts.append(f"try {row.try_number}")
    parts.append(hands(row.turns, row.tool_calls, row.failed_calls))
    return " · ".join(filter(None, parts))


def price(row: Row) -> str:
    """Return what a row cost; empty for one that asked no model, or none yet, or whose finding was
    given or taken over.
    """
    begun = row.status not in ("waiting", "running") and row.try_number
    unasked = row.tier in ("", "none") or not begun
    return "" if unasked and row.dollars == 0 else at_most(row.dollars, row.assumed)


def spent(view: RunView) -> str:
    """Return what was spent of the caps; empty where no model was asked."""
    asked = view.model_calls or view.dollars_spent != 0 or view.dollars_reserved
    if not asked:
        return ""
    dollars = f"{at_most(view.dollars_spent, view.assumed)} of {money(view.dollars_cap)}"
    return f"{dollars} · {view.model_calls} of {calls(view.model_calls_cap)}"


# ---------------------------------------------------------------- the board of the Web UI


def board(view: RunView) -> str:
    """Return phase and price in a line, the subtasks as a table, what a reader must know, and the
    answer.
    """
    price = spent(view) or ("" if view.use_models else "no model is asked")
    stands = inline(standing(view))
    head = (stands if view.verdict else f"**{stands}**", inline(price))
    blocks: list[Block] = [Paragraph(Marked(f"**{inline(view.verdict)}**"))] if view.verdict else []
    blocks += [Paragraph(Marked(" · ".join(filter(None, head)))), *_plan(view)]
    asked, unasked = beginning(view.waiting, LINES)
    noted, unsaid = beginning(view.notes, LINES)
    lines = [f"**waits for a person** {inline(_cut(question_text(each, view)))}" for each in asked]
    lines += [f"… and {unasked} more questions: `starter.py inbox`"] if unasked else []
    lines += [inline(note[:300]) for note in noted]
    lines += [f"… and {unsaid} more notes are in the report"] if unsaid else []
    blocks += [*listed(map(Marked, lines)), *_answer(view)]
    return markdown.write(blocks, pad=markdown.PAD)


def _plan(view: RunView) -> Iterator[Block]:
    plan = view.preview
    if plan and view.phase == "approval":
        yield plan_table(plan, view.dollars_cap, ROWS)
        yield from lane_tables(plan)
        yield from listed(f"{each.id}: {each.why[:200]}" for each in plan.subtasks if each.why)
        yield from listed(each[:TEXT_LETTERS] for each in totals(plan, view.dollars_cap))
        run_id = shlex.quote(view.run_id)
        told = [code_span(f"starter.py {name} {run_id}") for name in ("approve", "edit", "reject")]
        yield Paragraph(Marked(f"To decide, type {told[0]}, {told[1]} or {told[2]}."))
    elif view.rows:
        loud, quiet = fold_quiet(view.rows)
        shown, others = chosen(loud)
        yield row_table([_shortened(each) for each in shown])
        if others:
            yield Paragraph(f"… {others}.")
        if quiet:
            yield Paragraph(f"{SIGNS['complete']} {quiet}.")
        if plan and plan.asks and view.phase == "working":
            yield Paragraph(totals(plan, view.dollars_cap)[0])


def _cut(question: str) -> str:
    whole = len(question) <= TEXT_LETTERS
    return question if whole else f"{question[:TEXT_LETTERS]}… (starter.py show has all of it)"


def _shortened(row: Row) -> Row:
    short = {name: getattr(row, name)[:TITLE_LETTERS] for name in ("title", "note")}
    return row.model_copy(update={**short, "why": row.why[:200]})


def _answer(view: RunView) -> list[Block]:
    answer = mark_unsupported(view.answer, view.doubtful).strip()
    if view.verdict:
        # With which an answer begins, and the board above.
        answer = answer.partition("\n\n")[2]
    if not answer:
        return []
    cut = answer[ANSWER_CHARACTERS:]
    return [
        *listed((each[:300] for each in view.flags), LOOK_FIRST, 3),
        Heading("Answer", 3),
        Prose(answer[:ANSWER_CHARACTERS]),
        *([Paragraph(f"… {len(cut):,} more characters are in the report.")] if cut else []),
    ]


# ---------------------------------------------------------------- an agent with tools


def agent_board(state: AgentState) -> str:
    """Return the turn an agent is at, what it does now, what it has spent, and what it said last.
    Its words, and the names of tools that it called, are a model's.
    """
    resume, goal = state.resume, state.goal
    doing = [flight.move for flight in state.flights.values()]
    used = [
        f"{each.use.name} {each.use.says}".strip() for each in doing if isinstance(each, UseTool)
    ]
    now = f"using {'; '.join(used)}" if used else "asking the model" if doing else "ending"
    turn = min(resume.turns + 1, goal.turns)
    so_far = hands(resume.turns, resume.tool_calls, resume.failed_calls)
    paid = f"{money(state.ledger.paid.dollars)} in this segment"
    blocks = [
        Marked(f"**turn {turn} of at most {goal.turns}** · {for_markdown(now[:TEXT_LETTERS])}"),
        " · ".join(filter(None, (f"so far {so_far}" if so_far else "", paid))),
    ]
    if said := resume.text.strip():
        blocks.append(Marked(f"Said last: {for_markdown(said[:TEXT_LETTERS])}"))
    return markdown.write(map(Paragraph, blocks))


# ---------------------------------------------------------------- lines of the timeline


ANEW = "as planned anew"
"""Said of the first work for a subtask that had begun otherwise before its plan was whole."""


def agent_summary(goal: AgentGoal, *, anew: bool = False) -> str:
    """Return the line of an agent's workflow: `t3 researcher · sonnet · from turn 4 · title`."""
    subtask = goal.work.subtask
    going_on = f"from turn {goal.resume.turns + 1}" if goal.resume.turns else ANEW * anew
    parts = (f"{subtask.id} {goal.role.name}", goal.model.tier, going_on, _title(subtask))
    return " · ".join(filter(None, parts))


def call_summary(call: Call, material: Contract | None = None, *, anew: bool = False) -> str:
    """Return the line of a model call, behind its activity type: `t3 analyst · sonnet · 2 · title`,
    with the title where its material has the subtask.
    """
    kind = KINDS[call.kind]
    if call.model is None:
        return kind.free_words or "no model"
    if call.kind == TAKE_TURN.name:
        again = " · again" if call.purpose != "turn" else ""
        return f"turn {call.number} · {call.tier}{again}"
    what = f"{call.subtask_id} {call.role}" if call.subtask_id else kind.words
    if call.mending:
        what = f"{what.strip()}, its shape mended"
    number = ANEW if anew else str(call.number) if call.number > 1 else ""
    subtask = getattr(material, "subtask", None)
    title = _title(subtask) if isinstance(subtask, Subtask) else ""
    return " · ".join(part for part in (what.strip(), call.tier, number, title) if part)


def lens_summary(subtask: Subtask) -> str:
    """Return the line of a tool that serves a subtask by itself: `bugs · Find bugs`."""
    return f"{subtask.id} · {_title(subtask)}"


def _title(subtask: Subtask) -> str:
    return visible(" ".join(subtask.title.split()))[:TITLE_LETTERS]
