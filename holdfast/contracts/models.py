"""The models that serve the tiers, their prices, and what their endpoint understands."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from pydantic import Field

from holdfast.contracts.base import Contract, Tier


class PriceStep(Contract):
    """Dollars per token for prompts of more than `above` tokens."""

    above: int = 0
    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal


class ModelCard(Contract):
    """The model that serves a tier and its prices; without steps it is unpriced."""

    tier: Tier
    id: str
    prices: tuple[PriceStep, ...] = ()
    search: Decimal | None = None
    """Dollars for one search by the endpoint's own tool; None: not known."""
    source: str = ""
    """Where its prices come from, and of when they are, as the rest of a sentence; empty: it has
    none, or they are the library's of an older run.
    """
    lane: Literal["now", "batch"] = Field(default="now", exclude_if=lambda lane: lane == "now")
    """How it is asked: at once, or by a batch, at half the price of its tokens and within a day."""


class Capabilities(Contract):
    """What the endpoint understands, and so what a request may carry."""

    schema_mode: Literal["native", "prompt"] = "native"
    effort: bool = True
    token_counting: bool = True
    caching: bool = False
    """True if parts of a request may be marked for its prompt cache."""
    batches: bool = Field(default=False, exclude_if=lambda yes: not yes)
    """True if it takes many requests as one batch, at half the price."""
    web: bool = False
    """True if it searches and reads the web itself, in place of our tools."""
