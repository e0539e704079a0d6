"""Read a role or a playbook from its file, or refuse it with the file's name and the mistake.

A role is Markdown with front matter (name, description, cases, model, tools, turns, title, effort,
fallback, team, hands_over, fixed_tier, repeat, group, kinds, only_changes, result) and the system
prompt as its body; people read the body of a role without a model, and a team has none. Nothing in
a file is accepted in silence: what would have no effect is refused.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.activities.catalogue.answer_forms import playbook_form
from holdfast.activities.catalogue.ordering import REVIEW_ORDER
from holdfast.activities.catalogue.results import result_of
from holdfast.activities.catalogue.templates import TEMPLATES
from holdfast.activities.catalogue.tools import (
    CatalogueError,
    Shelf,
    count_bytes,
    list_reads,
    load_shipped,
    tools_of,
)
from holdfast.activities.catalogue.written_maps import BadMaps, settle_maps
from holdfast.contracts import (
    AnswerForm,
    Effort,
    InputKind,
    Plan,
    PlaybookCard,
    RoleCard,
    RoleTier,
    Subtask,
)
from holdfast.contracts.remarks import REVIEW
from holdfast.state.graph import COMPOSED
from holdfast.text.mistakes import suggest
from holdfast.untrusted.folders import read_regular, resolve_path
from holdfast.untrusted.reading import NotPlain, from_yaml
from holdfast.untrusted.unread import find_unread

OwnModel = Literal[RoleTier, "inherit"]
ONLY_SHOWN = {"color"}
"""Fields of Claude Code's subagent files that say how its own screen shows an agent."""
NEED_A_MODEL = (
    "turns", "effort", "fallback", "team", "hands_over", "fixed_tier", "result", "cases", "repeat",
    "group", "kinds", "only_changes",
)  # fmt: skip
NEED_TOOLS = ("turns",)
NEED_A_TEAM = ("repeat",)
NOT_FOR_TEAMS = (
    *NEED_TOOLS, "effort", "fixed_tier", "result", "title", "kinds", "only_changes",
)  # fmt: skip
"""The agents of a team have roles of their own."""
OF_LENSES = ("title", "kinds", "only_changes")
"""Fields with an effect in a playbook's plan of lenses alone."""
FILE_BYTES = 1024 * 1024
"""The largest role or playbook file."""
FENCE = re.compile(r"^---[ \t]*$\n?", re.MULTILINE)


Case = Annotated[str, Field(min_length=3, max_length=100, pattern=r"^[^\n;]+$")]
"""A kind of work, in a few words."""
Kind = Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*$", max_length=40)]
"""A kind of defect, as `wrong-bound`."""


class FrontMatter(BaseModel):
    """The head of a role file."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str
    cases: list[Case] = Field(default=[], max_length=20)
    """Cases that the role is for: no other role of its playbook may name the same."""
    model: OwnModel = "inherit"
    tools: str | list[str] = ""
    title: str = ""
    effort: Effort = "medium"
    fallback: str = ""
    team: bool = False
    repeat: int = Field(1, ge=1, le=10)
    """How often a team may stand on a path from the root run down."""
    hands_over: bool = False
    """True if its finding is a case for a person."""
    fixed_tier: bool = False
    turns: int = Field(0, ge=0, le=100)
    """The most that an agent with tools takes; 0: as many as the run allows."""
    group: str = Field("", max_length=200, pattern=r"^\w[^\n,]*(,[^\n]*)?$")
    """The group that it stands in on a large menu; after a comma, what the group is for."""
    kinds: list[Kind] = Field(default=[], max_length=20)
    """Rules of the remarks that an agent of a review hands up: no other may stand there."""
    only_changes: bool = False
    """True if it has nothing to look at where the whole tree is reviewed."""
    result: Any = None
    """The JSON schema of what it hands up; None: text."""


class PlaybookInput(BaseModel):
    """One input that a playbook takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: InputKind
    required: bool = False
    description: str = ""
    one_of: tuple[str, ...] = ()
    """The values that a text may have; empty: any."""
    for_models: bool = False
    """True if only models read it: a run without them refuses it."""
    by_others: bool = False
    """True if strangers wrote it: what looks like a secret is taken out before it is kept."""
    mentions: tuple[str, ...] = ()
    """Words of which a file has at least one, in any case; empty: it may say anything."""


