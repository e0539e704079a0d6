"""What a simulator was asked and what it would have charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from activities.pricing import library_steps
from orchestrator.contracts import ModelCard, Usage
from orchestrator.pricing import price


@dataclass
class Body:
    """One distinct request body. `admitted` counts the times it was charged, `refused` the times
    an error status said that nothing was.
    """

    call: str
    model: str
    count: int = 0
    admitted: int = 0
    refused: int = 0


@dataclass
class RequestLog:
    """Counts requests to POST /v1/messages, by SHA-256 of the body."""

    bodies: dict[str, Body] = field(default_factory=dict)
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    dollars: Decimal = Decimal(0)
    statuses: Counter[int] = field(default_factory=Counter)
    connections: set[tuple[str, int]] = field(default_factory=set)
    """Client addresses seen: one for each connection."""
    now: int = 0
    """Calls in flight."""
    most_at_once: int = 0

    def know(self, models: Iterable[str]) -> None:
        """Look prices up before the first request, because loading them takes a while."""
        for model in models:
            _card(model)

    def received(self, digest: str, call: str, model: str) -> Body:
        """Count a request; the caller says later what became of it."""
        body = self.bodies.setdefault(digest, Body(call, model))
        body.count += 1
        return body

    def began(self) -> None:
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)

    def ended(self) -> None:
        self.now -= 1

    def refused(self, body: Body, status: int) -> None:
        """Nothing was generated and nothing is charged."""
        body.refused += 1
        self.statuses[status] += 1

    def charged(self, body: Body, usage: Usage) -> None:
        """The answer was generated, whether or not it arrives: input and output are charged."""
        body.admitted += 1
        self.statuses[200] += 1
        self.usage += usage
        self.dollars += price(_card(body.model), usage) or Decimal(0)

    def report(self) -> dict[str, Any]:
        """Everything as JSON; `duplicates` counts bodies that were charged more than once."""
        bodies = self.bodies.values()
        return {
            "requests": sum(body.count for body in bodies),
            "admitted": sum(body.admitted for body in bodies),
            "refused": sum(body.refused for body in bodies),
            "distinct": len(self.bodies),
            "duplicates": sum(max(0, body.admitted - 1) for body in bodies),
            "connections": len(self.connections),
            "most_at_once": self.most_at_once,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "usage": self.usage.model_dump(),
            "dollars": str(self.dollars),
            "bodies": {digest: vars(body) for digest, body in self.bodies.items()},
        }


@lru_cache(maxsize=64)
def _card(model: str) -> ModelCard:
    return ModelCard(tier="sonnet", id=model, prices=library_steps(model))
