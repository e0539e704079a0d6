"""What the Web UI shows of a run: the board as current details, and a line for each activity. Pure.

The board is Markdown; the lines are plain text. What models and repositories wrote stays text in
both. The UI's renderer draws tables without any padding, takes `$` for mathematics, loads images
and keeps tags: hence the hard spaces at the end of cells, and that none of these gets through.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from decimal import Decimal

from holdfast.calls import KINDS
from holdfast.calls.turn import TAKE_TURN
from holdfast.contracts import Call, Subtask
from holdfast.contracts.view import Phase, Preview, PreviewRow, Question, Row, RunView
from holdfast.ledger.ranges import format_price
from holdfast.rendering.amounts import bounded, hands, money
from holdfast.rendering.many import LINES, ROWS, beginning, chosen
from holdfast.text import code_span, for_markdown, visible
from holdfast.text.harmless import sanitize
from holdfast.text.marks import LOOK_FIRST, count_unsupported, mark_unsupported

MARKS = {
    "waiting": "·",
    "running": "▶",
    "paused": "‖",
    "complete": "✓",
    "failed": "✗",
    "escalated": "?",
    "skipped": "–",
    "cancelled": "×",
}
CELL = 80
CALL = 200
"""Letters of a call that a person is to approve, and of why a subtask is in the plan."""
PAD = "\N{NO-BREAK SPACE}" * 3
ANSWER_CHARACTERS = 8_000
"""Of the answer, on the board; Temporal refuses details of more than 20,000 bytes."""
PHASES: Mapping[Phase, str] = {
    "preparing": "getting ready",
    "planning": "making a plan",
    "approval": "waiting for approval of the plan",
    "working": "working",
    "synthesizing": "writing the answer",
    "closed": "closed",
}
"""Where a run stands, for somebody who has never seen one."""


def board(view: RunView) -> str:
    """Phase and price in a line, the subtasks as a table, what a reader must know, the answer."""
    lines = [f"**{_where(view)}** · {price(view)}", ""]
    if view.preview and view.phase == "approval":
        lines += _proposal(view, view.preview)
    elif view.rows:
        priced = any(row.tier != "none" for row in view.rows)
        head = _cells("", "subtask", "role", "seconds", *(["price"] if priced else []), "")
        lines += [head, "|---|---|---|---:|" + ("---:|---|" if priced else "---|")]
        shown, others = chosen(view.rows)
        lines += [_line(row, priced) for row in shown]
        lines += ["", f"… {others}.", ""] if others else [""]
    if view.preview and view.preview.asks and view.phase == "working":
        low, expected, high = (
            _exact(each) for each in (view.preview.low, view.preview.expected, view.preview.high)
        )
        lines += [f"Expected: {expected} ({low} to {high}).", ""]
    asked, unasked = beginning(view.waiting, LINES)
    lines += [f"- **waits for a person** {for_markdown(_asked(each)[:600])}" for each in asked]
    lines += [f"- … and {unasked} more questions: `starter.py inbox`"] if unasked else []
    noted, unsaid = beginning(view.notes, LINES)
    lines += [f"- {for_markdown(note[:300])}" for note in noted]
    lines += [f"- … and {unsaid} more notes are in the report"] if unsaid else []
    return "\n".join(lines + _answer(view))


def _asked(question: Question) -> str:
    """What it is about, and what to do."""
    match question.kind:
        case "subtask":
            return f"{question.subtask_id}: {question.text}"
        case "call":
            cut = "… (starter.py show has all of it)" if len(question.text) > CALL else ""
            said = f"{question.text[:CALL]}{cut}"
            return f"{question.subtask_id}: approve or decline call {question.call}, {said}"
        case "plan":
            return "plan: approve, edit or reject it"
        case "budget":
            return f"budget: {question.text}; raise the cap"
        case "paused":
            return "paused: resume it"


def _where(view: RunView) -> str:
    where = view.status.replace("_", " ") if view.status else PHASES[view.phase]
    return f"{where} · ⚠ {count_unsupported(view.flags)}" if view.flags else where


def _proposal(view: RunView, plan: Preview) -> list[str]:
    """What a person approves: what each part is expected to cost and at most reserves, what needs
    what, and what to type.
    """
    head = _cells("", "subtask", "role", "needs", "expected", "low", "at most")
    lines = [head, "|---|---|---|---|---:|---:|---:|"]
    shown, unshown = beginning(plan.subtasks, ROWS)
    ids = [row.id for row in shown]
    lines += [_proposed(row) for row in plan.rows if not row.of_plan or row.id in ids]
    if unshown:
        lines.append(_cells("", f"… and {unshown} more subtasks", *[""] * 5))
    total = (plan.expected, plan.low, plan.high)
    lines.append(_cells("", "**together**", "", "", *map(_exact, total)))
    lines += [
        "",
        f"Never above {_money(view.dollars_cap)}, tries and changes of the plan included.",
    ]
    path = _chain(plan.critical_path)
    lines += ["", f"About {plan.makespan:.0f} s of work; the longest chain: {for_markdown(path)}."]
    if said := (*plan.composed, *plan.brought):
        lines += ["", *(f"- {for_markdown(each[:400])}" for each in said)]
    if plan.taken:
        lines += ["", *(f"- taken of {for_markdown(each[:300])}" for each in plan.taken)]
    if plan.without:
        lines += ["", *(f"- goes without {for_markdown(each[:300])}" for each in plan.without)]
    if plan.leaves:
        sent = for_markdown(", ".join(plan.leaves)[:600])
        where = for_markdown(plan.endpoint) or "their endpoint"
        lines += ["", f"Sent to the models at {where}: {sent}."]
        if plan.reached:
            reached = for_markdown("; ".join(plan.reached)[:600])
            lines += ["", f"Reached by tools: {reached}."]
    else:
        lines += ["", "No model is asked; nothing leaves the machines of this deployment."]
    run_id = shlex.quote(view.run_id)
    told = [code_span(f"starter.py {name} {run_id}") for name in ("approve", "edit", "reject")]
    return [*lines, "", f"To decide, type {told[0]}, {told[1]} or {told[2]}.", ""]


def _chain(ids: Sequence[str]) -> str:
    first, more = beginning(ids, LINES)
    return " → ".join([*first, *([f"{more} more"] if more else [])])


def _proposed(row: PreviewRow) -> str:
    """A line of what is to be approved; what was paid is said as paid."""
    tier = f" · {row.tier}" if row.tier != "none" else ""
    prices = [_exact(each) for each in (row.expected, row.low, row.high)]
    if row.paid:
        prices = [f"paid {prices[0]}", "", ""]
    elif row.reused:
        prices = ["taken over", "", ""]
    elif row.tier == "none":
        prices = ["free", "", ""]
    team = ", a team: a run of its own" if row.kind == "team" else ""
    if row.kind == "agent":
        team = f", with tools: up to {row.turns} turns"
        asks = for_markdown(", ".join(row.approval))
        team += f", a person approves each call of {asks}" if asks else ""
    name = f"**{row.id}** {for_markdown(row.title[:CELL])}" if row.of_plan else row.title
    name += f": {for_markdown(row.why[:CALL])}" if row.why else ""
    own = f", {bounded(row)}" if bounded(row) else ""
    role = f"{for_markdown(row.role)}{tier}{team}{own}"
    return _cells("", name, role, ", ".join(row.depends_on), *prices)


def _exact(dollars: Decimal | None) -> str:
    return _escaped(format_price(dollars))


def _money(dollars: Decimal) -> str:
    return _escaped(money(dollars))


def _escaped(amount: str) -> str:
    """The UI's renderer would take the sign for the beginning of mathematics."""
    return amount.replace("$", "\\$")


