"""The board: a run as Markdown for the Web UI's details pane. No HTML, no images; a pure function
of the view.
"""

from __future__ import annotations

from orchestrator.text import for_markdown
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


def board(view: RunView) -> str:
    """Phase and price in a line, then the subtasks as a table, then what a reader must know."""
    lines = [f"**{(view.status or view.phase).replace('_', ' ')}** · {price(view)}", ""]
    if view.rows:
        lines += ["| | subtask | role | tier | s | $ | |", "|---|---|---|---|---:|---:|---|"]
        lines += [_line(row) for row in view.rows]
        lines.append("")
    lines += [f"- **waits for a person** {for_markdown(each[:300])}" for each in view.waiting]
    lines += [f"- {for_markdown(note[:300])}" for note in view.notes]
    return "\n".join(lines)


def price(view: RunView) -> str:
    """`$0.0123 of $2.00 · 3 of 60 calls`; never $0 when the price is not known."""
    spent = "unpriced" if view.dollars_spent is None else f"${view.dollars_spent:.4f}"
    calls = f"{view.model_calls} of {view.model_calls_cap} calls"
    return f"{spent} of ${view.dollars_cap:.2f} · {calls}"


def _line(row: Row) -> str:
    tried = f" (try {row.try_number})" if row.try_number > 1 else ""
    dollars = "unpriced" if row.dollars is None else f"{row.dollars:.4f}"
    cells = (
        MARKS[row.status],
        f"{row.id} {for_markdown(row.title[:CELL])}",
        f"{for_markdown(row.role)}{tried}",
        row.tier,
        f"{row.seconds:.1f}",
        dollars if row.tier != "none" else "",
        for_markdown(row.note[:CELL]),
    )
    return "| " + " | ".join(cells) + " |"
