"""Which worker serves: the version of its code and its model environment, compared without keys."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from deployment.settings import HOME, Settings
from orchestrator import __version__

_SHIPPED = (
    "*.py",
    "orchestrator",
    "deployment",
    "workflows",
    "activities",
    "cli",
    "roles",
    "prompts",
    "playbooks",
)


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
    for entry in _SHIPPED:
        for found in HOME.glob(entry):
            candidates = found.rglob("*") if found.is_dir() else [found]
            yield from (path for path in candidates if path.suffix in {".py", ".md", ".yaml"})


def model_environment(settings: Settings, salt: str) -> str:
    """A salted hash of what decides which model is asked; empty without an endpoint."""
    if not settings.has_endpoint:
        return ""
    key = settings.anthropic_api_key
    facts = (
        key.get_secret_value() if key else "",
        settings.anthropic_base_url,
        settings.model_haiku,
        settings.model_sonnet,
        settings.model_opus,
        settings.capabilities,
        str(settings.price_file),
        # Only where they are set, so that a worker that runs is not replaced for nothing.
        *(f"run {run}" for run in (settings.most_dollars_run,) if run is not None),
        *(f"day {day}" for day in (settings.most_dollars_day,) if day is not None),
    )
    return hashlib.sha256("\0".join((salt, *facts)).encode()).hexdigest()


def worker_environment(settings: Settings) -> dict[str, str]:
    """The environment of a worker: its starter's, with the starter's settings made explicit.
    Temporal's own variables do not concern an embedded worker.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")
    }
    key = settings.anthropic_api_key
    explicit = {
        "ANTHROPIC_API_KEY": key.get_secret_value() if key else "",
        "ANTHROPIC_BASE_URL": settings.anthropic_base_url,
        "HOLDFAST_MODEL_HAIKU": settings.model_haiku,
        "HOLDFAST_MODEL_SONNET": settings.model_sonnet,
        "HOLDFAST_MODEL_OPUS": settings.model_opus,
        "HOLDFAST_CAPABILITIES": settings.capabilities,
        "HOLDFAST_PRICE_FILE": str(settings.price_file or ""),
        "HOLDFAST_MOST_DOLLARS_RUN": _given(settings.most_dollars_run),
        "HOLDFAST_MOST_DOLLARS_DAY": _given(settings.most_dollars_day),
        "HOLDFAST_IDLE_SECONDS": str(settings.idle_seconds),
        "HOLDFAST_KEEP_MEGABYTES": str(settings.keep_megabytes),
        "HOLDFAST_LOG_LEVEL": settings.log_level,
        "HOLDFAST_BUILD_ID": settings.build_id,
        "HOLDFAST_ALLOWED_ROOTS": ":".join(map(str, settings.allowed_roots)),
    }
    return inherited | explicit


def _given(amount: object) -> str:
    # Zero is an amount.
    return "" if amount is None else str(amount)
