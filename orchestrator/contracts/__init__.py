"""Every shape that crosses a durable boundary: workflow input and output, activity arguments and
results; a chapter a module.

Contracts are frozen, hold tuples instead of lists and ignore fields they do not know, so that an
old history still decodes after a field was added. They only gain fields, and the default of a new
field means "as before". Money is dollars, quantised to 0.000001, rounded up, a string in JSON.
"""

from orchestrator.contracts.base import (
    HARD_SUBTASK_LIMIT,
    LONGEST_CALL_SECONDS,
    MICRODOLLAR,
    CheckKind,
    Contract,
    Effort,
    EscalationReason,
    FindingStatus,
    InputKind,
    Money,
    Percent,
    ReportStatus,
    RoleTier,
    Severity,
    Span,
    Strategy,
    Tier,
    dollars,
)
from orchestrator.contracts.briefing import Briefing, Omission, PlaybookCard, RoleCard
from orchestrator.contracts.calls import (
    Bill,
    Call,
    Problem,
    ProblemKind,
    Reply,
    Unreached,
    Usage,
    Value,
)
from orchestrator.contracts.findings import (
    Draft,
    Escalation,
    Finding,
    Gap,
    NoAnswer,
    Remark,
    Revision,
    Synthesis,
    Timings,
    Try,
)
from orchestrator.contracts.goals import Approval, Fork, Goal, GoalInput, Limits, PinnedInput
from orchestrator.contracts.models import Capabilities, ModelCard, PriceStep
from orchestrator.contracts.orders import Given, Lost, Order, Standstill, Undone
from orchestrator.contracts.plans import Check, Plan, Subtask
from orchestrator.contracts.report import Report

__all__ = [
    "HARD_SUBTASK_LIMIT",
    "LONGEST_CALL_SECONDS",
    "MICRODOLLAR",
    "Approval",
    "Bill",
    "Briefing",
    "Call",
    "Capabilities",
    "Check",
    "CheckKind",
    "Contract",
    "Draft",
    "Effort",
    "Escalation",
    "EscalationReason",
    "Finding",
    "FindingStatus",
    "Fork",
    "Gap",
    "Given",
    "Goal",
    "GoalInput",
    "InputKind",
    "Limits",
    "Lost",
    "ModelCard",
    "Money",
    "NoAnswer",
    "Omission",
    "Order",
    "Percent",
    "PinnedInput",
    "Plan",
    "PlaybookCard",
    "PriceStep",
    "Problem",
    "ProblemKind",
    "Remark",
    "Reply",
    "Report",
    "ReportStatus",
    "Revision",
    "RoleCard",
    "RoleTier",
    "Severity",
    "Span",
    "Standstill",
    "Strategy",
    "Subtask",
    "Synthesis",
    "Tier",
    "Timings",
    "Try",
    "Undone",
    "Unreached",
    "Usage",
    "Value",
    "dollars",
]
