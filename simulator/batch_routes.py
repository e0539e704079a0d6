"""The endpoints of batches: what is refused, what is answered, and which faults it meets."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from holdfast.simulator.asked import key_of, read_body, unknown_key
from holdfast.simulator.batch_script import WITHIN, Batches, BatchFault, Step
from holdfast.simulator.batches import Batch, BatchStore, workspace_of
from holdfast.simulator.limiter import Limiter
from holdfast.simulator.log import RequestLog
from holdfast.simulator.replies import HTML, LIMITS, STATUS_TYPES, drop, headers_of, refuse
from holdfast.simulator.script import Script

Json = dict[str, Any]
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CHUNK_BYTES = 64 * 1024
PAGE, LARGEST_PAGE = 20, 1_000
FIELDS = {"custom_id", "params"}

Act = Callable[[web.Request, str], Awaitable[web.StreamResponse]]
FAULT = web.RequestKey("fault", BatchFault)
"""What goes wrong with a request once it took effect, or while it does."""


class BatchRoutes:
    """Serves what a store has, to the workspace that it belongs to."""

    def __init__(self, script: Callable[[], Script], log: RequestLog, store: BatchStore) -> None:
        self._script = script
        self._log = log
        self._store = store
        self._limiters: defaultdict[str, Limiter] = defaultdict(Limiter)

    async def serve(self, step: Step, request: web.Request) -> web.StreamResponse:
        """Answer a request to one of the endpoints, unless its key, a fault or the rate forbids."""
        script = self._script()
        if refusal := unknown_key(request, script):
            return refusal
        play = script.batches
        if not play.offered:
            raise web.HTTPNotFound
        self._log.steps[step] += 1
        workspace = workspace_of(play, key_of(request))
        if request.headers.get("anthropic-workspace-id", workspace) != workspace:
            text = "The credential does not belong to this workspace."
            return refuse(403, "permission_error", text, request)
        fault = self._fault(step, play, script.seed)
        if fault and not fault.after and fault.fault not in WITHIN:
            return await _fail(fault, request)
        limiter = self._limiters[workspace]
        wait = limiter.admit(play.rate, play.burst, time.monotonic())
        if script.limits and play.rate:
            request[LIMITS] = limiter.said(play.rate, play.burst, datetime.now(UTC))
        if wait:
            text = "This request would exceed your rate limit."
            head = {"retry-after": str(wait)}
            return refuse(429, "rate_limit_error", text, request, headers=head)
        acts: dict[Step, Act] = {
            "create": self._create,
            "retrieve": self._retrieve,
            "list": self._list,
            "cancel": self._cancel,
            "delete": self._delete,
            "results": self._results,
        }
        if fault:
            request[FAULT] = fault
        response = await acts[step](request, workspace)
        if fault and fault.after and response.status < 300:
            return await _fail(fault, request)
        return response

    def _fault(self, step: Step, play: Batches, seed: int) -> BatchFault | None:
        met = self._log.steps[step]
        for number, fault in enumerate(play.faults):
            if fault.step != step:
                continue
            if (fault.first and met > fault.first) or (fault.nth and met not in fault.nth):
                continue
            if random.Random(f"{seed} {number} {met}").random() < fault.probability:
                return fault
        return None

    async def _create(self, request: web.Request, workspace: str) -> web.StreamResponse:
        play = self._script().batches
        body, wrong = read_body(await request.clone(client_max_size=play.most_bytes).read())
        if body is None or (wrong := mistake(body, play.most_rows)):
            return refuse(400, "invalid_request_error", wrong, request)
        rows = [(each["custom_id"], each["params"]) for each in body["requests"]]
        if play.queued and self._store.unfinished(workspace) + len(rows) > play.queued:
            text = "This batch would exceed the number of requests that may be in processing."
            head = {"retry-after": "1"}
            return refuse(429, "rate_limit_error", text, request, headers=head)
        batch = self._store.create(workspace, rows)
        self._log.batches[batch.id].told = FAULT not in request
        return _shown(batch, request)

    async def _retrieve(self, request: web.Request, workspace: str) -> web.StreamResponse:
        batch = self._found(request, workspace)
        self._log.batches[batch.id].retrieved += 1
        return _shown(batch, request)

    async def _list(self, request: web.Request, workspace: str) -> web.StreamResponse:
        known = [each for each in self._store.batches.values() if each.workspace == workspace]
        now, behind = time.monotonic(), self._script().batches.behind
        shown = [each for each in reversed(known) if now - each.born >= behind]
        page, more, wrong = _page(shown, request)
        if wrong:
            return refuse(400, "invalid_request_error", wrong, request)
        url = str(request.url.origin())
        listing = {
            "data": [each.said(url) for each in page],
            "has_more": more,
            "first_id": page[0].id if page else None,
            "last_id": page[-1].id if page else None,
        }
        return web.json_response(listing, headers=headers_of(request))

    async def _cancel(self, request: web.Request, workspace: str) -> web.StreamResponse:
        batch = self._found(request, workspace)
        if batch.ended:
            text = f"Message Batch {batch.id} has ended and cannot be canceled."
            return refuse(400, "invalid_request_error", text, request)
        self._store.cancel(batch)
        self._log.batches[batch.id].canceled = True
        return _shown(batch, request)

    async def _delete(self, request: web.Request, workspace: str) -> web.StreamResponse:
        batch = self._found(request, workspace)
        if not batch.ended:
            text = f"Message Batch {batch.id} is still processing. Cancel it first."
            return refuse(400, "invalid_request_error", text, request)
        del self._store.batches[batch.id]
        self._log.batches[batch.id].deleted = True
        gone = {"id": batch.id, "type": "message_batch_deleted"}
        return web.json_response(gone, headers=headers_of(request))

    async def _results(self, request: web.Request, workspace: str) -> web.StreamResponse:
        batch = self._found(request, workspace)
        if not batch.ended or batch.archived:
            gone = "any more" if batch.archived else "until it has ended"
            text = f"Message Batch {batch.id} has no results {gone}."
            return refuse(404, "not_found_error", text, request)
        fault = request.get(FAULT)
        if fault and fault.after:
            # Nothing takes effect by being read: the fault is all there is.
            return web.Response()
        record = self._log.batches[batch.id]
        record.fetched += 1
        response = web.StreamResponse(headers=headers_of(request))
        response.content_type = "application/x-jsonl"
        await response.prepare(request)
        whole = int(len(batch.lines) * fault.at) if fault else len(batch.lines)
        await self._send_lines(response, batch, whole)
        if fault:
            await _break_off(request, response, fault, batch.lines[whole : whole + 1])
        else:
            record.complete += 1
        return response

    async def _send_lines(self, response: web.StreamResponse, batch: Batch, whole: int) -> None:
        """Send so many lines, some at a time; what left for the first time is delivered."""
        start, size = 0, 0
        for place in range(whole):
            size += len(batch.lines[place][1])
            if size < CHUNK_BYTES and place < whole - 1:
                continue
            await response.write(b"".join(line for _, line in batch.lines[start : place + 1]))
            for sent in range(start, place + 1):
                digest, line = batch.lines[sent]
                if digest:
                    self._log.delivered(digest)
                    batch.lines[sent] = ("", line)
            start, size = place + 1, 0

    def _found(self, request: web.Request, workspace: str) -> Batch:
        """Return the batch of a request. HTTPNotFound if this workspace has none of this id."""
        id = request.match_info["id"]
        batch = self._store.batches.get(id)
        unseen = self._script().batches.unseen
        if batch is None or batch.workspace != workspace or time.monotonic() - batch.born < unseen:
            raise web.HTTPNotFound(reason=f"Message Batch {id[:80]!r} not found.")
        return batch


def _shown(batch: Batch, request: web.Request) -> web.Response:
    said = batch.said(str(request.url.origin()))
    return web.json_response(said, headers=headers_of(request))


def _page(shown: list[Batch], request: web.Request) -> tuple[list[Batch], bool, str]:
    """Return the batches of a page, whether there are more beyond it, and what is wrong with what
    was asked for.
    """
    limit = request.query.get("limit", str(PAGE))
    if not (limit.isdecimal() and 1 <= int(limit) <= LARGEST_PAGE):
        return [], False, f"limit: Input should be a number from 1 to {LARGEST_PAGE}"
    ids = [each.id for each in shown]
    first, last = 0, len(ids)
    for cursor in ("after_id", "before_id"):
        if (id := request.query.get(cursor)) is None:
            continue
        if id not in ids:
            return [], False, f"{cursor}: no Message Batch has this id"
        if cursor == "after_id":
            first = ids.index(id) + 1
        else:
            last = ids.index(id)
    within, most = shown[first:last], int(limit)
    page = within[-most:] if "before_id" in request.query else within[:most]
    return page, len(within) > len(page), ""


def mistake(body: Json, most_rows: int) -> str:
    """Return the first thing that is wrong with a batch; empty: nothing. What is wrong with a
    request of it is seen when it is answered, but for what no batch may have.
    """
    rows = body.get("requests")
    if extra := sorted(set(body) - {"requests"}):
        return f"{extra[0]}: Extra inputs are not permitted"
    if not isinstance(rows, list):
        wrong = "Field required" if rows is None else "Input should be a valid list"
        return f"requests: {wrong}"
    if not rows:
        return "requests: List should have at least 1 item after validation, not 0"
    if len(rows) > most_rows:
        most = f"List should have at most {most_rows} items after validation"
        return f"requests: {most}, not {len(rows)}"
    for number, row in enumerate(rows):
        if wrong := _wrong_row(row):
            return f"requests.{number}{wrong}"
    if len({row["custom_id"] for row in rows}) < len(rows):
        return "requests: custom_id must be unique"
    return ""


def _wrong_row(row: Any) -> str:
    if not isinstance(row, dict):
        return ": Input should be an object"
    for name in ("custom_id", "params"):
        if name not in row:
            return f".{name}: Field required"
    if extra := sorted(set(row) - FIELDS):
        return f".{extra[0]}: Extra inputs are not permitted"
    if not (isinstance(row["custom_id"], str) and CUSTOM_ID.fullmatch(row["custom_id"])):
        return f".custom_id: String should match pattern '^{CUSTOM_ID.pattern}$'"
    params = row["params"]
    if not isinstance(params, dict):
        return ".params: Input should be an object"
    if params.get("stream"):
        return ".params.stream: Streaming is not supported in a batch"
    if "speed" in params:
        return ".params.speed: Extra inputs are not permitted"
    if params.get("max_tokens") == 0:
        return ".params.max_tokens: Input should be greater than or equal to 1"
    return ""


async def _fail(fault: BatchFault, request: web.Request) -> web.Response:
    """Let a fault happen in place of an answer."""
    if fault.fault == "hang":
        await asyncio.sleep(fault.seconds)
    if fault.fault in ("hang", "drop"):
        return drop(request)
    if fault.fault == "html":
        status, head = fault.status or 502, headers_of(request)
        return web.Response(text=HTML, status=status, content_type="text/html", headers=head)
    kind = fault.type or STATUS_TYPES.get(fault.status, "api_error")
    text = fault.message or "scripted failure"
    return refuse(fault.status, kind, text, request, headers=fault.headers)


async def _break_off(
    request: web.Request,
    response: web.StreamResponse,
    fault: BatchFault,
    following: list[tuple[str, bytes]],
) -> None:
    """End results before their end: after a whole line, or within the one that follows."""
    if fault.fault != "short":
        await response.write(b"".join(line[: len(line) // 2] for _, line in following))
    if fault.fault == "stall":
        await asyncio.sleep(fault.seconds)
    if fault.fault in ("cut", "stall") and request.transport is not None:
        # What was written still leaves.
        request.transport.close()
