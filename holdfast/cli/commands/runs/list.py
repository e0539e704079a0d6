"""`list`: the runs there are, newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated

import typer
from rich.cells import cell_len, set_cell_size

from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.patience import patience
from holdfast.cli.screen.streams import OUT, put, put_json, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.moved import describe_moved
from holdfast.cli.shared.options import AsJson, Embedded
from holdfast.client.listing import Listed, list_runs
from holdfast.contracts.evals import EVALUATION
from holdfast.contracts.search import (
    UNPRICED,
)
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from holdfast.rendering.amounts import at_most, seconds
from holdfast.text import for_terminal

LEAST_WORDS, LEAST_STATUS = 28, 9
"""Columns below which the words of a run, or where it is, are left out of a line."""


def command(
    most: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="How many runs to show.")
    ] = 20,
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """List the runs, newest first."""
    return with_connection(Settings(), embedded, lambda connection: run(connection, most, as_json))


async def run(connection: Connection, most: int, as_json: bool) -> int:
    """Print up to `most` runs that people started; their child runs are not listed."""
    rows: list[Listed] = []
    with patience("Asking the server for its runs"):
        async for each in list_runs(connection):
            rows.append(each)
            if len(rows) == most:
                break
    if as_json:
        put_json(json.dumps([asdict(row) for row in rows], indent=2))
    elif rows:
        for line in lines(rows, OUT.width if OUT.is_terminal else None):
            put(line)
    else:
        evals = await connection.client.count_workflows(f"WorkflowType = '{EVALUATION}'")
        say(_nothing_listed(connection, evals.count))
    return Code.COMPLETE


def _nothing_listed(connection: Connection, evals: int = 0) -> str:
    """Return why the list is empty, and what to do about it."""
    if evals:
        return "No runs but trials of evals, which are not listed; `show ID` opens one by its id"
    state = StateDir.of(connection.settings)
    if connection.target.embedded and state.journal.is_dir() and any(state.journal.iterdir()):
        return (
            f"No runs, though the journal of {state.path} has calls of earlier ones: they are past"
            " their retention, or temporal.db there was lost or replaced. What reports they left"
            f" is in {state.reports}; to have the runs back, put their temporal.db back"
        )
    if moved := describe_moved(connection.settings):
        return f"No runs yet here. {moved}"
    return f"No runs yet. Start one: {STARTER} run --playbook code-review --input repo=."


# ---------------------------------------------------------------- the table


def lines(rows: Sequence[Listed], width: int | None) -> Iterator[str]:
    """Yield the runs as lines in columns under a heading. Within a `width` words are cut and
    columns left out, but never the id; without one nothing is.
    """
    table = [("run", "status", "price", "took", "age", "playbook", "about"), *map(_cells, rows)]
    wide = [max(cell_len(line[place]) for line in table) for place in range(len(table[0]))]
    shown = _fitting(wide, width)
    for line in table:
        yield _line(line, wide, shown, width)


def _cells(row: Listed) -> tuple[str, ...]:
    return tuple(
        for_terminal(cell)
        for cell in (
            row.id,
            _ended(row),
            _price(row),
            seconds(row.seconds),
            _age(row.age),
            row.playbook,
            row.goal,
        )
    )


def _age(amount: float) -> str:
    """Return an age in its largest useful unit: `40 s`, `5 min`, `3 h`, `2 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if amount >= size:
            return f"{amount // size:.0f} {unit}"
    return f"{max(amount, 0.0):.0f} s"


def _ended(row: Listed) -> str:
    """Return how a run ended: a review with its counts, which say more than that it did."""
    status = row.status.replace("_", " ")
    if row.remarks:
        whole = row.status in ("complete", "complete_with_gaps")
        return row.remarks if whole else f"{row.remarks}, {status}"
    return f"{status}: {row.why}" if row.why else status


def _price(row: Listed) -> str:
    if row.dollars is None or row.dollars == UNPRICED:
        return row.dollars or ""
    return at_most(Decimal(row.dollars), Decimal(row.assumed))


GAP = 2
_ORDER = (0, 1, 6, 4, 2, 5, 3)
"""Columns by how much they are needed: the words count with the least that says something."""


def _fitting(wide: Sequence[int], width: int | None) -> list[int]:
    """Return the indices of the columns that are shown, from left to right."""
    if width is None:
        return list(range(len(wide)))
    shown, left = [0], width - wide[0]
    least = {1: LEAST_STATUS, len(wide) - 1: LEAST_WORDS}
    for place in _ORDER[1:]:
        needed = GAP + min(wide[place], least.get(place, wide[place]))
        if needed <= left:
            shown.append(place)
            # Where a run is may take all the room there is; its words take what the others leave.
            left -= min(left, GAP + wide[place]) if place == 1 else needed
    return sorted(shown)


def _line(line: Sequence[str], wide: Sequence[int], shown: list[int], width: int | None) -> str:
    cells = []
    room = width
    for place in shown:
        size = wide[place]
        if room is not None and place:
            size = min(size, room)
        cell = line[place]
        if cell_len(cell) > size and place:
            cell = set_cell_size(cell, max(size - 1, 0)) + "…"
        cells.append(set_cell_size(cell, size) if cell_len(cell) < size else cell)
        room = None if room is None else room - size - GAP
    return (" " * GAP).join(cells).rstrip()
