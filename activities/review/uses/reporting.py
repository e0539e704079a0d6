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

    @property
    def told(self) -> list[Use]:
        """The uses, without the imports of files that use it elsewhere, too."""
        users = {each.file for each in self.uses if each.how != "import"}
        return [each for each in self.uses if each.how != "import" or each.file not in users]

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
    base_line: int = 0
    """The first line of the base that it is about, if the change deleted that one."""


@dataclass
class Found:
    """All that one language's part of the program has to say."""

    changed: list[Changed] = field(default_factory=list)
    breakages: list[Breakage] = field(default_factory=list)
