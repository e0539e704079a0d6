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
from holdfast.contracts import ModelCard, Usage
from holdfast.ledger.pricing import price


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
class RequestLog:
    """Counts requests to POST /v1/messages, by SHA-256 of the body.

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

    def charged(self, digest: str, usage: Usage) -> None:
        """The answer was generated, whether or not it arrives: input and output are charged."""
        body = self.bodies[digest]
        self._remember(digest, body, usage.model_dump())
        again = body.delivered > 0
        body.admitted += 1
        body.again += again
        self.statuses[200] += 1
        self.usage += usage
        self.calls[body.call] += usage
        cost = price(_card(body.model), usage) or Decimal(0)
        self.dollars += cost
        marked = self.marks.setdefault(body.mark, Marked())
        marked.calls += 1
        marked.again += again
        marked.dollars += cost

    def delivered(self, digest: str) -> None:
        """The whole answer left for a client that was still there."""
        body = self.bodies[digest]
        self._remember(digest, body, None)
        body.delivered += 1

    def forget(self) -> None:
        """The memory, too."""
        if self.memory:
            self.memory.unlink(missing_ok=True)

    def _remember(self, digest: str, body: Body, usage: dict[str, Any] | None) -> None:
        if self.memory:
            what = {"digest": digest, "usage": usage}
            about = {"call": body.call, "model": body.model, "mark": body.mark}
            with self.memory.open("a") as file:
                file.write(json.dumps(what | about) + "\n")

    def _recall(
        self, digest: str, call: str, model: str, mark: str, usage: dict[str, Any] | None
    ) -> None:
        memory, self.memory = self.memory, None
        if usage is None:
            self.delivered(digest)
        else:
            self.received(digest, call, model, mark)
            self.charged(digest, Usage.model_validate(usage))
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
            "bodies": {digest: vars(body) for digest, body in self.bodies.items()},
        }


@lru_cache(maxsize=64)
def _card(model: str) -> ModelCard:
    return ModelCard(
        tier="sonnet", id=model, prices=library_steps(model), search=library_search(model)
    )
