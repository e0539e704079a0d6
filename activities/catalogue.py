"""Roles and playbooks as files: found by walking the folders, one file each to add.

A role is Markdown with front matter (name, description, model, tools, effort, fallback, team,
fixed_tier) and the system prompt as its body; of a role without a model people read the body, and a
team has none. Nothing in a file is accepted in silence: what would have no effect makes the file
unusable. A file that cannot be used stops nobody who does not need it; why it cannot is kept, for
whoever asks for it by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from activities.assembly import TEMPLATES
from deployment.folders import read_regular
from deployment.reading import NotPlain, from_yaml
from deployment.settings import HOME
from deployment.unread import unread
from orchestrator.contracts import Effort, InputKind, Plan, PlaybookCard, RoleCard, RoleTier

Inherit = Literal["inherit"]
ONLY_SHOWN = {"color"}
"""Fields of Claude Code's subagent files that say how its own screen shows an agent."""
NEED_A_MODEL = ("effort", "fallback", "team", "fixed_tier")
NOT_FOR_TEAMS = ("effort", "fixed_tier")
"""The agents of a team have roles of their own."""
FILE_BYTES = 1024 * 1024
"""The largest role or playbook file."""
FENCE = re.compile(r"^---[ \t]*$\n?", re.MULTILINE)


class CatalogueError(ValueError):
    """A role, playbook or prompt cannot be used; the message names the file and the mistake."""


class FrontMatter(BaseModel):
    """The head of a role file."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str
    model: RoleTier | Inherit = "inherit"
    tools: str | list[str] = ""
    effort: Effort = "medium"
    fallback: str = ""
    team: bool = False
    fixed_tier: bool = False


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
    title: str = ""
    guidance: str = ""
    template: str = "merge"
    min_confidence: int = Field(0, ge=0, le=100)
    verify: int = Field(0, ge=0, le=100)
    """So many of the first remarks by rank a model verifies, in a run with models."""
    inputs: dict[str, PlaybookInput] = {}
    plan: Plan | None = None

    @property
    def words(self) -> str:
        """The goal of a run that is asked for without words."""
        return self.plan.goal if self.plan else self.description

    def card(self, plan: Plan | None) -> PlaybookCard:
        """As the supervisor needs it; `plan` is what can be served here of the ready plan."""
        return PlaybookCard(
            name=self.name,
            description=self.description,
            title=self.title,
            guidance=self.guidance,
            template=self.template,
            min_confidence=self.min_confidence,
            verify=self.verify,
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
class Unusable:
    """A role or playbook file that cannot be used, and why, with the file's name."""

    name: str
    """The name that a plan or a goal would use: the front matter's, else the file's."""
    why: str
    playbook: str = ""
    """The playbook whose role it is; empty for a playbook, and for a common role."""


@dataclass(frozen=True)
class Catalogue:
    """Everything the deployment can do, by name, and what it cannot."""

    roles: dict[str, Role] = field(default_factory=dict)
    playbooks: dict[str, PlaybookFile] = field(default_factory=dict)
    unusable_roles: tuple[Unusable, ...] = ()
    unusable_playbooks: tuple[Unusable, ...] = ()

    @classmethod
    def load(cls, home: Path = HOME) -> Catalogue:
        """All role and playbook files below the project's folder."""
        roles: list[Role] = []
        bad: list[Unusable] = []
        playbooks: dict[str, PlaybookFile] = {}
        bad_playbooks: list[Unusable] = []
        for path in sorted((home / "playbooks").glob("*/playbook.yaml")):
            try:
                playbooks[path.parent.name] = _read_playbook(path)
            except (CatalogueError, OSError) as error:
                bad_playbooks.append(Unusable(path.parent.name, str(error)))
        own = [(path, path.parts[-3]) for path in sorted(home.glob("playbooks/*/roles/*.md"))]
        for path, playbook in [*((each, "") for each in sorted(home.glob("roles/*.md"))), *own]:
            try:
                roles.append(_read_role(path, playbook))
            except (CatalogueError, OSError) as error:
                bad.append(Unusable(_name_of(path), str(error), playbook))
        usable, more = _consistent(roles, bad)
        return cls(usable, playbooks, (*bad, *more), tuple(bad_playbooks))

    def roles_for(self, playbook: str) -> tuple[RoleCard, ...]:
        """The roles a goal may use: the common ones and those of its playbook."""
        return tuple(role.card for role in self.roles.values() if role.playbook in ("", playbook))

    def unusable_for(self, playbook: str) -> dict[str, str]:
        """Of the roles within reach of a goal, those that cannot be used: name -> why."""
        found = [each for each in self.unusable_roles if each.playbook in ("", playbook)]
        return {each.name: each.why for each in found if each.name not in self.roles}

    def unusable_playbook(self, name: str) -> str:
        """Why a playbook that exists cannot be used; empty: it can, or there is none."""
        return next((each.why for each in self.unusable_playbooks if each.name == name), "")


def _consistent(roles: list[Role], bad: list[Unusable]) -> tuple[dict[str, Role], list[Unusable]]:
    """The roles that can be used as they stand beside each other, and what is wrong with the
    others: one name twice, or a fallback that is out of reach.
    """
    names = [role.card.name for role in roles] + [each.name for each in bad]
    twice = [role for role in roles if names.count(role.card.name) > 1]
    wrong = [_twice(role) for role in twice]
    usable = {role.card.name: role for role in roles if role not in twice}
    while lost := [role for role in usable.values() if not _has_fallback(role, usable)]:
        for role in lost:
            del usable[role.card.name]
            why = f"role {role.card.name!r}: fallback {role.card.fallback!r} is no usable role"
            wrong.append(Unusable(role.card.name, why, role.playbook))
    return usable, wrong


