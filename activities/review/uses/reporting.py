"""What the program finds: changed definitions, their uses, and what breaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

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


class Definition(NamedTuple):
    """Where something is defined, or was."""

    path: str
    line: int


@dataclass
class Found:
    """All that one language's part of the program has to say."""

    changed: list[Changed] = field(default_factory=list)
    breakages: list[Breakage] = field(default_factory=list)


def without_name(use: Use, name: str, was: Definition, now: str, *, member: bool) -> Breakage:
    """Return that a use has no definition any more. `now` is what that is called now."""
    how = {"import": "imported", "call": "called"}.get(use.how, "used")
    return Breakage(
        use.file,
        use.line,
        "removed-member" if member else "removed-name",
        f"`{name}` is {how} here, and this change removed it from `{was.path}`"
        f" (line {was.line} before)" + (f"; `{now}` is there now" if now else ""),
        f"Use `{now}`" if now else "Take the use out, or keep the definition",
        use.column,
    )


def without_module(use: Use, name: str, was: str, now: str) -> Breakage:
    """Return that an import has no module any more. `now` is where that is now."""
    return Breakage(
        use.file,
        use.line,
        "removed-module",
        f"`{name}` is imported here, and this change removed"
        + (" it" if name == was else f" the module `{was}`")
        + (f"; it is `{now}` now" if now else ""),
        f"Import it from `{now}`" if now else "Take the import out, or keep the module",
        use.column,
    )


def unfit(use: Use, name: str, now: Definition, why: str, row: str = "") -> Breakage:
    """Return that a call does not fit a definition any more."""
    return Breakage(
        use.file,
        use.line,
        "changed-signature",
        f"This call no longer fits `{name}` as the change defines it"
        f" (`{now.path}` line {now.line}): {why}",
        "Call it by its new parameters, or keep the old ones",
        use.column,
        row,
    )
