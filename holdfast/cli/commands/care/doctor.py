"""`doctor`: what this deployment has, where each setting came from, and what is in the way."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, get_args
from urllib.parse import urlsplit

import typer
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource
from rich.table import Table
from rich.text import Text
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from holdfast import __version__, embedded
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.sources import sources_for
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.activities.gate.queue_rates import can_set_rates, queue_of, read_rate
from holdfast.activities.prompts.files import system_prompts
from holdfast.activities.review.lenses import analysers, brought_lenses
from holdfast.activities.toolset.shelf import IN_PLACE, look_at_tools
from holdfast.activities.toolset.tool import Tool
from holdfast.cli.checks.diagnosis import Checkup, Mark
from holdfast.cli.checks.endpoint import PORT_SECONDS, check_models, check_worker, mask
from holdfast.cli.checks.hands import check_servers, check_tools
from holdfast.cli.checks.kept import check_storage
from holdfast.cli.checks.previews import check_previews
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import OUT, draw, say
from holdfast.cli.shared.moved import describe_moved
from holdfast.cli.shared.options import Embedded
from holdfast.client.connecting import CONNECT_SECONDS, configured_target
from holdfast.contracts import Tier
from holdfast.contracts.policies import tools_queue
from holdfast.contracts.search import SEARCH_ATTRIBUTES
from holdfast.contracts.treasury import Caps
from holdfast.deployment import extras
from holdfast.deployment.address import address_of
from holdfast.deployment.invocation import OPTION, STARTER, is_project_typed
from holdfast.deployment.project import FILE, read_values
from holdfast.deployment.settings import HOME, Settings, as_text
from holdfast.embedded.server import binary
from holdfast.embedded.supervision import refuse_other_project
from holdfast.errors import BadSettings, EmbeddedError, Unreachable
from holdfast.intake.launch import in_outage, search_attributes_of
from holdfast.rendering.amounts import seconds
from holdfast.rendering.treasury import summary
from holdfast.temporal.connection import Target, connect
from holdfast.temporal.treasury import Treasurer, Unanswered
from holdfast.workers.pollers import Poller, any_alive, count_waiting, find_pollers
from holdfast.workers.served import describe_missing, find_served
from holdfast.workers.versions import complain, read_versions

_LOOK: dict[Mark, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "note": ("·", "magenta"),
    "bad": ("✗", "bold red"),
    "fact": ("", ""),
}
FIRST = (
    "version",
    "folder",
    "state",
    "embedded",
    "own",
    "Web UI",
    "endpoint",
    "prices",
    "previews",
    "receipt key",
    "spent today",
)
"""Checks that are told also when they are fine."""
BY_DEFAULT = "(default)"
TOOLS = {"git": "", "ruff": "review", "bandit": "review", "temporal": "embedded"}
"""Programs whose version is told, each with the extra that brings it."""
TOOL_SECONDS = 20
MOST_DEAD = 3
"""Most dead workers of a queue to name; the server remembers them for some minutes."""
SECTION_WIDTH = len("settings")
NAME_WIDTH = max(len(Settings.variable(name)) for name in Settings.model_fields)
_VERSION = re.compile(r"\d+\.\d+[\w.\-]*")
_TEMPORAL_VARIABLES = (
    "TEMPORAL_ADDRESS",
    "TEMPORAL_NAMESPACE",
    "TEMPORAL_PROFILE",
    "TEMPORAL_CONFIG_FILE",
    "TEMPORAL_API_KEY",
)


def command(
    whole: Annotated[
        bool, typer.Option("--all", help="Also show what is fine, and every setting.")
    ] = False,
    only_embedded: Embedded = False,
) -> int:
    """Check server, workers, models, tools and settings; says what to repair."""
    return asyncio.run(run(Settings(), only_embedded, whole=whole))


async def run(settings: Settings, only_embedded: bool, *, whole: bool = False) -> int:
    """Print each check as soon as it is known, because some wait for an answer; return 1 if
    something is in the way, else 0. Starts nothing. Unless `whole`, leaves out most of what is
    fine.
    """
    bad, left, section = 0, 0, ""
    async for check in _checks(settings, only_embedded):
        bad += check.mark == "bad"
        if not (whole or _is_shown(check)):
            left += 1
            continue
        draw(_line(check, first=check.section != section))
        section = check.section
    verdict = f"{bad} thing{'s' * (bad != 1)} in the way" if bad else "Nothing in the way"
    OUT.print(Text(verdict + ".", style="bold red" if bad else "bold"))
    if left:
        say(f"{left} more that are fine, or as they come: {STARTER} doctor --all", "dim")
    return Code.FAILED if bad else Code.COMPLETE


def _is_shown(check: Checkup) -> bool:
    """True for a check that is shown without `--all`: what is unusual, and where things are."""
    if check.mark == "fact":
        return not check.detail.endswith(BY_DEFAULT)
    return check.mark != "ok" or check.name in FIRST


async def _checks(settings: Settings, only_embedded: bool) -> AsyncIterator[Checkup]:
    on = f"{__version__} on Python {platform.python_version()}"
    yield Checkup("project", "version", "ok", on)
    for check in list_folders(settings):
        yield check
    for each in await asyncio.to_thread(check_storage, settings):
        yield Checkup("project", *each)
    async for check in check_deployment(settings, only_embedded):
        yield check
    for check in await check_models(settings):
        yield check
    for check in check_worker(settings, only_embedded):
        yield check
    for check in await asyncio.to_thread(check_prices, settings):
        yield check
    for name, extra in TOOLS.items():
        if not extra or not extras.lacking(extra):
            yield await asyncio.to_thread(check_program, name)
    for check in check_extras():
        yield check
    tools, broken = await asyncio.to_thread(look_at_code, settings)
    for check in broken:
        yield check
    sources = sources_for(settings.project)
    catalogue = await asyncio.to_thread(Catalogue.read, sources, lambda: tools)
    for check in check_tools(catalogue, settings, tools):
        yield check
    async for check in check_servers(catalogue, settings, tools):
        yield check
    for check in (
        *find_brought(catalogue),
        *find_unusable(catalogue),
        *find_idle(catalogue),
        *check_prompts(),
        *list_settings(settings),
    ):
        yield check


# ---------------------------------------------------------------- server


async def check_deployment(settings: Settings, only_embedded: bool) -> AsyncIterator[Checkup]:
    """Check the server that commands would use, and who polls its queues."""
    try:
        if settings.uses_own_server and not only_embedded:
            async for check in _check_server(configured_target(settings), "own"):
                yield check
            return
        status = embedded.status(settings)
        refuse_other_project(embedded.StateDir.of(settings), status.endpoint, settings)
        if status.endpoint is None or status.server_pid is None:
            binary()
            yield Checkup("server", "embedded", "ok", "not running; the first command starts it")
            return
    except BadSettings as error:
        yield Checkup("server", "own", "bad", str(error))
        return
    except EmbeddedError as error:
        yield Checkup("server", "embedded", "bad", str(error))
        return
    held = ", held up" if status.held else ""
    pids = await asyncio.to_thread(status.worker_pids)
    many = f" ({len(pids)} processes)" if len(pids) > 1 else ""
    worker = f"pid {', '.join(map(str, pids))}{many}" if pids else "not running"
    yield Checkup("server", "processes", "ok", f"pid {status.server_pid}, worker {worker}{held}")
    async for check in _check_server(status.endpoint.target, "embedded"):
        yield check


async def _check_server(target: Target, name: str) -> AsyncIterator[Checkup]:
    try:
        client = await connect(target, CONNECT_SECONDS)
        info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
        where = f"{target.address}, namespace {target.namespace}, Temporal {info.server_version}"
        yield Checkup("server", name, "ok", where)
        yield await check_ui(target.ui_url)
        yield Checkup("server", "store", "ok", target.store_url)
        yield await _attributes(client, target)
        if away := await in_outage(client, target.namespace):
            said = f"waiting for the endpoint of the models: {away}; {STARTER} list"
            yield Checkup("server", "runs", "note", said)
        for ask in (check_pollers, check_builds, check_rates, check_spent, check_previews):
            for check in await ask(client, target):
                yield check
    except (Unreachable, RPCError) as error:
        yield Checkup("server", name, "bad", str(error))


async def check_ui(address: str) -> Checkup:
    """Check whether the Web UI answers where links lead. Off this machine it may be reached by a
    browser alone.
    """
    if not address:
        return Checkup("server", "Web UI", "note", "unknown; set HOLDFAST_WEB_UI for links")
    place = urlsplit(address)
    if place.hostname in ("localhost", "127.0.0.1"):
        try:
            async with asyncio.timeout(PORT_SECONDS):
                _, stream = await asyncio.open_connection(place.hostname, place.port or 80)
            stream.close()
        except (OSError, TimeoutError):
            said = f"nothing answers at {address}; set HOLDFAST_WEB_UI to where it is"
            return Checkup("server", "Web UI", "note", said)
    return Checkup("server", "Web UI", "ok", address)


async def check_pollers(client: Client, target: Target) -> list[Checkup]:
    """Check who polls each queue and whether a worker asks models; says what to do if none does."""
    queue = target.task_queue
    found = await find_pollers(client, (queue, tools_queue(queue)))
    checks = [_queue(target, each, who) for each, who in found.items()]
    if not any_alive(found[queue]):
        return checks
    _, models = await find_served(client, queue)
    if models:
        return [*checks, Checkup("workers", "models", "ok", "asked by a worker")]
    line = describe_missing(queue, embedded=target.embedded)
    calls = await count_waiting(client, queue)
    # Without models nobody needs to ask them; a call that waits for one needs it now.
    line = f"{calls} call{'s wait' if calls != 1 else ' waits'}: {line}" if calls else line
    return [*checks, Checkup("workers", "models", "bad" if calls else "note", line)]


async def check_builds(client: Client, target: Target) -> list[Checkup]:
    """Check that new runs and those pinned to a build have workers; nothing without pinned runs."""
    if target.embedded:
        return []
    found = await read_versions(client, target.task_queue)
    told = "; ".join(f"{each.build} {each.status}, {each.open} open" for each in found)
    bad = [Checkup("workers", "builds", "bad", line) for line in complain(found)]
    return bad or ([Checkup("workers", "builds", "ok", told)] if told else [])


def _queue(target: Target, queue: str, found: tuple[Poller, ...]) -> Checkup:
    """Check one task queue. Without a poller, the main queue stops every run, the other one those
    that need tools.
    """
    alive = ", ".join(each.identity for each in found if each.alive)
    dead = ", ".join(
        f"{each.identity} (last heard of {seconds(each.ago)} ago)"
        for each in [each for each in found if not each.alive][:MOST_DEAD]
    )
    gone = f"dead: {dead}" if dead else ""
    own = queue == target.task_queue
    if alive:
        # Every worker asks the main queue: there the dead are told once.
        told = (f"polled by {alive}", gone if own else "")
        return Checkup("workers", queue, "ok", "; ".join(filter(None, told)))
    remedy = describe_missing(queue, embedded=target.embedded, any_worker=False) if own else ""
    detail = "; ".join(filter(None, ("nobody polls it", gone, remedy)))
    return Checkup("workers", queue, "bad" if own and not target.embedded else "note", detail)


async def check_rates(client: Client, target: Target) -> list[Checkup]:
    """Show how fast each tier may go, and whether the server can slow one for all workers."""
    checks = []
    for tier in get_args(Tier):
        found = await read_rate(client, target.task_queue, tier)
        mark: Mark = "ok" if found.rate is None else "note"
        now = time.time()
        detail = found.explain(tier, now)
        if found.rate and not found.throttle(tier, now).by_hand:
            detail += f" ({found.rate:.2f} calls/s)"
        checks.append(Checkup("workers", f"{tier} rate", mark, detail))
    if not await can_set_rates(client, queue_of(target.task_queue, "haiku")):
        missing = "the server keeps no rates: after a throttle each worker slows by itself"
        checks.append(Checkup("workers", "rate gate", "note", missing))
    return checks


async def check_spent(client: Client, target: Target) -> list[Checkup]:
    """Show what today's calls have cost, where that is bounded."""
    try:
        found = await Treasurer(lambda: client, target.task_queue, Caps()).look()
    except Unanswered as error:
        return [Checkup("workers", "spent today", "note", f"the treasurer is silent: {error}")]
    if found is None:
        return []
    full = found.caps.day is not None and found.today.paid + found.held >= found.caps.day
    said = f"{summary(found)}; {STARTER} budget"
    return [Checkup("workers", "spent today", "note" if full else "ok", said)]


