"""What a host's model may do: what it may spend, what it may read, what it may decide."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from holdfast.client.reading import Reader
from holdfast.contracts import Goal
from holdfast.contracts.search import (
    MEMO_CAP,
    MEMO_DOLLARS,
    MEMO_REQUESTER,
    RUNS,
    UNPRICED,
)
from holdfast.deployment.settings import Settings
from holdfast.doors.tokens import Scopes
from holdfast.embedded import StateDir, private
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.rendering.amounts import money

REQUESTER = "mcp:"
"""What the requester of a run from this door begins with; the host's name follows."""
SAFE = frozenset({"reject", "decline", "pause"})
"""The decisions that spend nothing and let nothing through."""
DAYS_WORTH = 10
"""How many dearest runs make a day's limit where none is given."""


class NotAllowed(Refused):
    """The person who started this door did not allow it."""

    kind = "not_allowed"


@dataclass(frozen=True)
class Leash:
    """The limits that the person who started the door has set."""

    per_run: Decimal = Decimal(0)
    """The highest cap of a run, in dollars; 0: no model may be asked."""
    per_day: Decimal = Decimal(0)
    """What the runs that begin on one day (UTC) may cost in all, in dollars."""
    may_decide: bool = False
    """True if the host's model may do what otherwise only a person may."""
    only_reads: bool = False
    """True for a token that starts and steers nothing."""

    def narrowed(self, scopes: Scopes | None) -> Leash:
        """Return what of it a token allows; all of it where there is no token, as over stdio."""
        if scopes is None:
            return self
        most = min(self.per_run, scopes.dollars or Decimal(0))
        decides = self.may_decide and scopes.decide
        reads = scopes.dollars is None and not scopes.decide
        return replace(self, per_run=most, may_decide=decides, only_reads=reads)

    def check_acts(self) -> None:
        """Raise NotAllowed for who may only read."""
        if self.only_reads:
            raise NotAllowed("this token may only look; the person makes one that may do more")

    def check_cap(self, goal: Goal) -> None:
        """Raise NotAllowed unless a run of this goal may be started, whatever the day has cost."""
        cap = goal.limits.dollars
        if not goal.use_models:
            return
        if not self.per_run:
            raise NotAllowed(
                "this run would ask models, and this door spends nothing: the person must start it"
                " with `--may-spend DOLLARS`, and over HTTP its token must allow it, too. Free:"
                " review without models"
            )
        if cap > self.per_run:
            raise NotAllowed(
                f"dollars: {money(cap)} is more than the {money(self.per_run)} that one run through"
                f" this door may cost (--may-spend); ask for dollars={self.per_run} or less"
            )

    def check_day(self, more: Decimal, spent: Decimal) -> None:
        """Raise NotAllowed if so many dollars more would be too much for today."""
        left = max(self.per_day - spent, Decimal(0))
        if more > left:
            raise NotAllowed(
                f"today's runs through this door have cost or reserved {money(spent)} of"
                f" {money(self.per_day)} (--may-spend-day); {money(left)} is left: ask for a lower"
                " cap in `dollars`, cancel a run that is under way, or wait until 00:00 UTC"
            )

    def check_decision(self, decision: str) -> None:
        """Raise NotAllowed if only a person may decide so."""
        if decision not in SAFE and not self.may_decide:
            raise NotAllowed(
                f"{decision}: only a person may decide that; tell them, and look again later."
                f" Without a person you may: {', '.join(sorted(SAFE))}, and cancel"
            )


# ---------------------------------------------------------------- what a day has cost


@asynccontextmanager
async def alone(settings: Settings) -> AsyncIterator[None]:
    """Keep the other doors of this state directory waiting while one looks at what is left."""
    state = StateDir.of(settings)
    state.create()
    handle = private.open_file(state.path / "leash.lock")
    try:
        await asyncio.to_thread(fcntl.flock, handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


async def spent_today(connection: Connection, besides: str = "") -> Decimal:
    """Return the dollars that today's runs from this door have cost, or may still cost, as the
    server lists them. `besides`: the id of a run that is not counted.
    """
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    total = Decimal(0)
    async for each in runs_of_doors(connection, since=midnight):
        if each.id != besides:
            total += await _cost_of(connection, each)
    return total


async def runs_of_doors(
    connection: Connection, since: datetime | None = None
) -> AsyncIterator[WorkflowExecution]:
    """Yield the runs that were started through such doors, newest first."""
    begun = f" AND StartTime >= '{since.isoformat()}'" if since else ""
    async for each in connection.client.list_workflows(f"{RUNS}{begun}"):
        requester = str(await each.memo_value(MEMO_REQUESTER, "", type_hint=str))
        if each.parent_id is None and requester.startswith(REQUESTER):
            yield each


async def _cost_of(connection: Connection, run: WorkflowExecution) -> Decimal:
    cap = Decimal(str(await run.memo_value(MEMO_CAP, "0", type_hint=str)))
    if run.status is WorkflowExecutionStatus.RUNNING:
        view = (await Reader(connection, run.id).look()).view
        return max(cap, view.dollars_cap) if view and view.use_models else cap
    paid = str(await run.memo_value(MEMO_DOLLARS, "", type_hint=str))
    # Who was closed from outside, or has no price, may have paid up to the cap.
    return cap if paid in ("", UNPRICED) else Decimal(paid)


# ---------------------------------------------------------------- what may be read


def readable_roots(settings: Settings) -> tuple[Path, ...]:
    """Return the current folder, unless it is the root of the file system, and the allowed
    roots.
    """
    here = Path.cwd().resolve()
    mine = () if here == Path(here.anchor) else (here,)
    return (*mine, *(each.resolve() for each in settings.allowed_roots))
