"""What a call costs and returns."""

from __future__ import annotations

from decimal import Decimal
from typing import Generic, Literal, TypeVar

from holdfast.contracts.base import Contract, Effort, Money, Span, Tier
from holdfast.contracts.models import Capabilities, ModelCard


class Usage(Contract):
    """Tokens of calls as the endpoint counted them; `input_tokens` excludes the cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    searches: int = 0
    """Made by the endpoint's own tool, and priced each."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields}
        )

    @property
    def total(self) -> int:
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )


class Bill(Contract):
    """What one activity paid: 0 or 1 calls. `dollars` is None when the model has no known price, or
    when nobody knows what the call cost.
    """

    model: str = ""
    calls: int = 0
    usage: Usage = Usage()
    dollars: Money | None = Decimal(0)
    final: bool = True
    """Whether the endpoint's own final count arrived and can be believed; else the call counts at
    its full reservation, or at this bill where that is more.
    """
    note: str = ""
    """What a reader of the report must know of this bill; empty: nothing."""
    assumed: Money = Decimal(0)
    """Of `dollars`, what is the worst case of a call whose answer was lost; 0: all is known."""
    earlier: bool = False
    """Whether it was paid before the run was reset: the journal had the answer, or had the call as
    sent, before this activity did anything.
    """


class MadeFile(Contract):
    """A file that an agent made: its bytes are the blob `digest` of the store."""

    name: str
    """As the model called it: nobody's to trust."""
    size: int
    """Bytes."""
    digest: str
    """SHA-256."""
    missing: str = ""
    """Why it is not beside the report; empty: it is, or nobody has looked."""


class Unreached(Contract):
    """An endpoint that could not be reached, or that did not answer what it was sent."""

    address: str
    """Scheme, host, port and path; never user, password or query."""
    why: str
    """One line, fit to be shown."""
    mistaken: bool = False
    """True if the address is most likely wrong: its host does not exist, or what answers is no
    Messages API, and none has ever answered this deployment there. False where no resolver answers,
    without network.
    """
    lost: bool = False
    """Whether calls get lost behind it: that somebody is there then proves nothing. False: nobody
    was there, so nothing was sent and nothing was paid.
    """


class Call(Contract):
    """One model call as the workflow schedules it: the facts that do not depend on its material."""

    kind: str
    """The name of its activity: one of `holdfast.calls.KINDS`."""
    purpose: str
    """What it is for, for example `work-t3`; with its number, the id of its activity."""
    number: int = 1
    subtask_id: str = ""
    mending: bool = False
    """Whether it is to give a malformed answer again in the right form."""
    tier: Tier = "sonnet"
    model: ModelCard | None = None
    """None: no model may be asked; the activity answers from what it was given, as a ready plan."""
    role: str = ""
    max_output: int = 0
    effort: Effort = "medium"
    ceiling: Money = Decimal(0)
    """Dollars reserved for this call; the worker refuses to send what could cost more."""
    token_ceiling: int = 0
    """Tokens reserved; the bound that counts for an unpriced model."""
    capabilities: Capabilities = Capabilities()
    searches: int = 0
    """The most that the endpoint may make by itself in this call; each has its price."""
    rounds: int = 0
    """How often it may read the whole prompt again by itself, each time with one more result."""
    run: str = ""
    """Temporal's id of the run's first execution: what the journal knows the run by."""

    @property
    def id(self) -> str:
        """The activity id, for example `work-t3-2`."""
        return f"{self.purpose}-{self.number}"

    @property
    def mended(self) -> str:
        """The purpose whose malformed answers it mends: a repair's are those of the work."""
        return f"{self.kind}-{self.subtask_id}" if self.subtask_id else self.purpose


ProblemKind = Literal["refusal", "malformed", "truncated", "invalid", "failed_checks"]


class Problem(Contract):
    """What is wrong with an answer that did arrive: data for the supervisor, never an exception."""

    kind: ProblemKind
    why: str
    answer: str = ""
    """Of a malformed answer, its first 20,000 characters: what a repair works from."""
    no_json: bool = False
    """True if a malformed answer holds no JSON at all, and not JSON of another form."""


Value = TypeVar("Value", bound=Contract)


class Reply(Contract, Generic[Value]):
    """What a model activity returns: a value or a problem, and always the bill."""

    value: Value | None = None
    problem: Problem | None = None
    bill: Bill = Bill()
    span: Span | None = None
