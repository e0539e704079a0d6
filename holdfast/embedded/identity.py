"""Identify the serving worker: its code's version and its model environment, without keys."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from holdfast import __version__
from holdfast.deployment.packages import list_entry_points
from holdfast.deployment.project import FILE, FOLDERS, PRICES, VARIABLE
from holdfast.deployment.settings import HOME, PACKAGE, Settings
from holdfast.deployment.variables import servers_here

_SHIPPED = ("roles", "prompts", "playbooks")
_KINDS = {".py", ".md", ".yaml"}


def code_version(*projects: Path) -> str:
    """Return the program's version with a hash of its files, projects' and those that packages
    bring, so that edited code makes another version.
    """
    digest = hashlib.sha256("".join(f"{each}\n" for each in list_entry_points()).encode())
    for path in sorted((*_shipped_files(), *chain.from_iterable(map(_files_of, projects)))):
        # An editor may take its temporary file away while we look; of a link that leads to itself,
        # whoever reads it says so.
        with suppress(OSError):
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


def _files_of(project: Path) -> Iterator[Path]:
    yield from (project / FILE, project / PRICES)
    for name in FOLDERS:
        found = (project / name).rglob("*")
        yield from (path for path in found if path.suffix in _KINDS)


def model_environment(settings: Settings, salt: str) -> str:
    """Return a salted hash of the settings that decide on models, prices and tools, the file of MCP
    servers included; empty without an endpoint.
    """
    if not settings.has_endpoint:
        return ""
    facts = chain.from_iterable(map(_facts, settings.by_project.values()))
    return hashlib.sha256("\0".join((salt, *facts)).encode()).hexdigest()


def _facts(settings: Settings) -> Iterator[str]:
    given = settings.as_variables()
    names = (name for name in Settings.model_fields if Settings.is_of_models(name))
    yield from (f"{name} {given[Settings.variable(name)]}" for name in names)
    yield servers_here(settings, os.environ)


def worker_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a worker: its starter's, with every setting made explicit and
    without Temporal's own variables. A worker of several projects is told of no single one,
    and reads itself what each of them sets for itself.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")
    }
    told = settings.as_variables()
    if settings.projects:
        told |= {VARIABLE: ""}
        for name in filter(Settings.is_of_project, Settings.model_fields):
            del told[Settings.variable(name)]
    return inherited | told
