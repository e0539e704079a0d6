"""What tests of the terminal draw, and what it receives."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta

from rich.console import Console, RenderableType

from holdfast.contracts.view import Row, RunView

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOSTILE = "\x1b[2J\x1b]0;owned\x07 [bold]hi[/bold] :smile: \u202egnp.exe \x9b31m\r\nsecond line"
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
OUR_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def drawn(shown: RenderableType, width: int = 100) -> str:
    """What a colour terminal of this width receives."""
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system="standard",
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(shown)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def row(id: str = "t1", **fields: object) -> Row:
    base = {"id": id, "title": f"Subtask {id}", "role": "analyst", "tier": "sonnet"}
    return Row.model_validate({**base, "status": "running", **fields})


def view(*rows: Row, after: float = 10.0, **fields: object) -> RunView:
    base = {
        "run_id": "run-1",
        "goal": "g",
        "phase": "working",
        "rows": rows,
        "started": START,
        "now": START + timedelta(seconds=after),
        "dollars_cap": "2",
        "model_calls_cap": 60,
    }
    return RunView.model_validate({**base, **fields})
