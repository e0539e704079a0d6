"""The gate and the remarks at a commit: a check run, else a commit status; SARIF; and, where the
token writes nothing, the annotations of a workflow's own log.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.contracts import Remark, Severity
from holdfast.doors.github.api import PAGE, Api, Json, NotAllowed, as_described
from holdfast.doors.github.event import Asked
from holdfast.text import sentence, visible

NAME = "holdfast"
AT_ONCE = 50
"""Annotations that GitHub takes in one request."""
MOST_ANNOTATIONS = 250
MESSAGE_LETTERS = 4_000
STATUS_LETTERS = 140
MOST_COMMANDS = 10
"""Annotations of one level that GitHub shows of a workflow's step."""
_MARK = re.compile("[0-9a-f]{40}")
"""Of the content of a check of ours, and of the command that made it."""
_OF_CONTENT = 32
THIS = secrets.token_hex(4)
"""This command: of two at once neither goes on with the other's check, whose annotations nobody
could take away again.
"""
Conclusion = Literal["success", "failure", "neutral", "cancelled"]
LEVELS: dict[Severity, str] = {"critical": "failure", "warning": "warning", "info": "notice"}
COMMANDS: dict[Severity, str] = {"critical": "error", "warning": "warning", "info": "notice"}
STATES: dict[Conclusion, str] = {
    "success": "success", "neutral": "success", "failure": "failure", "cancelled": "error",
}  # fmt: skip


@dataclass(frozen=True)
class Check:
    """What a check says."""

    conclusion: Conclusion
    title: str
    summary: str
    remarks: Sequence[Remark] = ()
    """Those that are annotated: no thread tells them."""


async def tell_check(api: Api, asked: Asked, check: Check) -> str:
    """Make a check run, or a commit status where the token may not; return which."""
    try:
        with as_described():
            await _check_run(api, asked, check)
        return "check run"
    except NotAllowed:
        body = {
            "state": STATES[check.conclusion],
            "context": NAME,
            "description": check.title[:STATUS_LETTERS],
        }
        await api.send("POST", f"/repos/{asked.repository}/statuses/{asked.head}", body, again=True)
        return "commit status"


async def _check_run(api: Api, asked: Asked, check: Check) -> None:
    """Make it, unless the newest says the same, or go on with what this command has made of it.
    What others have left unfinished is closed before, so that it does not stand as the newest.
    """
    place = f"/repos/{asked.repository}/check-runs"
    notes = [_annotation(each) for each in check.remarks[:MOST_ANNOTATIONS] if each.file]
    output: Json = {"title": check.title, "summary": check.summary}
    content = json.dumps([check.conclusion, output, notes]).encode()
    mark = hashlib.sha256(content).hexdigest()[:_OF_CONTENT] + THIS
    found = await api.get(
        f"/repos/{asked.repository}/commits/{asked.head}/check-runs",
        check_name=NAME,
        filter="all",
        per_page=PAGE,
    )
    runs = [each for each in found["check_runs"] if _MARK.fullmatch(each["external_id"] or "")]
    newest = max(runs, key=lambda each: int(each["id"]), default=None)
    ours = newest if newest and _says(newest, mark) else None
    for each in runs:
        if each is not ours and each["status"] != "completed":
            closed = {"status": "completed", "conclusion": "cancelled"}
            await api.send("PATCH", f"{place}/{each['id']}", closed)
    if ours and ours["status"] == "completed":
        return
    there = ours["output"]["annotations_count"] if ours else 0
    if not ours:
        first = {**output, "annotations": notes[:AT_ONCE]}
        body = {"name": NAME, "head_sha": asked.head, "external_id": mark, "output": first}
        ours = await api.send("POST", place, {**body, "status": "in_progress"})
        there = len(notes[:AT_ONCE])
    for start in range(there, len(notes), AT_ONCE):
        more = {**output, "annotations": notes[start : start + AT_ONCE]}
        # GitHub adds them to those that are there: sent again they would stand there twice.
        await api.send("PATCH", f"{place}/{ours['id']}", {"output": more}, again=False)
    done = {"status": "completed", "conclusion": check.conclusion}
    await api.send("PATCH", f"{place}/{ours['id']}", done)


def _says(run: Json, mark: str) -> bool:
    """True if a check says this already, or is being made by this command to say it."""
    said = str(run["external_id"])
    return said == mark or (run["status"] == "completed" and said.startswith(mark[:_OF_CONTENT]))


def _annotation(remark: Remark) -> Json:
    line = max(remark.line, 1)
    note: Json = {
        "path": remark.file,
        "start_line": line,
        "end_line": line,
        "annotation_level": LEVELS[remark.severity],
        "message": _said(remark)[:MESSAGE_LETTERS],
    }
    return note | ({"title": remark.rule[:255]} if remark.rule else {})


def _said(remark: Remark) -> str:
    parts = (remark.message, remark.matters, remark.suggestion)
    return visible(" ".join(sentence(" ".join(each.split())) for each in parts if each.strip()))


async def upload_sarif(api: Api, asked: Asked, document: str) -> None:
    """Upload the results of this commit; later ones of the same commit replace them."""
    packed = base64.b64encode(gzip.compress(document.encode(), mtime=0)).decode()
    body = {"commit_sha": asked.head, "ref": asked.ref, "sarif": packed, "tool_name": NAME}
    await api.send("POST", f"/repos/{asked.repository}/code-scanning/sarifs", body, again=True)


# ---------------------------------------------------------------- a workflow's own log


def as_commands(remarks: Iterable[Remark]) -> list[str]:
    """Return the first remarks as commands that a runner of Actions shows at their lines. Nothing
    in them can end the command or begin another.
    """
    counts: dict[Severity, int] = {}
    found = []
    for each in remarks:
        counts[each.severity] = counts.get(each.severity, 0) + 1
        if each.file and counts[each.severity] <= MOST_COMMANDS:
            place = f"file={_property(each.file)},line={max(each.line, 1)}"
            title = f",title={_property(each.rule)}" if each.rule else ""
            said = _data(_said(each)[:MESSAGE_LETTERS])
            found.append(f"::{COMMANDS[each.severity]} {place}{title}::{said}")
    return found


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")
