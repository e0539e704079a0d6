"""An agent with tools: what each turn works from and brings, what its workflow is given and
reports.

The transcript travels by reference. Each turn stores the model's message and a list of all messages
so far, and passes on the digest of the list: so each turn adds the same few bytes to the history.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import Field

from holdfast.calls.kind import Kind
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import (
    Bill,
    Capabilities,
    Contract,
    Draft,
    MadeFile,
    ModelCard,
    Money,
    NoAnswer,
    PinnedInput,
    Problem,
    ProjectName,
    Reply,
    RoleCard,
    Span,
    Unreached,
)
from holdfast.contracts.policies import REPAIRS, model_policy

OF_SERVERS = "mcp__"
"""Prefix of the names of tools that MCP servers offer."""
WEB_SEARCH, WEB_FETCH = "web_search", "web_fetch"
"""The tools that some endpoints have themselves."""
READ_FINDING = "read_finding"
"""Given to every agent that depends on a long finding."""
READS_ON = "read_result"
"""Comes with any other tool: it reads on in results that were too long to show."""


def equip(role: RoleCard, inputs: Iterable[PinnedInput]) -> RoleCard:
    """Return a role with the tools that an agent of it has for these inputs: without those that
    would find nothing to read, and their bytes.
    """
    forms = {form for each in inputs for form in each.forms}
    idle = {
        each.tool: each.size
        for each in role.reads
        if each.tool in role.tools and each.inputs and forms.isdisjoint(each.inputs)
    }
    if not idle:
        return role
    left = tuple(name for name in role.tools if name not in idle)
    size = role.prompt_bytes - sum(idle.values())
    update = {"tools": left if {*left} - {READS_ON} else (), "prompt_bytes": size}
    return role.model_copy(update=update)


class ToolUse(Contract):
    """A call of a tool that a model made; its arguments stand in the transcript alone."""

    id: str
    name: str
    says: str = ""
    """The arguments in a few harmless words without secrets, for timeline and notes."""
    shown: str = ""
    """All its arguments, as shown to the person who must approve it: JSON that reads back as what
    the tool gets. Empty if no approval is needed, or nobody is asked.
    """


class ToolResult(Contract):
    """The result of a tool call: the blob with the text that the model reads.

    `text` beside a digest, `unknown`, `files`, `opened` and `span` are not part of what a turn
    works from, so that it is the same when it is asked again after a reset.
    """

    use_id: str
    digest: str
    """Empty if the text is here, because nothing could be stored."""
    size: int
    is_error: bool = False
    text: str = ""
    """Beside a digest, the reason of an error in a line."""
    unknown: bool = False
    """True if nobody knows whether the call ran."""
    files: tuple[MadeFile, ...] = ()
    opened: tuple[str, ...] = ()
    span: Span | None = None


class TurnMaterial(Contract):
    """Material of `take_turn`: the subtask, and its conversation so far."""

    work: WorkMaterial
    tools: tuple[str, ...]
    specs: str = ""
    """Same as in the role's card."""
    approval: tuple[str, ...] = ()
    """Same as in the role's card."""
    transcript: str = ""
    """Digest of the list of messages so far; empty at the first turn."""
    results: tuple[ToolResult, ...] = ()
    """Results of the calls in the last message, in their order."""
    said: str = ""
    """Further message to the agent: what is wrong with its answer, or that it must answer now."""


class Turn(Contract):
    """Result of one turn: calls of tools, or an answer."""

    transcript: str
    """Digest of the list of messages, this one included."""
    uses: tuple[ToolUse, ...] = ()
    unfit: dict[str, str] = Field(default_factory=dict)
    """Reasons why calls that need approval cannot be shown to a person, by call id."""
    repeats: dict[str, str] = Field(default_factory=dict)
    """Where the last result stands of calls that the agent has made twice before with the same
    arguments, by call id.
    """
    draft: Draft | None = None
    text: str = ""
    """The beginning of what the model said beside its calls, in case it is cut."""
    tokens: int = 0
    """Tokens of the whole conversation, as the endpoint counted them."""


