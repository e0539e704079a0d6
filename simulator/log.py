"""What a simulator was asked and what it would have charged."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from holdfast.activities.asking.prices import library_search, library_steps
from holdfast.contracts import ModelCard, Usage, dollars
from holdfast.ledger.pricing import price

BATCH_SHARE = Decimal("0.5")
"""What a token of a batch costs of its price."""
HOUR_WRITE = 2
"""What a token written to the cache for an hour costs of one of input."""
TOKEN_PRICES = ("input", "output", "cache_read", "cache_write")


@dataclass
class Body:
    """One distinct request body. `admitted` counts the times it was charged, `refused` the times an
    error status said that nothing was, `delivered` the times its whole answer left, `again` the
    times it was charged after that.
    """

    call: str
    model: str
    mark: str = ""
    """What the script's `mark` found in its prompt."""
    count: int = 0
    admitted: int = 0
    refused: int = 0
    delivered: int = 0
    again: int = 0
    seconds: float = 0.0
    """How long its answers took, until they had left."""


@dataclass
class Marked:
    """What was charged of the requests with one mark."""

    calls: int = 0
    again: int = 0
    dollars: Decimal = Decimal(0)


@dataclass
class BatchRecord:
    """One batch that was created."""

    id: str
    workspace: str
    custom_ids: list[str]
    foreign: bool = False
    """True if it is another user's."""
    told: bool = False
    """True if the answer that names it left."""
    counts: dict[str, int] = field(default_factory=dict)
    """Requests by outcome; empty until it has ended."""
    retrieved: int = 0
    canceled: bool = False
    deleted: bool = False
    fetched: int = 0
    """How often results were asked for, once there were any."""
    complete: int = 0
    """How often they left whole."""


@dataclass
class RequestLog:
    """Counts requests to POST /v1/messages, and those in batches, by SHA-256 of the body.

    With a `memory` it also writes each charge and delivery to that file, one JSON line each, before
    the answer leaves, and begins with what the file has: so a server that is killed and started
    again knows what it charged.
    """

    memory: Path | None = None
    bodies: dict[str, Body] = field(default_factory=dict)
    marks: dict[str, Marked] = field(default_factory=dict)
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    calls: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    """Usage by call."""
    dollars: Decimal = Decimal(0)
    statuses: Counter[int] = field(default_factory=Counter)
    connections: set[tuple[str, int]] = field(default_factory=set)
    """Client addresses seen: one for each connection."""
    batches: dict[str, BatchRecord] = field(default_factory=dict)
    """Batches in the order of their creation."""
    steps: Counter[str] = field(default_factory=Counter)
    """Requests to the endpoints of batches, by step, refused ones included."""
    now: int = 0
    """Calls in flight."""
    most_at_once: int = 0

    def __post_init__(self) -> None:
        lines = self.memory.read_text().splitlines() if self.memory and self.memory.exists() else []
        for line in lines:
            # A line is written at once, so whatever killed the server left no half of one.
            self._recall(**json.loads(line))

    def know(self, models: Iterable[str]) -> None:
        """Look prices up before the first request, because loading them takes a while."""
        for model in models:
            _card(model)
            _card(model, batch=True)

    def received(self, digest: str, call: str, model: str, mark: str = "") -> Body:
        """Count a request; the caller says later what became of it."""
        body = self.bodies.setdefault(digest, Body(call, model, mark))
        body.count += 1
        return body

    def began(self) -> None:
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)

    def ended(self) -> None:
        self.now -= 1

    def refused(self, body: Body, status: int) -> None:
        """Record a refusal: nothing was generated and nothing is charged."""
        body.refused += 1
        self.statuses[status] += 1

    def charged(self, digest: str, usage: Usage, *, hour: int = 0, batch: bool = False) -> None:
        """The answer was generated, whether or not it arrives: input and output are charged.
        `hour`: tokens written to the cache for an hour; `batch`: at the price of a batch.
        """
        body = self.bodies[digest]
        self._remember(digest, body, usage, hour, batch)
        again = body.delivered > 0
        body.admitted += 1
        body.again += again
        self.statuses[200] += 1
        self.usage += usage
        self.calls[body.call] += usage
        cost = _cost(_card(body.model, batch), usage, hour)
        self.dollars += cost
        marked = self.marks.setdefault(body.mark, Marked())
        marked.calls += 1
        marked.again += again
        marked.dollars += cost

    def delivered(self, digest: str) -> None:
        """The whole answer left for a client that was still there."""
        body = self.bodies[digest]
        self._remember(digest, body)
        body.delivered += 1

    def forget(self) -> None:
        """The memory, too."""
        if self.memory:
            self.memory.unlink(missing_ok=True)

    def _remember(
        self,
        digest: str,
        body: Body,
        usage: Usage | None = None,
        hour: int = 0,
        batch: bool = False,
    ) -> None:
        if self.memory:
            counted = usage and usage.model_dump()
            what = {"digest": digest, "usage": counted, "hour": hour, "batch": batch}
            about = {"call": body.call, "model": body.model, "mark": body.mark}
            with self.memory.open("a") as file:
                file.write(json.dumps(what | about) + "\n")

    def _recall(
        self,
        digest: str,
        call: str,
        model: str,
        mark: str,
        usage: dict[str, Any] | None,
        hour: int,
        batch: bool,
    ) -> None:
        memory, self.memory = self.memory, None
        if usage is None:
            self.delivered(digest)
        else:
            self.received(digest, call, model, mark)
            self.charged(digest, Usage.model_validate(usage), hour=hour, batch=batch)
        self.memory = memory

    def report(self) -> dict[str, Any]:
        """Everything as JSON; `duplicates` counts bodies that were charged more than once."""
        bodies = self.bodies.values()
        return {
            "requests": sum(body.count for body in bodies),
            "admitted": sum(body.admitted for body in bodies),
            "refused": sum(body.refused for body in bodies),
            "distinct": len(self.bodies),
            "delivered": sum(body.delivered for body in bodies),
            "again": sum(body.again for body in bodies),
            "duplicates": sum(max(0, body.admitted - 1) for body in bodies),
            "connections": len(self.connections),
            "most_at_once": self.most_at_once,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "usage": self.usage.model_dump(),
            "calls": {call: usage.model_dump() for call, usage in self.calls.items()},
            "dollars": str(self.dollars),
            "marks": {
                mark: vars(marked) | {"dollars": str(marked.dollars)}
                for mark, marked in self.marks.items()
            },
            "batches": [vars(batch) for batch in self.batches.values()],
            "steps": dict(self.steps),
            "bodies": {digest: vars(body) for digest, body in self.bodies.items()},
        }


@lru_cache(maxsize=64)
def _card(model: str, batch: bool = False) -> ModelCard:
    """Return the prices of a model; in a batch, tokens are at half of theirs, searches are not."""
    steps = tuple(
        step.model_copy(update={name: getattr(step, name) * BATCH_SHARE for name in TOKEN_PRICES})
        if batch
        else step
        for step in library_steps(model)
    )
    return ModelCard(tier="sonnet", id=model, prices=steps, search=library_search(model))


def _cost(card: ModelCard, usage: Usage, hour: int) -> Decimal:
    """Return the price of a call of which so many tokens were written for an hour."""
    cost = price(card, usage) or Decimal(0)
    if not (hour and card.prices):
        return cost
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    exceeded = [step for step in card.prices if prompt > step.above] or [card.prices[0]]
    step = max(exceeded, key=lambda each: each.above)
    return cost + dollars(hour * (HOUR_WRITE * step.input - step.cache_write))