class LensPlan(BaseModel):
    """A ready plan in which each of the playbook's own roles is a subtask: first the lenses, then
    the agents, which are told what these found.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: str
    inputs: tuple[str, ...]
    agents: tuple[str, ...] = ()
    """Inputs that agents are given besides."""

    def plan(self, lenses: Iterable[Role], agents: Iterable[Role]) -> Plan:
        """Return the plan; each role file says what it looks for."""
        first = [self._subtask(each) for each in lenses]
        names = tuple(each.id for each in first)
        update = {"depends_on": names, "inputs": (*self.inputs, *self.agents)}
        then = [self._subtask(each).model_copy(update=update) for each in agents]
        return Plan(goal=self.goal, subtasks=(*first, *then))

    def _subtask(self, role: Role) -> Subtask:
        name = role.card.name
        return Subtask(
            id=name, title=role.title or name, role=name, instruction=role.told, inputs=self.inputs
        )


class PlaybookFile(BaseModel):
    """The whole of `playbook.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    title: str = ""
    guidance: str = ""
    template: str = "merge"
    """The template by which code writes the answer if no model does."""
    min_confidence: int = Field(0, ge=0, le=100)
    verify: int = Field(0, ge=0, le=100)
    prove: int = Field(0, ge=0, le=20)
    """How many of the first remarks by rank a model verifies, in a run with models."""
    answer: AnswerForm = AnswerForm()
    approval: Literal["", "always"] = ""
    """`always`: a person approves each plan, whatever a caller says."""
    notice: str = Field("", max_length=600, pattern=r"^[^\n]*$")
    """What code puts above each answer."""
    contradictions: Literal["", "tell"] = ""
    """`tell`: no judge says which side of a contradiction is right."""
    inputs: dict[str, PlaybookInput] = {}
    plan: Plan | None = None
    lenses: LensPlan | None = None
    """Plan of lenses, once the roles are known."""
    shared_tools: dict[str, str] = {}
    """Tools that more than one of its own roles have, each with the reason."""

    @property
    def words(self) -> str:
        """The goal of a run that is asked for without words."""
        return self.plan.goal if self.plan else self.description

    def card(self, plan: Plan | None) -> PlaybookCard:
        """Return the playbook as the supervisor needs it; `plan` is what can be served here of the
        ready plan.
        """
        return PlaybookCard(
            name=self.name,
            description=self.description,
            title=self.title,
            guidance=self.guidance,
            template=self.template,
            min_confidence=self.min_confidence,
            verify=self.verify,
            prove=self.prove,
            plan=plan,
            form=self.answer,
            approval=self.approval,
            notice=self.notice,
            contradictions=self.contradictions,
        )


@dataclass(frozen=True)
class Role:
    """A role file: its card for the supervisor, its system prompt for the worker."""

    card: RoleCard
    prompt: str
    playbook: str = ""
    """Empty: usable by every goal."""
    title: str = ""
    """The title of its subtask in a plan of lenses; empty: the name."""
    kinds: tuple[str, ...] = ()
    only_changes: bool = False

    @property
    def told(self) -> str:
        """The instruction of that subtask: of a lens what it looks for. An agent has its prompt for
        that.
        """
        if self.card.tier != "none":
            return REVIEW_ORDER
        return self.prompt or self.card.description


def name_of(path: Path) -> str:
    """Return the name of a role whose file cannot be used: its front matter's, if that can be
    read.
    """
    try:
        head = _parse(_split(path)[0])
    except (CatalogueError, NotPlain, OSError):
        return path.stem
    name = head.get("name") if isinstance(head, dict) else None
    return name if isinstance(name, str) and name else path.stem


def read_role(
    path: Path, playbook: str = "", shelf: Shelf = load_shipped, source: str = ""
) -> Role:
    """Return the role of a file. Raise CatalogueError saying what is wrong in it."""
    head, body = _split(path)
    try:
        fields = _parse(head)
        if isinstance(fields, dict):
            _refuse_without_effect(path, fields)
            fields = {name: value for name, value in fields.items() if name not in ONLY_SHOWN}
        front = FrontMatter.model_validate(fields)
    except (NotPlain, ValidationError) as error:
        raise CatalogueError(f"{path.name}: front matter: {_mistakes(error)}") from error
    if front.name.startswith(COMPOSED):
        raise CatalogueError(
            f"{path.name}: front matter: name: {COMPOSED} begins the names of roles that planners"
            " compose; give it another"
        )
    tier: RoleTier = "sonnet" if front.model == "inherit" else front.model
    if not body and tier != "none" and not front.team:
        raise CatalogueError(f"{path.name}: there is no system prompt below the front matter")
    if body and front.team:
        raise CatalogueError(
            f"{path.name}: the text below the front matter: no effect for a role that is a team,"
            " whose planner is told the instruction of its subtask; remove it"
        )
    tools = tools_of(path, front.tools, tier, team=front.team, shelf=shelf)
    card = RoleCard(
        name=front.name,
        description=front.description,
        cases=tuple(front.cases),
        tier=tier,
        tools=tools,
        effort=front.effort,
        fallback=front.fallback,
        team=front.team,
        repeat=front.repeat,
        hands_over=front.hands_over,
        fixed_tier=front.fixed_tier,
        prompt_bytes=len(body.encode()) + (count_bytes(tools, shelf) if tier != "none" else 0),
        turns=front.turns,
        reads=list_reads(tools, shelf) if tier != "none" else (),
        result=result_of(path, front.result),
        source=source,
        group=front.group or playbook or ("own" if source else "common"),
    )
    return Role(card, body, playbook, front.title, tuple(front.kinds), front.only_changes)


def _refuse_without_effect(path: Path, fields: dict[Any, Any]) -> None:
    """Raise CatalogueError naming every field that nothing would ever read."""
    known = {*FrontMatter.model_fields, *ONLY_SHOWN}
    unknown = [str(name) for name in fields if name not in known]
    if unknown:
        wrong = "; ".join(f"{name}: unknown field{suggest(name, known)}" for name in unknown)
        raise CatalogueError(
            f"{path.name}: front matter: {wrong}; there are: {', '.join(FrontMatter.model_fields)}"
        )
    none, who = [], ""
    if fields.get("model") == "none":
        none, who = [name for name in NEED_A_MODEL if name in fields], "for a role without a model"
    elif fields.get("team"):
        none, who = [name for name in NOT_FOR_TEAMS if name in fields], "for a role that is a team"
    elif alone := [name for name in NEED_A_TEAM if name in fields]:
        none, who = alone, "for a role that is no team"
    elif not fields.get("tools"):
        none, who = [name for name in NEED_TOOLS if name in fields], "for a role without tools"
    if none:
        raise CatalogueError(
            f"{path.name}: front matter: {', '.join(none)}: no effect {who}; remove it"
        )


def _parse(text: str) -> Any:
    return copy.deepcopy(_parse_once(text))


@functools.lru_cache(maxsize=256)
def _parse_once(text: str) -> Any:
    # A door reads the whole catalogue for each start, and nine tenths of that is YAML.
    return from_yaml(text)


def _split(path: Path) -> tuple[str, str]:
    parts = FENCE.split(text_of(path, path.name), maxsplit=2)
    if len(parts) != 3 or parts[0].strip():
        raise CatalogueError(f"{path.name}: must begin with front matter between two lines of ---")
    return parts[1], parts[2].strip()


def text_of(path: Path, name: str, limit: int = FILE_BYTES) -> str:
    """Return the text of a file. Raise CatalogueError saying, by this name, why it cannot be
    read.
    """
    try:
        text = read_regular(resolve_path(path), limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CatalogueError(f"{name}: not UTF-8 text") from None
    except OSError as error:
        raise CatalogueError(f"{name}: cannot be read: {error.strerror}") from None
    return text.replace("\r\n", "\n")


def read_playbook(path: Path) -> PlaybookFile:
    where = f"{path.parent.name}/{path.name}"
    try:
        fields = _parse(text_of(path, path.name))
        if isinstance(fields, dict) and "plan" in fields:
            fields["plan"] = settle_maps(fields["plan"], path.parent)
        playbook = PlaybookFile.model_validate(fields)
    except (NotPlain, BadMaps, ValidationError) as error:
        raise CatalogueError(f"{where}: {_mistakes(error)}") from error
    if playbook.name != path.parent.name:
        raise CatalogueError(f"{where}: name must be the folder's name")
    wrong = [f"{name}: no effect; remove it" for name in find_unread(PlaybookFile, fields)]
    if playbook.template not in TEMPLATES:
        known = ", ".join(TEMPLATES)
        wrong.append(f"template: unknown template {playbook.template!r}; known: {known}")
    if (playbook.plan or playbook.lenses) and playbook.guidance:
        wrong.append("guidance: no effect beside a ready plan, which no planner makes; remove one")
    if playbook.plan and playbook.lenses:
        wrong.append("lenses: no effect beside a plan that is written out; remove one")
    given = {"min_confidence", "verify", "prove"} & playbook.model_fields_set
    if given and playbook.template != REVIEW:
        named = ", ".join(sorted(given))
        wrong.append(f"{named}: no effect but with `template: {REVIEW}`; remove it")
    wrong += [
        f"inputs.{name}.mentions: no effect but for a file; remove it"
        for name, each in playbook.inputs.items()
        if each.mentions and each.kind != "file"
    ]
    if wrong:
        raise CatalogueError(f"{where}: {'; '.join(wrong)}")
    form = playbook_form(where, playbook.answer, playbook.verify, playbook.notice)
    return playbook.model_copy(update={"answer": form})


def _mistakes(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(map(_describe, error.errors()))
    if isinstance(error, BadMaps):
        return "; ".join(f"plan.{each}" for each in error.mistakes)
    return " ".join(str(error).split())


def _describe(mistake: Mapping[str, Any]) -> str:
    place, said = mistake["loc"], mistake["msg"]
    if mistake["type"] == "extra_forbidden" and len(place) == 1:
        said = f"unknown field{suggest(str(place[0]), PlaybookFile.model_fields)}"
    return f"{'.'.join(map(str, place))}: {said}"
