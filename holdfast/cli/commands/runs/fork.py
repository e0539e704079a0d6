"""`fork`: a new run from a finished one with one subtask changed. What the change does not touch is
taken over and paid nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.cli.commands.runs import dry_run
from holdfast.cli.commands.runs.watch import to_the_end
from holdfast.cli.screen.exits import Exit
from holdfast.cli.screen.streams import at_terminal, say
from holdfast.cli.shared.follow import look_at
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
from holdfast.client.ended import read_end
from holdfast.contracts import (
    HARD_SUBTASK_LIMIT,
    Approval,
    Fork,
    Goal,
    Limits,
    Plan,
    Report,
    Subtask,
    Tier,
    policies,
)
from holdfast.deployment.invocation import OPTION
from holdfast.deployment.settings import Settings
from holdfast.intake import plans
from holdfast.intake.connection import Connection
from holdfast.intake.goals import check_payable, limits_of
from holdfast.intake.launch import check_id, goal_of_run
from holdfast.plans import validity
from holdfast.rules.unread import subtasks_to_redo
from holdfast.telemetry.otel.commands import CommandSpan


@dataclass(frozen=True)
class ForkChange:
    """The change of a fork. Without a subtask, only what the run did not finish is done again."""

    subtask_id: str = ""
    instruction: str = ""
    tier: Tier | None = None
    role: str = ""

    def applied(self, subtask: Subtask) -> Subtask:
        """Return the changed subtask."""
        given = {"instruction": self.instruction, "tier": self.tier, "role": self.role}
        return subtask.model_copy(update={name: value for name, value in given.items() if value})


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
    goal, report = await _read_finished(connection, run_id)
    settings = connection.settings
    if goal.project not in ("", settings.name):
        raise Exit(f"run {run_id} is of the project {goal.project!r}; add {OPTION} FOLDER of it")
    goal = goal.model_copy(update={"project": settings.name})
    wanted = fork_goal(goal, report, change, settings.project)
    named = {name: getattr(options.limits, name) for name in options.limits.model_fields_set}
    wanted = wanted.model_copy(
        update={
            "limits": goal.limits.model_copy(update=named),
            "approval": options.approval,
            "plan_only": options.dry,
            "requester": "",
        }
    )
    if wanted.use_models:
        check_payable(wanted.limits, unpriced=wanted.unpriced)
    where = endpoint_known(connection.settings, embedded=connection.target.embedded)
    say_what_is_sent(wanted, where)
    fresh = await start_run(connection, wanted, options.run_id, span=span)
    say(f"A fork of {run_id}. {_describe(wanted)}")
    if options.dry:
        return await dry_run.finish(connection, fresh, as_json=options.as_json)
    return await to_the_end(connection, fresh, as_json=options.as_json, out=options.out)


async def _read_finished(connection: Connection, run_id: str) -> tuple[Goal, Report]:
    """Return the goal and report of a closed run. Exit if it cannot be forked."""
    look = await look_at(connection, run_id)
    if not look.closed:
        raise Exit(f"run {run_id} is not over; steer it instead, or cancel it first")
    ended = read_end(run_id, look)
    goal = await goal_of_run(connection, run_id)
    if ended.report is None or ended.report.plan is None or goal is None:
        raise Exit(f"run {run_id} has no plan to fork; {ended.reason or 'start it anew'}")
    return goal, ended.report


# ---------------------------------------------------------------- the Goal of a fork


def fork_goal(goal: Goal, report: Report, change: ForkChange, project: Path | None = None) -> Goal:
    """Return the same goal with the changed plan, on the inputs that the run has pinned, and with
    the findings that the change does not touch.

    Refused lists every mistake in the changed plan.
    """
    plan = _change(_keep_plan(report), change)
    names = [each.name for each in goal.inputs]
    catalogue = Catalogue.of(project)
    roles, unusable = catalogue.roles_for(goal.playbook), catalogue.unusable_for(goal.playbook)
    longest = goal.limits.subtask_timeout_seconds
    wrong = validity.problems(
        plan, roles, names, HARD_SUBTASK_LIMIT, unusable=unusable, longest=longest
    )
    if wrong:
        raise plans.refuse_plan(f"the plan of {report.run_id} with this change", wrong)
    again = subtasks_to_redo(plan, report.findings, change.subtask_id)
    kept = tuple(
        each
        for each in report.findings
        if each.subtask_id not in again and each.status == "complete"
    )
    fork = Fork(run_id=report.run_id, findings=kept, inputs=report.inputs)
    return goal.model_copy(update={"plan": plan, "fork": fork, "pinned": report.inputs})


def _keep_plan(report: Report) -> Plan:
    """Return the plan as it ran, without what a revision dropped and nothing needs, and without
    the verification of its remarks, which the fork plans by itself.
    """
    assert report.plan is not None
    dropped = {id for revision in report.revisions for id in revision.dropped}
    subtasks = tuple(each for each in report.plan.subtasks if each.role != policies.VERIFIER)
    needed = {edge for each in subtasks if each.id not in dropped for edge in each.depends_on}
    return report.plan.model_copy(
        update={
            "subtasks": tuple(
                each for each in subtasks if each.id not in dropped or each.id in needed
            )
        }
    )


def _change(plan: Plan, change: ForkChange) -> Plan:
    known = [each.id for each in plan.subtasks]
    if change.subtask_id and change.subtask_id not in known:
        raise Exit(f"there is no subtask {change.subtask_id!r}; known: {', '.join(known)}")
    subtasks = tuple(
        change.applied(each) if each.id == change.subtask_id else each for each in plan.subtasks
    )
    return plan.model_copy(update={"subtasks": subtasks})


def _describe(goal: Goal) -> str:
    """Return a sentence on what is taken over and one on what is done again."""
    assert goal.fork is not None and goal.plan is not None
    kept = [each.subtask_id for each in goal.fork.findings]
    again = [each.id for each in goal.plan.subtasks if each.id not in kept]
    done = f"Done again: {', '.join(again)}." if again else "Only the answer is written again."
    return f"Taken over: {', '.join(kept) or 'nothing'}. {done}"
