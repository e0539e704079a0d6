"""What a command line asks for: by its options, or by a file that says all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from holdfast.cli.screen.exits import Exit
from holdfast.deployment.settings import Settings
from holdfast.intake.goals import Wish
from holdfast.intake.launch import check_id
from holdfast.intake.requests import read_request_file


def read_asked(
    file: Path | None, typed: Wish, run_id: str, settings: Settings, *, decided: bool
) -> tuple[Wish, str]:
    """Return the wish and the run's own id: as typed, or as in the file. What a file does not say
    of approval is as typed, and all of it if that was `decided` there.
    """
    check_id(run_id)
    if file is None:
        return typed, run_id
    if typed != Wish(approval=typed.approval):
        raise Exit(f"--goal {file}: it says all that is asked; leave out the goal's other options")
    request = read_request_file(file)
    wish = request.wish(settings)
    if decided or "approval" not in request.model_fields_set:
        wish = replace(wish, approval=typed.approval)
    return wish, run_id or request.id
