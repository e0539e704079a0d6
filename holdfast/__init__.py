"""Durable orchestration of teams of language-model agents on Temporal.

What other programs may build on stands in `__all__`. Each name is imported when it is first used:
whoever asks for the version alone waits for no pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.activities.toolset.tool import Here, Result, ToolError, tool
    from holdfast.contracts import Finding, Goal, Limits, Plan, Report, Subtask

__version__ = "0.2.0"
__all__ = (
    "Finding", "Goal", "Here", "Limits", "Plan", "Report", "Result", "Subtask", "ToolError",
    "__version__", "tool",
)  # fmt: skip
_OF_TOOLS = ("Here", "Result", "ToolError", "tool")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    of = "holdfast.activities.toolset.tool" if name in _OF_TOOLS else "holdfast.contracts"
    return getattr(importlib.import_module(of), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
