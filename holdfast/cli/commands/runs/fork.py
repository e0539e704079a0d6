"""`fork`: a new run from a finished one with one subtask changed. What the change does not touch is
taken over and paid nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.commands.runs import dry_run
from holdfast.cli.commands.runs.watch import to_the_end
from holdfast.cli.screen.exits import Exit
from holdfast.cli.screen.streams import at_terminal, say
from holdfast.cli.shared.options import (
    Approve,
    AsJson,
    DryRun,
    Embedded,
    GivenId,
    LimitPairs,
    OutFile,
    RoleName,
    RunId,
    SubtaskId,
    Yes,
    check_out,
)
from holdfast.cli.shared.starting import (
    approval_when,
    endpoint_known,
    say_what_is_sent,
    start_run,
    with_span,
)
from holdfast.client.forking import ForkChange, describe_fork, wished_fork
from holdfast.contracts import (
    Approval,
    Limits,
    Tier,
)
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.intake.goals import limits_of
from holdfast.intake.launch import check_id
from holdfast.telemetry.otel.commands import CommandSpan


@dataclass(frozen=True)
class ForkOptions:
    """The options of `fork` beside the change itself."""

    run_id: str
    approval: Approval
    limits: Limits
    as_json: bool
    out: Path | None
    dry: bool = False


def command(
    run_id: RunId,
    subtask: SubtaskId = "",
    instruction: Annotated[
        str, typer.Option("--instruction", metavar="TEXT", help="What the subtask is to do.")
    ] = "",
    tier: Annotated[Tier | None, typer.Option("--tier", help="The tier of its model.")] = None,
    role: RoleName = "",
    limits: LimitPairs = None,
    new_id: GivenId = "",
    as_json: AsJson = False,
    out: OutFile = None,
    approval: Approve = "",
    yes: Yes = False,
    dry: DryRun = False,
    embedded: Embedded = False,
) -> int:
    """Run a finished run's plan again with one subtask changed; the rest is taken over unpaid.

    The subtask and what depends on it are done again, and so is what had not been finished. Without
    a subtask, only the latter.
    """
    change = ForkChange(subtask, instruction, tier, role)
    if not subtask and change != ForkChange():
        raise Exit("--instruction, --tier and --role change a subtask: name it after the run's id")
    dry_run.check_own(dry, new_id)
    when = approval_when(approval, yes=yes, terminal=at_terminal())
    options = ForkOptions(
        check_id(new_id),
        dry_run.APPROVAL if dry else when,
        limits_of(tuple(limits or ())),
        as_json,
        check_out(out),
        dry,
    )
    return with_span(
        "fork",
        Settings(),
        embedded,
        lambda connection, span: run(connection, run_id, change, options, span),
    )


async def run(
    connection: Connection,
    run_id: str,
    change: ForkChange,
    options: ForkOptions,
    span: CommandSpan | None = None,
) -> int:
    """Start the fork and follow it to its end; return the exit code of its report."""
    wanted = await wished_fork(
        connection,
        run_id,
        change,
        limits=options.limits,
        approval=options.approval,
        plan_only=options.dry,
    )
    where = endpoint_known(connection.settings, embedded=connection.target.embedded)
    say_what_is_sent(wanted, where)
    fresh = await start_run(connection, wanted, options.run_id, span=span)
    say(f"A fork of {run_id}. {describe_fork(wanted)}")
    if options.dry:
        return await dry_run.finish(connection, fresh, as_json=options.as_json)
    return await to_the_end(connection, fresh, as_json=options.as_json, out=options.out)
