"""A treasurer without a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from holdfast.contracts.treasury import Asked, Books, Caps, Given
from holdfast.ledger import treasury

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@dataclass
class Desk:
    """A treasurer without a server, at a moment."""

    books: Books
    now: datetime = NOON

    @classmethod
    def of(cls, day: str | None = "1", **caps: Any) -> Desk:
        most = None if day is None else Decimal(day)
        return cls(Books(caps=Caps(day=most, **caps)))

    async def ask(self, asked: Sequence[Asked]) -> list[Given]:
        given = []
        for each in asked:
            self.books, answer = treasury.ask(self.books, each, self.now)
            given.append(answer)
        return given

    async def is_there(self) -> bool:
        return self.books.caps.bind

    async def give_back(self, asked: Sequence[Asked]) -> None:
        for each in asked:
            self.books, _ = treasury.settle(self.books, each, self.now)

    def spent(self) -> tuple[str, str]:
        """What is paid and what is held today."""
        found = treasury.look(self.books, self.now)
        return f"{found.today.paid:f}", f"{found.held:f}"
