"""The tools that a role file names, by our names and those of Claude Code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.calls.turn import OF_SERVERS, READS_ON
from holdfast.contracts import RoleTier, ToolReads
from holdfast.contracts.policies import TOOLS_TOKENS

if TYPE_CHECKING:
    from holdfast.activities.toolset.tool import Tool


class CatalogueError(ValueError):
    """A role, playbook or prompt cannot be used; the message names the file and the mistake."""


OF_CLAUDE_CODE = {
    "Read": ("read_file", "read_document"),
    "Glob": ("list_files",),
    "LS": ("list_files",),
    "Grep": ("search_files",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("web_search",),
}
"""The tools of Claude Code's subagent files by our names; its `Read` takes PDF files, too."""


def load_shipped() -> Mapping[str, Tool]:
    """Return the tools that ship."""
    # Few commands look at a role with tools, and tools take a while to import.
    from holdfast.activities.toolset.shelf import shipped_tools

    return shipped_tools()


Shelf = Callable[[], "Mapping[str, Tool]"]
"""Returns all tools that a role file may name, by name."""


def tools_of(
    path: Path, given: str | list[str], tier: RoleTier, *, team: bool, shelf: Shelf = load_shipped
) -> tuple[str, ...]:
    """Return the one lens of a role without a model, else the tools that an agent is given. Raise
    CatalogueError naming those that do not exist.
    """
    names = [name.strip() for name in (given.split(",") if isinstance(given, str) else given)]
    names = [name for name in names if name]
    if tier == "none":
        if len(names) != 1:
            raise CatalogueError(f"{path.name}: tools: a role without a model is exactly one tool")
        if _of_agents(names[0], shelf):
            raise CatalogueError(
                f"{path.name}: tools: {names[0]} is for agents, and a role without a model runs one"
                " lens; name a lens, or give the role a model"
            )
        return tuple(names)
    if names and team:
        raise CatalogueError(f"{path.name}: tools: no effect for a role that is a team; remove it")
    ours = {name: OF_CLAUDE_CODE.get(name, (name,)) for name in names}
    known_here = [name for name in ours if not name.startswith(OF_SERVERS)]
    unknown = [name for name in known_here if not {*ours[name]} <= {*shelf()}]
    if unknown:
        known = ", ".join(shelf())
        raise CatalogueError(
            f"{path.name}: tools: there {'are no tools' if unknown[1:] else 'is no tool'}"
            f" {', '.join(unknown)}; there are: {known}"
        )
    found = [tool for tools in ours.values() for tool in tools]
    return tuple(dict.fromkeys([*found, *([READS_ON] if found else [])]))


def _of_agents(name: str, shelf: Shelf) -> bool:
    return name.startswith(OF_SERVERS) or name in OF_CLAUDE_CODE or name in shelf()


def list_reads(tools: Sequence[str], shelf: Shelf = load_shipped) -> tuple[ToolReads, ...]:
    """Return what inputs these tools read, as far as they say."""
    known = shelf() if tools else {}
    return tuple(
        ToolReads(tool=name, inputs=known[name].reads or (), size=len(_told([known[name]])))
        for name in tools
        if name in known and known[name].reads is not None
    )


def count_bytes(tools: Sequence[str], shelf: Shelf = load_shipped) -> int:
    """Return the bytes that an endpoint is told of the tools, and what it adds by itself, a token a
    byte.
    """
    known = shelf() if tools else {}
    ours = [known[name] for name in tools if not name.startswith(OF_SERVERS)]
    return len(_told(ours)) + TOOLS_TOKENS if tools else 0


def _told(tools: Iterable[Tool]) -> bytes:
    return json.dumps([[each.name, each.description, each.schema] for each in tools]).encode()
