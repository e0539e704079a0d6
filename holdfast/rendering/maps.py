"""What the Temporal Web UI shows of a map: its board, and the lines of its activities."""

from __future__ import annotations

from holdfast.calls.rows import MapGoal
from holdfast.maps.state import (
    AskRows,
    CancelBatches,
    CloseMap,
    CollectRows,
    Flying,
    LookAtBatches,
    MapState,
    OfRows,
    OpenMap,
    SubmitRows,
)
from holdfast.rendering import markdown
from holdfast.rendering.blocks import Marked, Paragraph
from holdfast.rendering.progress import progress_line
from holdfast.text import for_markdown, visible

TITLE_LETTERS = 80


def map_summary(goal: MapGoal) -> str:
    """Return the line of a map's workflow: `classify classifier · haiku · auto · title`."""
    subtask, stands = goal.work.subtask, goal.resume
    title = visible(" ".join(subtask.title.split()))[:TITLE_LETTERS]
    on = f"from row {stands.complete + stands.failed + 1:,}" if stands.opened else ""
    parts = (f"{subtask.id} {goal.role.name}", goal.models[0].tier, goal.lane, on, title)
    return " · ".join(filter(None, parts))


def move_summary(state: MapState, move: Flying) -> str:
    """Return the line of an activity of a map: `classify rows 300–399 · haiku · now`."""
    name = state.goal.work.subtask.id
    match move:
        case OpenMap(material=material):
            return f"{name} · {'groups of texts' if material.of_texts else 'read the items'}"
        case CloseMap(material=material):
            return f"{name} · {'carry out orders' if material.orders else 'put together'}"
        case LookAtBatches(material=material) | CancelBatches(material=material):
            what = "cancel" if isinstance(move, CancelBatches) else "look at"
            many = len(material.batches)
            return f"{name} · {what} {many} batch{'es' * (many != 1)}"
        case CollectRows(batch=batch):
            return f"{name} · results of {batch}"
        case AskRows() | SubmitRows():
            return _rows(state, move)


def _rows(state: MapState, move: OfRows) -> str:
    call, portion = move.material.call, move.portion
    chunks = [state.stands.current[each] for each in portion.chunks]
    ends = [n for each in chunks for n in (each.first, each.first + each.items - 1)]
    first, last = (portion.rows[0], portion.rows[-1]) if portion.rows else (min(ends), max(ends))
    what = "texts" if state.stands.level else "rows"
    which = f"{what} {first + 1:,}–{last + 1:,}" if last > first else f"{what[:-1]} {first + 1:,}"
    if portion.rows and len(portion.rows) < last - first + 1:
        which = f"{len(portion.rows):,} of {which}"
    mended = "mended" if call.mending else ""
    again = f"try {portion.step + 1}" if portion.step and not mended else ""
    lane = "batch" if isinstance(move, SubmitRows) else "now"
    whole = (f"{state.goal.work.subtask.id} {which}", call.tier, lane, mended, again)
    return " · ".join(filter(None, whole))


def map_board(state: MapState) -> str:
    """Return how its rows stand, what it does now, and what it has spent."""
    stands = state.stands
    paid = None if state.ledger.unpriced else state.ledger.spent.dollars
    ended = stands.complete + stands.failed + stands.repeated
    line = progress_line(ended, stands.items, stands.failed, paid)
    doing = [for_markdown(move_summary(state, each.move)) for each in state.flights.values()]
    out = len(state.batches)
    blocks = [
        Marked(for_markdown(f"{line} in this segment" if stands.opened else "reads its input")),
        *([Marked(f"{out} open batch{'es' * (out != 1)}")] if out else []),
        *map(Marked, doing[:5]),
    ]
    return markdown.write(map(Paragraph, blocks))
