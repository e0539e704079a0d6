"""A run as its readers are shown it: rows and a view, filled in where a test does not care."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.contracts.view import Row, RunView

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def row(**fields: object) -> Row:
    base = {"id": "t1", "title": "Compare", "role": "analyst", "tier": "sonnet"}
    return Row.model_validate({**base, "status": "complete", **fields})


def view(*rows: Row, **fields: object) -> RunView:
    base = {
        "run_id": "r",
        "goal": "g",
        "phase": "working",
        "rows": rows,
        "started": START,
        "now": START,
        "dollars_cap": "2",
        "model_calls_cap": 60,
    }
    return RunView.model_validate({**base, **fields})
