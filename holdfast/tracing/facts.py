"""Describes an activity or a run in a trace: who does it, for what, and how it ended. Pure.

Each function returns fields of a `TraceStep`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError, TimeoutError

from holdfast.calls.rows import BatchesMaterial, CollectMaterial, MapGoal, MapReport, RowsMaterial
from holdfast.calls.turn import AgentGoal, AgentReport, UseMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, Goal, Report, Subtask
from holdfast.history.charges import LENS, OF_MAPS, PREPARE, TOOL, Asked, Outcome, Returned
from holdfast.history.executions import AGENT, MAP, End, Execution
from holdfast.history.payloads import try_decode
from holdfast.state.graph import fingerprint
from holdfast.text import one_line
from holdfast.tracing.steps import TITLE_LETTERS, StepKind, StepStatus

SOMEBODY = "a person"
USES_TOOLS = "uses tools"
"""The verdict on a turn that does not answer yet."""
_KINDS: dict[str, StepKind] = {PREPARE: "prepare", LENS: "lens", TOOL: "tool"}
_OF_WORKFLOWS: dict[str, StepKind] = {AGENT: "agent", MAP: "map"}
_STATUS: Mapping[End, StepStatus] = {"completed": "ok", "canceled": "cancelled"}
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
    facts = _describe_kind(execution)
    match asked:
        case Call(model=card):
            facts |= {"subtask": asked.subtask_id, "agent": asked.role}
            facts |= {"tier": asked.tier, "model": card.id} if card else {}
        case WorkMaterial(subtask=subtask, lens=lens):
            facts |= {**describe_subtask(subtask), "agent": subtask.role, "tool": lens}
        case UseMaterial(use=use):
            facts |= {"tool": use.name, "arguments": one_line(use.says)}
        case AgentGoal(role=role, model=card):
            facts |= describe_subtask(asked.work.subtask)
            facts |= {"agent": role.name, "tier": card.tier, "model": card.id}
        case MapGoal(role=role, models=(card, *_)):
            facts |= describe_subtask(asked.work.subtask)
            facts |= {"agent": role.name, "tier": card.tier, "model": card.id}
        case (
            RowsMaterial(call=call)
            | BatchesMaterial(call=call)
            | CollectMaterial(rows=RowsMaterial(call=call))
        ):
            facts |= {"subtask": call.subtask_id, "agent": call.role, "tier": call.tier}
        case Goal(text=text):
            facts["title"] = one_line(text)[:TITLE_LETTERS]
    return facts


def _describe_kind(execution: Execution) -> Facts:
    if execution.is_workflow:
        return {"kind": _OF_WORKFLOWS.get(execution.type, "team")}
    if execution.type in _KINDS:
        return {"kind": _KINDS[execution.type]}
    return {"kind": "call", "call": execution.type}


def describe_approvals(goal: AgentGoal) -> dict[str, str]:
    """Return by whom which calls of tools of an agent were approved."""
    approved = [each for each in goal.decisions if each.verdict == "approved"]
    return {each.use_id: one_line(each.by) or SOMEBODY for each in approved}


def describe_outcome(execution: Execution, outcome: Outcome) -> Facts:
    """Return what came of it, and what is wrong with it."""
    facts: Facts = {"status": _STATUS.get(execution.end or "failed", "error")}
    if outcome.cause is not None or execution.end != "completed":
        facts |= _describe_cause(outcome.cause)
    match outcome.returned:
        case Report(status=status):
            facts |= {"verdict": status} | ({"status": "error"} if status == "failed" else {})
        case AgentReport(outcome=verdict, why=why) | MapReport(outcome=verdict, why=why):
            facts |= {"verdict": verdict, "why": why}
        case Returned() as returned:
            facts |= _describe_returned(returned)
    return facts


def describe_price(execution: Execution, outcome: Outcome) -> Facts:
    """Return what it cost."""
    bill = outcome.bill
    # Of a reservation for a run below nobody knows how many tokens were used.
    known = outcome.returned is not None or not execution.is_workflow
    facts: Facts = {"dollars": bill.dollars, "assumed": bill.assumed}
    if known:
        facts["tokens"] = bill.usage
    if bill.model:
        facts["model"] = bill.model
    if execution.type in OF_MAPS:
        facts["rows"] = bill.calls
    return facts


def _describe_returned(returned: Returned) -> Facts:
    facts: Facts = {"size": returned.size, "outcomes": returned.outcomes}
    if returned.problem is not None:
        facts |= {"verdict": returned.problem.kind, "why": returned.problem.why}
    if returned.value is not None and returned.value.uses:
        facts["verdict"] = USES_TOOLS
    if returned.is_error:
        why = "nobody knows whether it ran" if returned.unknown else one_line(returned.text)[:300]
        facts |= {"status": "error", "verdict": "tool_error", "why": why}
    return facts


def _describe_cause(cause: BaseException | None) -> Facts:
    """Return why it ended without a result; None: that cannot be read."""
    if cause is None:
        return {"why": "its failure cannot be read"}
    # Of a timeout the cause is the attempt before it, which was told not to be billed.
    while cause.__cause__ is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    if isinstance(cause, CancelledError):
        return {}
    if isinstance(cause, TerminatedError):
        return {"verdict": "terminated", "why": str(cause)}
    verdict = {"verdict": cause.type or ""} if isinstance(cause, ApplicationError) else {}
    return {**verdict, "why": " ".join(str(cause).split())[:500]}
