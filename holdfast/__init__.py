"""Durable orchestration of teams of language-model agents on Temporal.

What other programs may build on stands in `__all__`. Each name is imported when it is first used:
whoever asks for the version alone waits for no pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.contracts import Finding, Goal, Limits, Plan, Report, Subtask

__version__ = "0.1.0"
__all__ = ("Finding", "Goal", "Limits", "Plan", "Report", "Subtask", "__version__")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("holdfast.contracts"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
