"""A role and a tool more than a worker ships with, for worker programs of tests."""

from __future__ import annotations

import functools
from pathlib import Path

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import read_role
from holdfast.activities.toolset import shelf
from holdfast.activities.toolset.tool import Tool

OF = Catalogue.of
SHIPPED = shelf.shipped_tools()


def furnish(state: Path, name: str, role: str, tool: Tool) -> None:
    """Give this process the tool, and the role whose file has this text."""

    def with_role(project: Path | None) -> Catalogue:
        path = state / f"{name}.md"
        path.write_text(role)
        shipped = OF(project)
        return Catalogue({**shipped.roles, name: read_role(path, "")}, shipped.playbooks)

    shelf.shipped_tools = functools.cache(lambda: {**SHIPPED, tool.name: tool})
    Catalogue.of = with_role  # type: ignore[method-assign]
