"""What the rows of a map can cost and usually cost, by lane, cached or not. Pure.

Bytes bound tokens: no tokenizer that works on bytes makes more of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil
from typing import Literal

from pydantic import JsonValue

from holdfast.contracts import ModelCard, Usage
from holdfast.contracts.plans import Lane
from holdfast.ledger.ledger import Amount
from holdfast.ledger.pricing import at_lane, price, worst
from holdfast.ledger.ranges import Range

BYTES_PER_TOKEN = 4
"""Usual bytes of a token."""
MENDING_BYTES_PER_TOKEN = 6
"""Bytes that an earlier answer may have for each token it had room for: more of it is not sent."""
MENDING_BYTES = 2_000
"""What is said of an earlier answer, and the form that it is said in."""
LEAST_CACHED: Mapping[str, int] = {
    "haiku-5-5": 512,
    "sonnet-5-5": 512,
    "opus-5": 512,
    "fable-5": 512,
    "mythos-5": 512,
    "opus-5-5": 1_024,
    "sonnet-5": 1_024,
    "opus-4-8": 1_024,
    "sonnet-4-6": 1_024,
}
"""The fewest tokens that a model's cache takes, by the end of its id."""
USUAL_LEAST = 4_096
"""The same for other models: the most that any has."""
WRITTEN = (50, 200)
"""Tokens that a row is assumed to write whose result is text: the low case, and the expected one.
"""
ENVELOPE_BYTES = len('{"result": , "why_failed": "", "status": "complete"}')
STRING_BYTES = (12, 100)
"""Bytes of a string in a result that no enum bounds: the low case, and the expected one."""
LIST_ITEMS = (1, 3)

Caching = Literal["", "5m", "1h"]


@dataclass(frozen=True)
class RowSizes:
    """How much some rows read and write; bytes are those of their prompts."""

    rows: int
    shared: int
    """Bytes of what each of them begins with."""
    bytes: int
    """Bytes of what each has by itself, of all rows together."""
    longest: int
    """The most bytes that one of them has by itself."""
    max_output: int
    mending: bool = False
    """True if each has its earlier answer in its prompt."""

    @property
    def mended(self) -> int:
        """Bytes of one earlier answer with what is wrong with it."""
        if not self.mending:
            return 0
        return MENDING_BYTES + MENDING_BYTES_PER_TOKEN * self.max_output


def worst_rows(
    card: ModelCard, sizes: RowSizes, lane: Lane = "now", caching: Caching = ""
) -> Amount:
    """Return the most that the rows can use together: what is reserved for them. The dollars are 0
    for a model without a price, which is held by its tokens.
    """
    if not sizes.rows:
        return Amount()
    each = sizes.shared + sizes.mended
    tokens = sizes.rows * each + sizes.bytes
    # The price of all tokens of a prompt goes by its size: that of the largest one is taken.
    model, hour = at_lane(card, lane), caching == "1h"
    largest = worst(model, each + sizes.longest, 0, hour=hour)
    written = worst(model, each + sizes.longest, sizes.max_output, hour=hour)
    dollars = Decimal(0)
    if largest is not None and written is not None:
        share = Decimal(tokens) / max(each + sizes.longest, 1)
        # Each row is rounded up to a millionth by itself, and so are these two.
        dollars = share * largest + sizes.rows * (written - largest + Decimal("0.000002"))
    return Amount(dollars, 0, tokens + sizes.rows * sizes.max_output)


def worst_row(
    card: ModelCard, sizes: RowSizes, lane: Lane = "now", caching: Caching = ""
) -> Amount:
    """Return the most that the largest of the rows can use."""
    one = replace(sizes, rows=min(sizes.rows, 1), bytes=sizes.longest)
    return worst_rows(card, one, lane, caching)


def price_rows(
    card: ModelCard,
    sizes: RowSizes,
    lane: Lane = "now",
    *,
    cached: bool = False,
    written: tuple[int, int] = WRITTEN,
) -> Range:
    """Return what the rows will cost, each asked once: with short answers, with usual ones, and at
    the most. `cached`: their beginning is read from the cache, after one call that writes it.
    """
    if not card.prices:
        return None, None, None
    if not sizes.rows:
        return Decimal(0), Decimal(0), Decimal(0)
    low, expected = (_usual(card, sizes, lane, cached=cached, written=each) for each in written)
    high = worst_rows(card, sizes, lane, cached_for(lane) if cached else "").dollars
    return min(low, high), min(expected, high), high


