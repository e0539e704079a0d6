"""What addresses of the web are told: a run waits or has ended, a schedule starts nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from holdfast.contracts.base import Contract, ProjectName

Occasion = Literal["waits", "ended", "budget"]
NoticeType = Literal[
    "run.plan_waits",
    "run.call_waits",
    "run.question",
    "run.budget_reached",
    "run.ended",
    "schedule.paused",
    "schedule.refused",
]
OCCASIONS: dict[NoticeType, Occasion] = {
    "run.plan_waits": "waits",
    "run.call_waits": "waits",
    "run.question": "waits",
    "run.budget_reached": "budget",
    "run.ended": "ended",
    "schedule.paused": "budget",
    "schedule.refused": "ended",
}


class Notify(Contract):
    """Who is to be told of a run, and of what."""

    urls: tuple[str, ...]
    on: tuple[Occasion, ...] = ("waits", "ended", "budget")


class Notice(Contract):
    """One thing to tell. It holds nothing of the run's content."""

    id: str
    """The `webhook-id`: the same however often it is sent."""
    type: NoticeType
    at: datetime
    run_id: str
    """Id of the run, or name of the schedule."""
    number: int
    """Its place among the notices of the run, from 1."""
    about: str
    """Distinguishes two occurrences of one type; it is not sent."""
    urls: tuple[str, ...]
    project: ProjectName = ""


class Delivery(Contract):
    """What came of a notice."""

    failures: tuple[str, ...] = ()
    """Why it was not delivered, for each address that it was not delivered to."""
