"""Scripted plans from the roles and inputs of a prompt: each input for a role that can read it."""

from __future__ import annotations

import re
from dataclasses import dataclass

ROLE = re.compile(r"^- ([\w-]+) \((?:haiku|sonnet|opus)\):(.*)$", re.MULTILINE)
TOOLS = re.compile(r" Its tools: ([\w, -]+)\.")
INPUT = re.compile(
    r"^- ([\w.-]+): (text|file|repository|folder), \d+ bytes"
    r"(?:; a document, which only a role with (\w+) reads)?",
    re.MULTILINE,
)


@dataclass(frozen=True)
class MenuRole:
    """A role as the menu has it."""

    name: str
    tools: tuple[str, ...] = ()

    def reads(self, kind: str, reader: str) -> bool:
        """Whether it can work on an input: prompts enclose text, all else is read by tools."""
        if reader:
            return reader in self.tools
        return bool(self.tools) or kind not in ("repository", "folder")


def parts(prompt: str, count: int) -> list[tuple[str, list[str]]]:
    """For each of so many subtasks its role and its inputs: the roles in turn, and first those that
    can read the most.
    """
    inputs = INPUT.findall(prompt)
    found = [MenuRole(name, _tools(told)) for name, told in ROLE.findall(prompt)]
    readable = {
        role: [name for name, kind, reader in inputs if role.reads(kind, reader)] for role in found
    }
    roles = sorted(found, key=lambda role: -len(readable[role])) or [MenuRole("analyst")]
    chosen = [roles[number % len(roles)] for number in range(count)]
    return [(role.name, readable.get(role, [])) for role in chosen]


def _tools(told: str) -> tuple[str, ...]:
    named = TOOLS.findall(told)
    return tuple(named[-1].split(", ")) if named else ()
