"""Which worker serves: the version of its code and its model environment, compared without keys."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast import __version__
from holdfast.deployment.settings import HOME, PACKAGE, Settings
from holdfast.deployment.variables import servers_here

_SHIPPED = ("roles", "prompts", "playbooks")


def code_version() -> str:
    """The project's version and a mark of the files as they are: a worker that runs what was edited
    since is of another version.
    """
    digest = hashlib.sha256()
    for path in sorted(_shipped_files()):
        # An editor may take its temporary file away while we look.
        with suppress(FileNotFoundError):
            facts = path.stat()
            line = f"{path.relative_to(HOME)} {facts.st_size} {facts.st_mtime_ns}\n"
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
        yield from (path for path in folder.rglob("*") if path.suffix in {".py", ".md", ".yaml"})


def model_environment(settings: Settings, salt: str) -> str:
    """A salted hash of what decides on models, prices and what tools reach, the file of MCP servers
    with it; empty: no endpoint.
    """
    if not settings.has_endpoint:
        return ""
    given = settings.as_variables()
    names = (name for name in Settings.model_fields if Settings.is_of_models(name))
    facts = (f"{name} {given[Settings.variable(name)]}" for name in names)
    servers = servers_here(settings, os.environ)
    return hashlib.sha256("\0".join((salt, *facts, servers)).encode()).hexdigest()


def worker_environment(settings: Settings) -> dict[str, str]:
    """The environment of a worker: its starter's, with the starter's settings made explicit.
    Temporal's own variables do not concern an embedded worker.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")
    }
    return inherited | settings.as_variables()
