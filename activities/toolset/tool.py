"""What a tool is: an async function whose docstring and signature say all that a model is told."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Protocol, cast, get_type_hints

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError

from holdfast.activities.repositories.manifest import Manifest
from holdfast.contracts import MadeFile, PinnedInput
from holdfast.deployment import extras
from holdfast.text.mistakes import mistakes

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What endpoints take as the name of a tool."""
MOST_MISTAKES = 10
"""Mistakes in arguments that are named; each is a line."""


class ToolError(Exception):
    """Why a tool cannot do what it was asked: one line that the model can act on. An `unsure` call
    was begun, and nobody knows what it has done.
    """

    def __init__(self, message: str, *, unsure: bool = False) -> None:
        super().__init__(message)
        self.unsure = unsure


class NotATool(TypeError):
    """A function cannot be a tool; the message says which one, why, and what to change."""


@dataclass(frozen=True)
class Result:
    """What a model is told of a call, and what the house keeps of it as data."""

    text: str
    is_error: bool = False
    data: JsonValue = None
    unsure: bool = False
    """Whether the call was begun, and nobody knows what it has done."""


class Here(Protocol):
    """Where a call runs: what the subtask may see, and nothing else."""

    @property
    def key(self) -> str:
        """The idempotency key of this very call: the same when it is run again."""
        ...

    @property
    def inputs(self) -> Mapping[str, PinnedInput]:
        """The inputs of the subtask, by name."""
        ...

    async def content(self, name: str) -> bytes:
        """The verified bytes of a text or file input. ToolError if there is no such input."""
        ...

    async def folder(self, name: str) -> Path:
        """The read-only snapshot of a repository or folder input; ToolError if it is neither."""
        ...

    async def manifest(self, name: str) -> Manifest:
        """What is known of a repository or folder input: its files, what was not read, its history.
        ToolError if it is neither.
        """
        ...

    @property
    def scratch(self) -> Path:
        """A private folder of this machine, for what can be made again; each folder in it that
        nobody used for a day is removed.
        """
        ...

    def not_read(self, name: str) -> None:
        """Say that this call tells nothing of what an input holds, as one that only lists. Of every
        other input that it opens, the run takes it that its agent read it.
        """
        ...

    def setting(self, name: str) -> str:
        """A setting of this deployment; empty: it is not set."""
        ...

    async def keep(self, content: bytes) -> str:
        """Keep a result whole that is too long for a model. The handle is what this agent can name
        it by: it is no digest, and leads to nothing but results of the same agent.
        """
        ...

    async def hand_up(self, name: str, content: bytes) -> MadeFile:
        """Keep a file that the agent hands up with its result, unless the call fails. ToolError for
        a name or a size that no such file may have.
        """
        ...

    async def kept(self, handle: str) -> bytes:
        """What was kept under a handle. ToolError if this agent was given no such handle."""
        ...


Returned = str | Result


