"""Define a tool: an async function whose docstring and signature are all that a model sees."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Protocol, cast, get_args, get_type_hints

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError

from holdfast.activities.repositories.scratch import Snapshot
from holdfast.calls.kind import without_titles
from holdfast.contracts import InputForm, MadeFile, PinnedInput
from holdfast.deployment import extras
from holdfast.deployment.settings import Settings
from holdfast.text.mistakes import mistakes, suggest

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Matches a name that endpoints accept for a tool."""
MOST_MISTAKES = 10
"""Mistakes in arguments that are named, a line each."""


class ToolError(Exception):
    """A tool cannot do what it was asked; the message is one line that the model can act on.
    An `unsure` call was begun, and it is unknown what it has done.
    """

    def __init__(self, message: str, *, unsure: bool = False) -> None:
        super().__init__(message)
        self.unsure = unsure


class NotATool(TypeError):
    """A function cannot be a tool; the message says which one, why, and what to change."""


@dataclass(frozen=True)
class Result:
    """Result of a call: text for the model, and data that is kept."""

    text: str
    is_error: bool = False
    data: JsonValue = None
    unsure: bool = False
    """True if the call was begun, and it is unknown what it has done."""


class Here(Protocol):
    """Surroundings of a call: what the subtask may see, and nothing else."""

    @property
    def key(self) -> str:
        """The idempotency key of this very call: the same when it is run again."""
        ...

    @property
    def inputs(self) -> Mapping[str, PinnedInput]:
        """The inputs of the subtask, by name."""
        ...

    async def content(self, name: str) -> bytes:
        """Return the verified bytes of a text or file input. Raise ToolError if there is no such
        input.
        """
        ...

    async def folder(self, name: str) -> Path:
        """Return the read-only snapshot of a repository or folder input. Raise ToolError if it is
        neither.
        """
        ...

    async def snapshot(self, name: str) -> Snapshot:
        """Return a repository or folder input on disk, with what is known of it: its files, what
        was not read, its history, its base. Raise ToolError if it is neither.
        """
        ...

    async def withheld(self, name: str) -> Callable[[str], str]:
        """Return what takes out of a text those values that the search for secrets found in what a
        change of an input touches. It keeps line ends.
        """
        ...

    @property
    def scratch(self) -> Path:
        """A private folder of this machine, for what can be made again; each folder in it that
        nobody used for a day is removed.
        """
        ...

    def not_read(self, name: str) -> None:
        """Note that this call tells nothing of what an input holds, as one that only lists. Every
        other input that it opens counts as read by its agent.
        """
        ...

    def setting(self, name: str) -> str:
        """Return a setting of this deployment, by the name of its field; empty: it is not set.
        LookupError if there is none of that name.
        """
        ...

    async def keep(self, content: bytes) -> str:
        """Keep a result whole that is too long for a model, and return the handle by which this
        agent can name it. It is not a digest, and leads to nothing but results of the same agent.
        """
        ...

    async def hand_up(self, name: str, content: bytes) -> MadeFile:
        """Keep a file that the agent hands up with its result, unless the call fails. Raise
        ToolError for a name or a size that no such file may have.
        """
        ...

    def finding(self, subtask: str) -> str:
        """Return the whole of a finding that this subtask depends on and was given in fewer words.
        Raise ToolError if there is none.
        """
        ...

    async def kept(self, handle: str) -> bytes:
        """Return what was kept under a handle. Raise ToolError if this agent was given no such
        handle.
        """
        ...


Returned = str | Result


