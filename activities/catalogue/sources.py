"""Find the sources of roles and playbooks, the nearest first: the project's folder, installed
packages, and what ships.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.deployment.packages import of_group
from holdfast.deployment.settings import HOME

OWN = "from your project"


@dataclass(frozen=True)
class Origin:
    """Folders of role files, and of playbooks, of one origin."""

    roles: tuple[Path, ...]
    playbooks: tuple[Path, ...]
    name: str = ""
    """Name to end a sentence with; empty: it ships."""
    flaws: tuple[str, ...] = ()
    """Folders that it names and does not have."""

    @classmethod
    def of(cls, folder: Path, name: str = "") -> Origin:
        """Return a folder with `roles` and `playbooks` as an origin."""
        return cls((folder / "roles",), (folder / "playbooks",), name)

    def common(self) -> Iterator[Path]:
        """Yield the files of roles that any goal may use."""
        for folder in self.roles:
            yield from sorted(folder.glob("*.md"))

    def playbook_files(self) -> Iterator[Path]:
        """Yield the files of playbooks, each in a folder of the playbook's name."""
        for folder in self.playbooks:
            files = (each / "playbook.yaml" for each in sorted(folder.glob("*")))
            # A link that leads nowhere, too: that it cannot be read is said, not passed over.
            yield from filter(os.path.lexists, files)

    def of_playbooks(self) -> Iterator[tuple[Path, str]]:
        """Yield the files of roles that belong to a playbook, and its name."""
        for folder in self.playbooks:
            yield from ((path, path.parts[-3]) for path in sorted(folder.glob("*/roles/*.md")))


def sources_for(project: Path | None) -> tuple[Origin, ...]:
    own = (Origin.of(project, OWN),) if project else ()
    return (*own, *_packages(), Origin.of(HOME))


def _packages() -> Iterator[Origin]:
    roles, playbooks = of_group("holdfast.roles"), of_group("holdfast.playbooks")
    for package in sorted({each.package for each in (*roles, *playbooks)}):
        theirs = [
            [(each, each.folder()) for each in group if each.package == package]
            for group in (roles, playbooks)
        ]
        folders = [tuple(folder for _, folder in found if folder) for found in theirs]
        flaws = (each.shown for found in theirs for each, folder in found if folder is None)
        yield Origin(folders[0], folders[1], f"from package {package}", tuple(flaws))
