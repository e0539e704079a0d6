"""The runs there are, newest first, as the server lists them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from holdfast.contracts.search import (
    MEMO_ASSUMED,
    MEMO_DOLLARS,
    MEMO_DRY,
    MEMO_PROJECT,
    MEMO_REMARKS,
    MEMO_STATUS,
    MEMO_TITLE,
    MEMO_WHY,
    OUTAGE,
    PLAYBOOK,
    RUNS,
    STATUS,
    WAITING,
)
from holdfast.errors import Undecipherable
from holdfast.intake.connection import Connection
from holdfast.temporal.connection import PAUSED, is_part, is_paused

PAGE_TIME = timedelta(seconds=10)
"""How long the server may take for a page of the list."""
PAUSE_INFO = "TemporalPauseInfo"
"""Temporal's own search attribute of a run of which an activity is paused."""
PROBLEMS = "TemporalReportedProblems"
"""Temporal's own search attribute of a run whose next step has failed again and again."""
OPEN = {"approval": "waits for approval", OUTAGE: "waits for the endpoint"}
"""States of an open run that is not working."""


@dataclass(frozen=True)
class Listed:
    """One run in the list."""

    id: str
    status: str
    started: str
    seconds: float
    goal: str
    """Goal of the run, in a line."""
    dollars: str | None = None
    """Cost of a closed run that asked models; "unpriced" where no price is known."""
    assumed: str = "0"
    """Part of the dollars that is the worst case of calls whose answers were lost."""
    playbook: str = ""
    """Empty for a goal in words, and where the server does not know what runs are found by."""
    age: float = 0.0
    """Seconds since it started."""
    why: str = ""
    """Cause of a failed run, in a word or two; else empty."""
    remarks: str = ""
    """Counts of a review's verdict, as `6 critical, 1 warning` or `no remarks, not whole`."""
    project: str = ""
    """Name of the run's project; empty if it has none."""


async def list_runs(connection: Connection, at_once: int = 1_000) -> AsyncIterator[Listed]:
    """Yield the runs that people started, newest first; their child runs are not listed, and of a
    run that was reset only where it is now. `at_once`: how many the server is asked for at a time.
    """
    found = connection.client.list_workflows(RUNS, page_size=at_once, rpc_timeout=PAGE_TIME)
    seen: set[str] = set()
    async for each in found:
        if not is_part(each) and each.id not in seen:
            seen.add(each.id)
            yield await listed(each)


async def listed(run: WorkflowExecution) -> Listed:
    """Return a run as it stands in lists."""
    now = datetime.now(UTC)
    until = run.close_time or now
    # Of an open run the memo has a price from an outage, which may be over.
    away = run.typed_search_attributes.get(STATUS) == OUTAGE
    dollars = await _memo(run, MEMO_DOLLARS) if run.close_time or away else ""
    return Listed(
        id=run.id,
        status=await _status(run),
        started=run.start_time.isoformat(timespec="seconds"),
        seconds=round((until - run.start_time).total_seconds(), 1),
        goal=" ".join((await _title(run)).split()),
        dollars=dollars or None,
        assumed=await _memo(run, MEMO_ASSUMED) or "0",
        playbook=run.typed_search_attributes.get(PLAYBOOK) or "",
        project=await _memo(run, MEMO_PROJECT),
        age=round((now - run.start_time).total_seconds(), 1),
        why=await _memo(run, MEMO_WHY),
        remarks=await _memo(run, MEMO_REMARKS),
    )


async def _title(run: WorkflowExecution) -> str:
    """Return what a run is about; of one that is encrypted with a key that is not here, that."""
    try:
        return str(await run.memo_value(MEMO_TITLE, "", type_hint=str))
    except Undecipherable as error:
        return f"({error})"


async def _memo(run: WorkflowExecution, name: str) -> str:
    """Return what a run says of itself; nothing where that cannot be read: it breaks no list."""
    try:
        return str(await run.memo_value(name, "", type_hint=str))
    except Undecipherable:
        return ""


async def _status(run: WorkflowExecution) -> str:
    """Return where a run is, or how it ended: from its search attribute if it set one, else from
    Temporal's status.
    """
    name = run.status.name if run.status else ""
    if is_paused(run):
        return PAUSED
    if run.status is WorkflowExecutionStatus.RUNNING:
        if PAUSE_INFO in run.raw_info.search_attributes.indexed_fields:
            return f"partly {PAUSED}"
        if PROBLEMS in run.raw_info.search_attributes.indexed_fields:
            # As it lacks a key, or its history does not fit its code: `show` says which.
            return "stuck"
        where = run.typed_search_attributes.get(STATUS)
        if where in OPEN:
            return OPEN[where]
        asked = run.typed_search_attributes.get(WAITING)
        return "waits for a person" if asked else "running"
    if run.status in (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED):
        known = await _memo(run, MEMO_STATUS)
        if known == "declined" and await run.memo_value(MEMO_DRY, False, type_hint=bool):
            return "dry run"
        return known or name.lower()
    return {"CANCELED": "cancelled", "TIMED_OUT": "timed_out"}.get(name, name.lower())
