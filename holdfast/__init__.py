"""Durable orchestration of teams of language-model agents on Temporal.

What other programs may build on stands in `__all__`. Each name is imported when it is first used:
whoever asks for the version alone waits for no pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.activities.toolset.tool import Here, Result, ToolError, tool
    from holdfast.client.holdfast import Holdfast
    from holdfast.client.plain import run
    from holdfast.client.runs import DataReport, DataRun, Run
    from holdfast.contracts import Finding, Goal, Limits, Plan, Report, Subtask
    from holdfast.contracts.events import (
        AnyEvent,
        BudgetReached,
        CallWaits,
        EndpointAway,
        EndpointBack,
        OrderTaken,
        PlanMade,
        PlanWaits,
        QuestionAsked,
        RunEnded,
        RunReset,
        RunStarted,
        SubtaskEnded,
        SubtaskStarted,
    )
    from holdfast.contracts.view import Preview, RunView
    from holdfast.errors import (
        HoldfastError,
        IdTaken,
        NoAnswer,
        NoSuchRun,
        NoSuchSchedule,
        NoWorker,
        OrderRefused,
        Refused,
        RunFailed,
        RunOver,
        RunStuck,
        ScheduleTaken,
        Unreachable,
    )
    from holdfast.intake.requests import RunRequest
    from holdfast.serving.nexus import OrderFor, Runs
    from holdfast.serving.plugin import HoldfastPlugin
    from holdfast.serving.worker import worker

__version__ = "0.2.0"
__all__ = (
    "AnyEvent",
    "BudgetReached",
    "CallWaits",
    "DataReport",
    "DataRun",
    "EndpointAway",
    "EndpointBack",
    "Finding",
    "Goal",
    "Here",
    "Holdfast",
    "HoldfastError",
    "HoldfastPlugin",
    "IdTaken",
    "Limits",
    "NoAnswer",
    "NoSuchRun",
    "NoSuchSchedule",
    "NoWorker",
    "OrderFor",
    "OrderRefused",
    "OrderTaken",
    "Plan",
    "PlanMade",
    "PlanWaits",
    "Preview",
    "QuestionAsked",
    "Refused",
    "Report",
    "Result",
    "Run",
    "RunEnded",
    "RunFailed",
    "RunOver",
    "RunRequest",
    "RunReset",
    "RunStarted",
    "RunStuck",
    "RunView",
    "Runs",
    "ScheduleTaken",
    "Subtask",
    "SubtaskEnded",
    "SubtaskStarted",
    "ToolError",
    "Unreachable",
    "__version__",
    "run",
    "tool",
    "worker",
)  # fmt: skip
_HOMES = {
    "holdfast.activities.toolset.tool": ("Here", "Result", "ToolError", "tool"),
    "holdfast.client.holdfast": ("Holdfast",),
    "holdfast.client.plain": ("run",),
    "holdfast.client.runs": ("DataReport", "DataRun", "Run"),
    "holdfast.contracts": ("Finding", "Goal", "Limits", "Plan", "Report", "Subtask"),
    "holdfast.contracts.view": ("Preview", "RunView"),
    "holdfast.intake.requests": ("RunRequest",),
    "holdfast.serving.nexus": ("OrderFor", "Runs"),
    "holdfast.serving.plugin": ("HoldfastPlugin",),
    "holdfast.serving.worker": ("worker",),
}
_OTHERS = ("holdfast.errors", "holdfast.contracts.events")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = [home for home, names in _HOMES.items() if name in names] or _OTHERS
    modules = map(importlib.import_module, homes)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
