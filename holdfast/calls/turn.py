"""An agent with tools: what each turn works from and brings, what its run is told and reports.

Its transcript travels by reference. Each turn stores the model's message and a list of all messages
so far, and hands on the list's digest: so a history grows by the same few bytes with every turn.
"""

from __future__ import annotations

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
    Problem,
    Reply,
    RoleCard,
    Span,
    Unreached,
)
from holdfast.contracts.policies import REPAIRS, model_policy

OF_SERVERS = "mcp__"
"""The names of tools that MCP servers offer begin so."""
WEB_SEARCH, WEB_FETCH = "web_search", "web_fetch"
"""The tools that some endpoints have themselves."""
READS_ON = "read_result"
"""Whoever has any tool has this one: it reads on in results that were too long to be shown."""


class ToolUse(Contract):
    """A call of a tool that a model made; its arguments stand in the transcript alone."""

    id: str
    """As the endpoint named it."""
    name: str
    says: str = ""
    """Its arguments in a few harmless words without secrets, for the timeline and for notes."""
    shown: str = ""
    """All of its arguments, as the person is shown them who must approve it: JSON that reads back
    as what the tool gets. Empty: nobody must, or nobody is asked.
    """


class ToolResult(Contract):
    """What a call of a tool brought: the blob that holds the text which the model is shown."""

    use_id: str
    digest: str
    """Empty: the text stands here, because nothing could be kept."""
    size: int
    is_error: bool = False
    text: str = ""
    """Beside a digest, of an error: its reason in a line; no part of what a turn works from."""
    unknown: bool = False
    """Whether the call may have run, and nobody knows; no part of what a turn works from."""
    files: tuple[MadeFile, ...] = ()
    """That it made; no part of what a turn works from."""
    opened: tuple[str, ...] = ()
    """Names of the inputs that it read; no part of what a turn works from."""
    span: Span | None = None
    """When it was made; no part of what a turn works from, which is the same when it is asked again
    after a reset.
    """


class TurnMaterial(Contract):
    """What `take_turn` works from: the subtask, and how far its conversation has come."""

    work: WorkMaterial
    tools: tuple[str, ...]
    specs: str = ""
    """As in the role's card."""
    approval: tuple[str, ...] = ()
    """As in the role's card."""
    transcript: str = ""
    """Digest of the list of messages so far; empty: there are none."""
    results: tuple[ToolResult, ...] = ()
    """Of the calls in the last message, in their order."""
    said: str = ""
    """What the agent is told besides: what is wrong with its answer, or that it must answer now."""


class Turn(Contract):
    """What one turn brought: calls of tools, or an answer."""

    transcript: str
    """Digest of the list of messages, this one included."""
    uses: tuple[ToolUse, ...] = ()
    unfit: dict[str, str] = Field(default_factory=dict)
    """Why no person is asked about calls that one must approve, by their ids."""
    draft: Draft | None = None
    text: str = ""
    """The beginning of what the model said beside its calls: what there is if it is cut."""
    tokens: int = 0
    """Of the whole conversation, as the endpoint counted them."""


class UseMaterial(Contract):
    """What `use_tool` works from: one call that the last message of a transcript holds."""

    work: WorkMaterial
    tools: tuple[str, ...]
    transcript: str
    use: ToolUse
    approved: bool = False
    """Whether a person has approved this very call."""
    made: tuple[MadeFile, ...] = ()
    """By the agent so far."""
    run: str = ""
    """The first execution of the run above, which stays when that is reset."""


class Slice(Contract):
    """What one segment of an agent may cost."""

    dollars: Money
    calls: int
    tokens: int


class Decision(Contract):
    """What became of a call that a person was asked to approve."""

    use_id: str
    verdict: Literal["approved", "declined", "unknown"]
    """Unknown: it was approved, and a segment that may have run it was lost."""
    why: str = ""
    by: str = ""
    """The person; empty: nobody came, or gave no name."""


class Resume(Contract):
    """Where the next segment of an agent goes on: nothing before it is asked or run again."""

    transcript: str = ""
    results: tuple[ToolResult, ...] = ()
    pending: tuple[ToolUse, ...] = ()
    """All calls of the last message, as long as some of them have no result yet."""
    said: str = ""
    turns: int = 0
    """Turns taken so far."""
    tool_calls: int = 0
    failed_calls: int = 0
    """Of these, how many brought an error, or were not made."""
    tokens: int = 0
    """No fewer than the next prompt has; 0: it is the first."""
    needed: int = 0
    """Input tokens that a worker counted when it refused a reservation."""
    text: str = ""
    files: tuple[MadeFile, ...] = ()
    """That the agent has made so far."""
    opened: tuple[str, ...] = ()
    """Names of the inputs that the agent has read so far: a list of files is no reading."""
    repairs: int = 0
    no_json: int = 0
    """Answers that held no JSON at all."""
    losses: int = 0
    """Turns in a row that ended without a result."""
    excused: int = 0
    """Of these, how many were lost in an outage of the endpoint."""


class AgentGoal(Contract):
    """What a segment of an agent is told: the input of its workflow."""

    work: WorkMaterial
    role: RoleCard
    model: ModelCard
    slice: Slice
    resume: Resume = Resume()
    turns: int
    """The most that the agent may take, in all segments."""
    capabilities: Capabilities = Capabilities()
    first_run: str = ""
    ask_people: bool = False
    """Whether a person may be asked to approve a call; if not, such a call is not made."""
    decisions: tuple[Decision, ...] = ()
    """On the calls that are pending."""
    no_json: int = REPAIRS + 1
    """After how many answers without any JSON it is not asked again."""


class AgentReport(Contract):
    """How a segment ended: with an answer, for want of money, because the run above is paused, with
    calls that a person is to approve, or because it was stopped.
    """

    outcome: Literal["answered", "more", "asks", "unreachable", "stopped", "cut", "lost"]
    """`stopped`: it has used all its turns; `cut`: nobody wanted more of it."""
    draft: Draft | None = None
    problem: Problem | None = None
    why: str = ""
    stopping: Literal["", "endpoint", "allowance"] = ""
    """Why every further call would fail, too."""
    too_long: bool = False
    """Whether its last turns took longer than a turn may."""
    resume: Resume = Resume()
    needs: Slice | None = None
    """What the next turn costs at worst, where that is what it lacks."""
    bill: Bill = Bill()
    tokens: int = 0
    """What the segment counts at: more than its bill has where a turn was lost."""
    unpaid_calls: int = 0
    may_have_run: tuple[ToolUse, ...] = ()
    """Calls of tools with effects of which nobody knows whether they ran."""
    unanswered: tuple[NoAnswer, ...] = ()
    """Turns of the segment that brought no answer, with what each counts at."""
    unasked: tuple[str, ...] = ()
    """The tools of calls that were not made because nobody could be asked, one for each call."""
    unreached: Unreached | None = None
    finished: datetime | None = None


TAKE_TURN: Kind[Turn] = Kind(
    name="take_turn",
    reply=Reply[Turn],
    policy=model_policy("sonnet", 16_000, "medium"),
    prompt="turn_rules",
)
