"""Runs as tasks of MCP: the extension of 2026-07-28 (SEP-2663), and the tasks that 2025-11-25 had
in the protocol itself.

A task is a run and its id the run's: no host has to keep it, and another one goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    RequestParams,
)
from pydantic import Field, JsonValue

from holdfast.contracts.view import Question
from holdfast.doors.mcp.arguments import CancelArguments, DecideArguments
from holdfast.doors.mcp.door import Door
from holdfast.doors.mcp.server import AS_TASK, CORE_TASKS, STARTING, host_named
from holdfast.doors.mcp.telling import DECISIONS, Seen, as_json, command_of, tell, tell_error
from holdfast.errors import HoldfastError
from holdfast.rendering.status import question_text

IDENTIFIER = "io.modelcontextprotocol/tasks"
CORE_OFFER: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
NAME_HEADER = "mcp-name"
POLL_MS = 3_000
RESULT_SECONDS = 22.0
Ctx = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    task_id: str = Field(alias="taskId", max_length=300)


class UpdateParams(TaskParams):
    input_responses: dict[str, JsonValue] = Field(alias="inputResponses", max_length=1_000)


class Tasks(Extension):
    """`tasks/get`, `tasks/update` and `tasks/cancel`, and `tasks/result` for the older era."""

    identifier = IDENTIFIER

    def __init__(self, door: Door) -> None:
        self.door = door

    def methods(self) -> Sequence[MethodBinding]:
        older = frozenset({CORE_TASKS})
        return (
            MethodBinding("tasks/get", TaskParams, self.get),
            MethodBinding("tasks/update", UpdateParams, self.update),
            MethodBinding("tasks/cancel", TaskParams, self.cancel),
            MethodBinding("tasks/result", TaskParams, self.result, older),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Ctx, call_next: CallNext
    ) -> HandlerResult:
        """Answer with a task where the tool starts a run and the host speaks the extension."""
        declared = ctx.session.client_capabilities
        speaks = declared is not None and IDENTIFIER in (declared.extensions or {})
        if params.name not in STARTING or ctx.protocol_version <= CORE_TASKS or not speaks:
            return await call_next(ctx)
        result = await _as_task(ctx, call_next)
        run_id = _run_of(result)
        if not run_id:
            return result
        return {"resultType": "task", **_task(await self._seen(run_id))}

    async def in_core(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """Be the middleware by which hosts of 2025-11-25 are offered tasks, and given them."""
        if ctx.protocol_version != CORE_TASKS and ctx.method != "initialize":
            return await call_next(ctx)
        params = ctx.params or {}
        if ctx.method == "tools/call" and "task" in params and params.get("name") in STARTING:
            result = await _as_task(ctx, call_next)
            run_id = _run_of(result)
            return {"task": _core_task(await self._seen(run_id))} if run_id else result
        result = await call_next(ctx)
        if ctx.method == "initialize" and isinstance(result, dict) and _is_core(result):
            result["capabilities"] = {**result["capabilities"], "tasks": CORE_OFFER}
        return result

    # ------------------------------------------------------------ methods

    async def get(self, ctx: Ctx, params: TaskParams) -> HandlerResult:
        self._admit(ctx, params)
        seen = await self._seen(params.task_id)
        return _core_task(seen) if ctx.protocol_version == CORE_TASKS else _detailed(seen)

    async def update(self, ctx: Ctx, params: UpdateParams) -> HandlerResult:
        """Take answers to what the run asks; those to nothing that is open are passed over."""
        self._admit(ctx, params)
        seen = await self._seen(params.task_id)
        for key, question in seen.keys().items():
            response = params.input_responses.get(key)
            if isinstance(response, Mapping) and response.get("action") == "accept":
                content = response.get("content")
                if self.door.leash.may_decide and isinstance(content, Mapping):
                    await self._decide(ctx, params.task_id, question, content)
        return {}

    async def cancel(self, ctx: Ctx, params: TaskParams) -> HandlerResult:
        self._admit(ctx, params)
        seen = await self._seen(params.task_id)
        if seen.ended is None:
            try:
                await self.door.cancel(CancelArguments(id=params.task_id), host_named(ctx))
            except HoldfastError as error:
                raise _invalid(error) from error
        if ctx.protocol_version == CORE_TASKS:
            return _core_task(await self._seen(params.task_id)) | {"status": "cancelled"}
        return {}

    async def result(self, _ctx: Ctx, params: TaskParams) -> HandlerResult:
        """Return what the tool would have returned, once the run has ended."""
        seen = await self._seen(params.task_id)
        if not (seen.ended or seen.questions):
            seen = await self.door.until(params.task_id, RESULT_SECONDS, _stands)
        if seen.ended is None:
            why = tell(seen).data["next"]
            raise MCPError(INTERNAL_ERROR, f"the task has no result yet; {why}")
        made = as_json(tell(seen))
        return made | {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": seen.run_id}}}

    # ------------------------------------------------------------ parts

    def _admit(self, ctx: Ctx, params: TaskParams) -> None:
        """Raise MCPError unless the host may ask about tasks, and its headers name this one."""
        if ctx.protocol_version == CORE_TASKS:
            return
        require_client_extension(ctx, IDENTIFIER)
        headers = getattr(ctx.request, "headers", {})
        if headers.get(NAME_HEADER, params.task_id) != params.task_id:
            raise MCPError(HEADER_MISMATCH, f"the header {NAME_HEADER} names another task")

    async def _seen(self, run_id: str) -> Seen:
        try:
            return await self.door.seen(run_id)
        except HoldfastError as error:
            raise _invalid(error) from error

    async def _decide(
        self, ctx: Ctx, run_id: str, question: Question, content: Mapping[str, Any]
    ) -> None:
        given = {
            "id": run_id,
            "decision": content.get("decision", ""),
            "text": str(content.get("text", "")),
            "dollars": content.get("dollars"),
            "subtask": question.subtask_id if not question.call else "",
            "call": question.call,
        }
        try:
            await self.door.decide(DecideArguments.model_validate(given), host_named(ctx))
        except (HoldfastError, ValueError) as error:
            raise _invalid(error) from error


def _stands(seen: Seen) -> bool:
    return bool(seen.ended or seen.questions)


def _is_core(initialized: dict[str, Any]) -> bool:
    return bool(initialized.get("protocolVersion") == CORE_TASKS)


async def _as_task(ctx: Ctx, call_next: CallNext) -> HandlerResult:
    token = AS_TASK.set(True)
    try:
        return await call_next(ctx)
    finally:
        AS_TASK.reset(token)


def _run_of(result: HandlerResult) -> str:
    """Return the id of the run that a tool has started; empty if it started none."""
    made = result if isinstance(result, Mapping) else _dumped(result)
    data = made.get("structuredContent")
    found = data.get("id") if isinstance(data, Mapping) else None
    return found if isinstance(found, str) else ""


def _dumped(result: Any) -> Mapping[str, Any]:
    return result.model_dump(by_alias=True, mode="json") if result is not None else {}


def _invalid(error: Exception) -> MCPError:
    told = tell_error(error)
    return MCPError(INVALID_PARAMS, told.text, told.data["error"])


# ---------------------------------------------------------------- shapes


def _times(seen: Seen) -> tuple[str, str]:
    view = seen.view
    now = datetime.now().astimezone()
    started, changed = (view.started, view.now) if view else (now, now)
    return started.isoformat(), changed.isoformat()


def _task(seen: Seen) -> dict[str, Any]:
    """Return a run as a Task of SEP-2663."""
    created, updated = _times(seen)
    status = "completed" if seen.status == "failed" and seen.report else seen.status
    return {
        "taskId": seen.run_id,
        "status": status,
        "statusMessage": f"{seen.standing}. {tell(seen).data['next']}",
        "createdAt": created,
        "lastUpdatedAt": updated,
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def _detailed(seen: Seen) -> dict[str, Any]:
    """Return the same with what belongs to its status."""
    task = _task(seen)
    match task["status"]:
        case "completed":
            task["result"] = as_json(tell(seen))
        case "failed":
            task["error"] = {"code": INTERNAL_ERROR, "message": seen.standing}
        case "input_required":
            task["inputRequests"] = {
                key: _request(seen, question) for key, question in seen.keys().items()
            }
    return task


def _core_task(seen: Seen) -> dict[str, Any]:
    """Return a run as a Task of 2025-11-25."""
    task = _task(seen)
    del task["ttlMs"], task["pollIntervalMs"]
    return task | {"status": seen.status, "ttl": None, "pollInterval": POLL_MS}


def _request(seen: Seen, question: Question) -> dict[str, Any]:
    """Return a question as a request for a form; who may not decide is only told of it."""
    asked = question_text(question, seen.view)[:2_000]
    if seen.may_decide:
        fields: dict[str, Any] = {
            "decision": {"type": "string", "enum": [*DECISIONS[question.kind]]},
            "text": {"type": "string", "description": "Answer, reason or instruction."},
        }
        if question.kind == "budget":
            fields["dollars"] = {"type": "number", "description": "The new cap."}
        schema = {"type": "object", "properties": fields, "required": ["decision"]}
    else:
        where = f"A person decides it with: {command_of(question, seen.run_id)}"
        asked = f"{asked}\n{where} (answering here changes nothing)."
        schema = {"type": "object", "properties": {}}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": asked, "requestedSchema": schema},
    }
