"""What a trace says of an activity or of a run below: who does it, for what, what came of it. Pure.

Each function returns fields of a `TraceStep`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError, TimeoutError

from holdfast.calls.turn import AgentGoal, AgentReport, UseMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Bill, Call, Goal, Report, Subtask, Usage
from holdfast.history.charges import LENS, PREPARE, TOOL, Asked, Outcome, Returned
from holdfast.history.executions import AGENT, Execution
from holdfast.history.payloads import try_decode
from holdfast.state.graph import fingerprint
from holdfast.text import one_line
from holdfast.tracing.steps import TITLE_LETTERS, StepKind, StepStatus

SOMEBODY = "a person"
USES_TOOLS = "uses tools"
"""The verdict on a turn that is no answer yet."""
_KINDS: dict[str, StepKind] = {PREPARE: "prepare", LENS: "lens", TOOL: "tool"}
STATUS: Mapping[str, StepStatus] = {"completed": "ok", "canceled": "cancelled"}
Facts = dict[str, Any]


async def decode_content(converter: DataConverter, payloads: Sequence[Payload]) -> JsonValue:
    """Return all values of an event, as JSON; null for those that cannot be read."""
    found = [await try_decode(converter, [each], Any) for each in payloads]
    return found[0] if len(found) == 1 else found


def describe_subtask(subtask: Subtask) -> Facts:
    """Return whose work it is."""
    return {"subtask": subtask.id, "title": subtask.title, "task": fingerprint(subtask)}


def describe_asked(execution: Execution, asked: Asked | None) -> Facts:
    """Return what is asked, and of whom."""
    match asked:
        case Call() if asked.model:
            whom = {"tier": asked.tier, "model": asked.model.id}
            return {**_of_call(execution), **_about(asked), **whom}
        case Call():
            return {**_of_call(execution), **_about(asked)}
        case WorkMaterial(subtask=subtask, lens=lens):
            about = describe_subtask(subtask)
            return {"kind": "lens", **about, "agent": subtask.role, "tool": lens}
        case UseMaterial(use=use):
            return {"kind": "tool", "tool": use.name, "arguments": one_line(use.says)}
        case AgentGoal():
            return describe_agent(asked)
        case Goal(text=text):
            return {"kind": "team", "title": one_line(text)[:TITLE_LETTERS]}
    if execution.is_child:
        return {"kind": "agent" if execution.type == AGENT else "team"}
    return {"kind": _KINDS[execution.type]} if execution.type in _KINDS else _of_call(execution)


def _of_call(execution: Execution) -> Facts:
    return {"kind": "call", "call": execution.type}


def _about(call: Call) -> Facts:
    return {"subtask": call.subtask_id, "agent": call.role}


def describe_agent(goal: AgentGoal) -> Facts:
    """Return whose work a segment of an agent does, and with what model."""
    whom = {"agent": goal.role.name, "tier": goal.model.tier, "model": goal.model.id}
    return {"kind": "agent", **describe_subtask(goal.work.subtask), **whom}


def describe_approvals(goal: AgentGoal) -> dict[str, str]:
    """Return by whom which calls of tools of an agent were approved."""
    approved = [each for each in goal.decisions if each.verdict == "approved"]
    return {each.use_id: one_line(each.by) or SOMEBODY for each in approved}


def describe_outcome(execution: Execution, outcome: Outcome) -> Facts:
    """Return what came of it, what it cost, and what is wrong with it."""
    facts: Facts = {"status": STATUS.get(execution.end or "", "error")}
    match outcome.returned:
        case Report() as report:
            why = describe_cause(outcome.cause) if outcome.cause else {}
            return {**facts, **why, **describe_report(report)}
        case AgentReport() as report:
            return {**facts, **describe_segment(report)}
        case Returned() as returned:
            return {**facts, **_money(outcome.bill), **_of_returned(returned)}
    facts |= _money(outcome.bill)
    if execution.is_child:
        # Nobody knows of a reservation of tokens how much of it was used.
        facts["tokens"] = Usage()
    return facts if execution.end == "completed" else {**facts, **describe_cause(outcome.cause)}


def _of_returned(returned: Returned) -> Facts:
    facts: Facts = {"size": returned.size}
    if returned.problem is not None:
        facts |= {"verdict": returned.problem.kind, "why": returned.problem.why}
    if returned.value is not None and returned.value.uses:
        facts["verdict"] = USES_TOOLS
    if returned.is_error:
        why = "nobody knows whether it ran" if returned.unknown else one_line(returned.text)[:300]
        facts |= {"status": "error", "verdict": "tool_error", "why": why}
    return facts


def describe_segment(report: AgentReport) -> Facts:
    """Return how a segment of an agent closed by its own account."""
    return {**_money(report.bill), "verdict": report.outcome, "why": report.why}


def describe_report(report: Report) -> Facts:
    """Return how a run closed by its own account."""
    money = {"dollars": report.dollars, "assumed": report.assumed, "tokens": report.usage}
    status = "error" if report.status == "failed" else "ok"
    return {"status": status, "verdict": report.status, **money}


def describe_cause(cause: BaseException | None) -> Facts:
    """Return why it ended without a result; None: that cannot be read."""
    if cause is None:
        return {"why": "its failure cannot be read"}
    # Of a timeout the cause is the attempt before it, which was told not to be billed.
    while cause.__cause__ is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    if isinstance(cause, CancelledError):
        return {}
    if isinstance(cause, TerminatedError):
        return {"verdict": "terminated"}
    verdict = {"verdict": cause.type or ""} if isinstance(cause, ApplicationError) else {}
    return {**verdict, "why": " ".join(str(cause).split())[:500]}


def _money(bill: Bill) -> Facts:
    facts = {"tokens": bill.usage, "dollars": bill.dollars, "assumed": bill.assumed}
    return facts | ({"model": bill.model} if bill.model else {})
