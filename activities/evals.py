"""What an eval asks of the world: to open a trial, to price it, and to mark what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio import activity

from holdfast.activities.asking.heartbeat import beating
from holdfast.contracts.evals import Grading, Mark, Opened, Priced, Scored, Trial


@dataclass(frozen=True)
class Evals:
    """Opens and marks trials. The functions are a client's, see `serving`."""

    open: Callable[[Trial], Awaitable[Opened]]
    price: Callable[[Trial], Awaitable[Priced]]
    score: Callable[[Trial], Awaitable[Scored]]
    grade: Callable[[Grading], Awaitable[Mark]]

    @activity.defn
    async def open_trial(self, trial: Trial) -> Opened:
        """Return what a trial is started with, and whether it has run already."""
        async with beating():
            return await self.open(trial)

    @activity.defn
    async def price_trial(self, trial: Trial) -> Priced:
        """Return what a trial is expected to cost. Nothing is asked."""
        async with beating():
            return await self.price(trial)

    @activity.defn
    async def score_trial(self, trial: Trial) -> Scored:
        """Return the mark of a trial that has run, by code alone."""
        async with beating():
            return await self.score(trial)

    @activity.defn
    async def grade_trial(self, grading: Grading) -> Mark:
        """Return the mark with what judges decided."""
        async with beating():
            return await self.grade(grading)
