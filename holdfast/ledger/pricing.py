"""The price of calls: arithmetic over model cards, for workflows and activities alike. Pure.

Amounts are dollars; None means that the model has no known price, never that it is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from holdfast.contracts import ModelCard, PriceStep, Usage, dollars
from holdfast.contracts.plans import Lane
from holdfast.contracts.policies import WEB_RESULT_TOKENS

LANE_SHARE: Mapping[Lane, Decimal] = {
    "now": Decimal(1),
    "batch": Decimal("0.5"),
    "auto": Decimal(1),
}
"""The share of the ordinary price of tokens, cached ones too, that a call costs in its lane; at the
most, where that is not decided.
"""
HOUR = 2
"""Times the price of input that a token costs which is kept in the cache for an hour."""


def at_lane(card: ModelCard, lane: Lane) -> ModelCard:
    """Return a card with the prices of a lane. A search costs the same in each."""
    share = LANE_SHARE[lane]
    if share == 1:
        return card
    steps = tuple(
        PriceStep(
            above=step.above,
            input=step.input * share,
            output=step.output * share,
            cache_read=step.cache_read * share,
            cache_write=step.cache_write * share,
        )
        for step in card.prices
    )
    return card.model_copy(update={"prices": steps})


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
    """Return the step with the highest `above` that the prompt exceeds, else the lowest."""
    steps = sorted(card.prices, key=lambda step: step.above)
    exceeded = [step for step in steps if prompt_tokens > step.above]
    return exceeded[-1] if exceeded else (steps[0] if steps else None)
