"""The real worker after a change that breaks determinism: each activity has another id, so that no
history of the unchanged code replays in it. `python tests/support/changed_worker.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from temporalio import workflow

from holdfast.serving import worker


def change(schedule: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of Temporal's, which then names its activities otherwise."""

    def renamed(*given: Any, activity_id: str, **more: Any) -> Any:
        return schedule(*given, activity_id=f"{activity_id}-anew", **more)

    return renamed


if __name__ == "__main__":
    workflow.execute_activity_method = change(workflow.execute_activity_method)
    code = worker.main()
    os._exit(code)