def least_rows(card: ModelCard, sizes: RowSizes, lane: Lane, written: int) -> Decimal:
    """Return what the rows cost if each finds its beginning in the cache, as soon after an earlier
    run, and writes so many tokens.
    """
    shared = ceil(sizes.shared / BYTES_PER_TOKEN)
    own = sizes.bytes // max(sizes.rows, 1) // BYTES_PER_TOKEN
    usage = Usage(input_tokens=own, cache_read_tokens=shared, output_tokens=written)
    return sizes.rows * _price(at_lane(card, lane), usage)


def usual_written(form: Mapping[str, JsonValue], stated: int = 0) -> tuple[int, int]:
    """Return the tokens that an answer is assumed to have: the low case, and the expected one.

    A schema bounds no string, so a plan that knows its answers states their length; else a string
    that no enum bounds is taken to be a line, and a result without a schema a short text.
    """
    if stated:
        return ceil(stated / 2), stated
    if not form:
        return WRITTEN
    low, expected = (
        ceil((ENVELOPE_BYTES + _usual_bytes(form, k)) / BYTES_PER_TOKEN) for k in (0, 1)
    )
    return low, expected


def _usual_bytes(form: Mapping[str, JsonValue], case: int) -> int:
    values, properties, items = form.get("enum"), form.get("properties"), form.get("items")
    if isinstance(values, list) and values:
        return sum(len(json.dumps(each)) for each in values) // len(values)
    if isinstance(properties, dict):
        fields = [(name, each) for name, each in properties.items() if isinstance(each, dict)]
        return 2 + sum(len(name) + 6 + _usual_bytes(each, case) for name, each in fields)
    if isinstance(items, dict):
        return 2 + LIST_ITEMS[case] * (2 + _usual_bytes(items, case))
    longest = form.get("maxLength")
    usual = STRING_BYTES[case] if form.get("type") == "string" else 6
    return min(usual, longest) if isinstance(longest, int) else usual


def cached_for(lane: Lane) -> Caching:
    """Return how long the beginning of rows is kept for a lane: a batch may take an hour."""
    return "1h" if lane == "batch" else "5m"


def least_cached(model: str) -> int:
    """Return the fewest tokens of a beginning that this model's cache takes."""
    found = [each for each in LEAST_CACHED if model.endswith(each)]
    return LEAST_CACHED[max(found, key=len)] if found else USUAL_LEAST


def worth_caching(card: ModelCard, shared: int) -> bool:
    """True if a beginning of so many bytes is surely long enough for the model's cache, and reading
    it there is cheaper.
    """
    cheaper = any(step.cache_read < step.input for step in card.prices)
    return cheaper and shared // BYTES_PER_TOKEN >= least_cached(card.id)


FEWEST_WARMED = 3
"""Calls that begin alike of which one goes first: of two, the other would wait for little."""


def worth_warming(card: ModelCard, sizes: RowSizes, lane: Lane) -> bool:
    """True if rows are cheaper where the first one goes alone and leaves what all begin with in the
    cache. Before a batch it is kept for an hour, at twice the price of input, and the first row has
    no discount: that pays from five rows on, or more where their beginning is short.
    """
    if sizes.rows < FEWEST_WARMED or not worth_caching(card, sizes.shared):
        return False
    warm, cold = (
        _usual(card, sizes, lane, cached=cached, written=WRITTEN[1]) for cached in (True, False)
    )
    return warm < cold


def _usual(card: ModelCard, sizes: RowSizes, lane: Lane, *, cached: bool, written: int) -> Decimal:
    model = at_lane(card, lane)
    shared, wrote = ceil(sizes.shared / BYTES_PER_TOKEN), min(written, sizes.max_output)
    own = ceil((sizes.bytes / sizes.rows + sizes.mended) / BYTES_PER_TOKEN)
    plain = Usage(input_tokens=shared + own, output_tokens=wrote)
    if not cached:
        return sizes.rows * _price(model, plain)
    found = Usage(input_tokens=own, cache_read_tokens=shared, output_tokens=wrote)
    # The first row goes alone, at once, whatever lane the others take.
    hour = shared if cached_for(lane) == "1h" else 0
    first = Usage(
        input_tokens=own, cache_write_tokens=shared, cache_hour_tokens=hour, output_tokens=wrote
    )
    return _price(at_lane(card, "now"), first) + (sizes.rows - 1) * _price(model, found)


def _price(card: ModelCard, usage: Usage) -> Decimal:
    return price(card, usage) or Decimal(0)