@dataclass(frozen=True)
class Tool:
    """A tool as the rest of the house knows it; `@tool()` makes one of a function."""

    name: str
    description: str
    schema: dict[str, JsonValue]
    """JSON schema of the arguments: a closed object."""
    function: Callable[..., Awaitable[Returned]]
    effects: bool
    """Whether it changes anything outside; if not, it only reads."""
    idempotent: bool
    """Whether running it again with the same key does what running it once does."""
    seconds: float
    """Longer no call takes."""
    approval: bool
    """Whether a person must approve each call."""
    needs: tuple[str, ...]
    """Names of the settings that it cannot do without."""
    sends_to: Callable[[Callable[[str], str]], str] = lambda _: ""
    """Where the words of a call go, by the deployment's settings; empty: nowhere."""
    extra: Callable[[Callable[[str], str]], str] = lambda _: ""
    """The extra of this package that it cannot do without, by the settings; empty: none."""

    @property
    def told(self) -> Mapping[str, JsonValue]:
        """What an endpoint is told of it."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.schema,
        }

    def lacking(self, setting: Callable[[str], str]) -> str:
        """Say which packages it needs that are not installed here, and how to get them, as the rest
        of a sentence; empty: none.
        """
        extra = self.extra(setting)
        return extras.lacking(extra) if extra else ""

    def unfit(self, arguments: Mapping[str, JsonValue]) -> str:
        """What is wrong with arguments, as `run` would say it; empty: nothing. Runs nothing."""
        try:
            running = self._called(None, arguments)
        except ValidationError as error:
            return _list_mistakes(error)
        # A tool is an async function: called and not awaited, nothing of it has run.
        cast(Coroutine[Any, Any, object], running).close()
        return ""

    async def run(self, here: Here, arguments: Mapping[str, JsonValue]) -> Result:
        """Call the function with checked arguments. ToolError before it begins for those that do
        not fit, and when it cannot do what it was asked; what else it raises is its own mistake.
        """
        try:
            running = self._called(here, arguments)
        except ValidationError as error:
            raise ToolError(_list_mistakes(error)) from None
        if lacking := self.lacking(lambda name: here.setting(name)):
            cast(Coroutine[Any, Any, object], running).close()
            raise ToolError(f"{self.name} {lacking}; do without it")
        returned = await running
        return returned if isinstance(returned, Result) else Result(returned)

    def _called(self, here: Here | None, arguments: Mapping[str, JsonValue]) -> Awaitable[Returned]:
        """The call, begun by nobody. What a person approves is what the function gets: there `"5"`
        is no number, and 1.0 no whole one.
        """
        checked = _adapter(self.function, here)
        if self.approval:
            return checked.validate_json(json.dumps(dict(arguments)), strict=True)
        return checked.validate_python(dict(arguments))


def tool(
    *,
    effects: bool = False,
    idempotent: bool = True,
    seconds: float = 60.0,
    approval: bool = False,
    needs: tuple[str, ...] = (),
    sends: str | Callable[[Callable[[str], str]], str] = "",
    extra: str | Callable[[Callable[[str], str]], str] = "",
) -> Callable[[Callable[Concatenate[Here, ...], Awaitable[Returned]]], Tool]:
    """Makes a tool of an async function `(here: Here, …)`. Its docstring and the descriptions in
    its annotations are what a model reads. NotATool for what has no schema that says all of it.
    """

    def make(function: Callable[Concatenate[Here, ...], Awaitable[Returned]]) -> Tool:
        _check(function)
        return Tool(
            name=function.__name__,
            description=inspect.getdoc(function) or "",
            schema=_schema(function),
            function=function,
            effects=effects,
            idempotent=idempotent,
            seconds=seconds,
            approval=approval,
            needs=needs,
            sends_to=sends if callable(sends) else lambda _: sends,
            extra=extra if callable(extra) else lambda _: extra,
        )

    return make


def _adapter(
    function: Callable[..., Awaitable[Returned]], here: Here | None
) -> TypeAdapter[Awaitable[Returned]]:
    """What checks arguments and calls with them; pydantic reads the signature without `here`."""
    return TypeAdapter(cast(type[Awaitable[Returned]], partial(function, here)))


def _schema(function: Callable[..., Awaitable[Returned]]) -> dict[str, JsonValue]:
    try:
        # Names in annotations are looked up where they mean something, which is not here.
        function.__annotations__ = get_type_hints(function, include_extras=True)
        return _adapter(function, None).json_schema()
    except (PydanticUserError, NameError) as error:
        raise NotATool(f"{function.__module__}.{function.__qualname__}: {error}") from error


def _list_mistakes(error: ValidationError) -> str:
    """What is wrong with the arguments, a line each."""
    wrong = mistakes(error, "arguments")
    more = [f"and {len(wrong) - MOST_MISTAKES} more"] if len(wrong) > MOST_MISTAKES else []
    return describe_misfits((*wrong[:MOST_MISTAKES], *more))


def describe_misfits(wrong: Iterable[str]) -> str:
    """What a model is told of arguments that do not fit, a line each; empty: they do."""
    lines = [*wrong]
    return "\n".join(["these arguments do not fit:", *lines]) if lines else ""


def _check(function: Callable[..., object]) -> None:
    """Each of these would get a schema without complaint, and one that is wrong."""
    where = f"{function.__module__}.{function.__qualname__}"
    if not inspect.iscoroutinefunction(function):
        raise NotATool(f"{where}: a tool is an async function; write `async def`")
    if not NAME.fullmatch(function.__name__):
        raise NotATool(f"{where}: the name of a tool has 1 to 64 letters of a-z, A-Z, 0-9, _ and -")
    if not (inspect.getdoc(function) or "").strip():
        raise NotATool(f"{where}: without a docstring no model knows what it is for; write one")
    parameters = [*inspect.signature(function).parameters.values()]
    if not parameters or parameters[0].name != "here":
        raise NotATool(f"{where}: the first parameter of a tool is `here: Here`")
    for each in parameters[1:]:
        if each.annotation is inspect.Parameter.empty:
            raise NotATool(f"{where}: `{each.name}` has no type; annotate it")
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise NotATool(
                f"{where}: `{each}` cannot be given by name; a model gives each argument by name"
            )
