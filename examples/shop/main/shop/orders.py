"""Orders: what somebody wants, and what it costs."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """So many of one article."""

    article: str
    count: int
    cents: int


def price(lines: list[Line]) -> int:
    """What an order costs, in cents."""
    return sum(line.count * line.cents for line in lines)


def of_customer(shop: sqlite3.Connection, customer: str) -> list[str]:
    """The orders of a customer, newest first."""
    rows = shop.execute(
        "SELECT id FROM orders WHERE customer = ? ORDER BY placed DESC", (customer,)
    )
    return [str(row[0]) for row in rows]
