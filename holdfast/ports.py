"""What activities need of the world, as Protocols; `wiring.py` provides the real ones.

Nothing here imports an SDK: workflows name activities, typed, with a clean import graph.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Protocol

from holdfast.calls.fix import TryFixMaterial
from holdfast.calls.prove import ProofCode, ProveMaterial, Tried, TryMaterial
from holdfast.calls.rows import Caching
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.calls.turn import UseMaterial
from holdfast.calls.verify import Shown
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import (
    Capabilities,
    Draft,
    Effort,
    Fix,
    MadeFile,
    ModelCard,
    Synthesis,
    Tier,
    Usage,
)
from holdfast.storage.store import Store as Store

Resource = Literal["requests", "tokens", "input_tokens", "output_tokens"]
"""What an endpoint limits."""


PriceOf = Callable[[str, Usage], Decimal | None]
"""Dollars of a call by the id of the model that served it; None when it is unpriced."""


@dataclass(frozen=True)
class Quota:
    """What an endpoint still takes of one resource that refills gradually: `remaining` of `limit`,
    and all of it again after so many seconds.
    """

    limit: float
    remaining: float
    seconds: float


@dataclass(frozen=True)
class Head:
    """The head of a response, before its body."""

    taken: bool
    """True if the call was not refused."""
    quotas: Mapping[Resource, Quota] = field(default_factory=dict)
    """Empty where the endpoint says nothing of its limits."""


def _unbegun() -> None:
    """Nobody waits for the first part of an answer."""


def _unheard(head: Head) -> None:
    """Ignore the head."""


@dataclass
class SoFar:
    """The text of an answer that is being written, for whoever looks before it is complete."""

    read: Callable[[], str] = lambda: ""
    """Return what has arrived, without known secrets: untrusted, and broken off anywhere."""


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
    """Time limit from `ask` to the last byte, less than the activity's start-to-close."""
    attempt: int = 1
    """1 plus how often the call was throttled: the wait after an overload doubles with it."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """A whole conversation in wire form, in place of `prompt`. Its content is text, tools and
    thoughts: the tokens of a picture or a PDF are not bounded by its bytes.
    """
    tools: tuple[Mapping[str, Any], ...] = ()
    """Name, description, input_schema, and `strict` where endpoint and schema allow it."""
    cached: bool = False
    """True if what will be sent again goes into the endpoint's cache."""
    shared: Caching = ""
    """How long the endpoint's cache is to keep what other calls begin with, too: the system prompt,
    and of the prompt its first `common` characters. Empty: it need not.
    """
    common: int = 0
    price: PriceOf | None = field(default=None, compare=False, repr=False)
    """Prices the bill of a call that fails; None: the adapter's own prices do."""
    heard: Callable[[Head], None] = field(default=_unheard, compare=False, repr=False)
    """Called, in the task that asks, with the head of the response as soon as it is there."""
    begins: Callable[[], None] = field(default=_unbegun, compare=False, repr=False)
    """Called, in the task that asks, when the answer itself begins: the prompt is read by then."""
    so_far: SoFar = field(default_factory=SoFar, compare=False, repr=False)
    """Told how to read the answer while it arrives; an endpoint that does not stream tells nothing.
    """


@dataclass(frozen=True)
class ModelAnswer:
    """A complete answer (`message_stop` and a stop reason seen); may be malformed or a refusal."""

    text: str
    stop_reason: str
    model: str
    usage: Usage
    detail: str = ""
    """The endpoint's words on a refusal."""
    flaw: str = ""
    """What makes it unusable, whatever its text says."""
    counted: bool = True
    """True if the endpoint counted the usage; else it is a safe estimate."""
    raw: dict[str, Any] = field(default_factory=dict)
    """The message as it came, for the journal."""

    @property
    def content(self) -> tuple[dict[str, Any], ...]:
        """The assistant's blocks, to be sent back as they came: thoughts with their signatures,
        text, calls, and unknown ones. Without blank text, which endpoints send and then refuse; no
        message may be empty.
        """
        blocks = self.raw.get("content", ())
        return tuple(block for block in blocks if not _blank(block))

    @property
    def calls(self) -> tuple[dict[str, Any], ...]:
        """The tool calls to run: only from an answer that stopped for them without a flaw, because
        a call that was cut off can look complete.
        """
        if self.stop_reason != "tool_use" or self.flaw:
            return ()
        return tuple(block for block in self.content if block.get("type") == "tool_use")


