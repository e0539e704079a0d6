"""One paid call: recorded answers are returned, unanswered ones are never sent again."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from temporalio import activity

from activities.heartbeat import Notes, beating, noted_before
from activities.seam import Gate, Journal, Model, ModelAnswer, ModelRequest
from orchestrator import policies
from orchestrator.answers import Answer
from orchestrator.contracts import Bill, Call, Contract, Problem, Reply, Usage
from orchestrator.errors import NotBilled, OrchestrationError, OverReservation, PossiblyBilled
from orchestrator.pricing import price, worst

MARGIN_SECONDS = 5.0
"""How much sooner than its start-to-close a call is cut, so that it can still say what it used."""

SHORTEST_WAIT = timedelta(seconds=1)
"""For which a tier is shut when an endpoint throttles without saying for how long."""

SPREAD = 0.25
"""Share by which the wait of a throttled call is lengthened at random, so that those refused
together, on many machines, do not return together. Its tier opens when the endpoint said.
"""

BROKEN_CHARACTERS = 20_000
"""How much of a malformed answer goes back to be mended."""

Asked = TypeVar("Asked", bound=Answer)
Value = TypeVar("Value", bound=Contract)


@dataclass(frozen=True)
class Shape(Generic[Asked, Value]):
    """One kind of model call: what it asks for, and what becomes of the answer."""

    answer: type[Asked]
    value: Callable[[Asked], Value]
    problem: Callable[[Value], Problem | None] = lambda _: None


@dataclass(frozen=True)
class Past:
    """What the attempts before this one noted with their heartbeats.

    How often the call was refused: Temporal's attempt does not tell, because it also counts the
    times that a call was sent back before it left. And whether it is under way: the journal knows,
    but a worker on another machine has another journal.
    """

    throttled: int = 0
    unreached: int = 0
    sent: int = 0
    """1: it left, and was not refused."""

    @classmethod
    def read(cls) -> Past:
        """What was noted last."""
        numbers = noted_before()
        return cls(*numbers) if len(numbers) == 3 else cls()

    def note(self, notes: Notes) -> None:
        """Keep for the next attempt."""
        notes.take(self.throttled, self.unreached, self.sent)


@dataclass(frozen=True)
class Asking:
    """The way from a call to its reply: journal, ceiling, model, journal, validation."""

    model: Model | None
    journal: Journal
    price: Callable[[str, Usage], Decimal | None]
    """Dollars of a call by the id of the model that served it; None when it is unpriced."""
    gate: Gate | None = None
    """None: every call leaves at once."""
    chance: Callable[[], float] = random.random
    """In [0, 1)."""

    async def ask(
        self,
        call: Call,
        material: Contract,
        shape: Shape[Asked, Value],
        system: str,
        prompt: str,
    ) -> Reply[Value]:
        """Ask once; what is wrong with a complete answer comes back as data, never raised."""
        assert self.model is not None and call.model is not None, "prepare admits no such run"
        key = _key(call, material)
        recorded = await self.journal.answer(key)
        if recorded is None:
            request = _request(call, shape.answer, system, prompt)
            async with beating() as notes:
                recorded = await self._send(key, call, request, notes)
        return self._reply(call, shape, ModelAnswer(**_decoded(recorded)))

    async def _send(self, key: str, call: Call, request: ModelRequest, notes: Notes) -> str:
        assert self.model is not None and call.model is not None
        past = Past.read()
        if past.sent or await self.journal.sent(key):
            bill = Bill(model=call.model.id, calls=1, dollars=None)
            raise PossiblyBilled("the call was sent, and its worker died before the answer", bill)
        await self._within(call, request)
        request = await self._turn(call, request, notes)
        await self.journal.mark_sent(key)
        replace(past, sent=1).note(notes)
        try:
            answer = await self.model.ask(request)
        except PossiblyBilled:
            raise
        except NotBilled as error:
            await self.journal.withdraw(key)
            raise await self._refused(call, error, notes) from None
        except OrchestrationError:
            await self.journal.withdraw(key)
            raise
        recorded = json.dumps(asdict(answer) | {"usage": answer.usage.model_dump()})
        await self.journal.record(key, recorded)
        return recorded

    async def _turn(self, call: Call, request: ModelRequest, notes: Notes) -> ModelRequest:
        """Wait until the call may leave; what is left of its time is in the request."""
        if self.gate is None:
            return request
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            await self.gate.turn(call.tier)
        except NotBilled:
            Past.read().note(notes)
            raise
        left = max(request.deadline_seconds - (clock() - began), 1.0)
        return replace(request, deadline_seconds=left)

    async def _refused(self, call: Call, error: NotBilled, notes: Notes) -> NotBilled:
        """What a call that was not billed ends with: a throttle slows its tier and is tried again
        for as long as the call may take, anything else a few times.
        """
        past = Past.read()
        if not error.throttled:
            unreached = past.unreached + 1
            replace(past, unreached=unreached).note(notes)
            if unreached < policies.TRANSPORT_TRIES:
                return error
            return NotBilled(f"{error.message} (the last of {unreached} tries)", final=True)
        replace(past, throttled=past.throttled + 1).note(notes)
        wait = error.next_retry_delay or SHORTEST_WAIT
        if self.gate is not None:
            await self.gate.throttled(call.tier, wait.total_seconds(), error.message)
        later = wait * (1 + SPREAD * self.chance())
        return NotBilled(error.message, retry_after=later, throttled=True)

    async def _within(self, call: Call, request: ModelRequest) -> None:
        """OverReservation when the worst case of the real prompt is above what was reserved."""
        assert self.model is not None and call.model is not None
        # Two steps: bytes bound the tokens for nothing; only a prompt that seems too big is
        # counted.
        for count in (_byte_bound, self.model.count_tokens):
            tokens = await count(request)
            cost = worst(call.model, tokens, call.max_output)
            total = tokens + call.max_output
            if total <= call.token_ceiling and (cost is None or cost <= call.ceiling):
                return
        usage = Usage(input_tokens=tokens, output_tokens=call.max_output)
        needed = Bill(model=call.model.id, calls=0, usage=usage, dollars=cost)
        raise OverReservation(f"the prompt has {tokens} tokens; ${cost} is needed", needed)

    def _reply(self, call: Call, shape: Shape[Asked, Value], answer: ModelAnswer) -> Reply[Value]:
        assert call.model is not None
        known = price(call.model, answer.usage) if answer.model == call.model.id else None
        cost = known if known is not None else self.price(answer.model, answer.usage)
        bill = Bill(model=answer.model, calls=1, usage=answer.usage, dollars=cost)
        problem = _stopped_short(answer)
        if problem is None:
            try:
                value = shape.value(shape.answer.model_validate_json(answer.text))
            except (ValidationError, ValueError) as error:
                text = answer.text[:BROKEN_CHARACTERS]
                problem = Problem(kind="malformed", message=_first_lines(error), answer=text)
            else:
                wrong = shape.problem(value)
                return Reply(value=None if wrong else value, problem=wrong, bill=bill)
        return Reply(problem=problem, bill=bill)


async def _byte_bound(request: ModelRequest) -> int:
    size = len((request.system + request.prompt).encode()) + len(json.dumps(request.schema))
    return -(-size // policies.BYTES_PER_TOKEN)


def _key(call: Call, material: Contract) -> str:
    """Namespace / workflow id / run id / activity id / SHA-256 of the input; never the attempt."""
    info = activity.info()
    text = call.model_dump_json() + material.model_dump_json()
    digest = hashlib.sha256(text.encode()).hexdigest()
    run = f"{info.workflow_namespace}/{info.workflow_id}/{info.workflow_run_id}"
    return f"{run}/{info.activity_id}/{digest}"


def _request(call: Call, answer: type[Answer], system: str, prompt: str) -> ModelRequest:
    assert call.model is not None
    info = activity.info()
    limit = info.start_to_close_timeout.total_seconds() if info.start_to_close_timeout else 300.0
    return ModelRequest(
        model=call.model.id,
        system=system.strip(),
        prompt=prompt,
        schema=answer.model_json_schema(),
        max_output=call.max_output,
        effort=call.effort,
        capabilities=call.capabilities,
        deadline_seconds=max(limit - MARGIN_SECONDS, 1.0),
        attempt=1 + Past.read().throttled,
    )


def _decoded(recorded: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(recorded)
    return fields | {"usage": Usage.model_validate(fields["usage"])}


def _stopped_short(answer: ModelAnswer) -> Problem | None:
    """What a stop reason says against the answer; None: it ended by itself."""
    if answer.stop_reason in ("end_turn", "stop_sequence"):
        return None
    if answer.stop_reason == "refusal":
        return Problem(kind="refusal", message=f"the model refused: {answer.detail or 'no reason'}")
    if answer.stop_reason in ("max_tokens", "model_context_window_exceeded"):
        return Problem(kind="truncated", message=f"the answer was cut ({answer.stop_reason})")
    return Problem(kind="malformed", message=f"unexpected stop reason {answer.stop_reason!r}")


def _first_lines(error: Exception) -> str:
    if isinstance(error, ValidationError):
        mistakes = error.errors(include_url=False, include_input=False)[:5]
        return "; ".join(
            f"{'.'.join(str(part) for part in each['loc']) or 'answer'}: {each['msg']}"
            for each in mistakes
        )
    return str(error)[:500]