@dataclass(frozen=True)
class Tool:
    """A tool; `@tool()` makes one of a function."""

    name: str
    description: str
    schema: dict[str, JsonValue]
    """JSON schema of the arguments: a closed object."""
    function: Callable[..., Awaitable[Returned]]
    effects: bool
    """True if it changes anything outside; else it only reads."""
    idempotent: bool
    """True if running it again with the same key does what running it once does."""
    volatile: bool
    """True if the same call may bring another result later. Of other tools that only read, an
    agent's third equal call is not carried out.
    """
    seconds: float
    """The most that a call may take."""
    approval: bool
    """True if a person must approve each call."""
    needs: tuple[str, ...]
    """Names of the settings that it cannot do without."""
    sends_to: Callable[[Callable[[str], str]], str] = lambda _: ""
    """Return where the words of a call go, by the deployment's settings; empty: nowhere."""
    reads: tuple[InputForm, ...] | None = None
    """The inputs that it reads, one of which its agent must have to be offered it; empty: none, so
    that it is always offered. None: it may read any, and is always offered, too.
    """
    extra: Callable[[Callable[[str], str]], str] = lambda _: ""
    """Return the extra of this package that it cannot do without, by the settings; empty: none."""

    @property
    def spec(self) -> Mapping[str, JsonValue]:
        """Return its definition for an endpoint."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.schema,
        }

    def lacking(self, setting: Callable[[str], str]) -> str:
        """Return which packages it needs that are not installed here, and how to get them, as the
        rest of a sentence; empty: none.
        """
        extra = self.extra(setting)
        return extras.lacking(extra) if extra else ""

    def find_misfits(self, arguments: Mapping[str, JsonValue]) -> str:
        """Return what is wrong with arguments, as `run` would say it; empty: nothing. Runs
        nothing.
        """
        try:
            running = self._prepare(None, arguments)
        except ValidationError as error:
            return _list_mistakes(error)
        # A tool is an async function: called and not awaited, nothing of it has run.
        cast(Coroutine[Any, Any, object], running).close()
        return ""

    async def run(self, here: Here, arguments: Mapping[str, JsonValue]) -> Result:
        """Call the function with checked arguments. Raise ToolError before it begins if they do not
        fit, and when it cannot do what it was asked; anything else that it raises is its own
        mistake.
        """
        try:
            running = self._prepare(here, arguments)
        except ValidationError as error:
            raise ToolError(_list_mistakes(error)) from None
        if lacking := self.lacking(lambda name: here.setting(name)):
            cast(Coroutine[Any, Any, object], running).close()
            raise ToolError(f"{self.name} {lacking}; do without it")
        returned = await running
        return returned if isinstance(returned, Result) else Result(returned)

    def _prepare(
        self, here: Here | None, arguments: Mapping[str, JsonValue]
    ) -> Awaitable[Returned]:
        """Return the call, not yet begun. With approval, a person approves exactly what the
        function gets: `"5"` is not a number, and 1.0 not a whole one.
        """
        checked = _adapter(self.function, here)
        if self.approval:
            return checked.validate_json(json.dumps(dict(arguments)), strict=True)
        return checked.validate_python(dict(arguments))


def tool(
    function: None = None,
    /,
    *,
    effects: bool = False,
    idempotent: bool = True,
    volatile: bool = False,
    seconds: float = 60.0,
    approval: bool = False,
    needs: tuple[str, ...] = (),
    reads: tuple[InputForm, ...] | None = None,
    sends: str | Callable[[Callable[[str], str]], str] = "",
    extra: str | Callable[[Callable[[str], str]], str] = "",
) -> Callable[[Callable[Concatenate[Here, ...], Awaitable[Returned]]], Tool]:
    """Make a tool of an async function `(here: Here, …)`. Its docstring and the descriptions in its
    annotations are what a model reads. Raise NotATool if no schema can say all of it, or if it
    needs or reads what there is not.
    """
    if callable(function):
        raise NotATool(f"{_place_in(function)}: write `@tool()`, with brackets")

    def make(function: Callable[Concatenate[Here, ...], Awaitable[Returned]]) -> Tool:
        _check(function)
        where = _place_in(function)
        _check_needs(where, needs)
        _check_reads(where, reads)
        _check_extra(where, extra if isinstance(extra, str) else extra(lambda _: ""))
        return Tool(
            name=function.__name__,
            description=inspect.getdoc(function) or "",
            schema=_schema(function),
            function=function,
            effects=effects,
            idempotent=idempotent,
            volatile=volatile,
            seconds=seconds,
            approval=approval,
            needs=needs,
            reads=reads,
            sends_to=sends if callable(sends) else lambda _: sends,
            extra=extra if callable(extra) else lambda _: extra,
        )

    return make


def _adapter(
    function: Callable[..., Awaitable[Returned]], here: Here | None
) -> TypeAdapter[Awaitable[Returned]]:
    """Return what checks arguments and calls with them; pydantic reads the signature without
    `here`.
    """
    return TypeAdapter(cast(type[Awaitable[Returned]], partial(function, here)))


def _schema(function: Callable[..., Awaitable[Returned]]) -> dict[str, JsonValue]:
    try:
        # Names in annotations are looked up where they mean something, which is not here.
        function.__annotations__ = get_type_hints(function, include_extras=True)
        schema = without_titles(_adapter(function, None).json_schema())
        return cast("dict[str, JsonValue]", schema)
    except (PydanticUserError, NameError) as error:
        raise NotATool(f"{_place_in(function)}: {error}") from error


def _list_mistakes(error: ValidationError) -> str:
    """Return what is wrong with the arguments, a line each."""
    wrong = mistakes(error, "arguments")
    more = [f"and {len(wrong) - MOST_MISTAKES} more"] if len(wrong) > MOST_MISTAKES else []
    return describe_misfits((*wrong[:MOST_MISTAKES], *more))


def describe_misfits(wrong: Iterable[str]) -> str:
    """Return what a model is told of arguments that do not fit, a line each; empty: they do."""
    lines = [*wrong]
    return "\n".join(["these arguments do not fit:", *lines]) if lines else ""


def _place_in(function: Callable[..., object]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _check_needs(where: str, needs: tuple[str, ...]) -> None:
    """Raise NotATool for what is no setting."""
    if isinstance(needs, str):
        raise NotATool(f"{where}: needs: write a tuple of settings: ({needs!r},)")
    known = {Settings.variable(name): name for name in Settings.model_fields}
    for name in needs:
        if name in known:
            raise NotATool(
                f"{where}: needs: {name!r} is a variable; name its field, {known[name]!r}"
            )
        if name not in Settings.model_fields:
            raise NotATool(
                f"{where}: needs: there is no setting {name!r}{suggest(name, known.values())}; a"
                f" key of your own is read from os.environ; there are: {', '.join(known.values())}"
            )


def _check_reads(where: str, reads: tuple[InputForm, ...] | None) -> None:
    """Raise NotATool for what is no form of an input."""
    if isinstance(reads, str):
        raise NotATool(f"{where}: reads: write a tuple of inputs: ({reads!r},)")
    known = get_args(InputForm)
    for name in reads or ():
        if name not in known:
            raise NotATool(
                f"{where}: reads: no input is a {name!r}{suggest(name, known)}; there are:"
                f" {', '.join(known)}"
            )


def _check_extra(where: str, extra: str) -> None:
    """Raise NotATool for what is no extra of this package."""
    if extra and extra not in extras.EXTRAS:
        raise NotATool(
            f"{where}: extra: holdfast has no extra {extra!r}{suggest(extra, extras.EXTRAS)};"
            f" there are: {', '.join(extras.EXTRAS)}"
        )


def _check(function: Callable[..., object]) -> None:
    """Raise NotATool for a function that would get a schema without complaint, and a wrong one."""
    where = _place_in(function)
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
