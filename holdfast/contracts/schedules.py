"""What a schedule starts and when, and what became of each of its times."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from holdfast.contracts.base import Contract, Money, ProjectName
from holdfast.contracts.goals import Goal
from holdfast.contracts.notices import Notice

SCHEDULED = "ScheduledWorkflow"
"""The workflow that each time of a schedule starts."""
BUDGET_DAYS = 30
"""Days over which what a schedule has spent is added up, back from now."""
Overlap = Literal["skip", "queue", "cancel", "allow"]
"""What a time does while the run of the one before is open: nothing; wait for its end; cancel it;
start another beside it.
"""


class Times(Contract):
    """When a schedule starts runs: one of the first three says it."""

    cron: str = ""
    every_seconds: int = 0
    once: datetime | None = None
    zone: str = "UTC"
    """Time zone of the cron line, and of what people are shown."""
    jitter_seconds: int = 0
    catch_up_seconds: int = 3_600
    """A time that was missed is made up for if it is not longer ago."""
    overlap: Overlap = "skip"


class Scheduled(Contract):
    """A schedule: what each of its times is started with."""

    name: str
    times: Times
    request: dict[str, JsonValue]
    """The run that is asked for, as `--goal FILE` has it."""
    budget: Money | None = None
    """The most that its runs of 30 days may cost; None: each has its own cap alone."""
    project: ProjectName = ""
    requester: str = ""
    below: tuple[str, ...] | None = None
    """The only places whose paths it may name, as the door allowed that added it; None: those that
    its user allowed.
    """


class Outcome(Contract):
    """What became of one time of a schedule. It stands in the memo of its workflow, for lists."""

    run: str = ""
    """Id of the run; empty: none was started."""
    status: str = ""
    """How the run ended, `refused`, or `over budget`; empty: it is open."""
    why: str = ""
    cap: str = "0"
    """The most dollars that the run may cost; 0 if it asks no model."""
    dollars: str = ""
    """What it cost; empty if no model was asked, "unpriced" where no price is known."""
    assumed: str = "0"
    """Part of the dollars that is the worst case of calls whose answers were lost."""
    remarks: str = ""


class Due(Contract):
    """What a time of a schedule is to start: a goal, read when it came, or nothing, and why."""

    outcome: Outcome
    goal: Goal | None = None
    notice: Notice | None = None
    """That nothing starts, for whoever is to be told."""
    memo: dict[str, str | bool] = Field(default_factory=dict)
    summary: str = ""
    details: str = ""
