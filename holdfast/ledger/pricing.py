"""The price of calls: arithmetic over model cards, for workflows and activities alike. Pure.

Amounts are dollars; None means that the model has no known price, never that it is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from holdfast.contracts import ModelCard, PriceStep, Usage, dollars
from holdfast.contracts.plans import Lane
from holdfast.contracts.policies import WEB_RESULT_TOKENS

LANE_SHARE: Mapping[Lane, Decimal] = {"now": Decimal(1), "batch": Decimal("0.5")}
"""The share of the ordinary price of tokens, cached ones too, that a call costs in its lane."""
HOUR = 2
"""Times the price of input that a token costs which is kept in the cache for an hour."""


def at_lane(card: ModelCard, lane: Lane) -> ModelCard:
    """Return a card as it is asked, and paid, in a lane. A search costs the same in each."""
    return card.model_copy(update={"lane": "batch" if lane == "batch" else "now"})


def price(card: ModelCard, usage: Usage) -> Decimal | None:
    """Return what a call cost. The size of the whole prompt, cached parts included, chooses the
    step, which then holds for all its tokens, output too.
    """
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    step = _step(card, prompt)
    if step is None:
        return None
    if usage.searches and card.search is None:
        return None
    return dollars(
        (card.search or 0) * usage.searches
        + step.input * usage.input_tokens
        + step.output * usage.output_tokens
        + step.cache_read * usage.cache_read_tokens
        + step.cache_write * (usage.cache_write_tokens - usage.cache_hour_tokens)
        + _hour(step) * usage.cache_hour_tokens
    )


def worst(
    card: ModelCard, input_tokens: int, max_output: int, searches: int = 0, *, hour: bool = False
) -> Decimal | None:
    """Return the most that a call can cost: all input at the dearest rate of the prompt's step
    (usually the cache write), all output that it may produce, and its searches. `hour`: its marks
    may keep input in the cache for an hour.
    """
    step = _step(card, input_tokens)
    if step is None or (searches and card.search is None):
        return None
    dearest = max(step.input, step.cache_write, step.cache_read, _hour(step) if hour else 0)
    fee = (card.search or 0) * searches
    return dollars(dearest * input_tokens + step.output * max_output + fee)


def read_again(prompt_tokens: int, rounds: int) -> int:
    """Return the input tokens of a prompt that an endpoint reads once more after each result of its
    own tools, with all results so far.
    """
    return (rounds + 1) * (prompt_tokens + rounds * WEB_RESULT_TOKENS) if rounds else prompt_tokens


def _hour(step: PriceStep) -> Decimal:
    return max(HOUR * step.input, step.cache_write)


def _step(card: ModelCard, prompt_tokens: int) -> PriceStep | None:
    """Return the step with the highest `above` that the prompt exceeds, else the lowest, with the
    prices of the card's lane.
    """
    steps = sorted(card.prices, key=lambda step: step.above)
    exceeded = [step for step in steps if prompt_tokens > step.above]
    step = exceeded[-1] if exceeded else (steps[0] if steps else None)
    share = LANE_SHARE[card.lane]
    if step is None or share == 1:
        return step
    names = ("input", "output", "cache_read", "cache_write")
    return step.model_copy(update={each: getattr(step, each) * share for each in names})
