"""`deploy`: which build takes new runs, where runs are pinned to the build that began them."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import draw, put_json, say
from holdfast.client.connecting import CONNECT_SECONDS, configured_target, explain_failure
from holdfast.contracts.search import SEARCH_ATTRIBUTES
from holdfast.deployment.build import build_of
from holdfast.deployment.settings import Settings
from holdfast.intake.launch import search_attributes_of
from holdfast.temporal.attributes import add_attributes
from holdfast.temporal.connection import Target, connect
from holdfast.workers.versions import (
    TAKES_NEW,
    Version,
    complain,
    deployment_name,
    read_versions,
    switch,
)

NUMBERS = ("new runs", "open", "workers")
_BUILD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")


def command(
    build: Annotated[
        str | None,
        typer.Argument(metavar="[BUILD]", help="Takes new runs from now on; without it: list."),
    ] = None,
    percent: Annotated[
        int | None,
        typer.Option("--percent", min=0, max=100, help="Share of the new runs that BUILD takes."),
    ] = None,
    attributes: Annotated[
        bool, typer.Option("--attributes", help="Make the search attributes that are missing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="List as JSON.")] = False,
) -> int:
    """Show the builds of a server of your own, and what is open on each; switch new runs."""
    if build is not None and not _BUILD.fullmatch(build):
        raise Exit(f"'{build[:40]}' is no build id; `deploy` lists those that there are")
    if percent is not None and build is None:
        raise Exit("--percent needs the BUILD that takes so many of the new runs")
    if attributes and build is not None:
        raise Exit("--attributes makes search attributes alone; give BUILD without it")
    settings = Settings()
    if not settings.uses_own_server:
        raise Exit(
            "deploy is for a server of your own: set TEMPORAL_ADDRESS or a profile; beside the"
            " embedded server a worker of another version is replaced by itself"
        )
    return asyncio.run(run(settings, build, percent, attributes=attributes, as_json=as_json))


async def run(
    settings: Settings,
    build: str | None,
    percent: int | None,
    *,
    attributes: bool = False,
    as_json: bool = False,
) -> int:
    """Do what is asked, and print what there is then."""
    target = configured_target(settings)
    client = await connect(target, CONNECT_SECONDS)
    try:
        if attributes:
            return await _make_attributes(client, target)
        if build is not None:
            await _switch(client, target, build, 100 if percent is None else percent)
        found = await read_versions(client, target.task_queue)
    except RPCError as error:
        raise explain_failure(error, target.address) from error
    if as_json:
        put_json(json.dumps([asdict(each) for each in found], indent=2))
    else:
        _show(found, settings, target)
    return Code.COMPLETE


async def _switch(client: Client, target: Target, build: str, percent: int) -> None:
    try:
        await switch(client, target.task_queue, build, percent)
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION):
            raise Exit(
                f"{build} takes no new runs: {error}; a worker of it with HOLDFAST_PIN_RUNS=true"
                " must ask for work first"
            ) from error
        raise


def _show(found: tuple[Version, ...], settings: Settings, target: Target) -> None:
    name = deployment_name(target.task_queue)
    if not found:
        say(
            f"Deployment {name} has no builds: start workers with HOLDFAST_PIN_RUNS=true;"
            f" those of this installation are build {build_of(_pinned(settings))}"
        )
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("build", "", "new runs", "open", "workers"):
        table.add_column(column, no_wrap=True, justify="right" if column in NUMBERS else "left")
    for each in found:
        workers = "?" if each.workers is None else str(each.workers)
        share = f"{each.percent:g} %" if each.status in TAKES_NEW else ""
        row = (each.build, each.status, share, str(each.open), workers)
        table.add_row(*map(Text, row))
    draw(table)
    for line in complain(found):
        say(line, "magenta")


def _pinned(settings: Settings) -> Settings:
    return settings.model_copy(update={"pin_runs": True})


async def _make_attributes(client: Client, target: Target) -> int:
    has = await search_attributes_of(client, target.namespace)
    missing = [name for name in SEARCH_ATTRIBUTES if name not in has]
    if not missing:
        say(f"Namespace {target.namespace} has all {len(SEARCH_ATTRIBUTES)} search attributes.")
        return Code.COMPLETE
    try:
        await add_attributes(client, target.namespace, missing)
    except RPCError as error:
        pairs = " ".join(
            f'--search-attribute "{name}={SEARCH_ATTRIBUTES[name]}"' for name in missing
        )
        raise Exit(
            f"the server makes none: {error}; on Temporal Cloud: tcld namespace search-attributes"
            f" add --namespace {target.namespace} {pairs}",
            Code.FAILED,
        ) from error
    say(f"Made in namespace {target.namespace}: {', '.join(missing)}")
    return Code.COMPLETE
