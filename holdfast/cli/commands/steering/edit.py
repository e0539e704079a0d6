"""`edit`: change the plan that a run waits with, in an editor or by a file; see what that changes
and costs, and let it run.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import typer

from holdfast.cli.screen.exits import Code, Exit, exit_of
from holdfast.cli.screen.streams import ERR, ask, at_terminal, draw, read_line, say
from holdfast.cli.screen.tables import preview
from holdfast.cli.shared import orders
from holdfast.cli.shared.connection import tell, with_connection
from holdfast.cli.shared.options import Embedded, OpenRunId
from holdfast.client.orders import state_of
from holdfast.client.planned import Waiting
from holdfast.contracts import Order, Plan
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.errors import HoldfastError, Refused
from holdfast.intake import plans
from holdfast.intake.connection import Connection
from holdfast.rendering.preview import price

HEADER = """\
# The plan of run {run_id}. Save it and leave the editor: you see the difference and the new price,
# and are asked before it runs. Unchanged, nothing is sent.
# Tiers: haiku, sonnet, opus, or null for the role's own.
# Roles: {roles}

"""
QUESTION = "Run the changed plan? [y]es, [e]dit it again, [n]o:"
Said = Literal["yes", "edit", "no"]


def command(
    run_id: OpenRunId,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="The new plan, JSON or YAML; without it, your $EDITOR."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Run the changed plan without asking again.")
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Change the plan that a run waits with: see the difference and the new price, then run it."""
    if plan is not None:
        # What can be known of it without the run is known before anything starts.
        plans.read_plan(plan)
    return with_connection(
        Settings(), embedded, lambda connection: run(connection, run_id, plan, yes=yes)
    )


async def run(connection: Connection, run_id: str, file: Path | None, *, yes: bool = False) -> int:
    """Show what a changed plan changes and costs, and send it if the person agrees.

    Exit lists every mistake in the plan. An unchanged plan is not sent. The text stays in its file
    until the run has taken it.
    """
    waiting = Waiting.of(await state_of(connection, run_id, tell))
    text = file or _open(connection, waiting)
    try:
        changed = await _decide(waiting, text, given=file is not None, yes=yes)
        if changed is None:
            say(f"{run_id}: the plan is unchanged; nothing was sent.")
        else:
            await orders.run(connection, run_id, "edit", Order(plan=changed))
    except HoldfastError as ended:
        kept = "" if file else f"\nYour text is in {text}; the next edit of {run_id} opens it again"
        raise Exit(f"{ended}{kept}", exit_of(ended).code) from ended
    if not file:
        # With whatever the editor has left beside it.
        shutil.rmtree(text.parent, ignore_errors=True)
    return Code.COMPLETE


async def _decide(waiting: Waiting, text: Path, *, given: bool, yes: bool) -> Plan | None:
    """Return the changed plan that the person wants to run; None if it is unchanged. Exit if they
    do not want it, or nobody can be asked.
    """
    where = f"--plan {text}" if given else "the plan"
    while True:
        if not given:
            await asyncio.to_thread(_open_editor, text)
        try:
            plan = waiting.checked(
                plans.read_plan(text, "--plan" if given else "the plan in"), where
            )
        except Refused as mistakes:
            if given or not await _again(mistakes):
                raise Exit(f"{mistakes}\nNothing was sent") from mistakes
            continue
        if plan == waiting.plan:
            return None
        _show(waiting, plan)
        said = "yes" if yes else await _ask(waiting.run_id, given=given)
        if said == "yes":
            return plan
        if said == "no":
            raise Exit(f"{waiting.run_id}: nothing was sent; its plan waits as it was")


def _show(waiting: Waiting, plan: Plan) -> None:
    """Print the difference line by line and the expected price of the changed plan."""
    before, after = (plans.as_yaml(each).splitlines() for each in (waiting.plan, plan))
    for line in [*unified_diff(before, after, n=1, lineterm="")][2:]:
        style = {"+": "bold", "-": "red"}.get(line[:1], "dim")
        say("…" if line.startswith("@@") else line, style)
    cap = waiting.state.ledger.cap.dollars
    old, new = waiting.priced(waiting.plan), waiting.priced(plan)
    say("")
    draw(preview(new, cap, width=ERR.width), ERR)
    say(f"Expected before the change: {price(old)}; now: {price(new)}", "bold")


async def _ask(run_id: str, *, given: bool) -> Said:
    """Ask whether to run the changed plan. Exit if nobody can be asked."""
    if not at_terminal():
        raise Exit(f"{run_id}: nothing was sent; to run the changed plan, say --yes")
    while True:
        ask(QUESTION.replace(" [e]dit it again,", "") if given else QUESTION)
        try:
            answer = (await read_line()).lower()
        except EOFError:
            return "no"
        if answer in ("y", "yes"):
            return "yes"
        if answer in ("e", "edit") and not given:
            return "edit"
        if answer in ("n", "no"):
            return "no"


# ---------------------------------------------------------------- in an editor


def _open(connection: Connection, waiting: Waiting) -> Path:
    """Return the file to edit: earlier text that was not sent, else the plan as it is."""
    folder = StateDir.of(connection.settings).edits / f"of-{quote(waiting.run_id, safe='')}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "plan.yaml"
    if file.exists():
        say(f"Your earlier changes, which were not sent, are opened again: {file}", "dim")
        return file
    roles = ", ".join(sorted(card.name for card in waiting.state.brief.roles))
    header = HEADER.format(run_id=waiting.run_id, roles=roles)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(header + plans.as_yaml(waiting.plan))
    return file


async def _again(mistakes: Refused) -> bool:
    """Ask whether the person wants to correct the mistakes; False if nobody can be asked."""
    if not at_terminal():
        return False
    say(str(mistakes), "red")
    ask("Edit again? [Y/n]")
    try:
        return (await read_line()).lower() not in ("n", "no")
    except EOFError:
        return False


def _open_editor(file: Path) -> None:
    """Run the editor and wait until it ends. Blocking."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        ended = subprocess.run([*shlex.split(chosen), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise Exit(
            f"the editor {chosen!r} cannot be started: {error}; set EDITOR, or give --plan FILE"
        ) from error
    if ended.returncode:
        raise Exit(f"the editor {chosen!r} ended with {ended.returncode}; nothing was sent")
