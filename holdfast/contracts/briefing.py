"""What the deployment decides for a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, JsonValue

from holdfast.contracts.base import (
    Contract,
    Effort,
    InputForm,
    Money,
    Percent,
    RoleTier,
    Span,
    Tier,
)
from holdfast.contracts.goals import AnswerForm, Limits, PinnedInput
from holdfast.contracts.models import Capabilities, ModelCard
from holdfast.contracts.past import Took
from holdfast.contracts.plans import Plan


class ToolReads(Contract):
    """What inputs a tool reads."""

    tool: str
    inputs: tuple[InputForm, ...] = ()
    """Without one of these it does nothing; empty: it reads none, and does without."""
    size: int = 0
    """Bytes of its specification."""


class RoleCard(Contract):
    """What planner and supervisor know of a role."""

    name: str
    description: str
    cases: tuple[str, ...] = ()
    """What it is for, in short phrases that no other role of its playbook has."""
    tier: RoleTier = "sonnet"
    tools: tuple[str, ...] = ()
    without: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Tools of its file that do nothing on this worker: it goes on without them."""
    effects: tuple[str, ...] = ()
    """Tools that change something outside; tools of servers are assumed to."""
    volatile: tuple[str, ...] = ()
    """Tools whose result may be another one later: the same call is made as often as asked for."""
    effort: Effort = "medium"
    fallback: str = ""
    team: bool = False
    """True if the role is a team: its subtask is a run of its own, one level deeper."""
    repeat: int = 1
    """How often a team may stand on a path from the root run down."""
    hands_over: bool = False
    """True if its finding is a case for a person, who decides on it where one may be asked."""
    fixed_tier: bool = False
    """True if it neither climbs to a stronger tier nor falls to a cheaper one."""
    specs: str = ""
    """Digest of the specifications of its servers' tools, fixed for the whole run."""
    approval: tuple[str, ...] = ()
    """Tools of which a person must approve each call."""
    prompt: str = ""
    """Digest of its system prompt in the store, as of the run's preparation. Empty: the worker's
    own is used, as in older runs and for roles without a model.
    """
    prompt_bytes: int = 0
    """Bytes of its prompt and of its tools' specifications."""
    turns: int = 0
    """The most turns of an agent with tools; 0: as many as the run allows."""
    reads: tuple[ToolReads, ...] = ()
    """What its tools read; one that is not named may read any input. Empty in older runs."""
    told_last: bool = False
    """True if its prompt stands behind the material, and above that what all agents of a review are
    told: what is asked comes last, and a local endpoint that keeps what it has read of one of them
    need not read it again.
    """
    result: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON schema of its agents' results, closed objects only; empty: text."""
    source: str = ""
    """Source, to end a sentence with; empty: it is shipped."""
    group: str = ""
    """The group that it stands in on a large menu; after a comma, what the group is for."""
    model: ModelCard | None = Field(default=None, exclude_if=lambda card: card is None)
    """The model that serves its tier, for this role alone; None: that of the deployment."""


class PlaybookCard(Contract):
    """A domain variant, as the supervisor needs it."""

    name: str
    description: str = ""
    guidance: str = ""
    title: str = ""
    """What a run is about where the caller does not say; `{name}` stands for an input."""
    template: str = "merge"
    """The template that writes the answer where no model does."""
    min_confidence: Percent = 0
    verify: int = 0
    """How many of the first remarks by rank a model verifies, in a run with models; the template
    then writes the answer, and no synthesis is paid.
    """
    prove: int = 0
    """How many confirmed criticals a model proves, by a script or a test that is run."""
    plan: Plan | None = None
    form: AnswerForm = AnswerForm()
    """The form of the answer where the caller does not say."""
    approval: Literal["", "always"] = ""
    """`always`: a person approves each plan, whatever the goal says."""
    notice: str = ""
    """What stands above each answer, put there by code."""
    contradictions: Literal["", "tell"] = ""
    """`tell`: they stand in the report as they were found, and no judge says which side is right.
    """
    source: str = ""
    """Source, to end a sentence with; empty: it is shipped."""


