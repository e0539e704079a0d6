"""What the program finds: changed definitions, their uses, and what breaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

What = Literal["removed", "signature", "body", "added"]


@dataclass(frozen=True)
class Use:
    """One place that uses a definition. `sure`: it is that definition, and no namesake."""

    file: str
    line: int
    column: int = 0
    how: Literal["import", "call", "name"] = "name"
    sure: bool = True


@dataclass
class Changed:
    """A definition that the change has changed, at its place in the head, or where it stood."""

    file: str
    line: int
    name: str
    what: What
    kind: str
    uses: list[Use] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)

    def add(self, use: Use) -> None:
        if all((each.file, each.line) != (use.file, use.line) for each in self.uses):
            self.uses.append(use)


@dataclass(frozen=True)
class Breakage:
    """A defect: a use that no longer works, or a check that is gone."""

    file: str
    line: int
    rule: str
    message: str
    suggestion: str = ""
    column: int = 0
    grade: str = ""
    """Its row of the lens's table; empty: the rule's own."""


@dataclass
class Found:
    """All that one language's part of the program has to say."""

    changed: list[Changed] = field(default_factory=list)
    breakages: list[Breakage] = field(default_factory=list)
