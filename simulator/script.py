"""What a scripted server does: answers, latency, limits and failures, as data (YAML by hand).

seed: 7                     # of everything random; the same requests get the same fates
latency: [0.2, 0.6]         # seconds to the first token, a number or a range
tokens_per_second: 60       # as a model writes; without it answers come at once
rate: 5                     # calls of a model admitted per second; beyond: 429 with retry-after
limits: true                # the heads of answers say what is left of that
in_flight: 4                # calls of a model answered at once; beyond: 429 (`refusal: 529`)
rules:                      # the first rule that applies decides
  - {call: work, first: 2, status: 529}
  - {text: "compare", nth: [3], fault: drop_mid_stream}
  - {probability: 0.1, per_body: true, first: 1, status: 429, headers: {retry-after: "1"}}
  - {call: work, answer: escalation}
  - {call: take_turn, searches: 2}      # by the server itself, before it says more
  - {call: take_turn, turn: 1, tools: [{name: search, input: {words: tea}}]}   # then an answer
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from holdfast.calls import MODEL_KINDS
from holdfast.calls.ping import PING
from holdfast.calls.row import ROW
from holdfast.simulator.batch_script import Batches, Seconds
from holdfast.text.mistakes import mistakes

TURN = "take_turn"
"""The call of a request that has tools, whatever its schema."""
_ASKED = {kind.name: [*kind.answer.model_fields] for kind in (*MODEL_KINDS, ROW, PING)}
_NAMES = Counter(name for names in _ASKED.values() for name in names)
CALLS = {next(name for name in names if _NAMES[name] == 1): kind for kind, names in _ASKED.items()}
"""A property that the schema of one call alone has → that call, so that any request can be told
from its body.
"""

Fault = Literal[
    "hang", "drop_before_headers", "drop_mid_headers", "drop_mid_stream", "error_mid_stream",
    "end_mid_stream", "stall_mid_stream", "slow_pings", "html_200", "html_404", "html_502",
    "bad_json", "json_not_stream",
]  # fmt: skip
Flaw = Literal[
    "refusal", "truncated", "malformed", "low_confidence", "escalation", "failed", "empty"
]


class ScriptError(ValueError):
    """A script that cannot be used; the message names the file and every mistake."""


class ToolCall(BaseModel):
    """One call of a scripted turn, of whatever tools the request has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern="^[a-zA-Z0-9_-]{1,64}$")
    input: dict[str, Any] = {}


class Part(BaseModel):
    """One subtask of a plan that is written out; what it leaves out is scripted as usual."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = ""
    role: str
    secondary: str = ""
    why: str = ""
    title: str = ""
    instruction: str = ""
    acceptance_criteria: str = ""
    inputs: tuple[str, ...] | None = None
    """None: those that the role can read."""
    depends_on: tuple[str, ...] = ()


class Rule(BaseModel):
    """When all its conditions hold, do what it says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    call: str = ""
    text: str = ""
    """Part of the system prompt or a message."""
    model: str = ""
    lane: Literal["", "now", "batch"] = ""
    """Only messages asked for one by one, or only those of batches."""
    turn: int = Field(0, ge=0)
    """Only requests with one assistant message less than this: the first turn is 1; 0: all."""
    first: int = Field(0, ge=0)
    """Only this many of the first requests to which the conditions above apply; 0: all."""
    nth: tuple[int, ...] = ()
    """Only these of them, counted from 1."""
    per_body: bool = False
    """Count for each distinct request body by itself: `first: 1` then fails every call once."""
    probability: float = Field(1.0, ge=0, le=1)

    status: int = Field(0, ge=0, le=599)
    type: str = ""
    error_code: str = ""
    message: str = ""
    headers: dict[str, str] = {}
    outcome: Literal["errored", "canceled", "expired"] | None = None
    """What becomes of a request of a batch; one with a status errs, too."""
    fault: Fault | None = None
    """Of messages asked for one by one."""
    seconds: float = Field(3_600.0, ge=0)
    """How long hang, stall and slow pings last."""
    answer: Flaw | None = None
    result: str = ""
    """Text of the answer's main field, marked as scripted all the same."""
    fields: dict[str, Any] = {}
    """Values of fields of the answer, as they are: the remarks of an agent, a script, a patch."""
    plan: tuple[Part, ...] = ()
    """What a planner answers, subtask by subtask."""
    roles: tuple[dict[str, Any], ...] = ()
    """The roles that it composes for them."""
    latency: Seconds | None = None
    tools: tuple[ToolCall, ...] = ()
    """What a request with tools is answered with: these calls, in one turn, `result` before them.
    `truncated` and `malformed` then cut the arguments of the last one.
    """
    thinking: bool = True
    """True if a signed thought comes before the calls."""
    searches: int = Field(0, ge=0)
    """The server searches this often by itself before it says more, if the request offers that."""
    pause: bool = False
    """A server's own search is at work: the turn goes on when it comes back as the last message."""

    @property
    def fails(self) -> bool:
        """True if what it says is no whole, good answer."""
        return bool(self.status or self.fault or self.answer)


class Script(BaseModel):
    """The behaviour of one server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 0
    latency: Seconds = (0.0, 0.0)
    latencies: dict[str, Seconds] = {}
    """Latencies by call, instead of `latency`."""
    tokens_per_second: float = Field(0.0, ge=0)
    """Speed of the answer; 0: all at once."""
    ping_seconds: float = Field(10.0, gt=0)
    rate: float = Field(0.0, ge=0)
    """Calls admitted per second of each model, as the API counts; 0: any number."""
    burst: int = Field(1, ge=1)
    """Calls admitted at once after a rest."""
    limits: bool = False
    """True if heads of answers say what is left of `rate`, as the API's do."""
    in_flight: int = Field(0, ge=0)
    """Calls of each model that are answered at once; beyond: `refusal`. 0: any number."""
    refusal: Literal[429, 529] = 429
    """What a call beyond `in_flight` is refused with, and `retry-after: 1`."""
    subtasks: int = Field(3, ge=1)
    """Subtasks of a scripted plan; the request's own limit holds too."""
    plan: Literal["parallel", "chain", "fan_in"] = "fan_in"
    looks: bool = False
    """True if an agent that has list_files calls it before it answers, and opens what it is to
    read, where no rule applies.
    """
    key: str = ""
    """The only key accepted; empty: any."""
    mark: str = ""
    """A regular expression for what tells the prompts of one run from another's; the log counts
    charges by what it finds.
    """
    models: tuple[str, ...] = ("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5")
    rules: tuple[Rule, ...] = ()
    batches: Batches = Batches()

    @field_validator("mark")
    @classmethod
    def _compiles(cls, mark: str) -> str:
        try:
            re.compile(mark)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return mark

    @model_validator(mode="after")
    def _known_calls(self) -> Script:
        named = {rule.call for rule in self.rules if rule.call} | set(self.latencies)
        known = {*CALLS.values(), TURN}
        if unknown := sorted(named - known):
            raise ValueError(f"unknown calls {unknown}; known: {sorted(known)}")
        return self

    def latency_of(self, call: str, rule: Rule | None) -> tuple[float, float]:
        """The range of seconds to the first token of a call."""
        if rule and rule.latency:
            return rule.latency
        return self.latencies.get(call, self.latency)


def read_script(path: Path) -> Script:
    """A script from a YAML file. ScriptError says what is wrong with it, and where."""
    try:
        return Script.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ScriptError(f"script {str(path)!r} cannot be read: {error}") from error
    except ValidationError as error:
        wrong = "; ".join(mistakes(error, "script"))
        raise ScriptError(f"script {str(path)!r}: {wrong}") from error
