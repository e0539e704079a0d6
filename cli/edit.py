"""`edit`: change the plan that a run waits with, in an editor or by a file, and let it run."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from activities.catalogue import Catalogue
from cli import plans, steering
from cli.connection import Connection, connected
from cli.exits import Code, Stop
from cli.launch import goal_of_run
from cli.options import Embedded, OpenRunId
from cli.screen import ask, at_terminal, say, typed
from orchestrator.contracts import HARD_SUBTASK_LIMIT, Order, Plan, Report, RoleCard
from orchestrator.settings import Settings

HEADER = """\
# The plan of run {run_id}. Save it and leave the editor: the changed plan is checked and runs.
# Unchanged, nothing is sent. Tiers: haiku, sonnet, or null for the role's own.
# Roles: {roles}

"""


@dataclass(frozen=True)
class Waiting:
    """A plan that waits for approval, and what an edited one may name."""

    run_id: str
    plan: Plan
    roles: Sequence[RoleCard]
    inputs: Collection[str]

    def problems(self, plan: Plan) -> tuple[str, ...]:
        """Everything that is wrong with an edited plan."""
        return plans.problems(plan, self.roles, self.inputs, HARD_SUBTASK_LIMIT)


def command(
    run_id: OpenRunId,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="The new plan, JSON or YAML; without it, your $EDITOR."
        ),
    ] = None,
    embedded: Embedded = False,
) -> int:
    """Change the plan that a run waits with; the changed plan runs."""
    return asyncio.run(_connected_run(Settings(), run_id, plan, embedded))


async def _connected_run(settings: Settings, run_id: str, file: Path | None, embedded: bool) -> int:
    async with connected(settings, embedded=embedded) as connection:
        return await run(connection, run_id, file)


async def run(connection: Connection, run_id: str, file: Path | None) -> int:
    """Send the changed plan. Stop lists every mistake in it; unchanged, nothing is sent."""
    waiting = await _waiting(connection, run_id)
    if file:
        changed: Plan | None = plans.read(file)
        assert changed is not None
        wrong = waiting.problems(changed)
        if wrong:
            raise plans.invalid(f"--plan {file}", wrong)
    else:
        changed = await _from_editor(waiting)
    if changed is None or changed == waiting.plan:
        say(f"{run_id}: the plan is unchanged; nothing was sent.")
        return Code.COMPLETE
    return await steering.run(connection, run_id, "edit", Order(plan=changed))


async def _waiting(connection: Connection, run_id: str) -> Waiting:
    view = await steering.view_of(connection, run_id)
    goal = await goal_of_run(connection, run_id)
    report: Report = await connection.handle(run_id).query("report", result_type=Report)
    if view.phase != "approval" or goal is None or report.plan is None:
        raise Stop(f"{run_id}: no plan waits for approval")
    roles = Catalogue.load().roles_for(goal.playbook)
    return Waiting(run_id, report.plan, roles, [each.name for each in goal.inputs])


# ---------------------------------------------------------------- in an editor


async def _from_editor(waiting: Waiting) -> Plan | None:
    """The plan as the person left it, once it is right; None: unchanged. Stop when they give up;
    their text is kept.
    """
    folder = Path(tempfile.mkdtemp(prefix="plan-"))
    file = folder / f"{waiting.run_id}.yaml"
    roles = ", ".join(sorted(card.name for card in waiting.roles))
    header = HEADER.format(run_id=waiting.run_id, roles=roles)
    file.write_text(header + plans.as_yaml(waiting.plan), encoding="utf-8")
    while True:
        await asyncio.to_thread(_open_editor, file)
        try:
            plan = plans.read(file, "the plan in")
            if plan == waiting.plan:
                break
            wrong = waiting.problems(plan)
            if not wrong:
                break
            raise plans.invalid("the plan", wrong)
        except Stop as mistakes:
            if not await _again(mistakes):
                raise Stop(f"{mistakes}\nNothing was sent; your text is in {file}") from mistakes
    shutil.rmtree(folder)
    return plan if plan != waiting.plan else None


async def _again(mistakes: Stop) -> bool:
    """Whether the person wants to correct them; nobody can be asked: no."""
    if not at_terminal():
        return False
    say(str(mistakes), "red")
    ask("Edit again? [Y/n]")
    try:
        return (await typed()).lower() in ("", "y", "yes")
    except EOFError:
        return False


def _open_editor(file: Path) -> None:
    """Blocks until the editor has ended."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        ended = subprocess.run([*shlex.split(chosen), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise Stop(
            f"the editor {chosen!r} cannot be started: {error}; set EDITOR, or give --plan FILE"
        ) from error
    if ended.returncode:
        raise Stop(f"the editor {chosen!r} ended with {ended.returncode}; nothing was sent")
