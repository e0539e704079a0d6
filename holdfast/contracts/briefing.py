"""What the deployment decides for a run."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, JsonValue

from holdfast.contracts.base import Contract, Effort, Money, Percent, RoleTier, Span, Tier
from holdfast.contracts.goals import AnswerForm, Limits, PinnedInput
from holdfast.contracts.models import Capabilities, ModelCard
from holdfast.contracts.plans import Plan


class RoleCard(Contract):
    """What planner and supervisor need to know of a role."""

    name: str
    description: str
    cases: tuple[str, ...] = ()
    """What it is there for, each in a few words that no other role of its playbook has."""
    tier: RoleTier = "sonnet"
    tools: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    """Of its tools, those that change something outside; those of servers are taken to."""
    effort: Effort = "medium"
    fallback: str = ""
    team: bool = False
    """True: the role is itself a team; its subtask is a run of its own, one level deeper."""
    fixed_tier: bool = False
    """True: neither climbs to a stronger tier nor falls to a cheaper one."""
    specs: str = ""
    """Digest of what an endpoint is told of those tools that servers offer; empty: there are none.
    It stays the same for a whole run, whatever the servers say later.
    """
    approval: tuple[str, ...] = ()
    """Of its tools, those of which a person must approve each call."""
    prompt: str = ""
    """Digest of its system prompt in the store, as it was when the run was prepared; empty: the run
    is older, or asks no model, and the worker's own is used.
    """
    prompt_bytes: int = 0
    """Of its prompt, and of what an endpoint is told of its tools."""
    turns: int = 0
    """The most that an agent with tools takes; 0: as many as the run allows."""
    tools_only_for_inputs: bool = False
    """True: a subtask without an input that only tools can read is asked once, without them."""
    result: dict[str, JsonValue] = Field(default_factory=dict)
    """The JSON schema of what its agents hand up: closed objects alone. Empty: text."""
    source: str = ""
    """Where it comes from, as the rest of a sentence; empty: it ships with the program."""


class PlaybookCard(Contract):
    """A domain variant as the supervisor needs it."""

    name: str
    description: str = ""
    guidance: str = ""
    title: str = ""
    """What a run is about where the caller says nothing else; `{name}` stands for an input."""
    template: str = "merge"
    """Which template serves where no model writes the answer."""
    min_confidence: Percent = 0
    verify: int = 0
    """How many of the first remarks by rank a model verifies, in a run with models; then the
    template writes the answer, and no synthesis is paid.
    """
    plan: Plan | None = None
    form: AnswerForm = AnswerForm()
    """How the answer looks where the caller says nothing else."""
    source: str = ""
    """Where it comes from, as the rest of a sentence; empty: it ships with the program."""


class Omission(Contract):
    """Something that was not planned or not read, and why; no gap."""

    what: str
    why: str
    roles: tuple[str, ...] = ()
    """Whom it is about: told where the plan has one of these. Empty: it is told in any case."""


class Outlet(Contract):
    """A way on which the words of agents leave the worker: a tool, or the tools of a server."""

    tool: str
    """The name of the tool; of an MCP server, how the names of its tools begin."""
    what: str
    """What it is and where the words of a call go, as anybody may be told."""

    def serves(self, tools: Iterable[str]) -> bool:
        """Whether one of these tools leads there."""
        server = self.tool.endswith("__")
        return any(name == self.tool or (server and name.startswith(self.tool)) for name in tools)


class Briefing(Contract):
    """What the deployment decides, resolved once at the start of a run."""

    roles: tuple[RoleCard, ...]
    playbook: PlaybookCard | None = None
    inputs: tuple[PinnedInput, ...] = ()
    models: tuple[ModelCard, ...] = ()
    capabilities: Capabilities = Capabilities()
    not_run: tuple[Omission, ...] = ()
    unreached: tuple[Omission, ...] = ()
    """What the goal asks for by name and could not be reached: a run without it is not complete."""
    version: str = ""
    span: Span | None = None
    outlets: tuple[Outlet, ...] = ()
    """Where tools of the roles send the words of agents."""
    endpoint: str = ""
    """The address that models are asked at; never user, password or query. Empty: none is asked."""
    most_dollars: Money | None = None
    """What this deployment lets a run spend, whatever its Goal says. None: what the Goal says."""

    def within(self, limits: Limits) -> Limits:
        """The limits of a goal, no higher than this deployment allows."""
        if self.most_dollars is None or limits.dollars <= self.most_dollars:
            return limits
        return limits.model_copy(update={"dollars": self.most_dollars})

    def role(self, name: str) -> RoleCard:
        """The card of a role; KeyError if there is none."""
        for card in self.roles:
            if card.name == name:
                return card
        raise KeyError(name)

    def model(self, tier: Tier) -> ModelCard:
        """The model of a tier; KeyError if none serves it."""
        for card in self.models:
            if card.tier == tier:
                return card
        raise KeyError(tier)
