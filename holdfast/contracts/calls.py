"""What a call is, what it costs and what it returns."""

from __future__ import annotations

from decimal import Decimal
from typing import Generic, Literal, TypeVar

from pydantic import Field

from holdfast.contracts.base import Contract, Effort, Money, ProjectName, Span, Tier
from holdfast.contracts.models import Capabilities, ModelCard


class Usage(Contract):
    """Tokens as the endpoint counted them; `input_tokens` excludes the cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_hour_tokens: int = Field(default=0, exclude_if=lambda tokens: tokens == 0)
    """The part of `cache_write_tokens` that is kept for an hour, not for five minutes."""
    searches: int = 0
    """Searches by the endpoint's own tool, each with its price."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields}
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            **{name: getattr(self, name) - getattr(other, name) for name in Usage.model_fields}
        )

    @property
    def total(self) -> int:
        cached = self.cache_read_tokens + self.cache_write_tokens
        return self.input_tokens + self.output_tokens + cached


class Bill(Contract):
    """What one activity paid: 0 or 1 calls. `dollars` is None when the model has no known price, or
    when nobody knows what the call cost.
    """

    model: str = ""
    calls: int = 0
    usage: Usage = Usage()
    dollars: Money | None = Decimal(0)
    final: bool = True
    """True if the endpoint's final count arrived and is plausible. Else the call counts at its full
    reservation, or at this bill where that is more.
    """
    note: str = ""
    """What a reader of the report must know of this bill."""
    assumed: Money = Decimal(0)
    """The part of `dollars` that is the worst case of a call whose answer was lost."""
    earlier: bool = False
    """True if it was paid before the run was reset: the journal had the answer, or had the call as
    sent, before this activity began.
    """


class MadeFile(Contract):
    """A file that an agent made: its bytes are the blob `digest` of the store."""

    name: str
    """Name that the model gave the file: untrusted."""
    size: int
    digest: str
    missing: str = ""
    """Why it is not beside the report; empty: it is, or nobody has looked."""


class Unreached(Contract):
    """An endpoint that could not be reached, or that did not answer what it was sent."""

    address: str
    """Scheme, host, port and path; never user, password or query."""
    why: str
    mistaken: bool = False
    """True if the address is probably wrong: its host does not exist, or what answers there is not
    a Messages API, and none has ever answered this deployment there. False where no resolver
    answers, as without a network.
    """
    lost: bool = False
    """True if calls get lost behind it, so that somebody answering there proves nothing. False:
    nobody was there, and nothing was sent or paid.
    """


class Call(Contract):
    """One model call as the workflow schedules it: everything but its material."""

    kind: str
    """Name of its activity, one of `holdfast.calls.KINDS`."""
    purpose: str
    """Purpose, such as `work-t3`; with its number, the id of its activity."""
    number: int = 1
    subtask_id: str = ""
    mending: bool = False
    """True if it asks for a malformed answer again in the right form."""
    tier: Tier = "sonnet"
    model: ModelCard | None = None
    """None: the activity answers without a model, for example with a ready plan."""
    role: str = ""
    max_output: int = 0
    effort: Effort = "medium"
    ceiling: Money = Decimal(0)
    """Dollars reserved for it; the worker refuses to send what could cost more."""
    token_ceiling: int = 0
    """Tokens reserved: the bound for a model without a price."""
    capabilities: Capabilities = Capabilities()
    searches: int = 0
    """The most searches that the endpoint may make by itself, each with its price."""
    rounds: int = 0
    """How often the endpoint may reread the prompt, each time with one more result."""
    run: str = ""
    """Temporal's id of the run's first execution, which is the run's name in the journal."""
    project: ProjectName = ""
    caching: Literal["", "5m"] = Field(default="", exclude_if=lambda kept: not kept)
    """How long the endpoint is to keep what its prompt and those of others begin with: system
    prompt, inputs and findings. Empty: it need not.
    """
    warms: bool = Field(default=False, exclude_if=lambda yes: not yes)
    """True if others wait to find that in the cache: its run is told once its answer begins."""

    @property
    def id(self) -> str:
        """Activity id, for example `work-t3-2`."""
        return f"{self.purpose}-{self.number}"

    @property
    def by_batch(self) -> bool:
        """True if it goes by a batch of its own, and may take a day."""
        return self.model is not None and self.model.lane == "batch"

    @property
    def mended(self) -> str:
        """The purpose whose malformed answers it mends: a repair mends those of the work."""
        return f"{self.kind}-{self.subtask_id}" if self.subtask_id else self.purpose


ProblemKind = Literal["refusal", "malformed", "truncated", "invalid", "failed_checks"]


class Problem(Contract):
    """What is wrong with an answer that arrived: data for the supervisor, never an exception."""

    kind: ProblemKind
    why: str
    answer: str = ""
    """The first 20,000 characters of a malformed or invalid answer, for whoever mends it."""
    no_json: bool = False
    """True if a malformed answer held no JSON at all."""


Value = TypeVar("Value", bound=Contract)


class Reply(Contract, Generic[Value]):
    """What a model activity returns: a value or a problem, and always the bill."""

    value: Value | None = None
    problem: Problem | None = None
    bill: Bill = Bill()
    span: Span | None = None
