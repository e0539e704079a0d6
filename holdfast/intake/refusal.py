"""What is refused on the way from what was asked to a started run."""

from __future__ import annotations

from typing import Literal

Kind = Literal["input", "taken", "no worker"]
"""What is wrong: what was asked, an id that belongs to another run, or nobody to work on it."""


class Refused(Exception):
    """Nothing was started. The message says what is wrong, with which thing, and what to do.

    One line, except where several mistakes are listed. What to type or press depends on the door,
    which adds it.
    """

    def __init__(self, message: str, kind: Kind = "input", run_id: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.run_id = run_id
        """Run that has the id, when the id is taken."""
