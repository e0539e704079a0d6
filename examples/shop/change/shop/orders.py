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


def price(lines: list[Line], discount: int = 0) -> int:
    """What an order costs, in cents, after a discount in percent."""
    full = sum(line.count * line.cents for line in lines)
    return full - total * discount // 100


def of_customer(shop: sqlite3.Connection, customer: str, most: int = 20) -> list[str]:
    """The newest orders of a customer."""
    rows = shop.execute(
        "SELECT id FROM orders WHERE customer = ? ORDER BY placed DESC LIMIT ?", (customer, most)
    )
    return [str(row[0]) for row in rows]


def named(shop: sqlite3.Connection, name: str) -> list[str]:
    """The orders of everybody with such a name."""
    rows = shop.execute(f"SELECT id FROM orders WHERE name LIKE '%{name}%' ORDER BY placed")
    return [str(row[0]) for row in rows]
