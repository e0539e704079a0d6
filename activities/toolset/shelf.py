"""Find all tools by walking the modules of a package; none is registered by hand. Those of a
project and of installed packages are imported into this process, like any code of theirs.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TypeVar

from holdfast.activities.toolset.tool import NotATool, Tool
from holdfast.calls.turn import WEB_FETCH, WEB_SEARCH
from holdfast.contracts import Outlet
from holdfast.deployment import importing
from holdfast.deployment.packages import Brought, of_group
from holdfast.deployment.settings import Settings
from holdfast.errors import BadSettings
from holdfast.text import one_line
from holdfast.untrusted.folders import open_regular, resolve_path

T = TypeVar("T")
FOLDER = "tools"
IN_PLACE = ", in place of the shipped one"
"""Behind the source of what replaces something shipped."""


@functools.cache
def shipped_tools() -> Mapping[str, Tool]:
    """Return the tools of `activities/tools/`, by name. Raise NotATool naming what cannot be
    one.
    """
    return tools_of(importlib.import_module("holdfast.activities.tools"))


def tools_for(project: Path | None) -> Mapping[str, Tool]:
    """Return the tools of a deployment. Raise BadSettings naming each file that cannot be used, and
    why.
    """
    found, flaws = look_at_tools(project)
    if flaws:
        raise BadSettings("; ".join(flaws))
    return found


def look_at_tools(project: Path | None) -> tuple[Mapping[str, Tool], tuple[str, ...]]:
    """Return the tools of a deployment that can be used, and what is wrong with the others, a line
    each: own ones come before those of packages, and both before shipped ones of the same name.
    """
    (own, flaws), (brought, more) = own_tools(project), brought_tools()
    found = MappingProxyType(dict(sorted({**shipped_tools(), **brought, **own}.items())))
    return found, (*flaws, *more)


def source_of(tool: Tool) -> str:
    """Return where a tool comes from, and whether it replaces a shipped one; empty: it is
    shipped.
    """
    module = f"{tool.function.__module__}."
    theirs = (each for each in of_group("holdfast.tools") if module.startswith(f"{each.module}."))
    source = next((f"from package {each.package}" for each in theirs), "")
    if module.startswith(_PREFIX):
        source = "from your project"
    return f"{source}{IN_PLACE * (tool.name in shipped_tools())}" if source else ""


_PREFIX = "_holdfast_project_"


def own_tools(project: Path | None) -> tuple[Mapping[str, Tool], tuple[str, ...]]:
    """Return the tools in the project's folder `tools`, by name, and what is wrong with others."""
    folder = project / FOLDER if project else None
    if folder is None or not folder.is_dir():
        return {}, ()
    # A package of its own for each folder: its modules may import each other as `from . import x`,
    # and none is in the way of another of that name.
    name = f"{_PREFIX}{hashlib.sha256(bytes(folder)).hexdigest()[:8]}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
        importlib.invalidate_caches()
    found: dict[str, Tool] = {}
    flaws: list[str] = []
    for module in sorted(pkgutil.iter_modules([str(folder)]), key=lambda each: each.name):
        file = folder / (module.name if module.ispkg else f"{module.name}.py")
        read = functools.partial(_import_file, file, f"{name}.{module.name}")
        try:
            for each in _load(read, str(file), name, str(folder)):
                _add(each, found)
        except BadSettings as error:
            flaws.append(str(error))
        except NotATool as error:
            flaws.append(f"{folder}: {_without(name, error)}")
    return found, tuple(flaws)


def _import_file(file: Path, module: str) -> list[Tool]:
    if not file.is_dir():
        # Python would wait for a FIFO, and say nothing of a link to itself.
        os.close(open_regular(resolve_path(file)))
    return _defined_in(importlib.import_module(module))


@functools.cache
def brought_tools() -> tuple[Mapping[str, Tool], tuple[str, ...]]:
    """Return the tools that installed packages bring, by name, and what is wrong with others."""
    found: dict[str, Tool] = {}
    flaws: list[str] = []
    for each in of_group("holdfast.tools"):
        read = functools.partial(_of_package, each)
        try:
            for tool in _load(read, each.shown, each.module).values():
                _add(tool, found)
        except BadSettings as error:
            flaws.append(str(error))
        except NotATool as error:
            flaws.append(f"{each.shown}: {error}")
    return found, tuple(flaws)


def _of_package(brought: Brought) -> Mapping[str, Tool]:
    module = importlib.import_module(brought.module)
    found = tools_of(module) if hasattr(module, "__path__") else {}
    return {**found, **{each.name: each for each in _defined_in(module)}}


def _load(load: Callable[[], T], where: str, within: str, folder: str = "") -> T:
    """Import a stranger's code. Raise BadSettings, one line with its file, if that fails."""
    try:
        return importing.load(load, where, folder)
    except importing.NotImported as error:
        known = isinstance(error.__cause__, NotATool)
        said = f"{error.place}: {error.__cause__}" if known else str(error)
        raise BadSettings(_without(within, said)) from error


def _without(package: str, said: object) -> str:
    """Return a text with files, which are what a person knows, for the modules of a package."""
    text = re.sub(rf"{re.escape(package)}\.(\w+)(?![\w.])", r"\1.py", one_line(str(said)))
    return text.replace(f"{package}.", "")


def find_lacking(tool: Tool, settings: Settings, *, endpoint_web: bool) -> str:
    """Return why a tool cannot do its work with these settings and packages, as the rest of a
    sentence; empty: it can. With `endpoint_web` the endpoint itself searches and reads the web.
    """
    if endpoint_web and tool.name in (WEB_SEARCH, WEB_FETCH):
        return ""
    unset = [Settings.variable(each) for each in tool.needs if not settings.key(each)]
    named = f"needs {', '.join(unset)}, which is not set here" if unset else ""
    return " and ".join(filter(None, (named, tool.lacking(settings.key))))


def outlets_of(
    tools: Mapping[str, Tool], setting: Callable[[str], str], *, endpoint_web: bool = False
) -> tuple[Outlet, ...]:
    """Return where the words of calls go, of those tools that send any with these settings. With
    `endpoint_web` the endpoint itself searches and reads the web.
    """
    found = {name: tool.sends_to(setting) for name, tool in tools.items()}
    if endpoint_web:
        found |= dict.fromkeys((WEB_SEARCH, WEB_FETCH), "the endpoint, which asks the web itself")
    return tuple(
        Outlet(tool=name, what=f"{name}, {where}") for name, where in found.items() if where
    )


def tools_of(package: ModuleType) -> Mapping[str, Tool]:
    """Return the tools of the modules directly in a package, in the order of their names. Raise
    NotATool for two of one name, naming the modules of both.
    """
    found: dict[str, Tool] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
        for tool in _defined_in(importlib.import_module(f"{package.__name__}.{module}")):
            _add(tool, found)
    return MappingProxyType(dict(sorted(found.items())))


def _add(tool: Tool, found: dict[str, Tool]) -> None:
    """Add a tool to those that were found before. NotATool for one of a name that is there."""
    if other := found.get(tool.name):
        raise NotATool(
            f"two tools are named {tool.name!r}: in {other.function.__module__} and in"
            f" {tool.function.__module__}; rename one"
        )
    found[tool.name] = tool


def _defined_in(module: ModuleType) -> list[Tool]:
    # What a module imports from another is the other's.
    tools = [each for each in vars(module).values() if isinstance(each, Tool)]
    return [each for each in tools if each.function.__module__ == module.__name__]
