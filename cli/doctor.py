"""`doctor`: what this deployment has, where each setting came from, and what is in the way."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource
from rich.table import Table
from rich.text import Text
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from cli.connection import CONNECT_SECONDS, configured_target, pollers
from cli.exits import Code, Stop
from cli.goal import endpoint_of
from cli.invocation import WORKER
from cli.launch import search_attributes_of
from cli.options import Embedded
from cli.screen import OUT, Safe, without_password
from orchestrator import __version__, embedded
from orchestrator.contracts import Tier
from orchestrator.embedded.server import SEARCH_ATTRIBUTES, binary
from orchestrator.rate_limits import can_set_rates, read_rate
from orchestrator.settings import Settings
from orchestrator.temporal import Target, Unreachable, connect

Mark = Literal["ok", "note", "bad", "fact"]
_LOOK: dict[Mark, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "note": ("·", "yellow"),
    "bad": ("✗", "bold red"),
    "fact": ("", ""),
}
TOOLS = ("git", "ruff", "bandit", "temporal")
TOOL_SECONDS = 20
REACH_SECONDS = 3.0
_VERSION = re.compile(r"\d+\.\d+[\w.\-]*")
_TEMPORAL_VARIABLES = (
    "TEMPORAL_ADDRESS",
    "TEMPORAL_NAMESPACE",
    "TEMPORAL_PROFILE",
    "TEMPORAL_CONFIG_FILE",
    "TEMPORAL_API_KEY",
)


@dataclass(frozen=True)
class Check:
    """One line of the diagnosis."""

    section: str
    name: str
    mark: Mark
    detail: str


def command(only_embedded: Embedded = False) -> int:
    """Check server, workers, models, tools and settings; says what to repair."""
    return asyncio.run(run(Settings(), only_embedded))


async def run(settings: Settings, only_embedded: bool) -> int:
    """Print every check; 1 if something is in the way, else 0. Starts nothing."""
    checks = [
        Check("project", "version", "ok", f"{__version__} on Python {platform.python_version()}"),
        state_directory(settings),
        *await server(settings, only_embedded),
        *models(settings),
        *await asyncio.to_thread(lambda: [tool(name) for name in TOOLS]),
        *origins(settings),
    ]
    OUT.print(Safe(_table(checks)))
    bad = [check for check in checks if check.mark == "bad"]
    verdict = f"{len(bad)} thing{'s' * (len(bad) != 1)} in the way" if bad else "Nothing in the way"
    OUT.print(Text(verdict + ".", style="bold red" if bad else "bold green"))
    return Code.FAILED if bad else Code.COMPLETE


# ---------------------------------------------------------------- state and server


def state_directory(settings: Settings) -> Check:
    """Whether the state directory, or the nearest folder above that exists, can be written."""
    path = settings.state_dir.expanduser()
    nearest = next(each for each in (path, *path.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            free = shutil.disk_usage(nearest).free // 1_000_000
        return Check("project", "state", "ok", f"{path} ({free:,} MB free)")
    except OSError as error:
        advice = f"{error.strerror}; set HOLDFAST_STATE_DIR to a folder that can be written"
        return Check("project", "state", "bad", f"{path}: {advice}")


async def server(settings: Settings, only_embedded: bool) -> list[Check]:
    """The server that commands would use, and who polls its queues."""
    if settings.uses_own_server and not only_embedded:
        try:
            target = configured_target(settings)
        except Stop as stop:
            return [Check("server", "own", "bad", str(stop))]
        return await _reached(target, "own")
    status = embedded.status(settings)
    if status.endpoint is None or status.server_pid is None:
        try:
            binary()
        except embedded.EmbeddedError as error:
            return [Check("server", "embedded", "bad", str(error))]
        return [Check("server", "embedded", "ok", "not running; the first command starts it")]
    held = ", held up" if status.held else ""
    worker = f"pid {status.worker_pid}" if status.worker_pid else "not running"
    return [
        Check("server", "processes", "ok", f"pid {status.server_pid}, worker {worker}{held}"),
        *await _reached(status.endpoint.target, "embedded"),
    ]


async def _reached(target: Target, name: str) -> list[Check]:
    try:
        client = await connect(target, CONNECT_SECONDS)
        info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
        where = f"{target.address}, namespace {target.namespace}, Temporal {info.server_version}"
        return [
            Check("server", name, "ok", where),
            Check("server", "Web UI", "ok" if target.ui_url else "note", _ui(target)),
            Check("server", "store", "ok", target.store_url),
            await _attributes(client, target),
            *[await polled(client, target, queue) for queue in _queues(target)],
            *await rates(client, target),
        ]
    except (Unreachable, RPCError) as error:
        return [Check("server", name, "bad", str(error))]


def _ui(target: Target) -> str:
    return target.ui_url or "unknown; set HOLDFAST_WEB_UI for links"


def _queues(target: Target) -> Iterator[str]:
    yield target.task_queue
    for tier in get_args(Tier):
        yield f"{target.task_queue}-{tier}"


async def polled(client: Client, target: Target, queue: str) -> Check:
    """A queue that nobody serves stops every run if it is the workflows', else those that ask for
    the tier.
    """
    found = await pollers(client, target.namespace, queue)
    if found:
        return Check("workers", queue, "ok", f"polled by {', '.join(found)}")
    own = queue == target.task_queue and not target.embedded
    remedy = f"nobody polls it; start one: {WORKER}" if own else "nobody polls it"
    return Check("workers", queue, "bad" if own else "note", remedy)


async def rates(client: Client, target: Target) -> list[Check]:
    """How fast each tier may go, and whether the server can slow one for all workers together."""
    checks = []
    for tier in get_args(Tier):
        found = await read_rate(client, f"{target.task_queue}-{tier}")
        mark: Mark = "ok" if found.rate is None else "note"
        detail = found.plainly(tier, time.time())
        checks.append(Check("workers", f"{tier} rate", mark, detail))
    if not await can_set_rates(client, f"{target.task_queue}-haiku"):
        missing = "the server keeps no rates: after a throttle each worker slows by itself"
        checks.append(Check("workers", "rate gate", "note", missing))
    return checks


async def _attributes(client: Client, target: Target) -> Check:
    has = await search_attributes_of(client, target.namespace)
    missing = [name for name in SEARCH_ATTRIBUTES if name not in has]
    if not missing:
        return Check("server", "search attributes", "ok", "all there")
    return Check("server", "search attributes", "note", f"runs go without {', '.join(missing)}")


# ---------------------------------------------------------------- models and tools


def models(settings: Settings) -> list[Check]:
    """Whether a model can be asked; never the key itself."""
    if not settings.has_endpoint:
        return [
            Check(
                "models", "endpoint", "note",
                "none; set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL for goals that need a model",
            )
        ]  # fmt: skip
    address = endpoint_of(settings)
    key = settings.anthropic_api_key
    shown = f"key {masked(key.get_secret_value())}" if key else "no key"
    named = ", ".join((settings.model_haiku, settings.model_sonnet, settings.model_opus))
    return [
        Check("models", "endpoint", *_reachable(address, shown)),
        Check("models", "tiers", "ok", named),
    ]


def _reachable(address: str, shown: str) -> tuple[Mark, str]:
    parts = urlsplit(address)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), REACH_SECONDS):
            return "ok", f"{without_password(address)}, {shown}"
    except (OSError, ValueError) as error:
        return "bad", f"{without_password(address)}, {shown}: not reachable: {error}"


def masked(secret: str) -> str:
    """That a secret is there, and how long; of its letters only the last four of a long one."""
    return f"…{secret[-4:]} ({len(secret)} characters)" if len(secret) >= 20 else "…"


def tool(name: str) -> Check:
    """Whether a program that lenses or the embedded server run is there, and its version."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        return Check("tools", name, "bad", "not found; run make setup, or install it")
    try:
        answer = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=TOOL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("tools", name, "bad", f"{found}: {error}")
    version = _VERSION.search(answer.stdout + answer.stderr)
    return Check("tools", name, "ok", f"{version[0] if version else 'unknown version'} ({found})")


