"""Roles and playbooks as files: found by walking the folders, checked as a whole, one file each to
add.

A role is Markdown with front matter (name, description, model, tools, turns, effort, fallback,
result) and the
system prompt as its body. Subagent files of Claude Code work as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.contracts import Effort, InputKind, Plan, PlaybookCard, RoleCard, RoleTier
from orchestrator.settings import HOME

Inherit = Literal["inherit"]


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
    tools = front.tools if isinstance(front.tools, list) else front.tools.split(",")
    card = RoleCard(
        name=front.name,
        description=front.description,
        tier="sonnet" if front.model == "inherit" else front.model,
        tools=tuple(tool.strip() for tool in tools if tool.strip()),
        turns=front.turns,
        effort=front.effort,
        fallback=front.fallback,
        fixed_tier=front.fixed_tier,
        result=json.dumps(front.result) if front.result else "",
        prompt_bytes=len(body.encode()),
    )
    return Role(card, body, playbook)


def _split(path: Path) -> tuple[str, str]:
    text = path.read_text(encoding="utf-8")
    parts = text.split("---\n", 2)
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
