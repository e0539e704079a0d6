"""A worker's part of schedules: what one of their times starts, as everything is when it comes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from temporalio import activity

from holdfast.activities import activities_of
from holdfast.activities.schedules import Schedules
from holdfast.activities.wiring import Served
from holdfast.client.listing import listed
from holdfast.client.schedules import request_of, spent
from holdfast.contracts import Goal
from holdfast.contracts.notices import OCCASIONS, Notice, NoticeType
from holdfast.contracts.schedules import BUDGET_DAYS, Due, Outcome, Scheduled
from holdfast.contracts.search import MEMO_SCHEDULE, MEMO_STATUS
from holdfast.deployment.settings import Settings
from holdfast.embedded.allowed import allowed_roots
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.intake.launch import allow_inputs, prepare_start
from holdfast.intake.notices import notify_of
from holdfast.intake.scheduled import goal_of_request
from holdfast.rendering.amounts import money
from holdfast.temporal.connection import Target

_STAMP = re.compile(r"-(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z$")
"""What Temporal adds to the id of a workflow that a schedule starts."""


def with_schedules(served: Served, settings: Settings, target: Target) -> Served:
    """Return what a worker serves, with what schedules need of it."""
    planner = Planner(settings, target)
    more: list[Callable[..., Any]] = activities_of(Schedules(planner.prepare, planner.look))
    return replace(served, free=[*served.free, *more])


@dataclass(frozen=True)
class Planner:
    """Makes the goals of times of schedules, as whoever starts a run makes its goal."""

    settings: Settings
    target: Target

    async def prepare(self, scheduled: Scheduled, workflow_id: str) -> Due:
        """Return the goal of this time, or why there is none."""
        try:
            return await self._due(scheduled, workflow_id)
        except Refused as error:
            why = " ".join(str(error).split())
            notice = self._notice(scheduled, "schedule.refused")
            return Due(outcome=Outcome(status="refused", why=why), notice=notice)

    async def _due(self, scheduled: Scheduled, workflow_id: str) -> Due:
        settings = self.settings.by_project.get(scheduled.project)
        if settings is None:
            raise Refused(f"this worker does not serve the project {scheduled.project!r}")
        connection = self._connection(settings)
        request, embedded = request_of(scheduled), self.target.embedded
        # Anyone who reaches the server can start such a workflow: no path is looked at that its
        # user never allowed.
        roots = allowed_roots(settings, embedded=embedded)()
        places = _within(tuple(each.path for each in roots), scheduled.below)
        goal = await goal_of_request(request, settings, embedded=embedded, below=places)
        # What it brings of files was written anew, if a cleaning has removed it.
        allow_inputs(goal, connection, ())
        goal = goal.model_copy(update={"requester": scheduled.requester})
        cap = goal.limits.dollars if goal.use_models else Decimal(0)
        if why := await self._over_budget(connection, scheduled, cap, workflow_id):
            notice = self._notice(scheduled, "schedule.paused")
            return Due(outcome=Outcome(status="over budget", why=why), notice=notice)
        return await _ready(connection, scheduled, goal, cap, workflow_id)

    async def _over_budget(
        self, connection: Connection, scheduled: Scheduled, cap: Decimal, workflow_id: str
    ) -> str:
        """Pause the schedule, and return why, if a run up to its cap would pass the budget."""
        if scheduled.budget is None or not cap:
            return ""
        paid = await spent(connection.client, scheduled.name, cap, besides=workflow_id)
        if paid + cap <= scheduled.budget:
            return ""
        why = (
            f"its runs of {BUDGET_DAYS} days cost {money(paid)}, one more may cost {money(cap)},"
            f" and its budget is {money(scheduled.budget)}"
        )
        await connection.client.get_schedule_handle(scheduled.name).pause(note=why)
        return why

    def _notice(self, scheduled: Scheduled, type: NoticeType) -> Notice | None:
        """Return what tells that nothing starts; None where nobody wants to know."""
        try:
            request = request_of(scheduled)
            wanted = notify_of(
                request.notify, request.on, self.settings, embedded=self.target.embedded
            )
        except Refused:
            return None
        if wanted is None or OCCASIONS[type] not in wanted.on:
            return None
        seed = f"{activity.info().workflow_run_id} {type}"
        return Notice(
            id=f"msg_{hashlib.sha256(seed.encode()).hexdigest()[:32]}",
            type=type,
            at=datetime.now(UTC),
            run_id=scheduled.name,
            number=1,
            about="",
            urls=wanted.urls,
            project=scheduled.project,
        )

    async def look(self, started: Outcome) -> Outcome:
        """Return how a run ended, from what lists know of it."""
        connection = self._connection(self.settings)
        described = await connection.handle(started.run).describe()
        run = await listed(described)
        # Closed from outside, it could say nothing, and may have paid up to its cap.
        said = bool(await described.memo_value(MEMO_STATUS, "", type_hint=str))
        worst = "" if said or not Decimal(started.cap) else started.cap
        return started.model_copy(
            update={
                "status": run.status,
                "why": run.why,
                "dollars": run.dollars or worst,
                "assumed": worst or run.assumed,
                "remarks": run.remarks,
            }
        )

    def _connection(self, settings: Settings) -> Connection:
        return Connection(settings, self.target, activity.client())


def _within(places: tuple[Path, ...], below: tuple[str, ...] | None) -> tuple[Path, ...]:
    """Return the places that a worker may read for a schedule: of those of its door, if it came by
    one, what is still allowed.
    """
    if below is None:
        return places
    return tuple(
        path for path in map(Path, below) if any(path.is_relative_to(each) for each in places)
    )


async def _ready(
    connection: Connection, scheduled: Scheduled, goal: Goal, cap: Decimal, workflow_id: str
) -> Due:
    goal, shown = await prepare_start(connection, goal)
    memo = {
        name: value if isinstance(value, bool) else str(value)
        for name, value in shown["memo"].items()
    }
    return Due(
        outcome=Outcome(run=_STAMP.sub(r"-\1\2\3-\4\5\6", workflow_id), cap=str(cap)),
        goal=goal,
        memo={**memo, MEMO_SCHEDULE: scheduled.name},
        summary=shown["static_summary"],
        details=shown["static_details"],
    )
