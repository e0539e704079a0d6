"""A role and a tool more than a worker ships with, for worker programs of tests."""

from __future__ import annotations

from pathlib import Path

from holdfast.activities import wiring
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import read_role
from holdfast.activities.toolset import shelf
from holdfast.activities.toolset.tool import Tool

LOAD = Catalogue.load
SHIPPED = shelf.shipped()


def furnish(state: Path, name: str, role: str, tool: Tool) -> None:
    """Give this process the tool, and the role whose file has this text."""

    def with_role() -> Catalogue:
        path = state / f"{name}.md"
        path.write_text(role)
        shipped = LOAD()
        return Catalogue({**shipped.roles, name: read_role(path, "")}, shipped.playbooks)

    for module in (wiring, shelf):
        setattr(module, "shipped", lambda: {**SHIPPED, tool.name: tool})  # noqa: B010
    Catalogue.load = with_role  # type: ignore[method-assign, assignment]
