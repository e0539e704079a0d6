"""`what-if`: the last runs of a role, done again with one thing of it changed, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import FENCE, FILE_BYTES
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.report import show_markdown
from holdfast.cli.screen.streams import agrees, at_terminal, put_json, say
from holdfast.cli.shared import completion
from holdfast.cli.shared.connection import tell, with_connection
from holdfast.cli.shared.options import (
    AsJson,
    Embedded,
    GivenId,
    dollars_of,
    not_empty,
)
from holdfast.client.trying import Asking, priced, tried
from holdfast.client.what_if import RoleChange, check_change, choose
from holdfast.contracts import Tier
from holdfast.contracts.base import Effort
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.intake.files import read_text
from holdfast.intake.launch import check_id
from holdfast.rendering.amounts import money
from holdfast.rendering.what_if import WhatIf, as_markdown, tell_price


def command(
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="NAME",
            help="The role that is to be otherwise.",
            autocompletion=completion.roles,
            callback=not_empty,
        ),
    ],
    tier: Annotated[Tier | None, typer.Option("--tier", help="Its tier.")] = None,
    effort: Annotated[Effort | None, typer.Option("--effort", help="Its effort.")] = None,
    model: Annotated[
        str,
        typer.Option("--model", metavar="MODEL", help="Its model's id.", callback=not_empty),
    ] = "",
    prompt: Annotated[
        Path | None, typer.Option("--prompt", metavar="FILE", help="What its agents are told.")
    ] = None,
    last: Annotated[
        int, typer.Option("--last", min=1, max=500, help="How many runs that used it.")
    ] = 20,
    dollars: Annotated[
        str | None,
        typer.Option(
            "--dollars",
            metavar="DOLLARS",
            help="The most for all of it. Default: twice what is expected, and one run's cap.",
        ),
    ] = None,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge/--no-judge", help="Have a model compare what code cannot tell apart."
        ),
    ] = True,
    lane: Annotated[
        Literal["now", "batch"],
        typer.Option(
            "--lane", help="batch: at half the price, where each call may wait up to a day."
        ),
    ] = "now",
    new_id: GivenId = "",
    as_json: AsJson = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, whatever it costs.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what it would cost.")] = False,
    embedded: Embedded = False,
) -> int:
    """Do the last runs of a role again with one thing of it changed, and say what got better.

    Give one of --tier, --effort, --model and --prompt. Findings that the change does not touch are
    taken over unpaid; the rest is asked on the inputs that each run has pinned.
    """
    settings = Settings()
    change = RoleChange(role, tier, effort, model, read_prompt(prompt))
    check_change(change, Catalogue.of(settings.project))
    asking = Asking(
        id=check_id(new_id),
        budget=dollars_of("--dollars", dollars) if dollars is not None else None,
        judge=judge,
    )
    return with_connection(
        settings,
        embedded,
        lambda connection: run(
            connection,
            change,
            last,
            asking,
            by_batch=lane == "batch",
            dry=dry,
            yes=yes,
            as_json=as_json,
        ),
    )


def read_prompt(path: Path | None) -> str:
    """Return the text of a role's file, below its front matter if it has one. Refused if there is
    none.
    """
    if path is None:
        return ""
    text = read_text(path, "--prompt", FILE_BYTES)
    parts = FENCE.split(text, maxsplit=2)
    text = (parts[2] if len(parts) == 3 and not parts[0].strip() else text).strip()
    if not text:
        raise Refused(f"--prompt {path}: there is no text in it; write what the role is told")
    return text


async def run(
    connection: Connection,
    change: RoleChange,
    last: int,
    asking: Asking,
    *,
    by_batch: bool,
    dry: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Price the forks, ask, run them and show the comparison. Return 0, whatever it says."""
    chosen = await choose(connection, change, last, by_batch=by_batch)
    made = priced(chosen, asking)
    if dry:
        _show(made, as_json=as_json)
        return Code.COMPLETE
    if as_json:
        say(tell_price(made))
    else:
        show_markdown(as_markdown(made, to_type))
    if not yes and not await _confirm(made):
        return Code.COMPLETE
    _show(await tried(connection, chosen, made, asking, tell), as_json=as_json)
    return Code.COMPLETE


def _show(made: WhatIf, *, as_json: bool) -> None:
    if as_json:
        put_json(made.model_dump_json(indent=2))
    else:
        show_markdown(as_markdown(made, to_type))


async def _confirm(made: WhatIf) -> bool:
    if not at_terminal():
        say("Nothing was asked; --yes does it.")
        return False
    return await agrees(f"Do it, for at most {money(made.budget)}?")
