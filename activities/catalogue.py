"""Roles and playbooks as files: found by walking the folders, checked as a whole, one file each to
add.

A role is Markdown with front matter (name, description, model, tools, turns, effort, fallback,
result) and the
system prompt as its body. Subagent files of Claude Code work as they are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.contracts import Effort, InputKind, Plan, PlaybookCard, RoleCard, RoleTier
from orchestrator.settings import HOME

Inherit = Literal["inherit"]
CLAUDE_CODE_TOOLS = {"Read": "read_file", "Grep": "search_files", "Glob": "list_files"}
"""Claude Code's name of a tool -> ours. What is not listed changes or runs things, or has no
counterpart.
"""
TOOL_NAME = re.compile(r"[a-z][a-z0-9_]*")
FENCE = re.compile(r"^---[ \t]*$\n?", re.MULTILINE)


class CatalogueError(ValueError):
    """A role or playbook file cannot be used; the message names the file and the mistake."""


class FrontMatter(BaseModel):
    """The head of a role file. Fields that only other tools know (`color`) are ignored."""

    model_config = ConfigDict(extra="ignore")

    name: str
    description: str
    model: RoleTier | Inherit = "inherit"
    tools: str | list[str] = ""
    turns: int = Field(10, ge=1, le=100)
    effort: Effort = "medium"
    fallback: str = ""
    team: bool = False
    fixed_tier: bool = False
    result: dict[str, Any] | None = None


class PlaybookInput(BaseModel):
    """One input that a playbook takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: InputKind
    required: bool = False
    description: str = ""


class PlaybookFile(BaseModel):
    """`playbook.yaml`, whole."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    guidance: str = ""
    template: str = "merge"
    min_confidence: int = Field(0, ge=0, le=100)
    inputs: dict[str, PlaybookInput] = {}
    plan: Plan | None = None

    def card(self, plan: Plan | None) -> PlaybookCard:
        """As the supervisor needs it; `plan` is what this deployment can serve of the ready
        plan.
        """
        return PlaybookCard(
            name=self.name,
            description=self.description,
            guidance=self.guidance,
            template=self.template,
            min_confidence=self.min_confidence,
            plan=plan,
        )


@dataclass(frozen=True)
class Role:
    """A role file: its card for the supervisor, its system prompt for the worker."""

    card: RoleCard
    prompt: str
    playbook: str = ""
    """Empty: usable by every goal."""


@dataclass(frozen=True)
class Catalogue:
    """Everything the deployment can do, by name."""

    roles: dict[str, Role] = field(default_factory=dict)
    playbooks: dict[str, PlaybookFile] = field(default_factory=dict)

    @classmethod
    def load(cls, home: Path = HOME) -> Catalogue:
        """All role and playbook files below the project's folder. CatalogueError names a bad
        one.
        """
        roles = [_read_role(path) for path in sorted((home / "roles").glob("*.md"))]
        playbooks: dict[str, PlaybookFile] = {}
        for path in sorted((home / "playbooks").glob("*/playbook.yaml")):
            playbook = _read_playbook(path)
            playbooks[playbook.name] = playbook
            own = sorted(path.parent.glob("roles/*.md"))
            roles += [_read_role(each, playbook.name) for each in own]
        by_name: dict[str, Role] = {}
        for role in roles:
            if role.card.name in by_name:
                raise CatalogueError(f"role {role.card.name!r} is defined twice; rename one")
            by_name[role.card.name] = role
        return cls(by_name, playbooks)

    def roles_for(self, playbook: str) -> tuple[RoleCard, ...]:
        """The roles a goal may use: the common ones and those of its playbook."""
        return tuple(role.card for role in self.roles.values() if role.playbook in ("", playbook))


def _read_role(path: Path, playbook: str = "") -> Role:
    head, body = _split(path)
    try:
        front = FrontMatter.model_validate(yaml.safe_load(head))
    except (yaml.YAMLError, ValidationError) as error:
        raise CatalogueError(f"{path.name}: front matter: {_mistakes(error)}") from error
    tier: RoleTier = "sonnet" if front.model == "inherit" else front.model
    if not body and tier != "none":
        raise CatalogueError(f"{path.name}: there is no system prompt below the front matter")
    card = RoleCard(
        name=front.name,
        description=front.description,
        tier=tier,
        tools=_tools(path, front.tools),
        turns=front.turns,
        effort=front.effort,
        fallback=front.fallback,
        team=front.team,
        fixed_tier=front.fixed_tier,
        result=json.dumps(front.result) if front.result else "",
        prompt_bytes=len(body.encode()),
    )
    return Role(card, body, playbook)


def _tools(path: Path, given: str | list[str]) -> tuple[str, ...]:
    """Our names of a role's tools; CatalogueError names one that no role of ours can have."""
    names = [name.strip() for name in (given.split(",") if isinstance(given, str) else given)]
    tools = [CLAUDE_CODE_TOOLS.get(name, name) for name in names if name]
    for tool in tools:
        if not TOOL_NAME.fullmatch(tool) or tool.startswith("mcp__"):
            known = ", ".join(CLAUDE_CODE_TOOLS)
            raise CatalogueError(
                f"{path.name}: tools: {tool!r} cannot be given to a role; of Claude Code's: {known}"
            )
    return tuple(dict.fromkeys(tools))


def _split(path: Path) -> tuple[str, str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CatalogueError(f"{path.name}: not UTF-8 text") from None
    parts = FENCE.split(text, maxsplit=2)
    if len(parts) != 3 or parts[0].strip():
        raise CatalogueError(f"{path.name}: must begin with front matter between two lines of ---")
    return parts[1], parts[2].strip()


def _read_playbook(path: Path) -> PlaybookFile:
    try:
        playbook = PlaybookFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise CatalogueError(f"{path.parent.name}/{path.name}: {_mistakes(error)}") from error
    if playbook.name != path.parent.name:
        raise CatalogueError(f"{path.parent.name}/{path.name}: name must be the folder's name")
    return playbook


def _mistakes(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(str(part) for part in mistake['loc'])}: {mistake['msg']}"
            for mistake in error.errors()
        )
    return " ".join(str(error).split())