def _blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


class Model(Protocol):
    """The model endpoint. Raises only the errors of holdfast/contracts/errors.py.

    The bill of a PossiblyBilled has calls=1, and no usage where none is known.
    """

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Send a request and wait for the whole answer. NotBilled, EndpointUnreachable,
        PossiblyBilled, CallRefused, AuthenticationRefused, SpendLimitReached. Cancelled before
        anything left: CancelledError; afterwards: PossiblyBilled with the usage so far, on a closed
        connection.
        """
        ...

    async def count_tokens(self, request: ModelRequest) -> int:
        """Count the input tokens of a request: by the endpoint if it can, else UTF-8 bytes / 2."""
        ...

    async def reach(self) -> str:
        """Ask the endpoint for something free. Return why it cannot be reached; empty if it can."""
        ...


@dataclass(frozen=True)
class BatchState:
    """How a batch stands at its endpoint."""

    id: str
    ended: bool
    rows: int
    """Requests in it."""


@dataclass(frozen=True)
class BatchResult:
    """What became of one request of a batch that has ended. Only an answer is billed."""

    id: str
    answer: ModelAnswer | None = None
    why: str = ""
    """Why there is no answer."""
    invalid: bool = False
    """True if the endpoint will never take this request."""


class Batches(Protocol):
    """The endpoint's batches: many requests at once, at half the price, done within a day. Raises
    only the errors of holdfast/contracts/errors.py.
    """

    async def create(self, requests: Sequence[tuple[str, ModelRequest]]) -> str:
        """Make a batch of requests by their ids, and return its own. PossiblyBilled: it may have
        been made. NotBilled, EndpointUnreachable, CallRefused, RunStopping: surely it was not.
        """
        ...

    async def since(self, when: datetime) -> tuple[BatchState, ...]:
        """Return the batches of the workspace that were made since, the newest first; the very last
        ones may be missing. NotBilled, EndpointUnreachable, RunStopping.
        """
        ...

    async def look(self, batch: str) -> BatchState | None:
        """Return how a batch stands; None if the endpoint knows none. Raises as `since`."""
        ...

    def results(
        self, batch: str, request_of: Callable[[str], ModelRequest | None]
    ) -> AsyncGenerator[BatchResult]:
        """Yield what became of each request of a batch that has ended, in any order; `request_of`
        returns a request by its id. Raises as `since`, also where results end too early: they are
        read again from the beginning. BlobLost if the endpoint has them no more.
        """
        ...

    async def cancel(self, batch: str) -> None:
        """End a batch early: what is done stays done, and is billed. Raises as `since`."""
        ...


class Journal(Protocol):
    """What this deployment has sent and received, by call key, in private files that survive it."""

    @property
    def place(self) -> int:
        """A number that two journals share exactly if one finds what the other has marked."""
        ...

    async def sent(self, key: str) -> bool:
        """True if `mark_sent` or `record` was called, even if the answer is damaged."""
        ...

    async def mark_sent(self, key: str) -> None:
        """Record, durably, that the first byte is about to leave. PossiblyBilled if another attempt
        was faster; NotBilled, and nothing may be sent, if it cannot be recorded.
        """
        ...

    async def withdraw(self, key: str) -> None:
        """Remove the mark after NotBilled or a refusal, so that the next attempt may send."""
        ...

    async def answer(self, key: str) -> str | None:
        """Return the answer exactly as recorded; None if none arrived or its record is damaged."""
        ...

    async def record(self, key: str, answer: str) -> None:
        """Record, durably, the complete raw answer before the activity returns."""
        ...


class Gate(Protocol):
    """How fast the calls of each tier may leave, for all runs together."""

    async def turn(self, tier: str, tokens: int = 0, max_output: int = 0) -> str:
        """Wait, for a few seconds at most, until a call of this tier with about so many tokens may
        leave. NotBilled if that is further away: the call goes back to the server. The call is in
        flight until the task that asked ends, or `ended` is called. Return the limit of the
        deployment's own that it waited for, in words; empty: for none.
        """
        ...

    def heard(self, head: Head) -> None:
        """Take in the head of the response to the call of this task."""
        ...

    def ended(self, output_tokens: int = 0) -> None:
        """Take in that the answer is complete: another call may take its place."""
        ...

    async def throttled(self, tier: str, seconds: float, reason: str) -> None:
        """Take in a refusal for want of capacity; the endpoint asks to wait this many seconds."""
        ...


class Budget(Protocol):
    """What this deployment lets its calls cost, in all runs."""

    async def hold(
        self, key: str, model: str, input_tokens: int, max_output: int, searches: int = 0
    ) -> None:
        """Reserve the worst case of a call that is about to leave. AllowanceReached if it is not
        allowed, SpendLimitReached if spending is not known; NotBilled if it may be allowed later.
        """
        ...

    async def settle(self, key: str, model: str, served: str, usage: Usage | None) -> None:
        """Settle a call that left; usage None: not known. Never raises."""
        ...

    async def hold_batch(self, key: str, model: str, prompts: Sequence[int], room: int) -> None:
        """Reserve the worst case of a batch whose requests have so many input tokens each, for as
        long as it may take, whatever process ends. Raises as `hold`.
        """
        ...

    async def settle_batch(self, key: str, dollars: Decimal | None) -> None:
        """Settle a batch; None: not known. Never raises."""
        ...

    async def release(self, key: str) -> None:
        """Release a call, or a batch, that was surely not billed. Never raises."""
        ...


class Pricing(Protocol):
    """Prices by the model that served a call."""

    def cards(self) -> tuple[ModelCard, ...]:
        """Return one card per tier served; a card without steps is unpriced."""
        ...

    def card(self, tier: Tier, model: str) -> ModelCard:
        """Return the card of any model, were it to serve a tier."""
        ...

    def planner(self) -> ModelCard | None:
        """Return the card of the model that plans; None: that of the usual tier does."""
        ...

    def price(self, model: str, usage: Usage) -> Decimal | None:
        """Return a call's dollars by the model that served it; None when it is unpriced."""
        ...


