"""The seams between activities and the world: what they need, as Protocols. `wiring.py` wires the
real ones.

Nothing here imports an SDK: workflows name activities, typed, with a clean import graph.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol

from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.calls.turn import UseMaterial
from holdfast.calls.verify import Shown, VerifyMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Capabilities, Draft, Effort, MadeFile, ModelCard, Synthesis, Usage

Resource = Literal["requests", "tokens", "input_tokens", "output_tokens"]
"""What an endpoint limits."""


@dataclass(frozen=True)
class Quota:
    """What an endpoint says that it still takes of one resource, of which it takes so much by and
    by: `remaining` of `limit`, and all of it again after so many seconds.
    """

    limit: float
    remaining: float
    seconds: float


@dataclass(frozen=True)
class Head:
    """What the head of an answer says, before its body."""

    taken: bool
    """Whether the call was not refused."""
    quotas: Mapping[Resource, Quota] = field(default_factory=dict)
    """Empty where the endpoint says nothing of its limits."""


def _unheard(head: Head) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class ModelRequest:
    """One exchange with a model, at any endpoint; `activities/claude/adapter.py` shapes it."""

    model: str
    system: str
    """Static per role: the cacheable prefix."""
    prompt: str
    schema: dict[str, Any]
    """JSON schema of the Answer."""
    max_output: int
    effort: Effort = "medium"
    capabilities: Capabilities = field(default_factory=Capabilities)
    deadline_seconds: float = 300.0
    """In all, from `ask` to the last byte: less than the activity's start-to-close, so that a call
    that is cut can still say what it used.
    """
    attempt: int = 1
    """1 and how often the call was throttled: the wait after an overload doubles with it."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """A whole conversation in wire form, in the place of `prompt`. Its content is text, tools and
    thoughts: nothing bounds the tokens of a picture or a PDF by its bytes.
    """
    tools: tuple[Mapping[str, Any], ...] = ()
    """Name, description, input_schema, and `strict` where the model is to keep to the schema, as
    far as endpoint and schema allow. The same through a whole conversation.
    """
    cached: bool = False
    """Whether what will be sent again is to be kept in the endpoint's cache: tools and system
    prompt, and of a conversation also its messages.
    """
    heard: Callable[[Head], None] = field(default=_unheard, compare=False, repr=False)
    """Called, in the task that asks, with the head of the answer as soon as it is there."""


@dataclass(frozen=True)
class ModelAnswer:
    """A complete answer (`message_stop` and a stop reason seen); may be malformed or a refusal."""

    text: str
    stop_reason: str
    model: str
    usage: Usage
    detail: str = ""
    """What the endpoint says of a refusal."""
    flaw: str = ""
    """What makes it unusable, whatever its text says; empty: nothing."""
    counted: bool = True
    """Whether the usage is the endpoint's count, or an estimate that is no less; not when it
    counted what cannot be.
    """
    raw: dict[str, Any] = field(default_factory=dict)
    """The message as it came, for the journal."""

    @property
    def content(self) -> tuple[dict[str, Any], ...]:
        """The assistant's blocks as they came, to be sent back as they are: thoughts with their
        signatures, text, calls, and whatever else a model sends. Without those of blank text, which
        endpoints send and refuse; no message may be made of none.
        """
        blocks = self.raw.get("content", ())
        return tuple(block for block in blocks if not _blank(block))

    @property
    def calls(self) -> tuple[dict[str, Any], ...]:
        """The calls to run: only of an answer that stopped for them, with nothing wrong in it. A
        call that was cut off can look like a whole one.
        """
        if self.stop_reason != "tool_use" or self.flaw:
            return ()
        return tuple(block for block in self.content if block.get("type") == "tool_use")


def _blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


class Model(Protocol):
    """The model endpoint. Raises only the errors of holdfast/contracts/errors.py.

    The bill of a PossiblyBilled has calls=1; its usage is zero when nothing is known of it.
    """

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Send, wait for the whole answer. NotBilled, EndpointUnreachable, PossiblyBilled,
        CallRefused, AuthenticationRefused, SpendLimitReached. Cancelled before anything left:
        CancelledError; afterwards: PossiblyBilled with the usage so far, on a closed connection.
        """
        ...

    async def count_tokens(self, request: ModelRequest) -> int:
        """Input tokens of a request: counted by the endpoint where it can, else UTF-8 bytes / 2."""
        ...

    async def reach(self) -> str:
        """Ask the endpoint for something free: why it cannot be reached, empty when it can."""
        ...


