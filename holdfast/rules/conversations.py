"""What an agent with tools is expected to cost: a conversation of a few turns, each of which reads
all of it again, mostly from the cache. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from holdfast.agent.money import of_endpoint, room_of, worst_turn
from holdfast.calls.turn import AgentGoal, Resume
from holdfast.contracts import ModelCard, Usage, policies
from holdfast.ledger.pricing import price, worst


@dataclass(frozen=True)
class Talk:
    """One try of an agent, predicted. Dollars; None where the model has no price."""

    low: Decimal | None
    expected: Decimal | None
    high: Decimal | None
    """All its turns at their longest, each with a whole result: the cap may be less."""
    slice: Decimal
    """What is reserved for it at a time."""
    turns: int
    """The most that it may take."""
    seconds: float


def predict_talk(goal: AgentGoal, tokens: int, slice_turns: int) -> Talk:
    """The conversation of an agent whose first prompt has about so many tokens."""
    model, most = goal.model, goal.turns
    few, usual = (min(most, policies.AGENT_TURNS[each]) for each in ("low", "expected"))
    first = worst_turn(goal, Resume())
    each = policies.TURN_TOKENS / policies.OUTPUT_TOKENS_PER_SECOND + policies.TOOL_SECONDS
    answer = policies.OUTPUT_TOKENS["expected"] / policies.OUTPUT_TOKENS_PER_SECOND
    return Talk(
        low=_usual(model, tokens, few),
        expected=_usual(model, tokens, usual),
        high=_longest(goal) if model.prices else None,
        slice=first.dollars * min(slice_turns, most),
        turns=most,
        seconds=(usual - 1) * each + answer,
    )


def _usual(model: ModelCard, tokens: int, turns: int) -> Decimal | None:
    """Each turn writes to the cache what came since the one before, and reads the rest from it."""
    added = policies.TURN_TOKENS + policies.RESULT_TOKENS
    first = Usage(cache_write_tokens=tokens, output_tokens=policies.OUTPUT_TOKENS["expected"])
    later = [
        Usage(
            cache_read_tokens=tokens + before * added,
            cache_write_tokens=added,
            output_tokens=policies.TURN_TOKENS,
        )
        for before in range(turns - 1)
    ]
    prices = [price(model, usage) for usage in (first, *later)]
    known = [each for each in prices if each is not None]
    return sum(known, Decimal(0)) if len(known) == len(prices) else None


def _longest(goal: AgentGoal) -> Decimal:
    """Nothing is read from the cache, each turn writes all that it may, and gets a whole result."""
    room = room_of(goal)
    first = worst_turn(goal, Resume())
    prompt = first.tokens - room
    added = room + policies.RESULT_BYTES
    turns = range(goal.turns)
    searches, rounds = of_endpoint(goal)
    return sum(
        (
            worst(goal.model, prompt + (rounds + 1) * turn * added, room, searches) or Decimal(0)
            for turn in turns
        ),
        Decimal(0),
    )
