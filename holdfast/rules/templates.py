"""A plan from the plan library: whether it is taken, what it saves, and how its run went. Pure."""

from __future__ import annotations

from decimal import Decimal

from holdfast.calling import context, gathering
from holdfast.calling.reserving import fitting_call, usual_model
from holdfast.calls.kind import AnyKind
from holdfast.calls.match import MATCH
from holdfast.calls.plan import PLAN
from holdfast.contracts import Contract, TemplateUse, Usage, policies
from holdfast.ledger.pricing import price
from holdfast.ledger.ranges import format_price
from holdfast.plans.shape import shape_of
from holdfast.rules import keeping
from holdfast.state.moves import Ask
from holdfast.state.run import State
from holdfast.text import sentence

WELL = "well"
WRONG = {
    "failed": "failed",
    "complete_with_gaps": "had gaps",
    "declined": "a person rejected the plan",
}
"""Ends of a run that speak against its plan. A cap, a deadline or a cancel does not."""
ODDS = Decimal("0.5")
"""Of templates that come close, those that are expected to fit."""
LEAST_ROOM = 60
"""Tokens of the answer to such a question, thoughts included."""


def next_match(state: State) -> Ask | None:
    """Return the call that asks whether a template fits that comes close, where it is expected to
    save more than it costs and the cap pays for it beside the least that the run must ask for.
    """
    used = state.brief.template
    if used is None or used.sure or state.matched is not None or state.numbers.get("plan"):
        return None
    ask = fitting_call(state, MATCH, "match", gathering.for_match(state))
    saved = _price(state, PLAN, gathering.for_plan(state), _tokens(used.plan))
    asked = _price(state, MATCH, gathering.for_match(state), LEAST_ROOM)
    if saved is None or asked is None or asked >= saved * ODDS:
        return None
    rest = keeping.least(state.goal, state.brief)
    return ask if state.ledger.fits(ask.amount + rest, keep=False) else None


def used_template(state: State) -> TemplateUse | None:
    """Return the template that the run's plan is from; None: it is from elsewhere."""
    used = state.briefing.template if state.briefing else None
    return used if used is not None and (used.sure or state.matched) else None


def say_template(state: State) -> str:
    """Return where the plan is from and what that saves, or why a template was not used; empty if
    the library has nothing to do with it.
    """
    used = used_template(state)
    if used is None:
        return sentence(state.brief.untemplated) if state.brief.untemplated else ""
    runs = f" (of run {', '.join(used.runs)})" if used.runs else ""
    tokens = _tokens(used.plan)
    saved = _price(state, PLAN, gathering.for_plan(state), tokens)
    seconds = max(1, tokens // policies.OUTPUT_TOKENS_PER_SECOND)
    worth = f"about {format_price(saved)} and {seconds} s" if saved else f"about {seconds} s"
    return f"Plan from template {used.name}{runs}: no planner was asked, saved {worth}."


def source_of_plan(state: State) -> str:
    """Return what a finished run is found by: its template, else the shape of its plan; empty of
    parts of a run, and of what never ran.
    """
    if state.plan is None or state.goal.depth or state.goal.plan_only:
        return ""
    used = used_template(state)
    return used.version if used else f"shape {shape_of(state.goal, state.plan)}"


def how_it_went(state: State, status: str) -> str:
    """Return how a run went that had its plan from a template, as far as that is the plan's doing;
    empty where it is not.
    """
    if used_template(state) is None or state.goal.plan_only:
        return ""
    if status in WRONG:
        return WRONG[status]
    if state.replanning.revisions:
        return "its plan was changed while it ran"
    if any(each.command == "edit" and not each.refused for each in state.orders):
        return "a person changed the plan"
    return WELL if status == "complete" else ""


def _tokens(plan: Contract) -> int:
    return len(plan.model_dump_json(exclude_defaults=True)) // context.EXPECTED_BYTES_PER_TOKEN


def _price(state: State, kind: AnyKind, material: Contract, written: int) -> Decimal | None:
    """Return the expected price of a call that writes so many tokens."""
    size = len(kind.turn(material).encode()) // context.EXPECTED_BYTES_PER_TOKEN
    read = size + policies.EXPECTED_OVERHEAD_TOKENS
    usage = Usage(input_tokens=read, output_tokens=written)
    return price(usual_model(state.brief, kind), usage)
