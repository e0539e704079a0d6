"""A case that is one call or one tool: asked as a run asks it, by the same prompts, with the same
reservation. Pure.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from temporalio.exceptions import ActivityError

from holdfast.calling.reserving import fitting_call
from holdfast.calling.schedule import options_of
from holdfast.calls import MODEL_KINDS
from holdfast.calls.about import About
from holdfast.calls.sources import choose_sources
from holdfast.calls.turn import ToolResult, ToolUse, UseMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Bill, Briefing, Contract, Goal, Reply, Span, Subtask, policies
from holdfast.contracts.evals import Answered, Asked
from holdfast.contracts.policies import Options
from holdfast.history.troubles import classify_trouble, describe_error
from holdfast.rules.reducer import apply
from holdfast.state.events import Prepared, Started
from holdfast.state.moves import Ask, Prepare
from holdfast.state.paying import bill_of_loss, complete_bill
from holdfast.state.run import State, first_state

USE = "use-1"
"""Id of the only call of a tool in its transcript."""
KINDS = {kind.name: kind for kind in MODEL_KINDS}


def begin(goal: Goal, run: str, first_run: str, started: datetime) -> tuple[State, Options]:
    """Return the state of a run before it is prepared, and how long that may take."""
    state = apply(first_state(run, goal, started, first_run), Started(Prepare()))
    options = options_of(state, Prepare())
    assert options is not None, "preparation is an activity"
    return state, options


def prepared(state: State, briefing: Briefing) -> State:
    return apply(state, Prepared(briefing))


def call_of(state: State, asked: Asked) -> Ask:
    """Return the call of a case, with its reservation."""
    kind = KINDS[asked.case.call]
    material = kind.material.model_validate(asked.case.material)
    return fitting_call(state, kind, kind.name, _completed(material, state), keep=False)


def _completed(material: Any, state: State) -> Contract:
    """Return material with the day and the inputs, where it says nothing of them."""
    fields = type(material).model_fields
    update: dict[str, object] = {}
    if "about" in fields and material.about == About():
        update["about"] = About(today=state.brief.today)
    inputs = state.brief.inputs
    if "sources" in fields and inputs and not material.sources.inputs:
        update["sources"] = choose_sources(inputs, state.goal.limits.supervisor_context_tokens)
    made: Contract = material.model_copy(update=update)
    return made


def fits(state: State, ask: Ask) -> bool:
    return state.ledger.fits(ask.amount, keep=False)


def options_for(state: State, ask: Ask) -> Options:
    options = options_of(state, ask)
    assert options is not None, "a call is an activity"
    return options


def use_of(state: State, asked: Asked) -> tuple[UseMaterial, Options]:
    """Return the call of a tool, as an agent makes it."""
    case, names = asked.case, tuple(each.name for each in state.brief.inputs)
    subtask = Subtask(id="t1", title=case.name, instruction=case.name, inputs=names, role="tester")
    seconds = state.goal.limits.subtask_timeout_seconds
    work = WorkMaterial(subtask=subtask, inputs=state.brief.inputs, timeout_seconds=seconds)
    material = UseMaterial(
        work=work,
        tools=(case.tool,),
        transcript=asked.transcript,
        use=ToolUse(id=USE, name=case.tool),
        run=state.first_run_id,
        project=asked.goal.project,
    )
    return material, policies.USE_TOOL.options(seconds + policies.LENS_MARGIN_SECONDS)


def answered(ask: Ask, reply: Reply[Any]) -> Answered:
    assert ask.call.model is not None, "a case asks a model"
    return Answered(
        value=None if reply.value is None else reply.value.model_dump(mode="json"),
        why="" if reply.problem is None else f"{reply.problem.kind}: {reply.problem.why}",
        bill=complete_bill(ask.call.model, reply.bill, ask.amount),
        seconds=_seconds(reply.span),
    )


def lost(ask: Ask, error: ActivityError, started: datetime, options: Options) -> Answered:
    """Return that no answer came, at what that counts."""
    assert ask.call.model is not None, "a case asks a model"
    bill = bill_of_loss(classify_trouble(error, started, options)) or Bill()
    paid = complete_bill(ask.call.model, bill, ask.amount) if bill.calls else bill
    return Answered(why=describe_error(error), bill=paid)


def too_dear(state: State, ask: Ask) -> Answered:
    """Return that the call was not made, because its worst case does not fit."""
    most, given = ask.amount.dollars, state.ledger.cap.dollars
    return Answered(why=f"the call may cost ${most}, and its limits allow ${given}")


def used(result: ToolResult) -> Answered:
    """Return what a tool brought; its text is in the store."""
    return Answered(text=result.digest, failed=result.is_error, seconds=_seconds(result.span))


def unused(error: ActivityError) -> Answered:
    return Answered(why=describe_error(error), bill=Bill(dollars=Decimal(0)))


def closed(cause: BaseException, cap: Decimal) -> Answered:
    """Return that a single call closed without an answer. What could not be prepared has paid
    nothing; of what was closed from outside nobody knows.
    """
    if isinstance(cause, ActivityError):
        return Answered(why=describe_error(cause))
    why = " ".join(str(cause).split())
    return Answered(why=why, bill=Bill(calls=1, dollars=cap, assumed=cap, final=False))


def _seconds(span: Span | None) -> float:
    return (span.ended - span.started).total_seconds() if span else 0.0
