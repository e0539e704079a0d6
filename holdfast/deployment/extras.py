"""What an installation can be without: the extras of the package, and how to get what is absent."""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Extra:
    """An extra of `pyproject.toml` and the modules or programs by which its presence is
    recognised.
    """

    gives: str
    """What there is with it, for whoever wonders whether to install it."""
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


EXTRAS: Mapping[str, Extra] = {
    "embedded": Extra(
        "a Temporal server that commands start by themselves", programs=("temporal",)
    ),
    "review": Extra(
        "the analysers of a code review",
        modules=("bandit", "detect_secrets", "lizard", "ruff"),
        programs=("ast-grep", "oxlint", "shellcheck", "zizmor"),
    ),
    "documents": Extra(
        "PDF, Word, Excel, PowerPoint and HTML for agents to read",
        modules=("docx", "openpyxl", "pptx", "pypdf", "selectolax"),
    ),
    "data": Extra("SQL over CSV, Parquet, Excel and SQLite", modules=("duckdb", "openpyxl")),
    "python": Extra("a sandbox in which agents run Python", modules=("pydantic_monty",)),
    "mcp": Extra("tools of MCP servers, and the door for coding agents", modules=("mcp",)),
    "web": Extra(
        "searching and reading the web, a Python sandbox elsewhere",
        modules=("aiohttp", "selectolax", "yarl"),
    ),
    "units": Extra("units in calculations", modules=("pint",)),
    "serve": Extra(
        "the live page of a run (watch --web), runs over HTTP (serve), web hooks",
        modules=(
            "aiohttp",
            "starlette",
            "uvicorn",
            "sse_starlette",
            "ag_ui",
            "standardwebhooks",
        ),
    ),
    "slack": Extra("runs in threads of Slack", modules=("aiohttp", "slack_bolt", "slack_sdk")),
    "otel": Extra(
        "spans for OpenTelemetry",
        modules=("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "requests"),
    ),
    "receipts": Extra("receipts of runs that others can check", modules=("cryptography",)),
    "s3": Extra("a store in a bucket, STORE_URL=s3://…", modules=("boto3", "botocore")),
    "gcs": Extra(
        "a store in a bucket of Google's, STORE_URL=gs://…",
        modules=("google.api_core", "google.auth", "google.cloud.storage", "requests"),
    ),
    "encryption": Extra("histories, store and journal encrypted", modules=("cryptography",)),
    "testing": Extra(
        "a deployment with scripted answers for tests of yours",
        modules=("aiohttp", "pytest"),
        programs=("temporal",),
    ),
    "dockerfiles": Extra("the analyser of Dockerfiles, 54 MB", programs=("hadolint",)),
}
"""All but `all`, which is each of them but `dockerfiles`."""


INSTALLED = (Path(__file__).parents[1] / "roles").is_dir()
"""True in what a wheel has installed; in a checkout, roles stand beside the package."""


def how_to_get(*what: str) -> str:
    """Return the command that installs extras, or packages of somebody else's."""
    if not {*what} <= {*EXTRAS}:
        return f"pip install {' '.join(what)}"
    # No registry knows the version of a checkout; there one command installs all of them.
    return f"pip install 'holdfast[{','.join(what)}]'" if INSTALLED else "make setup"


def needs(*what: str) -> str:
    """Return the rest of a sentence: that extras or packages are absent, and how to get them."""
    return f"needs packages that are not installed: {how_to_get(*what)}"


def lacking(*extras: str) -> str:
    """Return what `needs` says of the extras of which a part is not installed here; empty if all
    are.
    """
    absent = [each for each in extras if any(_find_absent(EXTRAS[each]))]
    return needs(*absent) if absent else ""


def has_module(name: str) -> bool:
    """True if a module can be imported here. Imports only the packages above it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def program(name: str) -> str:
    """Return the path where this environment has a program, or would have it. Programs elsewhere on
    PATH are of unknown versions and are not run.
    """
    return str(Path(sysconfig.get_path("scripts")) / name)


def _find_absent(extra: Extra) -> Iterator[str]:
    yield from (each for each in extra.modules if not has_module(each))
    yield from (each for each in extra.programs if not Path(program(each)).is_file())
