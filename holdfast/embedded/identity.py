"""Which worker serves: the version of its code and its model environment, compared without keys."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast import __version__
from holdfast.deployment.packages import list_entry_points
from holdfast.deployment.project import FILE
from holdfast.deployment.settings import HOME, PACKAGE, Settings
from holdfast.deployment.variables import servers_here

_SHIPPED = ("roles", "prompts", "playbooks")
_OWN = ("roles", "playbooks", "tools")
_KINDS = {".py", ".md", ".yaml"}


def code_version(project: Path | None = None) -> str:
    """Return the program's version with a hash of its files, the project's and those that packages
    bring, so that edited code makes another version.
    """
    digest = hashlib.sha256("".join(f"{each}\n" for each in list_entry_points()).encode())
    for path in sorted((*_shipped_files(), *_files_of(project))):
        # An editor may take its temporary file away while we look.
        with suppress(FileNotFoundError):
            facts = path.stat()
            shown = path.relative_to(HOME) if path.is_relative_to(HOME) else path
            line = f"{shown} {facts.st_size} {facts.st_mtime_ns}\n"
            digest.update(line.encode())
    return f"{__version__}+{digest.hexdigest()[:8]}"


def _shipped_files() -> Iterator[Path]:
    # The two links of a checkout are named, because `rglob` follows none.
    folders = (
        PACKAGE,
        PACKAGE / "activities",
        PACKAGE / "workflows",
        *map(HOME.joinpath, _SHIPPED),
    )
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.suffix in _KINDS)


def _files_of(project: Path | None) -> Iterator[Path]:
    if project is not None:
        yield project / FILE
        for name in _OWN:
            found = (project / name).rglob("*")
            yield from (path for path in found if path.suffix in _KINDS)


def model_environment(settings: Settings, salt: str) -> str:
    """Return a salted hash of the settings that decide on models, prices and tools, the file of MCP
    servers included; empty without an endpoint.
    """
    if not settings.has_endpoint:
        return ""
    given = settings.as_variables()
    names = (name for name in Settings.model_fields if Settings.is_of_models(name))
    facts = (f"{name} {given[Settings.variable(name)]}" for name in names)
    servers = servers_here(settings, os.environ)
    return hashlib.sha256("\0".join((salt, *facts, servers)).encode()).hexdigest()


def worker_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a worker: its starter's, with every setting made explicit and
    without Temporal's own variables.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")
    }
    return inherited | settings.as_variables()
