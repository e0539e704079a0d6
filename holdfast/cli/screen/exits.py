"""What starter.py tells its caller when it ends: the exit codes, the one exception that carries
one, and what a refusal of intake means here.
"""

from __future__ import annotations

from enum import IntEnum

from holdfast.cli.screen.invocation import WORKER, to_type
from holdfast.contracts import ReportStatus
from holdfast.intake.refusal import Refused


class Code(IntEnum):
    """Exit codes of starter.py. They are an interface: scripts depend on them."""

    COMPLETE = 0
    FAILED = 1
    REFUSED = 2
    PARTIAL = 3
    DECLINED = 4
    UNREACHABLE = 5
    CANCELLED = 6
    REMARKS = 7
    LEFT = 130


_OF_STATUS: dict[ReportStatus, Code] = {
    "complete": Code.COMPLETE,
    "complete_with_gaps": Code.PARTIAL,
    "budget_stopped": Code.PARTIAL,
    "deadline_partial": Code.PARTIAL,
    "declined": Code.DECLINED,
    "cancelled": Code.CANCELLED,
    "failed": Code.FAILED,
}


def code_of(status: ReportStatus) -> Code:
    return _OF_STATUS[status]


class Exit(Exception):
    """Ends the command with a message for a person and an exit code; never a traceback. The message
    says what is wrong, with which thing, and what to do, in one line, except where several mistakes
    are listed at once.
    """

    def __init__(self, message: str, code: Code = Code.REFUSED) -> None:
        super().__init__(message)
        self.code = code


def exit_of(refused: Refused) -> Exit:
    """Return how a command ends that intake has refused, with what to type where that helps."""
    match refused.kind:
        case "input":
            return Exit(str(refused))
        case "taken":
            show = to_type("show", refused.run_id)
            return Exit(f"{refused}, or look at it with: {show}")
        case "no worker":
            return Exit(f"{refused}; start one with: {WORKER}", Code.UNREACHABLE)