# ---------------------------------------------------------------- settings


def origins(settings: Settings) -> list[Check]:
    """Every setting with its value, secrets masked, and where it came from."""
    environment = {*EnvSettingsSource(Settings)()}
    file = {*DotEnvSettingsSource(Settings)()}
    checks = []
    for name, field in Settings.model_fields.items():
        names = {name, *(getattr(field.validation_alias, "choices", None) or ())}
        origin = "environment" if names & environment else ".env" if names & file else "default"
        value = getattr(settings, name)
        secret = getattr(value, "get_secret_value", None)
        shown = masked(secret()) if secret else str(value if value not in (None, "", ()) else "-")
        detail = f"{without_password(shown)}  ({origin})"
        checks.append(Check("settings", Settings.variable(name), "fact", detail))
    for variable in _TEMPORAL_VARIABLES:
        if value := os.environ.get(variable):
            shown = masked(value) if variable.endswith("KEY") else value
            checks.append(Check("settings", variable, "fact", f"{shown}  (environment)"))
    return checks


def _table(checks: list[Check]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    section = ""
    for check in checks:
        mark, style = _LOOK[check.mark]
        shown = check.section if check.section != section else ""
        section = check.section
        table.add_row(Text(shown), Text(mark, style=style), Text(check.name), Text(check.detail))
    return table