class Journal(Protocol):
    """What this deployment has sent and received, by call key, in private files that survive it."""

    async def sent(self, key: str) -> bool:
        """Whether `mark_sent` or `record` was called for this key, whatever has become of the
        answer since: a damaged one is a call that was sent."""
        ...

    async def mark_sent(self, key: str) -> None:
        """Record, durably, that the first byte is about to leave. PossiblyBilled if another attempt
        was faster; NotBilled, and nothing may be sent, if it cannot be recorded.
        """
        ...

    async def withdraw(self, key: str) -> None:
        """Take the mark back after NotBilled or a refusal, so that the next attempt may send."""
        ...

    async def answer(self, key: str) -> str | None:
        """The answer exactly as it was recorded; None if none arrived or its record is damaged."""
        ...

    async def record(self, key: str, answer: str) -> None:
        """Record, durably, the complete raw answer before the activity returns."""
        ...


class Gate(Protocol):
    """How fast the calls of each tier may leave, for all runs together."""

    async def turn(self, tier: str, tokens: int = 0, max_output: int = 0) -> None:
        """Wait, for a few seconds at most, until a call of this tier may leave, whose prompt has
        about so many tokens. NotBilled when that is further away: the call goes back to the server.
        It is in flight until the task that asks for its turn ends, or `ended` says so.
        """
        ...

    def heard(self, head: Head) -> None:
        """The head of the answer to the call of this task is there."""
        ...

    def ended(self, output_tokens: int = 0) -> None:
        """The answer to the call of this task is there: another one may take its place."""
        ...

    async def throttled(self, tier: str, seconds: float, reason: str) -> None:
        """A call was refused for want of capacity; the endpoint asks to wait this many seconds."""
        ...


class Budget(Protocol):
    """What this deployment lets its calls cost, whoever asks for them."""

    async def hold(
        self, key: str, model: str, input_tokens: int, max_output: int, searches: int = 0
    ) -> None:
        """Set aside the worst case of a call that is about to leave. AllowanceReached if it is not
        allowed, SpendLimitReached if nobody can tell; NotBilled if it may be later."""
        ...

    async def settle(self, key: str, model: str, served: str, usage: Usage | None) -> None:
        """What a call that left has cost, by the model asked and the one that served; None: nobody
        knows. Never raises."""
        ...

    async def release(self, key: str) -> None:
        """The call was surely not billed. Never raises."""
        ...


class Store(Protocol):
    """Content-addressed blobs, shared by every worker and starter of a deployment."""

    async def put(self, content: bytes) -> str:
        """Store, return the SHA-256 (hex)."""
        ...

    async def get(self, digest: str) -> bytes:
        """The blob exactly as it was put. BlobLost if this store has it not, or damaged."""
        ...


class Pricing(Protocol):
    """The price of a call that was made, by the model that served it."""

    def cards(self) -> tuple[ModelCard, ...]:
        """One card per tier that this deployment serves; a card without steps is unpriced."""
        ...

    def price(self, model: str, usage: Usage) -> Decimal | None:
        """Dollars of a call, by the id of the model that served it; None when it is unpriced."""
        ...


Code = Callable[[VerifyMaterial], Awaitable[tuple[Shown, ...]]]
"""What a model may see of each remark, in their order."""
CallTool = Callable[
    [UseMaterial, str], Awaitable[tuple[str, bool, bool, tuple[MadeFile, ...], tuple[str, ...]]]
]
"""(what was called, its key) -> the text of the result, whether it is an error, whether nobody
knows what the call has done, the files that it made, and the names of the inputs that it read.
"""
Template = Callable[[SynthesisMaterial], Synthesis]
"""How code writes a run's answer from its findings, where no model does."""
Lens = Callable[[WorkMaterial], Awaitable[Draft]]
"""What does the work of a role without a model. Raises LensFailed."""
