"""What the Web UI shows of a run: the board as current details, and a line for each activity. Pure.

The board is Markdown; the lines are plain text. What models and repositories wrote stays text in
both. The UI's renderer draws tables without any padding, takes `$` for mathematics, loads images
and keeps tags: hence the hard spaces at the end of cells, and that none of these gets through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestrator.contracts import Call, CallKind, Subtask
from orchestrator.text import for_markdown, visible
from orchestrator.view import Row, RunView

MARKS = {
    "waiting": "·",
    "running": "▶",
    "complete": "✓",
    "failed": "✗",
    "escalated": "?",
    "skipped": "–",
    "cancelled": "×",
}
CELL = 80
PAD = "\N{NO-BREAK SPACE}" * 3
ANSWER_CHARACTERS = 8_000
"""Of the answer, on the board; Temporal refuses details of more than 20,000 bytes."""
_LOADED = re.compile(r"!(?=\[)|<(?=[A-Za-z/!?])")
"""Where an image or a tag begins. A space ends both; a backslash would meet one that stands there.
"""
PURPOSES: Mapping[CallKind, str] = {
    "plan": "what to do, by whom",
    "replan": "what else to do",
    "judge": "which one holds",
    "synthesize": "one answer from all findings",
    "critique": "what the answer lacks",
}
WITHOUT_MODEL: Mapping[CallKind, str] = {
    "plan": "the ready plan",
    "synthesize": "merge by template",
}


def board(view: RunView) -> str:
    """Phase and price in a line, the subtasks as a table, what a reader must know, the answer."""
    lines = [f"**{(view.status or view.phase).replace('_', ' ')}** · {price(view)}", ""]
    if view.rows:
        priced = any(row.tier != "none" for row in view.rows)
        head = _cells("", "subtask", "role", "seconds", *(["price"] if priced else []), "")
        lines += [head, "|---|---|---|---:|" + ("---:|---|" if priced else "---|")]
        lines += [_line(row, priced) for row in view.rows]
        lines.append("")
    lines += [f"- **waits for a person** {for_markdown(each[:300])}" for each in view.waiting]
    lines += [f"- {for_markdown(note[:300])}" for note in view.notes]
    return "\n".join(lines + _answer(view))


def price(view: RunView) -> str:
    """`$0.0123 of $2.00 · 3 of 60 calls`, as Markdown; never $0 when the price is not known."""
    if not view.model_calls and view.rows and all(row.tier == "none" for row in view.rows):
        return "no model is asked"
    spent = "unpriced" if view.dollars_spent is None else f"\\${view.dollars_spent:.4f}"
    calls = f"{view.model_calls} of {view.model_calls_cap} calls"
    return f"{spent} of \\${view.dollars_cap:.2f} · {calls}"


def call_summary(call: Call) -> str:
    """The timeline's line for a model call, after its activity type: `t3 analyst · sonnet · 2`."""
    if call.model is None:
        return WITHOUT_MODEL.get(call.kind, "no model")
    what = f"{call.subtask_id} {call.role}" if call.subtask_id else PURPOSES.get(call.kind, "")
    if call.id.startswith("repair-"):
        what = f"{what.strip()}, its shape mended"
    number = str(call.number) if call.number > 1 else ""
    return " · ".join(part for part in (what.strip(), call.tier, number) if part)


def tool_summary(subtask: Subtask) -> str:
    """The timeline's line for a tool that serves a subtask by itself: `bugs · Find bugs`."""
    return f"{subtask.id} · {visible(' '.join(subtask.title.split()))[:CELL]}"


def _line(row: Row, priced: bool) -> str:
    tier = f" · {row.tier}" if row.tier != "none" else ""
    tried = f" · try {row.try_number}" if row.try_number > 1 else ""
    dollars = "unpriced" if row.dollars is None else f"\\${row.dollars:.4f}"
    # The board is written when something happens; a clock that stands still would mislead.
    settled = row.status not in ("waiting", "running")
    paid = dollars if row.tier != "none" and (settled or row.dollars) else ""
    return _cells(
        MARKS[row.status],
        f"**{row.id}** {for_markdown(row.title[:CELL])}",
        f"{for_markdown(row.role)}{tier}{tried}",
        f"{row.seconds:.1f}" if settled else "",
        *([paid] if priced else []),
        for_markdown(row.note[:CELL]),
    )


def _cells(*cells: str) -> str:
    return "| " + " | ".join(f"{cell}{PAD}" if cell else "" for cell in cells) + " |"


def _answer(view: RunView) -> list[str]:
    answer = view.answer.strip()
    if not answer:
        return []
    shown = _LOADED.sub(lambda match: f"{match[0]} ", answer[:ANSWER_CHARACTERS])
    cut = answer[ANSWER_CHARACTERS:]
    rest = ["", f"… {len(cut):,} more characters are in the report."] if cut else []
    return ["", "### Answer", "", visible(shown, keep="\n\t"), *rest]
