"""What starter.py tells its caller when it ends: the exit codes, the one exception that carries
one, and what a refusal of intake means here.
"""

from __future__ import annotations

from enum import IntEnum

from holdfast.contracts import ReportStatus
from holdfast.deployment.invocation import WORKER, to_type
from holdfast.errors import (
    HoldfastError,
    IdTaken,
    NoSuchRun,
    NoWorker,
    OrderRefused,
    Refused,
    RunOver,
    Unreachable,
)


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


class Exit(HoldfastError):
    """Ends the command with a message for a person and an exit code; never a traceback. The message
    says what is wrong, with which thing, and what to do, in one line, except where several mistakes
    are listed at once.
    """

    def __init__(self, message: str, code: Code = Code.REFUSED) -> None:
        super().__init__(message)
        self.code = code


_OF_ERROR: dict[type[HoldfastError], Code] = {
    Refused: Code.REFUSED,
    NoSuchRun: Code.REFUSED,
    RunOver: Code.REFUSED,
    OrderRefused: Code.REFUSED,
    Unreachable: Code.UNREACHABLE,
}


def exit_of(error: HoldfastError) -> Exit:
    """Return how a command ends that met an error, with what to type where that helps."""
    if isinstance(error, Exit):
        return error
    kinds = (kind for kind in type(error).__mro__ if kind in _OF_ERROR)
    code = next((_OF_ERROR[kind] for kind in kinds), Code.FAILED)
    message = str(error)
    if isinstance(error, IdTaken):
        message += f", or look at it with: {to_type('show', error.run_id)}"
    if isinstance(error, NoWorker):
        message += f"; start one with: {WORKER}"
    return Exit(message, code)
