"""What a time of a schedule asks of the world: what to start now, and how its run has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio import activity

from holdfast.activities.asking.heartbeat import beating
from holdfast.contracts.schedules import Due, Outcome, Scheduled


@dataclass(frozen=True)
class Schedules:
    """Makes goals of what schedules ask for. Both functions are a client's, see `serving`."""

    prepare: Callable[[Scheduled, str], Awaitable[Due]]
    """(schedule, id of the workflow of this time)"""
    look: Callable[[Outcome], Awaitable[Outcome]]

    @activity.defn
    async def prepare_scheduled(self, scheduled: Scheduled) -> Due:
        """Return what to start. What cannot be started is an outcome, no error."""
        async with beating():
            return await self.prepare(scheduled, activity.info().workflow_id or scheduled.name)

    @activity.defn
    async def read_outcome(self, started: Outcome) -> Outcome:
        """Return how a run that has ended did so."""
        async with beating():
            return await self.look(started)
