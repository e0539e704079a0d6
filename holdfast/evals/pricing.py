"""What one trial of a case is expected to cost, from sizes alone. Pure."""

from __future__ import annotations

from decimal import Decimal

from holdfast.calling import context, gathering
from holdfast.calling.reserving import input_tokens, usual_model
from holdfast.calls.grade import GRADE
from holdfast.calls.plan import PLAN
from holdfast.contracts import ModelCard, Usage, policies
from holdfast.contracts.evals import Asked
from holdfast.evals.checks import rubrics
from holdfast.evals.marking import GRADE_DOLLARS
from holdfast.evals.single import call_of
from holdfast.ledger.pricing import price, worst
from holdfast.ledger.ranges import FREE, Money, Range
from holdfast.rules.preview import predict_team
from holdfast.state.run import State


def price_case(state: State, asked: Asked) -> Range:
    """Return the least, usual and most for a run or call that is prepared."""
    if not state.goal.use_models:
        return FREE
    if asked.case.call:
        ask = call_of(state, asked)
        assert ask.call.model is not None, "a case asks a model"
        tokens = len(ask.material.model_dump_json()) // context.EXPECTED_BYTES_PER_TOKEN
        return _call(ask.call.model, tokens, ask.amount.dollars)
    cap = state.ledger.cap.dollars
    if state.estimate is not None:
        made = state.estimate
        return FREE if state.goal.plan_only else _within((made.low, made.expected, made.high), cap)
    planning = _planning(state)
    if state.goal.plan_only:
        return _within(planning, cap)
    sonnet = state.brief.model("sonnet")
    size = len(state.goal.text) + sum(each.size for each in state.brief.inputs if each.enclosed)
    tokens = size // context.EXPECTED_BYTES_PER_TOKEN
    return _within(predict_team(sonnet, tokens, cap if sonnet.prices else None), cap)


def price_judge(state: State, asked: Asked) -> Money:
    """Return what judging the answer of a trial is expected to cost."""
    count = len(rubrics(asked.case))
    if not count:
        return Decimal(0)
    model = usual_model(state.brief, GRADE)
    tokens = policies.OUTPUT_TOKENS["expected"] + len(asked.goal.text) // 4
    _, expected, _ = _call(model, tokens, GRADE_DOLLARS)
    return None if expected is None else count * expected


def _planning(state: State) -> Range:
    """Return the price of a plan that is right at once, and of one that is sent back as often as
    any may be.
    """
    model, material = usual_model(state.brief, PLAN), gathering.for_plan(state)
    tokens = len(material.model_dump_json()) // context.EXPECTED_BYTES_PER_TOKEN
    most = worst(model, input_tokens(PLAN, material), PLAN.policy.max_output)
    return _call(model, tokens, (1 + policies.REPAIRS) * (most or Decimal(0)))


def _call(model: ModelCard, tokens: int, most: Decimal) -> Range:
    if not model.prices:
        return None, None, None
    low, expected = (
        price(
            model,
            Usage(
                input_tokens=tokens + policies.EXPECTED_OVERHEAD_TOKENS,
                output_tokens=policies.OUTPUT_TOKENS[name],
            ),
        )
        for name in ("low", "expected")
    )
    return low, expected, most


def _within(prices: Range, cap: Decimal) -> Range:
    """Return a range that no cap allows to be exceeded."""
    low, expected, high = (None if each is None else min(each, cap) for each in prices)
    return low, expected, high
