"""What is said where a project has nothing because it was moved."""

from __future__ import annotations

import shlex

from holdfast.deployment import project
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings


def describe_moved(settings: Settings) -> str:
    """Return where the runs and the server of a project are that was moved or renamed, and what to
    do; empty if it does not seem to be.
    """
    moved = project.find_moved(settings.project) if settings.project else None
    if moved is None or settings.projects:
        return ""
    before, state = moved
    down = f"HOLDFAST_STATE_DIR={shlex.quote(str(state))} {STARTER} down"
    return (
        f"{before} is gone, and its runs are kept for that place: if this project was moved from"
        f" there, move it back to have them. If its server still runs, stop it with: {down}"
    )
