"""What a caller is told who asked in vain: `application/problem+json` (RFC 9457) with a stable
`code`, which is the `kind` of the error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

import structlog
from starlette.responses import Response
from temporalio.service import RPCError

from holdfast.client.connecting import explain_failure
from holdfast.errors import HoldfastError
from holdfast.storage import StoreAway

MEDIA_TYPE = "application/problem+json"
STATUS: Mapping[str, int] = {
    "bad_input": 422,
    "id_taken": 409,
    "bad_settings": 500,
    "no_such_run": 404,
    "no_such_schedule": 404,
    "schedule_taken": 409,
    "run_over": 409,
    "order_refused": 409,
    "run_failed": 409,
    "run_stuck": 409,
    "unreachable": 503,
    "no_worker": 503,
    "no_answer": 504,
    "embedded_server": 503,
}
OF_THE_DOOR: Mapping[str, int] = {
    "not_json": 400,
    "no_token": 401,
    "not_signed": 401,
    "not_allowed": 403,
    "foreign_origin": 403,
    "not_found": 404,
    "no_such_method": 405,
    "not_acceptable": 406,
    "too_slow": 408,
    "run_open": 409,
    "too_large": 413,
    "not_json_type": 415,
    "wrong_host": 421,
    "too_many": 429,
    "failed": 500,
}
"""The codes that this door adds to those of the errors."""
log = structlog.get_logger("holdfast.http")


class Problem(Exception):
    """An answer in place of what was asked for. The code is one of those above."""

    def __init__(self, code: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    @property
    def status(self) -> int:
        return {**STATUS, **OF_THE_DOOR}.get(self.code, 500)

    def response(self) -> Response:
        title = HTTPStatus(self.status).phrase
        body = {"title": title, "status": self.status, "code": self.code, "detail": self.detail}
        return Response(
            json.dumps(body),
            self.status,
            headers=self.headers,
            media_type=MEDIA_TYPE,
        )


def problem_of(error: Exception) -> Problem:
    """Return what a caller is told of an error. Of one of ours that has no words for it, only that
    it is one.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, RPCError):
        error = explain_failure(error, "its address")
    if isinstance(error, HoldfastError):
        code = error.kind if error.kind in STATUS else "failed"
        return Problem(code, str(error))
    if isinstance(error, StoreAway):
        return Problem("unreachable", str(error))
    log.error("request failed", exc_info=error)
    return Problem("failed", "a mistake of ours; the log of the server has it")