def _twice(role: Role) -> Unusable:
    name = role.card.name
    return Unusable(name, f"role {name!r} is defined twice; rename one", role.playbook)


def _has_fallback(role: Role, usable: dict[str, Role]) -> bool:
    other = usable.get(role.card.fallback)
    if not role.card.fallback:
        return True
    return other is not None and other.card.tier != "none" and other.playbook in ("", role.playbook)


def _name_of(path: Path) -> str:
    """The name of a role whose file cannot be used: its front matter's, if that can be read."""
    try:
        head = from_yaml(_split(path)[0])
    except (CatalogueError, NotPlain, OSError):
        return path.stem
    name = head.get("name") if isinstance(head, dict) else None
    return name if isinstance(name, str) and name else path.stem


def _read_role(path: Path, playbook: str = "") -> Role:
    head, body = _split(path)
    try:
        fields = from_yaml(head)
        if isinstance(fields, dict):
            _refuse_without_effect(path, fields)
            fields = {name: value for name, value in fields.items() if name not in ONLY_SHOWN}
        front = FrontMatter.model_validate(fields)
    except (NotPlain, ValidationError) as error:
        raise CatalogueError(f"{path.name}: front matter: {_mistakes(error)}") from error
    tier: RoleTier = "sonnet" if front.model == "inherit" else front.model
    if not body and tier != "none" and not front.team:
        raise CatalogueError(f"{path.name}: there is no system prompt below the front matter")
    if body and front.team:
        raise CatalogueError(
            f"{path.name}: the text below the front matter: no effect for a role that is a team,"
            " whose planner is told the instruction of its subtask; remove it"
        )
    card = RoleCard(
        name=front.name,
        description=front.description,
        tier=tier,
        tools=_tools(path, front.tools, tier),
        effort=front.effort,
        fallback=front.fallback,
        team=front.team,
        fixed_tier=front.fixed_tier,
        prompt_bytes=len(body.encode()),
    )
    return Role(card, body, playbook)


def _refuse_without_effect(path: Path, fields: dict[Any, Any]) -> None:
    """CatalogueError names every field that nothing here would ever read."""
    none = [str(name) for name in fields if name not in {*FrontMatter.model_fields, *ONLY_SHOWN}]
    who = "here"
    if not none and fields.get("model") == "none":
        none, who = [name for name in NEED_A_MODEL if name in fields], "for a role without a model"
    elif not none and fields.get("team"):
        none, who = [name for name in NOT_FOR_TEAMS if name in fields], "for a role that is a team"
    if none:
        raise CatalogueError(
            f"{path.name}: front matter: {', '.join(none)}: no effect {who}; remove it"
        )


def _tools(path: Path, given: str | list[str], tier: RoleTier) -> tuple[str, ...]:
    """The one tool of a role without a model. CatalogueError when there is not exactly one, or when
    a role with a model names any: an agent reads and runs nothing yet.
    """
    names = [name.strip() for name in (given.split(",") if isinstance(given, str) else given)]
    tools = [name for name in names if name]
    if tier != "none" and tools:
        raise CatalogueError(
            f"{path.name}: tools: {', '.join(tools)}: agents cannot use tools yet; remove `tools`"
            " if the role can do without"
        )
    if tier == "none" and len(tools) != 1:
        raise CatalogueError(f"{path.name}: tools: a role without a model is exactly one tool")
    return tuple(tools)


def _split(path: Path) -> tuple[str, str]:
    parts = FENCE.split(text_of(path, path.name), maxsplit=2)
    if len(parts) != 3 or parts[0].strip():
        raise CatalogueError(f"{path.name}: must begin with front matter between two lines of ---")
    return parts[1], parts[2].strip()


def text_of(path: Path, name: str, limit: int = FILE_BYTES) -> str:
    """A file as text. CatalogueError says by this name why it cannot be read."""
    try:
        text = read_regular(path.resolve(strict=True), limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CatalogueError(f"{name}: not UTF-8 text") from None
    except OSError as error:
        raise CatalogueError(f"{name}: cannot be read: {error.strerror}") from None
    return text.replace("\r\n", "\n")


def _read_playbook(path: Path) -> PlaybookFile:
    where = f"{path.parent.name}/{path.name}"
    try:
        fields = from_yaml(text_of(path, path.name))
        playbook = PlaybookFile.model_validate(fields)
    except (NotPlain, ValidationError) as error:
        raise CatalogueError(f"{where}: {_mistakes(error)}") from error
    if playbook.name != path.parent.name:
        raise CatalogueError(f"{where}: name must be the folder's name")
    wrong = [f"{name}: no effect; remove it" for name in unread(PlaybookFile, fields)]
    if playbook.template not in TEMPLATES:
        known = ", ".join(TEMPLATES)
        wrong.append(f"template: unknown template {playbook.template!r}; known: {known}")
    if playbook.plan is not None and playbook.guidance:
        wrong.append("guidance: no effect beside a ready plan, which no planner makes; remove one")
    given = {"min_confidence", "verify"} & playbook.model_fields_set
    if given and playbook.template != "review":
        named = ", ".join(sorted(given))
        wrong.append(f"{named}: no effect but with `template: review`; remove it")
    if wrong:
        raise CatalogueError(f"{where}: {'; '.join(wrong)}")
    return playbook


def _mistakes(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(str(part) for part in mistake['loc'])}: {mistake['msg']}"
            for mistake in error.errors()
        )
    return " ".join(str(error).split())
