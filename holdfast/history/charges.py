"""Reads what activities and workflows were asked, how they ended and what they cost, by their
events alone. Pure.

No state of a run is needed: so it holds for agents, and for histories that the rules cannot follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from pydantic import JsonValue
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from holdfast.calls.rows import (
    BatchesMaterial,
    CloseMaterial,
    CollectMaterial,
    MapGoal,
    MapReport,
    OpenMaterial,
    RowsMaterial,
)
from holdfast.calls.turn import AgentGoal, AgentReport, UseMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Bill, Call, Contract, Goal, Problem, Report, Usage
from holdfast.history.executions import AGENT, MAP, Execution
from holdfast.history.payloads import decode_cause, try_decode
from holdfast.history.troubles import find_detail, find_report, spent_nothing

LENS, TOOL, PREPARE = "examine", "use_tool", "prepare"
"""The types of the activities that ask no model."""
OF_MAPS: Mapping[str, type[Contract]] = {
    "open_map": OpenMaterial,
    "close_map": CloseMaterial,
    "ask_rows": RowsMaterial,
    "submit_rows": RowsMaterial,
    "collect_rows": CollectMaterial,
    "look_at_batches": BatchesMaterial,
    "cancel_batches": BatchesMaterial,
}
"""What the activities of a map are given."""
OfMap = OpenMaterial | CloseMaterial | RowsMaterial | CollectMaterial | BatchesMaterial
Asked = Call | WorkMaterial | UseMaterial | AgentGoal | MapGoal | Goal | OfMap


class ToolsAsked(Contract):
    """The calls of tools in what a model said, if there are any."""

    uses: tuple[JsonValue, ...] = ()


class Returned(Contract):
    """The result of any activity, as far as readers of all of them need it."""

    value: ToolsAsked | None = None
    bill: Bill = Bill()
    problem: Problem | None = None
    is_error: bool = False
    unknown: bool = False
    size: int = 0
    text: str = ""
    outcomes: str = ""
    """Blob of what came of some rows of a map."""


@dataclass(frozen=True)
class Outcome:
    """How something ended."""

    bill: Bill
    returned: Returned | AgentReport | MapReport | Report | None = None
    """None: nothing, or nothing that can be read."""
    cause: BaseException | None = None
    """Why it ended without a result; None: it has one, or nobody can read why."""


async def read_input(converter: DataConverter, execution: Execution) -> Asked | None:
    """Return what was asked; None of `prepare`, and where it cannot be read."""
    if execution.type == PREPARE:
        return None
    kinds = {AGENT: AgentGoal, MAP: MapGoal, LENS: WorkMaterial, TOOL: UseMaterial, **OF_MAPS}
    kind = kinds.get(execution.type, Goal if execution.is_workflow else Call)
    asked: Asked | None = await try_decode(converter, execution.input, kind)
    return asked


def reserved_for(execution: Execution, asked: Asked | None) -> Bill:
    """Return what counts where nobody knows the price: the reservation; nothing for what asks no
    model. `asked`: as `read_input` has it.
    """
    match asked:
        case Call(model=card) if card is not None:
            dollars = asked.ceiling if card.prices else None
            return Bill(model=card.id, calls=1, dollars=dollars, assumed=asked.ceiling)
        case RowsMaterial(call=Call(model=card) as call) if card is not None:
            dollars = call.ceiling if card.prices else None
            return Bill(model=card.id, calls=1, dollars=dollars, assumed=call.ceiling)
        case MapGoal(slice=part, models=(card, *_)):
            dollars = part.dollars if card.prices else None
            tokens = Usage(output_tokens=part.tokens)
            return Bill(calls=1, usage=tokens, dollars=dollars, assumed=part.dollars)
        case AgentGoal(slice=part, model=card):
            return Bill(
                calls=part.calls,
                usage=Usage(output_tokens=part.tokens),
                dollars=part.dollars if card.prices else None,
                assumed=part.dollars,
            )
        case Goal(limits=limits):
            return Bill(
                calls=limits.model_calls,
                usage=Usage(output_tokens=limits.tokens),
                dollars=limits.dollars,
                assumed=limits.dollars,
            )
    return Bill(calls=1, dollars=None) if execution.is_workflow else Bill()


async def read_outcome(
    converter: DataConverter, execution: Execution, asked: Asked | None
) -> Outcome:
    """Return what came of it, and what it cost. `asked`: as `read_input` has it."""
    returned, cause = await _read_end(converter, execution)
    match returned:
        case Returned(bill=bill) | AgentReport(bill=bill) | MapReport(bill=bill):
            return Outcome(bill, returned)
        case Report():
            return Outcome(_bill_of(returned), returned, cause)
    reserved = reserved_for(execution, asked)
    if execution.end in ("canceled", "not_started"):
        return Outcome(Bill(), None, cause)
    if execution.is_workflow:
        return Outcome(Bill() if spent_nothing(cause) else reserved, None, cause)
    if execution.end == "timed_out" and not execution.last_started:
        return Outcome(Bill(), None, cause)
    return Outcome(_unless_told(reserved, cause), None, cause)


async def _read_end(
    converter: DataConverter, execution: Execution
) -> tuple[Returned | AgentReport | MapReport | Report | None, BaseException | None]:
    if execution.end == "completed":
        report = {AGENT: AgentReport, MAP: MapReport}.get(execution.type, Report)
        kind = report if execution.is_workflow else Returned
        return await try_decode(converter, execution.result, kind), None
    with suppress(Exception):
        cause = await decode_cause(converter, execution)
        return find_report(cause) if execution.is_workflow else None, cause
    return None, None


def _bill_of(report: Report) -> Bill:
    return Bill(
        calls=report.model_calls,
        usage=report.usage,
        dollars=report.dollars,
        assumed=report.assumed,
    )


def _unless_told(unknown: Bill, cause: BaseException | None) -> Bill:
    """Return what a call cost that ended without a result: what its failure tells, else what was
    reserved.
    """
    if not isinstance(cause, ApplicationError):
        return unknown
    bill = find_detail(cause.details, Bill) or Bill()
    if not bill.calls or (bill.usage.total and bill.dollars is not None):
        return bill
    return unknown.model_copy(update={"usage": bill.usage, "earlier": bill.earlier})