class UseMaterial(Contract):
    """Material of `use_tool`: one call in the last message of a transcript."""

    work: WorkMaterial
    tools: tuple[str, ...]
    transcript: str
    use: ToolUse
    approved: bool = False
    """True if a person has approved this very call."""
    made: tuple[MadeFile, ...] = ()
    findings: dict[str, str] = Field(default_factory=dict)
    """The whole findings of its goal, for `read_finding` alone."""
    run: str = ""
    """First execution of the run above, which a reset does not change."""
    project: ProjectName = ""


class Slice(Contract):
    """Budget of one segment of an agent."""

    dollars: Money
    calls: int
    tokens: int


class Decision(Contract):
    """Decision on a call that needed approval."""

    use_id: str
    verdict: Literal["approved", "declined", "unknown"]
    """`unknown`: it was approved, and a segment that may have run it was lost."""
    why: str = ""
    by: str = ""
    """The person; empty if nobody came, or gave no name."""


class Resume(Contract):
    """Start of an agent's next segment: nothing before it is asked or run again."""

    transcript: str = ""
    results: tuple[ToolResult, ...] = ()
    pending: tuple[ToolUse, ...] = ()
    """All calls of the last message, as long as some of them have no result yet."""
    said: str = ""
    turns: int = 0
    tool_calls: int = 0
    failed_calls: int = 0
    """Tool calls that brought an error, or were not made."""
    tokens: int = 0
    """At least those of the next prompt; 0 before the first."""
    needed: int = 0
    """Input tokens that a worker counted when it refused a reservation."""
    text: str = ""
    files: tuple[MadeFile, ...] = ()
    opened: tuple[str, ...] = ()
    """Inputs that the agent has read so far; listing files is not reading."""
    repairs: int = 0
    roomier: bool = False
    """True after a message that was cut off at the agent's own room: it has twice of it now."""
    no_json: int = 0
    """Answers that held no JSON at all."""
    losses: int = 0
    """Turns in a row that ended without a result."""
    excused: int = 0
    """The number of these lost in an outage of the endpoint."""


class AgentGoal(Contract):
    """The input of an agent's workflow, for one segment."""

    work: WorkMaterial
    role: RoleCard
    model: ModelCard
    slice: Slice
    resume: Resume = Resume()
    turns: int
    """The most turns of the agent, over all segments."""
    room: int = 0
    """Tokens of one message; 0: as many as any turn may have."""
    capabilities: Capabilities = Capabilities()
    first_run: str = ""
    project: ProjectName = ""
    ask_people: bool = False
    """True if a person may be asked to approve calls; otherwise such calls are not made."""
    decisions: tuple[Decision, ...] = ()
    findings: dict[str, str] = Field(default_factory=dict)
    """The whole text of findings that stand in fewer words in its prompt, by subtask."""
    no_json: int = REPAIRS + 1
    """Answers without any JSON after which it is not asked again."""


class AgentReport(Contract):
    """How a segment ended: with an answer, without money, because the run above is paused, with
    calls that need approval, or because it was stopped.
    """

    outcome: Literal["answered", "more", "asks", "unreachable", "stopped", "cut", "lost"]
    """`stopped`: it has used all its turns; `cut`: nobody wants more of it."""
    draft: Draft | None = None
    problem: Problem | None = None
    why: str = ""
    stopping: Literal["", "endpoint", "allowance"] = ""
    """Why every further call would fail, too."""
    too_long: bool = False
    """True if its last turns took longer than a turn may."""
    resume: Resume = Resume()
    needs: Slice | None = None
    """The worst case of the next turn, where it could not be paid."""
    bill: Bill = Bill()
    tokens: int = 0
    """Tokens that the segment counts at: more than in its bill where a turn was lost."""
    unpaid_calls: int = 0
    may_have_run: tuple[ToolUse, ...] = ()
    """Calls of tools with effects of which nobody knows whether they ran."""
    unanswered: tuple[NoAnswer, ...] = ()
    unasked: tuple[str, ...] = ()
    """Tools of calls that were not made because nobody could be asked, once per call."""
    repeated: tuple[str, ...] = ()
    """Tools of calls that were not made because their result was known, once per call."""
    unreached: Unreached | None = None
    finished: datetime | None = None


TAKE_TURN: Kind[Turn] = Kind(
    name="take_turn",
    reply=Reply[Turn],
    policy=model_policy("sonnet", 16_000, "medium"),
    prompt="turn_rules",
)
