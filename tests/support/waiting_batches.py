"""Batches of one request each, answered by a scripted model as soon as they are let."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.ports import BatchResult, BatchState, ModelAnswer, ModelRequest


@dataclass
class WaitingBatches:
    """Implements `Batches`."""

    model: Any
    looks: int = 1
    """Looks at a batch until it has ended."""
    outcomes: list[BatchResult | Exception] = field(default_factory=list)
    """What the next batches come to instead of an answer; their ids are not looked at."""
    made: dict[str, tuple[str, ModelRequest]] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: list[str] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)
    """What making the next batches raises."""

    async def create(self, requests: Sequence[tuple[str, ModelRequest]]) -> str:
        if self.refusals:
            raise self.refusals.pop(0)
        (one,) = requests
        name = f"batch-{len(self.made) + 1}"
        self.made[name], self.left[name] = one, self.looks
        return name

    async def since(self, when: datetime) -> tuple[BatchState, ...]:
        return ()

    async def look(self, batch: str) -> BatchState | None:
        if batch not in self.made:
            return None
        self.left[batch] -= 1
        self.looked.set()
        return BatchState(batch, ended=self.left[batch] < 0, rows=1)

    async def results(
        self, batch: str, request_of: Callable[[str], ModelRequest | None]
    ) -> AsyncGenerator[BatchResult]:
        id, request = self.made[batch]
        assert request_of(id) is not None
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        if batch in self.cancelled:
            outcome = BatchResult(id, why="canceled")
        if outcome is None:
            answer: ModelAnswer = await self.model.ask(request)
            outcome = BatchResult(id, answer)
        yield BatchResult(id, outcome.answer, outcome.why, outcome.invalid)

    async def cancel(self, batch: str) -> None:
        self.cancelled.append(batch)
        self.left[batch] = 0
