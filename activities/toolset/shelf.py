"""Find all tools by walking the modules of a package; none is registered by hand. Those of a
project and of installed packages are imported into this process, like any code of theirs.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import MappingProxyType, ModuleType

from holdfast.activities.toolset.tool import NotATool, Tool
from holdfast.calls.turn import WEB_FETCH, WEB_SEARCH
from holdfast.contracts import Outlet
from holdfast.deployment.packages import Brought, of_group
from holdfast.deployment.project import BadSettings
from holdfast.deployment.settings import Settings
from holdfast.text import one_line

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
    """Return the tools of a deployment: own ones come before those of packages, and both before
    shipped ones of the same name. Raise BadSettings naming a file that cannot be used, and why.
    """
    own, brought = own_tools(project), brought_tools()
    return MappingProxyType(dict(sorted({**shipped_tools(), **brought, **own}.items())))


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


def own_tools(project: Path | None) -> Mapping[str, Tool]:
    """Return the tools in the project's folder `tools`, by name. Raises as `tools_for`."""
    folder = project / FOLDER if project else None
    if folder is None or not folder.is_dir():
        return {}
    # A package of its own for each folder: its modules may import each other as `from . import x`,
    # and none is in the way of another of that name.
    name = f"{_PREFIX}{hashlib.sha256(bytes(folder)).hexdigest()[:8]}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
        importlib.invalidate_caches()
    return _load(lambda: tools_of(sys.modules[name]), str(folder), name)


@functools.cache
def brought_tools() -> Mapping[str, Tool]:
    """Return the tools that installed packages bring, by name. Raises as `tools_for`."""
    found: dict[str, Tool] = {}
    for each in of_group("holdfast.tools"):
        for tool in _load(functools.partial(_of_package, each), each.shown, each.module).values():
            if tool.name in found:
                other = found[tool.name].function.__module__
                raise BadSettings(
                    f"{each.shown}: {other} has a tool {tool.name!r}, too; remove one"
                )
            found[tool.name] = tool
    return found


def _of_package(brought: Brought) -> Mapping[str, Tool]:
    module = importlib.import_module(brought.module)
    found = tools_of(module) if hasattr(module, "__path__") else {}
    return {**found, **{each.name: each for each in _defined_in(module)}}


def _load(load: Callable[[], Mapping[str, Tool]], where: str, within: str) -> Mapping[str, Tool]:
    """Import a stranger's code. Raise BadSettings, one line with its file, for anything that it
    raises. What it prints goes to standard error: a command's output is for programs.
    """
    try:
        with redirect_stdout(sys.stderr):
            return load()
    except NotATool as error:
        # Files are what a person knows; the package was made here.
        said = re.sub(rf"{re.escape(within)}\.(\w+)(?![\w.])", r"\1.py", one_line(str(error)))
        said = said.replace(f"{within}.", "")
        raise BadSettings(f"{_place_of(error, where)}: {said}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        place = _place_of(error, where)
        said = one_line(f"{type(error).__name__}: {error}")
        raise BadSettings(f"{place}: {said}; mend it, or take it out of there") from error


def _place_of(error: BaseException, where: str) -> str:
    """Return the file and line below `where` at which an import failed; else `where`."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    place, trace = where, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(where):
            place = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


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
        within = importlib.import_module(f"{package.__name__}.{module}")
        for tool in _defined_in(within):
            if tool.name in found:
                other = found[tool.name].function.__module__
                raise NotATool(
                    f"two tools are named {tool.name!r}: in {other} and in {within.__name__};"
                    " rename one"
                )
            found[tool.name] = tool
    return MappingProxyType(dict(sorted(found.items())))


def _defined_in(module: ModuleType) -> list[Tool]:
    # What a module imports from another is the other's.
    tools = [each for each in vars(module).values() if isinstance(each, Tool)]
    return [each for each in tools if each.function.__module__ == module.__name__]
