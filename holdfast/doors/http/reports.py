"""The report of a run in the form that a caller wants: JSON, Markdown, a page, SARIF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from holdfast.client.documents import as_markdown, as_page
from holdfast.client.doing import Turns
from holdfast.client.ended import is_damaged, read_end
from holdfast.client.reading import Look, Reader, with_notes
from holdfast.contracts import Report
from holdfast.contracts.remarks import read_review
from holdfast.doors.http.problems import Problem
from holdfast.errors import RunFailed, Unreachable
from holdfast.intake.connection import Connection
from holdfast.rendering.sarif import as_sarif
from holdfast.rules.reporting import report as report_of
from holdfast.text import for_json

KINDS: Mapping[str, str] = {
    "json": "application/json",
    "md": "text/markdown",
    "html": "text/html",
    "sarif": "application/sarif+json",
}


def kind_of(request: Request) -> str:
    """Return the form that a request wants: by the path's suffix, else by what it accepts."""
    suffix = request.path_params.get("kind", "")
    if suffix:
        if suffix not in KINDS:
            raise Problem("not_found", f"a report is there as {', '.join(KINDS)}")
        return str(suffix)
    accepted = [
        each.partition(";")[0].strip().lower()
        for each in request.headers.get("accept", "*/*").split(",")
    ]
    for each in accepted:
        for kind, media in KINDS.items():
            if each in (media, "*/*") or each == f"{media.partition('/')[0]}/*":
                return kind
    raise Problem("not_acceptable", f"a report is there as {', '.join(KINDS.values())}")


async def respond(connection: Connection, run_id: str, kind: str) -> Response:
    """Return the report in this form. A page is there also of an open run, as it stands; the
    others when it is over. Raise Problem, RunFailed or Unreachable.
    """
    reader = Reader(connection, run_id)
    look = await reader.look()
    if look.away:
        raise Unreachable("; ".join(look.notes))
    if kind == "html":
        return await _page(connection, reader, look)
    if not look.closed:
        where = f"GET /runs/{run_id} tells how it stands, and /runs/{run_id}/events when it ends"
        raise Problem("run_open", f"run {run_id} is not over; {where}")
    ended = read_end(run_id, look)
    if ended.report is None:
        assert ended.failure is not None
        raise ended.failure
    return _answer(kind, _written(ended.report, kind))


def _written(report: Report, kind: str) -> str:
    if kind == "md":
        return as_markdown(report)
    if kind == "sarif":
        if read_review(report) is None:
            raise Problem("not_acceptable", f"run {report.run_id} is not a review: no SARIF of it")
        return as_sarif(report)
    return for_json(report.model_dump_json(indent=2)) + "\n"


async def _page(connection: Connection, reader: Reader, look: Look) -> Response:
    from holdfast.rendering.html.page import policy

    run_id = reader.run_id
    if look.closed and is_damaged(look):
        raise RunFailed(read_end(run_id, look).reason)
    if not look.closed:
        await reader.find_doing()
        look = await reader.look()
    if look.state is None:
        raise Problem("run_open", f"run {run_id} {look.blank}: there is nothing to show")
    look = replace(look, turns=await Turns(connection, run_id).of(look.steps))
    assert look.state is not None
    made = read_end(run_id, look).report if look.closed else None
    made = made or with_notes(report_of(look.state), look.besides)
    text = as_page(made, look, over=bool(look.closed), drawn=datetime.now(UTC))
    answer = _answer("html", text)
    answer.headers["Content-Security-Policy"] = policy()
    return answer


def _answer(kind: str, text: str) -> Response:
    return Response(text.encode("utf-8", "backslashreplace"), media_type=KINDS[kind])