class TemplateUse(Contract):
    """A template of the plan library, filled in for a goal."""

    name: str
    version: str
    """What its runs are found by: its name, with a digest of its file."""
    plan: Plan
    goal: str
    """The goal that the plan was first made for."""
    runs: tuple[str, ...] = ()
    """The runs that it was made of."""
    values: dict[str, str] = Field(default_factory=dict)
    """What the goal has in place of the template's parameters."""
    sure: bool = True
    """False: the goal comes close by its words, and a model says whether it is the same."""


class Proving(Contract):
    """How this deployment can run what proves a remark."""

    by: Literal["sandbox", "tests", ""] = ""
    """In the Python sandbox, or with the deployment's test command; empty: not at all."""
    lacking: str = ""
    """Why not, as the rest of a sentence; empty: it can."""


class Omission(Contract):
    """Something that was not planned or not read, and why; not a gap."""

    what: str
    why: str
    roles: tuple[str, ...] = ()
    """It is reported where the plan has one of these roles; empty: always."""
    agents: int = 0
    """Agents of a playbook that stay out because the run was to ask no model: a fact of the run,
    and nothing that it misses.
    """


class Outlet(Contract):
    """A way for agents' words to leave the worker: a tool, or the tools of a server."""

    tool: str
    """The tool's name, or the common prefix of the tools of an MCP server."""
    what: str
    """What it is and where the words go, for people."""

    def serves(self, tools: Iterable[str]) -> bool:
        """True if one of these tools uses it."""
        server = self.tool.endswith("__")
        return any(name == self.tool or (server and name.startswith(self.tool)) for name in tools)


class Briefing(Contract):
    """What the deployment decides, resolved once at the start of a run."""

    roles: tuple[RoleCard, ...]
    playbook: PlaybookCard | None = None
    inputs: tuple[PinnedInput, ...] = ()
    models: tuple[ModelCard, ...] = ()
    planner: ModelCard | None = None
    """The model that plans and changes plans; None: that of the usual tier."""
    capabilities: Capabilities = Capabilities()
    not_run: tuple[Omission, ...] = ()
    unreached: tuple[Omission, ...] = ()
    """What the goal asks for by name and was not reachable: without it a run is not complete."""
    version: str = ""
    span: Span | None = None
    outlets: tuple[Outlet, ...] = ()
    tool_sources: dict[str, str] = Field(default_factory=dict)
    """Where its roles' tools come from that are not shipped, as the rest of a sentence."""
    endpoint: str = ""
    """Address of the model endpoint, without user, password and query; empty: no model is asked."""
    shortens: bool = False
    """True if whoever depends on a long finding is given its digest; older runs gave the whole."""
    barred: dict[str, str] = Field(default_factory=dict)
    """Roles that no plan of this run may have, and why: teams that it is a part of."""
    most_dollars: Money | None = None
    """The most that this deployment lets a run spend; None: what the Goal says."""
    proving: Proving | None = None
    """None in older runs, which prove nothing."""
    template: TemplateUse | None = None
    """The template that the goal's words fit; None: it is planned, or has its plan."""
    untemplated: str = ""
    """Why a template is not used that they fit; empty: there is no such."""
    past: tuple[Took, ...] = Field(default=(), exclude_if=lambda past: not past)
    """What rows of this playbook took in closed runs, those of the most runs first."""
    today: str = ""
    """Day on which the run was prepared, in UTC, as in 2026-11-23; models are told it."""

    def within(self, limits: Limits) -> Limits:
        """Return a goal's limits, lowered to what this deployment allows."""
        if self.most_dollars is None or limits.dollars <= self.most_dollars:
            return limits
        return limits.model_copy(update={"dollars": self.most_dollars})

    def role(self, name: str) -> RoleCard:
        """Return the card of a role. KeyError if there is none."""
        for card in self.roles:
            if card.name == name:
                return card
        raise KeyError(name)

    def model(self, tier: Tier, role: str = "") -> ModelCard:
        """Return the model of a tier, for a role that may have its own. KeyError if none serves
        it.
        """
        own = (card.model for card in self.roles if card.name == role)
        for card in (*filter(None, own), *self.models):
            if card.tier == tier:
                return card
        raise KeyError(tier)