async def _attributes(client: Client, target: Target) -> Checkup:
    has = await search_attributes_of(client, target.namespace)
    missing = [name for name in SEARCH_ATTRIBUTES if name not in has]
    if not missing:
        return Checkup("server", "search attributes", "ok", "all there")
    return Checkup("server", "search attributes", "note", f"runs go without {', '.join(missing)}")


# ---------------------------------------------------------------- tools


def look_at_code(settings: Settings) -> tuple[Mapping[str, Tool], list[Checkup]]:
    """Return the project's tools that can be used, and what is wrong with others: its own, those of
    projects that its worker serves beside it, and tools and lenses of packages.
    """
    tools, flaws = look_at_tools(settings.project)
    others = (look_at_tools(each)[1] for each in settings.projects)
    every = dict.fromkeys([*flaws, *chain.from_iterable(others), *brought_lenses()[1]])
    return tools, [Checkup("agents", "broken", "bad", flaw) for flaw in every]


def check_program(name: str) -> Checkup:
    """Check that a program of lenses or of the embedded server is there; shows its version."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        return Checkup("tools", name, "bad", "not found; run make setup, or install it")
    try:
        answer = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=TOOL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Checkup("tools", name, "bad", f"{found}: {error}")
    version = _VERSION.search(answer.stdout + answer.stderr)
    return Checkup("tools", name, "ok", f"{version[0] if version else 'unknown version'} ({found})")


def check_extras() -> list[Checkup]:
    """Return the extras of this installation, and for each absent one what it would give."""
    return [
        Checkup("extras", name, "note", f"{extra.gives}: {extras.how_to_get(name)}")
        if extras.lacking(name)
        else Checkup("extras", name, "ok", extra.gives)
        for name, extra in extras.EXTRAS.items()
    ]


def find_unusable(catalogue: Catalogue) -> list[Checkup]:
    """Return the role and playbook files that cannot be used; only runs that need them stop."""
    found = [(f"role {each.name}", each) for each in catalogue.unusable_roles]
    found += [(f"playbook {each.name}", each) for each in catalogue.unusable_playbooks]
    lines: dict[tuple[str, str], Mark] = {}
    for name, each in found:
        # Of one name that is defined twice each file says the same.
        told = f"{each.why} ({each.source})" if each.source else each.why
        lines.setdefault((name, told), "bad" if each.source else "note")
    return [Checkup("files", name, mark, why) for (name, why), mark in lines.items()]


def find_brought(catalogue: Catalogue) -> list[Checkup]:
    """Return the playbooks and roles that do not ship, each with where it comes from and whether it
    replaces a shipped one.
    """
    found = [(f"playbook {name}", catalogue.sources.get(name, "")) for name in catalogue.playbooks]
    found += [(f"role {name}", role.card.source) for name, role in catalogue.roles.items()]
    if not any(source for _, source in found):
        return []
    shipped = Catalogue.load()
    replaced = {f"playbook {name}" for name in shipped.playbooks}
    replaced |= {f"role {name}" for name in shipped.roles}
    return [
        Checkup("files", name, "fact", f"{source}{IN_PLACE * (name in replaced)}")
        for name, source in found
        if source
    ]


def find_idle(catalogue: Catalogue) -> list[Checkup]:
    """Return the analysers that no review runs, because a role file was removed or is unusable."""
    if brought_lenses()[1]:
        return []
    why = "no role uses it, so no review runs it; restore its role file, or remove its module"
    return [
        Checkup("files", f"analyser {name}", "note", why) for name in catalogue.idle(analysers())
    ]


def check_prompts(home: Path = HOME) -> list[Checkup]:
    """Return what is wrong with the system prompts; without them no model is asked."""
    try:
        system_prompts(home)
    except CatalogueError as error:
        return [Checkup("files", "prompts", "bad", str(error))]
    return []


# ---------------------------------------------------------------- settings


def list_folders(settings: Settings) -> list[Checkup]:
    """Return the project, those that its worker serves beside it, and its idle settings."""
    found = []
    if settings.project:
        found.append(Checkup("project", "folder", "ok", f"{settings.project} ({settings.name})"))
    if moved := describe_moved(settings):
        found.append(Checkup("project", "moved", "note", moved))
    for name, own in settings.by_project.items() if settings.projects else ():
        if own.project and own.project != settings.project:
            found.append(Checkup("project", "folder", "ok", f"{own.project} ({name}), served too"))
    if settings.project and settings.projects and (idle := settings.list_idle(settings.project)):
        said = f"no effect, as its worker serves several projects: {', '.join(idle)}"
        found.append(Checkup("project", "settings", "note", said))
    return found


def check_prices(settings: Settings) -> list[Checkup]:
    """Return where prices come from and of when they are, and the models that have none."""
    # The library of prices takes a while to load.
    from holdfast.activities.asking.prices import PriceFileError, Prices, library_source

    try:
        prices = Prices.of(settings)
    except PriceFileError as error:
        return [Checkup("models", "prices", "bad", str(error))]
    found = []
    if settings.price_file:
        dated = f", of {prices.file.dated}" if prices.file.dated else ""
        models = ", ".join(prices.file.steps) or "no model"
        found.append(Checkup("models", "prices", "ok", f"{settings.price_file}: {models}{dated}"))
    found.append(Checkup("models", "prices", "ok", library_source()))
    cards = (*prices.cards(), prices.planner())
    if unknown := [each.id for each in cards if each and not each.prices]:
        said = f"none known for {', '.join(unknown)}: give one in a price file, or run --unpriced"
        found.append(Checkup("models", "prices", "note", said))
    return found


def list_settings(settings: Settings) -> list[Checkup]:
    """Return every setting with its value (secrets masked) and where it came from."""
    project = settings.project
    alone = project if not settings.projects else None
    file = alone / ".env" if alone else Settings.model_config.get("env_file")
    ours = read_values(project, Settings.model_fields) if project else ()
    given = [
        ("environment", {*EnvSettingsSource(Settings)()}),
        (".env", {*DotEnvSettingsSource(Settings, env_file=file)()}),
        (FILE, {name for name in ours if alone or Settings.is_of_project(name)}),
    ]
    checks = []
    for name, field in Settings.model_fields.items():
        names = {name, *(getattr(field.validation_alias, "choices", None) or ())}
        origin = next((where for where, has in given if names & has), "default")
        if name == "project" and is_project_typed():
            origin = OPTION
        value = getattr(settings, name)
        secret = getattr(value, "get_secret_value", None)
        shown = mask(secret()) if secret else as_text(value) or "-"
        shown = address_of(shown) if "://" in shown or "@" in shown else shown
        detail = f"{shown}  ({origin})"
        checks.append(Checkup("settings", Settings.variable(name), "fact", detail))
    for variable in _TEMPORAL_VARIABLES:
        if value := os.environ.get(variable):
            shown = mask(value) if variable.endswith("KEY") else value
            checks.append(Checkup("settings", variable, "fact", f"{shown}  (environment)"))
    return checks


def _line(check: Checkup, *, first: bool) -> Table:
    """Return one check as a table of its own row, printed before the next is known. `first` of its
    section.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim", min_width=SECTION_WIDTH)
    table.add_column(no_wrap=True, min_width=1)
    table.add_column(no_wrap=True, min_width=NAME_WIDTH)
    table.add_column(overflow="fold")
    mark, style = _LOOK[check.mark]
    shown = Text(check.section if first else "")
    table.add_row(shown, Text(mark, style=style), Text(check.name), Text(check.detail))
    return table
