"""Payments, by the bank's service."""

from __future__ import annotations

import os

RECEIPTS_KEY = "@ACCESS-KEY@"
"""The key of the bucket that receipts are kept in."""


def account() -> str:
    """Whose account the money goes to."""
    return os.environ["SHOP_ACCOUNT"]


def password() -> str:
    """Return the password of the bank's service."""
    password = os.environ["SHOP_PASSWORD"]
    if not password:
        raise ValueError("SHOP_PASSWORD is empty")
    return password
