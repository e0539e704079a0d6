"""What single events say of an activity or of a run below: who does it, what it cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, TimeoutError

from holdfast.calls.turn import AgentGoal, AgentReport, UseMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Bill, Call, Contract, Goal, Problem, Report, Subtask
from holdfast.contracts.errors import trouble_of
from holdfast.history.troubles import detail
from holdfast.state.graph import fingerprint
from holdfast.text import one_line
from holdfast.tracing.steps import StepKind

LENS, TOOL, PREPARE = "examine", "use_tool", "prepare"
AGENT = "AgentWorkflow"
_KINDS: dict[str, StepKind] = {PREPARE: "prepare", LENS: "lens", TOOL: "tool"}
"""By the type of an activity; every other one is a call."""
CEILING = "ceiling"
"""What was reserved for a call: what it counts at when nobody knows what it cost."""
USE, APPROVED = "use", "approved"
"""Of a call of a tool that a person approved, the name by which the decision knows it; of an agent,
who approved which of them.
"""
ASIDE = (CEILING, USE, APPROVED)
"""What helps to make a step, and is no field of it."""
SOMEBODY = "a person"
USES_TOOLS = "uses tools"
"""The verdict on a turn that is no answer yet."""
_Facts = dict[str, Any]
"""Fields of a step."""


class ToolsAsked(Contract):
    """Of what a model said, whether it called tools."""

    uses: tuple[JsonValue, ...] = ()


class Returned(Contract):
    """Of what any activity returned, what a trace tells."""

    value: ToolsAsked | None = None
    bill: Bill = Bill()
    problem: Problem | None = None
    is_error: bool = False
    unknown: bool = False
    size: int = 0
    text: str = ""


async def read(converter: DataConverter, payloads: Sequence[Payload], kind: Any) -> Any:
    """The first value of an event; None where there is none that can be read."""
    try:
        return (await converter.decode(list(payloads[:1]), [kind]))[0]
    except Exception:
        return None


async def content(converter: DataConverter, payloads: Sequence[Payload]) -> JsonValue:
    """All values of an event, as JSON; those that cannot be read are left out."""
    found = [await read(converter, [each], Any) for each in payloads]
    return found[0] if len(found) == 1 else found


def of_subtask(subtask: Subtask) -> _Facts:
    """Whose work it is."""
    return {"subtask": subtask.id, "title": subtask.title, "task": fingerprint(subtask)}


async def of_activity(converter: DataConverter, kind: str, arguments: Sequence[Payload]) -> _Facts:
    """What is asked of an activity of this type, and of whom."""
    facts: _Facts = {"kind": _KINDS.get(kind, "call")}
    if kind == LENS:
        work: WorkMaterial | None = await read(converter, arguments, WorkMaterial)
        if work is not None:
            facts |= {**of_subtask(work.subtask), "agent": work.subtask.role, "tool": work.lens}
    elif kind == TOOL:
        use: UseMaterial | None = await read(converter, arguments, UseMaterial)
        facts |= of_use(use) if use is not None else {}
    elif kind != PREPARE:
        facts["call"] = kind
        call: Call | None = await read(converter, arguments, Call)
        facts |= of_call(call) if call is not None else {}
    return facts


def of_use(material: UseMaterial) -> _Facts:
    """Which tool is called, with what."""
    use = material.use
    known = {USE: use.id} if material.approved else {}
    return {"tool": use.name, "arguments": one_line(use.says), **known}


def of_call(call: Call) -> _Facts:
    """Whom a call asks, and for what."""
    model = call.model.id if call.model else ""
    asked = {"tier": call.tier, "model": model, CEILING: call.ceiling} if model else {}
    told = {"kind": "call", "call": call.kind, "subtask": call.subtask_id, "agent": call.role}
    return {**told, **asked}


async def of_child(converter: DataConverter, kind: str, arguments: Sequence[Payload]) -> _Facts:
    """What a run below is for. Of a team only its goal is known here."""
    if kind != AGENT:
        goal: Goal | None = await read(converter, arguments, Goal)
        return {"kind": "team", "title": one_line(goal.text)[:80] if goal else ""}
    agent: AgentGoal | None = await read(converter, arguments, AgentGoal)
    if agent is None:
        return {"kind": "agent"}
    facts = of_subtask(agent.work.subtask)
    asked = {"agent": agent.role.name, "tier": agent.model.tier, "model": agent.model.id}
    approved = [each for each in agent.decisions if each.verdict == "approved"]
    by = {each.use_id: one_line(each.by) or SOMEBODY for each in approved}
    return {"kind": "agent", **facts, **asked, APPROVED: by}


async def of_result(converter: DataConverter, payloads: Sequence[Payload]) -> _Facts:
    """What an activity returned, what it cost, and what is wrong with it."""
    returned: Returned = await read(converter, payloads, Returned) or Returned()
    facts: _Facts = {"status": "ok", "size": returned.size, **_of_bill(returned.bill)}
    if returned.problem is not None:
        facts |= {"verdict": returned.problem.kind, "why": returned.problem.why}
    if returned.value is not None and returned.value.uses:
        facts["verdict"] = USES_TOOLS
    if returned.is_error:
        why = "nobody knows whether it ran" if returned.unknown else one_line(returned.text)[:300]
        facts |= {"status": "error", "verdict": "tool_error", "why": why}
    return facts


async def of_report(converter: DataConverter, payloads: Sequence[Payload]) -> _Facts:
    """What a run below handed up."""
    agent: AgentReport | None = await read(converter, payloads, AgentReport)
    if agent is not None:
        return {"status": "ok", "verdict": agent.outcome, "why": agent.why, **_of_bill(agent.bill)}
    return of_whole(await read(converter, payloads, Report))


def of_whole(report: Report | None) -> _Facts:
    """How a run closed."""
    if report is None:
        return {"status": "ok"}
    money = {"dollars": report.dollars, "assumed": report.assumed, "tokens": report.usage}
    status = "error" if report.status == "failed" else "ok"
    return {"status": status, "verdict": report.status, **money}


async def of_failure(converter: DataConverter, failure: Failure, ceiling: Decimal | None) -> _Facts:
    """Why it ended without a result, and what it had cost by then. `ceiling`: what it counts at if
    nobody knows; None: no attempt at it has begun, or it asks no model.
    """
    try:
        cause: BaseException = await converter.decode_failure(failure)
    except Exception:
        return {"status": "error", "why": "its failure cannot be read"}
    # Of a timeout the cause is the attempt before it, which was told not to be billed.
    while cause.__cause__ is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    facts: _Facts = {"status": "error", "why": " ".join(str(cause).split())[:500]}
    unsure = isinstance(cause, TimeoutError)
    if isinstance(cause, ApplicationError):
        bill = detail(cause.details, Bill) or Bill()
        facts |= {"verdict": cause.type or "", **_of_bill(bill)}
        # Nobody knows what a call cost that was lost in the middle of its answer, either.
        unknown = bill.dollars is None or not bill.usage.total
        unsure = trouble_of(cause.type) == "possibly_billed" and unknown
    if unsure and ceiling is not None:
        facts |= {"dollars": ceiling, "assumed": ceiling}
    return facts


def _of_bill(bill: Bill) -> _Facts:
    facts = {"tokens": bill.usage, "dollars": bill.dollars, "assumed": bill.assumed}
    return facts | ({"model": bill.model} if bill.model else {})
