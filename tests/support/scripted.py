"""A scripted model for behaviour tests: the real activities run, only the endpoint is replaced."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from holdfast.calls.plan import PlanAnswer, to_plan
from holdfast.contracts import Plan, Unreached, Usage
from holdfast.contracts.errors import CallRefused, EndpointUnreachable, NotBilled
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.simulator.script import CALLS


@dataclass(frozen=True)
class Arrived:
    """What has arrived of an answer, before the lines behind it."""

    text: str


Line = str | dict[str, Any] | Exception | ModelAnswer | asyncio.Event | Arrived
"""An answer's text or JSON, an error to raise, a whole answer, an event to wait for first, or what
has arrived until then.
"""


USAGE = Usage(input_tokens=1_000, output_tokens=100)


def works(result: str | dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What an agent answers when it has completed its subtask."""
    common = {"confidence": 90, "sources": ["input"], "reason": "", "why": ""}
    return {"status": "complete", "result": result, **common, **fields}


def digests(claim: str, *sources: str) -> dict[str, Any]:
    return {"claims": [{"claim": claim, "sources": list(sources)}]}


def synthesizes(answer: str, **fields: Any) -> dict[str, Any]:
    return {"answer": answer, "confidence": 88, "conflicts": [], "gaps": [], **fields}


def subtask(id: str, *depends_on: str, role: str = "analyst", **fields: Any) -> dict[str, Any]:
    return {
        "id": id,
        "title": f"Subtask {id}",
        "instruction": f"Find out everything about part {id} of the goal, as a list"
        + (f", with the findings of {', '.join(depends_on)}" if depends_on else ""),
        "inputs": [],
        "role": role,
        "secondary": "",
        "tier": "",
        "depends_on": list(depends_on),
        "acceptance_criteria": "",
        "checks": [],
        "why": f"Part {id} is asked for, and an {role} can judge it.",
        **fields,
    }


def plans(*subtasks: dict[str, Any]) -> dict[str, Any]:
    own = ("timeout_seconds", "max_output")
    return {
        "subtasks": [{k: v for k, v in each.items() if k not in own} for each in subtasks],
        "goal": "the goal",
        "strategy": "merge",
        "synthesis_instruction": "Answer in a sentence.",
        "roles": [],
        "choices": [],
        "bounds": [
            {"subtask": each["id"], **{name: each.get(name, 0) for name in own}}
            for each in subtasks
            if any(name in each for name in own)
        ],
    }


def plan_file(*subtasks: dict[str, Any]) -> dict[str, Any]:
    """The same as a file for `--plan` has it: each subtask with its own bounds."""
    whole = plans(*subtasks)
    return {name: value for name, value in whole.items() if name != "bounds"}


def ready(*subtasks: dict[str, Any]) -> Plan:
    """The same plan as a goal's ready plan."""
    return to_plan(PlanAnswer.model_validate(plans(*subtasks)))


def calls(*uses: tuple[str, dict[str, Any]], says: str = "", prefix: str = "u") -> ModelAnswer:
    """What an agent says when it wants tools: a message with a call of each."""
    content: list[dict[str, Any]] = [{"type": "text", "text": says}] if says else []
    content += [
        {"type": "tool_use", "id": f"{prefix}{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(uses, start=1)
    ]
    raw = {"content": content}
    return ModelAnswer(says, "tool_use", "claude-haiku-5-5", USAGE, raw=raw)


@dataclass
class ScriptedModel:
    """Answers by what is asked for: `plan`, `synthesize`, or the id of a subtask; each a list of
    lines in order.
    """

    lines: Mapping[str, Iterable[Line]]
    heard: list[str] = field(default_factory=list)
    """What was asked, in order of arrival."""
    requests: list[ModelRequest] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """What was asked and nobody wrote an answer for: a mistake of the test."""
    busy: int = 0
    most_busy: int = 0

    def __post_init__(self) -> None:
        self._left = {key: deque(lines) for key, lines in self.lines.items()}
        self._asked: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def asked(self, *whats: str) -> None:
        """Wait until each of these has been asked."""
        for what in whats:
            await self._asked[what].wait()

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        what = self._what(request)
        self.heard.append(what)
        self._asked[what].set()
        self.requests.append(request)
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            return await self._answer(what, request)
        finally:
            self.busy -= 1

    async def _answer(self, what: str, request: ModelRequest) -> ModelAnswer:
        left = self._left.get(what)
        if what == "ping" and left is None:
            left = deque[Line]([{"here": True}])
        if what == "critique" and left is None:
            left = deque[Line]([{"issues": []}])
        if not left:
            self.missed.append(what)
            raise CallRefused(f"script exhausted: nobody wrote an answer for {what!r}")
        line = left.popleft()
        if isinstance(line, asyncio.Event):
            await line.wait()
            return await self._answer(what, request)
        if isinstance(line, Arrived):
            request.so_far.read = lambda: line.text
            return await self._answer(what, request)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, ModelAnswer):
            return line
        text = line if isinstance(line, str) else json.dumps(line)
        raw = {"content": [{"type": "text", "text": text}]}
        return ModelAnswer(text, "end_turn", request.model, USAGE, raw=raw)

    async def count_tokens(self, request: ModelRequest) -> int:
        return len(request.prompt) // 4

    async def reach(self) -> str:
        """Says what the lines of `reach` say, then that it is there."""
        left = self._left.get("reach")
        line = left.popleft() if left else ""
        return line if isinstance(line, str) else ""

    def _what(self, request: ModelRequest) -> str:
        asked = [CALLS[key] for key in request.schema["properties"] if key in CALLS]
        if asked and asked[0] != "work":
            return asked[0]
        prompt = request.prompt or json.dumps(request.messages)
        known = [key for key in self._left if f"part {key} of the goal" in prompt]
        return known[0] if known else "the whole goal"


# ---------------------------------------------------------------- an endpoint that is lost

ADDRESS = "http://127.0.0.1:9/v1"


def lost(*, mistaken: bool = False) -> EndpointUnreachable:
    why = "no host has this name" if mistaken else "Connection refused"
    return EndpointUnreachable(Unreached(address=ADDRESS, why=why, mistaken=mistaken))


@dataclass
class Lost(ScriptedModel):
    """An endpoint that is found again when the test says so; it may be gone for an hour, too."""

    back: asyncio.Event = field(default_factory=asyncio.Event)
    away: list[timedelta] = field(default_factory=list)
    """How long it stays away at each look, in the run's time."""
    looks: int = 0
    looking: int = 0
    most_looking: int = 0

    async def reach(self) -> str:
        """Its looks are counted, and how many are made at the same time."""
        self.looks += 1
        self.looking += 1
        self.most_looking = max(self.most_looking, self.looking)
        try:
            if self.away:
                raise NotBilled("nobody there", retry_after=self.away.pop(0))
            await self.back.wait()
            return ""
        finally:
            self.looking -= 1


def found(lines: dict[str, list[Line]], **fields: Any) -> Lost:
    """The same, with an endpoint that is found at the first look."""
    model = Lost(lines, **fields)
    model.back.set()
    return model
