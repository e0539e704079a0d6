"""A line of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mark = Literal["ok", "note", "bad", "fact"]
"""`bad` is in the way of something; `note` may be meant so; `fact` is neither."""


@dataclass(frozen=True)
class Checkup:
    """One line of the diagnosis."""

    section: str
    name: str
    mark: Mark
    detail: str
