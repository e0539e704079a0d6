"""What installed packages bring along: their entry points, found once in a process."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

GROUPS = (
    "holdfast.roles",
    "holdfast.playbooks",
    "holdfast.tools",
    "holdfast.lenses",
    "holdfast.templates",
)


@dataclass(frozen=True, order=True)
class Brought:
    """An entry point by which a package brings roles, playbooks, tools, lenses or templates."""

    package: str
    version: str
    group: str
    name: str
    module: str

    @property
    def shown(self) -> str:
        """Return it as `pyproject.toml` writes it, for whoever has to correct it."""
        return f"package {self.package}: {self.group}: {self.name} = {self.module}"

    def folder(self) -> Path | None:
        """Return the folder of the named package without importing it; None if there is none."""
        try:
            spec = importlib.util.find_spec(self.module)
        except (ImportError, ValueError):
            return None
        places = (spec and spec.submodule_search_locations) or ()
        return next((Path(each) for each in places), None)


@functools.cache
def list_entry_points() -> tuple[Brought, ...]:
    """Return the entry points of all installed packages, sorted by name."""
    found = set[Brought]()
    for group in GROUPS:
        for each in entry_points(group=group):
            package, version = (each.dist.name, each.dist.version) if each.dist else ("?", "")
            found.add(Brought(package, version, group, each.name, each.value))
    return tuple(sorted(found))


def of_group(group: str) -> tuple[Brought, ...]:
    """Return the entry points of one group."""
    return tuple(each for each in list_entry_points() if each.group == group)
