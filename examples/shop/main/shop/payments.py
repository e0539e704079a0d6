"""Payments, by the bank's service."""

from __future__ import annotations

import os


def account() -> str:
    """Whose account the money goes to."""
    return os.environ["SHOP_ACCOUNT"]
