"""What a program gives its worker: tools, as plain functions or what `@tool()` made, and roles;
and the gate that all workers have.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.sources import Origin, sources_for
from holdfast.activities.gate.own_limit import own_limits
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.activities.toolset.shelf import tools_for
from holdfast.activities.toolset.tool import Here, NotATool, Result, Tool, tool
from holdfast.deployment.address import OFFICIAL, address_of
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.errors import Refused

ANYTHING = TypeAdapter(Any)
Given = Tool | Callable[..., Any]


@dataclass(frozen=True)
class Own:
    """What a program brings for its worker beside settings and project."""

    tools: Mapping[str, Tool] | None
    """All tools of the worker; None: those that there are anyway."""
    catalogue: Catalogue | None
    """All roles and playbooks; None: those that there are anyway."""

    @classmethod
    def of(cls, tools: Iterable[Given], roles: str | Path | None, settings: Settings) -> Own:
        """Raise Refused for a folder that is none, and for what cannot be a tool."""
        try:
            brought = as_tools(tools)
        except NotATool as error:
            raise Refused(f"tools: {error}") from error
        if roles is not None and not Path(roles).is_dir():
            raise Refused(f"roles: {str(roles)!r} is not a folder; name one with role files")
        if not brought and roles is None:
            return cls(None, None)
        every = {**tools_for(settings.project), **brought}
        own = [Origin((Path(roles).absolute(),), (), "from your program")] if roles else []
        sources = (*own, *sources_for(settings.project))
        return cls(every, Catalogue.read(sources, lambda: every))

    @property
    def parts(self) -> dict[str, Any]:
        """The same as options of `wiring.build`."""
        return {"tools": self.tools, "catalogue": self.catalogue}


def gate_of(settings: Settings) -> RateGate:
    """Return what calls to models go through in a worker of these settings."""
    own = own_limits(settings.rate, settings.in_flight, StateDir.of(settings).pace)
    return RateGate(address_of(settings.anthropic_base_url or OFFICIAL), own)


def as_tools(given: Iterable[Given]) -> Mapping[str, Tool]:
    """Return tools by name. Raise NotATool for what cannot be one, and for two of one name."""
    found: dict[str, Tool] = {}
    for each in given:
        made = each if isinstance(each, Tool) else _of_function(each)
        if made.name in found:
            raise NotATool(f"two tools are called {made.name!r}; rename one")
        found[made.name] = made
    return found


def _of_function(function: Callable[..., Any]) -> Tool:
    """Return a plain typed function as a tool that only reads; it may be async. What it returns is
    what the model is told: text as it is, anything else as JSON.
    """
    if not inspect.isfunction(function):
        raise NotATool(f"{function!r:.80} is no function; give functions, or what @tool() made")

    @functools.wraps(function)
    async def called(here: Here, *arguments: Any, **named: Any) -> Result:  # noqa: ARG001
        if inspect.iscoroutinefunction(function):
            returned = await function(*arguments, **named)
        else:
            returned = await asyncio.to_thread(function, *arguments, **named)
        return _as_result(returned)

    signature = inspect.signature(function)
    here = inspect.Parameter("here", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Here)
    called.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[here, *signature.parameters.values()], return_annotation=Result
    )
    hints = get_type_hints(function, include_extras=True)
    called.__annotations__ = {"here": Here, **hints, "return": Result}
    del called.__wrapped__
    return tool()(called)


def _as_result(returned: object) -> Result:
    if isinstance(returned, Result):
        return returned
    if isinstance(returned, str):
        return Result(returned)
    plain = ANYTHING.dump_python(returned, mode="json")
    return Result(json.dumps(plain, ensure_ascii=False), data=plain)