Code = Callable[[WorkMaterial], Awaitable[tuple[Shown, ...]]]
"""What a model may see of each remark that an agent verifies, in order; none for other work."""


class Prover(Protocol):
    """What shows, runs and mends the code of a remark. All raise BlobLost if the store has lost the
    snapshot.
    """

    async def show(self, material: ProveMaterial) -> ProofCode:
        """Return what a model may see of it, without secrets."""
        ...

    async def run(self, material: TryMaterial) -> Tried:
        """Run a script on the head and on the base. What cannot be run is a result, too."""
        ...

    async def try_fix(self, material: TryFixMaterial) -> Fix:
        """Try an edit on a copy: whether it applies, what lenses say, and whether the proof passes.
        What speaks against it is a result, too.
        """
        ...


CallTool = Callable[
    [UseMaterial, str], Awaitable[tuple[str, bool, bool, tuple[MadeFile, ...], tuple[str, ...]]]
]
"""(the call, its key) -> the text of the result, whether it is an error, whether it is unknown what
the call has done, the files that it made, and the names of the inputs that it read.
"""
Place = Callable[[Draft, WorkMaterial], Awaitable[Draft]]
"""Puts the remarks of an agent at their places."""
Template = Callable[[SynthesisMaterial], Synthesis]
"""Writes a run's answer from its findings, where no model does."""
Lens = Callable[[WorkMaterial], Awaitable[Draft]]
"""Does the work of a role without a model. Raises LensFailed."""
