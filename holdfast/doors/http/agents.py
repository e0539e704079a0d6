"""AG-UI's HTTP agent: `POST /ag-ui` takes a `RunAgentInput` and streams until its run is finished.

A thread is a run of ours. The last message of a user is its goal, `context` an input, and
`forwardedProps.holdfast` has the other fields of a request. An interrupt is answered by `resume`,
whose payload is an order: a gate for a person takes no free text.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from ag_ui.core.events import (
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
)
from ag_ui.core.types import ResumeEntry, RunAgentInput, TextPart, UserMessage
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from holdfast.client.events import Place
from holdfast.client.runs import Run
from holdfast.contracts.events import AnyEvent, BudgetReached, CallWaits, PlanWaits, QuestionAsked
from holdfast.doors.http.ag_ui import PART, Seen, Story, retell
from holdfast.doors.http.bodies import read_body
from holdfast.doors.http.handlers import Door, caller_of, give_named, id_of_key
from holdfast.doors.http.problems import Problem
from holdfast.doors.http.streams import Sent
from holdfast.doors.tokens import Caller
from holdfast.errors import IdTaken
from holdfast.intake.requests import RunRequest, read_request

OURS = "holdfast"
ASKING = (PlanWaits, CallWaits, QuestionAsked, BudgetReached)
FIND_SECONDS = 5.0
"""How long the event of an interrupt is looked for."""
LAST_PART = f"{PART}{10**9 - 1}"
"""Behind all of AG-UI's events of one of ours."""


class Agent:
    """The handler, over the same door."""

    def __init__(self, door: Door) -> None:
        self.door = door

    async def run(self, request: Request) -> Response:
        given = await read_body(request, RunAgentInput)
        caller = caller_of(request)
        run_id = id_of_key(f"ag-ui {given.thread_id}", caller)
        after = ""
        if given.resume:
            run = self.door.run(run_id)
            for entry in given.resume:
                await _answer(run, entry, caller)
                after = entry.interrupt_id + LAST_PART
        else:
            try:
                run = await self.door.begin(_wanted(given, run_id), caller)
            except IdTaken as error:
                said = f"thread {given.thread_id!r} has its run; another goal needs another thread"
                raise IdTaken(said, run_id) from error
        events = _until_finished(run, Story(given.thread_id, given.run_id), after)
        return await self.door.streams.respond(request, events, over=False)


def _wanted(given: RunAgentInput, run_id: str) -> RunRequest:
    """Return the request of a new thread."""
    asked = [each for each in given.messages if isinstance(each, UserMessage)]
    if not asked:
        raise Problem("bad_input", "messages: there is none of a user, which would be the goal")
    props = given.forwarded_props if isinstance(given.forwarded_props, dict) else {}
    fields: Any = props.get(OURS, {})
    if not isinstance(fields, dict):
        raise Problem("bad_input", f"forwardedProps.{OURS}: give the fields of a request")
    if "id" in fields:
        raise Problem("bad_input", f"forwardedProps.{OURS}.id: the thread names its run")
    if given.context:
        told = "\n\n".join(f"{each.description}\n{each.value}" for each in given.context)
        inputs = fields.get("inputs", {})
        if isinstance(inputs, dict):
            fields = {**fields, "inputs": {"context": {"text": told}, **inputs}}
    return read_request({"goal": _text_of(asked[-1]), **fields, "id": run_id}, "input")


def _text_of(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    if not all(isinstance(each, TextPart) for each in message.content):
        raise Problem("bad_input", "messages: only text is read; give files as inputs")
    return "\n\n".join(each.text for each in message.content if isinstance(each, TextPart))


async def _answer(run: Run, entry: ResumeEntry, caller: Caller) -> None:
    """Give the order that the answer to an interrupt names; a plan or call that is not wanted is
    rejected or declined.
    """
    asked = await _find(run, entry.interrupt_id)
    fields = dict(entry.payload) if isinstance(entry.payload, dict) else {}
    name = fields.pop("order", "")
    if entry.status == "cancelled" and not name:
        match asked:
            case PlanWaits():
                name = "reject"
            case CallWaits():
                name, fields = "decline", {"call": asked.call}
    await give_named(run, name, fields, caller)


async def _find(run: Run, id: str) -> AnyEvent:
    """Return the event of this id. Raise Problem if the run has none that asks for something."""
    place, execution = Place.parse(id)
    with suppress(TimeoutError):
        # Behind its last event a run that is open is waited for.
        async with asyncio.timeout(FIND_SECONDS), aclosing(run.events()) as events:  # type: ignore[type-var]
            async for event in events:
                if event.id == id and isinstance(event, ASKING):
                    return event
                where, within = Place.parse(event.id)
                if within == execution and where > place:
                    break
    raise Problem("bad_input", f"resume: run {run.id} has no interrupt {id!r:.80}")


async def _until_finished(run: Run, story: Story, after: str) -> AsyncIterator[ServerSentEvent]:
    """Yield AG-UI's events until its run is finished: by an end, or a question that is open."""
    async for id, event in retell(run, story, Seen.of(after)):
        yield Sent(event.model_dump_json(by_alias=True), id=id)
        if isinstance(event, RunErrorEvent):
            return
        if isinstance(event, RunFinishedEvent):
            asks = isinstance(event.outcome, RunFinishedInterruptOutcome)
            if not asks or (await run.look(wait=False)).waiting:
                return
