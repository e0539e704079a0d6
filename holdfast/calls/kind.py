"""Define a kind of call: one value with everything that other code needs to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict

from holdfast.contracts import Contract, Reply
from holdfast.contracts.policies import Policy


class Answer(BaseModel):
    """Base of every shape that a model fills: closed objects, so `additionalProperties` is false in
    the schema.

    Structured outputs are smallest and surest without choices: all fields required, no defaults, no
    Optional, no unions, no dictionaries, no recursion. An empty string stands for nothing; models
    may change the case of an enum's values.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def schema_of(answer: type[Answer]) -> dict[str, Any]:
    """Return the schema of an answer as a model is given it."""
    return cast("dict[str, Any]", without_titles(answer.model_json_schema()))


def without_titles(part: Any) -> Any:
    """Strip pydantic's titles off a schema, which repeat the names of fields. A property that is
    called title is an object, and stays.
    """
    if isinstance(part, list):
        return [without_titles(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: without_titles(value)
        for name, value in part.items()
        if not (name == "title" and isinstance(value, str))
    }


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


AnyCase = BeforeValidator(_lower)
"""Accepts an enum of an answer in any case."""


def percent(value: int) -> int:
    """Clamp a model's confidence to 0–100."""
    return max(0, min(100, value))


Asked = TypeVar("Asked", bound=Answer)
Material = TypeVar("Material", bound=Contract)
Value = TypeVar("Value", bound=Contract)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Value]):
    """A call of the supervisor; `name` is that of its activity, the method of `Agents`."""

    name: str
    reply: type[Reply[Value]]
    policy: Policy
    prompt: str = ""
    """File of its system prompt in `prompts/`; empty if it asks no model."""
    words: str = ""
    """Words of the timeline for a call without a subtask."""
    free_words: str = ""
    """Like `words`, where it is answered without a model."""


@dataclass(frozen=True, kw_only=True)
class ModelKind(Kind[Value], Generic[Material, Asked, Value]):
    answer: type[Asked]
    value: Callable[[Asked, Material], Value]
    """Reads the answer. ValueError, with the reason, if it is malformed."""
    turn: Callable[..., str]
    """The user turn, from the material and what the worker adds to it."""
    plans: bool = False
    """True if a deployment may name a model of its own for it."""
    longer: int = 0
    """Bytes that its system prompt and schema may have beyond those allowed for every kind."""
    beyond: Callable[[Material], int] = lambda _: 0
    """The most bytes that the worker adds to the material; negative: that it leaves out."""

    @property
    def material(self) -> type[Material]:
        """Return the shape of its material."""
        return cast("type[Material]", get_type_hints(self.turn)["material"])


AnyKind = ModelKind[Any, Any, Any]