def price(view: RunView) -> str:
    """`$0.0123 of $2.00 · 3 of 60 calls`, as Markdown; never $0 when the price is not known."""
    asked = view.use_models or view.model_calls
    if not asked and view.rows and all(row.tier == "none" for row in view.rows):
        return "no model is asked"
    spent = _exact(view.dollars_spent)
    spent = f"≤ {spent}" if view.assumed and view.dollars_spent is not None else spent
    calls = f"{view.model_calls} of {view.model_calls_cap} calls"
    return f"{spent} of {_money(view.dollars_cap)} · {calls}"


def call_summary(call: Call) -> str:
    """The timeline's line for a model call, after its activity type: `t3 analyst · sonnet · 2`."""
    kind = KINDS[call.kind]
    if call.model is None:
        return kind.free_words or "no model"
    if call.kind == TAKE_TURN.name:
        again = " · again" if call.purpose != "turn" else ""
        return f"turn {call.number} · {call.tier}{again}"
    what = f"{call.subtask_id} {call.role}" if call.subtask_id else kind.words
    if call.mending:
        what = f"{what.strip()}, its shape mended"
    number = str(call.number) if call.number > 1 else ""
    return " · ".join(part for part in (what.strip(), call.tier, number) if part)


def lens_summary(subtask: Subtask) -> str:
    """The timeline's line for a tool that serves a subtask by itself: `bugs · Find bugs`."""
    return f"{subtask.id} · {visible(' '.join(subtask.title.split()))[:CELL]}"


def _line(row: Row, priced: bool) -> str:
    tier = f" · {row.tier}" if row.tier != "none" else ""
    tried = f" · try {row.try_number}" if row.try_number > 1 else ""
    used = hands(row.turns, row.tool_calls, row.failed_calls)
    tried += f" · {used}" if used else ""
    dollars = _exact(row.dollars)
    dollars = f"≤ {dollars}" if row.assumed else dollars
    # The board is written when something happens; a clock that stands still would mislead.
    settled = row.status not in ("waiting", "running", "paused")
    paid = dollars if row.tier != "none" and (settled or row.dollars) else ""
    return _cells(
        MARKS[row.status],
        f"**{row.id}** {for_markdown(row.title[:CELL])}",
        f"{for_markdown(row.who)}{tier}{tried}",
        f"{row.seconds:.1f}" if settled else "",
        *([paid] if priced else []),
        # Until there is more to say of it: what it is for.
        for_markdown(row.note[:CELL] or ("" if settled else row.why[:CALL])),
    )


def _cells(*cells: str) -> str:
    return "| " + " | ".join(f"{cell}{PAD}" if cell else "" for cell in cells) + " |"


def _answer(view: RunView) -> list[str]:
    answer = mark_unsupported(view.answer, view.doubtful).strip()
    if not answer:
        return []
    doubts = [f"- {for_markdown(flag[:300])}" for flag in view.flags]
    first = ["", f"### {LOOK_FIRST}", "", *doubts] if doubts else []
    cut = answer[ANSWER_CHARACTERS:]
    rest = ["", f"… {len(cut):,} more characters are in the report."] if cut else []
    return [*first, "", "### Answer", "", sanitize(answer[:ANSWER_CHARACTERS]), *rest]
