"""What callers send: JSON within bounds, and the fields of each order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from starlette.requests import ClientDisconnect, Request

from holdfast.contracts import Tier
from holdfast.contracts.schedules import Overlap
from holdfast.doors.http.problems import Problem
from holdfast.intake.plans import GivenPlan
from holdfast.intake.requests import REQUEST_BYTES, RunRequest, explain
from holdfast.intake.times import TypedTimes
from holdfast.untrusted.reading import NotPlain, from_json

BODY_SECONDS = 30.0
"""How long a caller may take to send a body."""
Body = TypeVar("Body", bound=BaseModel)
Words = Annotated[str, Field(max_length=100_000)]
Name = Annotated[str, Field(max_length=200)]
Rows = Words | Annotated[tuple[Name, ...], Field(max_length=1_000)]
"""`failed`, or the ids of items; empty: the order is about the whole subtask."""
Dollars = Annotated[Decimal, Field(gt=0, le=10_000, allow_inf_nan=False)]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(_Given):
    """An order without fields."""


class Approve(_Given):
    """Approve the plan that waits, or a call of a tool by its number."""

    call: int = Field(0, ge=0, strict=True)


class Decline(_Given):
    """Decline a call of a tool."""

    call: int = Field(ge=1, strict=True)
    why: Words = ""


class Reject(_Given):
    """Reject the plan that waits."""

    why: Words = ""


class Edit(_Given):
    """Take another plan in place of the one that waits."""

    plan: GivenPlan


class AnswerQuestion(_Given):
    """Answer what a subtask asks."""

    subtask: Name
    text: Words = Field(min_length=1)


class Retry(_Given):
    """Try a subtask again that did not succeed, or rows of a map."""

    subtask: Name
    tier: Tier | None = None
    instruction: Words = ""
    rows: Rows = ""


class Hand(_Given):
    """Hand a subtask to another role."""

    subtask: Name
    role: Name


class Skip(_Given):
    """Go on without a subtask, or without rows of a map."""

    subtask: Name
    why: Words = ""
    rows: Rows = ""


class Supply(_Given):
    """Give a subtask's finding by hand, or the result of one row of a map."""

    subtask: Name
    text: Words = ""
    row: Name = ""
    """The id of its item."""
    value: JsonValue = None


class RaiseCap(_Given):
    """Raise what the run may spend; what is not given stays."""

    dollars: Dollars | None = None
    model_calls: int | None = Field(None, ge=1, strict=True)
    tokens: int | None = Field(None, ge=1, strict=True)


class Cancel(_Given):
    """End the run, or one subtask of it."""

    subtask: Name = ""


class Fork(_Given):
    """Start the plan of a finished run again with one subtask changed."""

    subtask: Name = ""
    instruction: Words = ""
    tier: Tier | None = None
    role: Name = ""
    dollars: Dollars | None = None
    id: Name = ""


ORDERS: Mapping[str, type[_Given]] = {
    "approve": Approve,
    "decline": Decline,
    "reject": Reject,
    "edit": Edit,
    "answer": AnswerQuestion,
    "retry": Retry,
    "hand": Hand,
    "skip": Skip,
    "supply": Supply,
    "raise_cap": RaiseCap,
    "pause": Nothing,
    "resume": Nothing,
    "cancel": Cancel,
}
"""By the names of `Run`'s methods, whose arguments the fields are."""


class _Times(_Given):
    cron: Name = ""
    every: Name = ""
    once: Name = ""
    zone: Name = ""
    jitter: Name = ""
    catch_up: Name = ""
    overlap: Overlap | None = None
    budget: Dollars | None = None

    @property
    def typed(self) -> TypedTimes:
        return TypedTimes(
            self.cron,
            self.every,
            self.once,
            self.zone,
            self.jitter,
            self.catch_up,
            self.overlap or "",
        )


class AddSchedule(_Times):
    """Start a run by the clock: one of `cron`, `every` and `once` says when."""

    name: Name
    request: RunRequest


class EditSchedule(_Times):
    """Change what is given of a schedule; inputs and limits one by one."""

    request: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields of a run's request."""


class PauseSchedule(_Given):
    """Let its times pass until it is resumed."""

    why: Words = ""


SCHEDULE_ORDERS: Mapping[str, type[_Given]] = {
    "pause": PauseSchedule,
    "resume": Nothing,
    "trigger": Nothing,
}


async def read_json(request: Request) -> Any:
    """Return the JSON of a request; an empty body is an empty object. Raise Problem."""
    body = await read_bytes(request, REQUEST_BYTES)
    if not body.strip():
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and "+json" in kind):
        raise Problem("not_json_type", "send JSON: Content-Type: application/json")
    try:
        return await asyncio.to_thread(from_json, body.decode())
    except UnicodeDecodeError:
        raise Problem("not_json", "the body is not UTF-8 text") from None
    except NotPlain as error:
        raise Problem("not_json", f"the body: {error}") from None


async def read_body(request: Request, shape: type[Body]) -> Body:
    """Return the body of a request in this shape. Problem lists all that is wrong."""
    given = await read_json(request)
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        raise Problem("bad_input", explain(error)) from None


async def read_bytes(request: Request, most: int) -> bytes:
    """Return the body, no more of which is read than may come."""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said) > most:
        raise _too_large(most)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise _too_large(most)
    except ClientDisconnect:
        raise Problem("not_json", "the body broke off") from None
    except TimeoutError:
        raise Problem(
            "too_slow", f"the body did not come within {BODY_SECONDS:.0f} s", Connection="close"
        ) from None
    return bytes(body)


def _too_large(most: int) -> Problem:
    return Problem("too_large", f"a body has at most {most >> 20} MiB", Connection="close")
