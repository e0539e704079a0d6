"""All tools there are: found by walking the modules of a package, never registered by hand."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType

from holdfast.activities.toolset.tool import NotATool, Tool
from holdfast.calls.turn import WEB_FETCH, WEB_SEARCH
from holdfast.contracts import Outlet


@functools.cache
def shipped() -> Mapping[str, Tool]:
    """The tools of `activities/tools/`, by name. NotATool names what cannot be one."""
    return tools_of(importlib.import_module("holdfast.activities.tools"))


def outlets_of(
    tools: Mapping[str, Tool], setting: Callable[[str], str], *, endpoint_web: bool = False
) -> tuple[Outlet, ...]:
    """Where the words of calls go, of those tools that send any with these settings. With
    `endpoint_web` the endpoint itself searches and reads the web.
    """
    found = {name: tool.sends_to(setting) for name, tool in tools.items()}
    if endpoint_web:
        found |= dict.fromkeys((WEB_SEARCH, WEB_FETCH), "the endpoint, which asks the web itself")
    return tuple(
        Outlet(tool=name, what=f"{name}, {where}") for name, where in found.items() if where
    )


def tools_of(package: ModuleType) -> Mapping[str, Tool]:
    """The tools of the modules directly in a package, in the order of their names. NotATool for two
    of one name, naming the modules of both.
    """
    found: dict[str, Tool] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
        within = importlib.import_module(f"{package.__name__}.{module}")
        # What a module imports from another is the other's.
        mine = [
            each
            for each in vars(within).values()
            if isinstance(each, Tool) and each.function.__module__ == within.__name__
        ]
        for tool in mine:
            if tool.name in found:
                other = found[tool.name].function.__module__
                raise NotATool(
                    f"two tools are named {tool.name!r}: in {other} and in {within.__name__};"
                    " rename one"
                )
            found[tool.name] = tool
    return MappingProxyType(dict(sorted(found.items())))
