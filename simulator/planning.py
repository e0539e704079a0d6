"""Scripted plans: as a rule writes them out, or from the roles and inputs of a prompt, each input
for a role that can read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from holdfast.simulator.script import Part, Rule, Script

MARK = "(scripted)"
LIMIT = re.compile(r"(?i)at most (\d+) subtasks")
ROLE = re.compile(r"^- ([\w-]+) \((?:haiku|sonnet|opus)\):(.*)$", re.MULTILINE)
TOOLS = re.compile(r" Its tools: ([\w, ;-]+)\.")
APART = re.compile(r"[,;] | for inputs that they read")
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
        """True if it can work on an input: prompts enclose text, all else is read by tools."""
        if reader:
            return reader in self.tools
        looks = "list_files" in self.tools or "read_file" in self.tools
        return looks or kind not in ("repository", "folder")


def planned(prompt: str, goal: str, script: Script, rule: Rule | None) -> dict[str, Any]:
    """A planner's answer."""
    written = rule.plan if rule else ()
    roles = [{"tier": "haiku", "tools": [], **each} for each in rule.roles] if rule else []
    limit = LIMIT.search(prompt)
    count = min(script.subtasks, int(limit.group(1)) if limit else script.subtasks)
    return {
        "goal": f"{MARK} {goal}",
        "strategy": "merge",
        "roles": roles,
        "synthesis_instruction": f"{MARK} Combine the findings of all subtasks into one answer.",
        "subtasks": [_written(part, number, prompt) for number, part in enumerate(written, 1)]
        or [
            {
                **BLANK,
                "id": f"t{number}",
                "title": f"{MARK} part {number}",
                "instruction": f"{MARK} Work out part {number} of {count} of this goal"
                f"{_after(number, count, script)} and state the result in at most 200 words:"
                f" {goal}",
                "inputs": inputs,
                "role": role,
                "depends_on": _edges(number, count, script),
            }
            for number, (role, inputs) in enumerate(parts(prompt, count), 1)
        ],
        "choices": [],
        "bounds": [],
    }


BLANK: dict[str, Any] = {
    "secondary": "",
    "tier": "",
    "depends_on": [],
    "acceptance_criteria": "",
    "checks": [],
    "why": "(scripted) The goal asks for it, and this role can read what it needs.",
}
"""What a scripted subtask does not set."""


def _written(part: Part, number: int, prompt: str) -> dict[str, Any]:
    """A subtask as a rule has it."""
    inputs = _readable(prompt).get(part.role, []) if part.inputs is None else part.inputs
    instruction = part.instruction or f"Do part {number} of what was asked for and state the result"
    return {
        **BLANK,
        "id": part.id or f"t{number}",
        "title": f"{MARK} {part.title or part.role}",
        "instruction": f"{MARK} {instruction}",
        "inputs": [*inputs],
        "role": part.role,
        "secondary": part.secondary,
        "why": f"{MARK} {part.why}" if part.why else BLANK["why"],
        "depends_on": [*part.depends_on],
        "acceptance_criteria": part.acceptance_criteria,
    }


def _edges(number: int, count: int, script: Script) -> list[str]:
    if script.plan == "chain" and number > 1:
        return [f"t{number - 1}"]
    if script.plan == "fan_in" and number == count:
        return [f"t{each}" for each in range(1, count)]
    return []


def _after(number: int, count: int, script: Script) -> str:
    edges = _edges(number, count, script)
    return f" from the findings of {', '.join(edges)}" if edges else ""


def parts(prompt: str, count: int) -> list[tuple[str, list[str]]]:
    """Return role and inputs of each of so many subtasks: the roles in turn, and first those that
    can read the most.
    """
    readable = _readable(prompt)
    found = [MenuRole(name, _tools(told)) for name, told in ROLE.findall(prompt)]
    roles = sorted(found, key=lambda role: -len(readable[role.name])) or [MenuRole("analyst")]
    chosen = [roles[number % len(roles)] for number in range(count)]
    return [(role.name, readable.get(role.name, [])) for role in chosen]


def _readable(prompt: str) -> dict[str, list[str]]:
    """The inputs that each role of the menu can work on."""
    inputs = INPUT.findall(prompt)
    found = [MenuRole(name, _tools(told)) for name, told in ROLE.findall(prompt)]
    return {
        role.name: [name for name, kind, reader in inputs if role.reads(kind, reader)]
        for role in found
    }


def _tools(told: str) -> tuple[str, ...]:
    named = TOOLS.findall(told)
    return tuple(filter(None, APART.split(named[-1]))) if named else ()
