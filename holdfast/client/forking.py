"""The goal of a fork: the plan of a finished run with one subtask changed, and what of its findings
is taken over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.client.ended import read_end
from holdfast.client.reading import Reader
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
from holdfast.contracts.goals import Reuse
from holdfast.deployment.invocation import OPTION
from holdfast.errors import Refused
from holdfast.intake import plans
from holdfast.intake.connection import Connection
from holdfast.intake.goals import check_payable
from holdfast.intake.launch import goal_of_run
from holdfast.intake.reusing import read_tables
from holdfast.plans import validity
from holdfast.rules.unread import subtasks_to_redo


class Change(Protocol):
    """What a fork does otherwise than its run."""

    def touches(self, subtask: Subtask) -> bool:
        """True if it changes this subtask."""
        ...

    def applied(self, subtask: Subtask) -> Subtask:
        """Return a subtask that it touches, changed."""
        ...


@dataclass(frozen=True)
class ForkChange:
    """The change of a fork. Without a subtask, only what the run did not finish is done again."""

    subtask_id: str = ""
    instruction: str = ""
    tier: Tier | None = None
    role: str = ""

    def touches(self, subtask: Subtask) -> bool:
        return subtask.id == self.subtask_id

    def applied(self, subtask: Subtask) -> Subtask:
        given = {"instruction": self.instruction, "tier": self.tier, "role": self.role}
        return subtask.model_copy(update={name: value for name, value in given.items() if value})


async def wished_fork(
    connection: Connection,
    run_id: str,
    change: ForkChange,
    *,
    limits: Limits,
    approval: Approval | None = None,
    plan_only: bool = False,
) -> Goal:
    """Return the goal of a fork of a finished run. `limits`: of them those that are set replace the
    run's own. Without `approval` the run's own holds: a plan that waited for a person waits again.
    Refused says why it cannot be forked so.
    """
    goal, report = await _read_finished(connection, run_id)
    settings = connection.settings
    if goal.project not in ("", settings.name):
        raise Refused(f"run {run_id} is of the project {goal.project!r}; add {OPTION} FOLDER of it")
    goal = goal.model_copy(update={"project": settings.name})
    named = {name: getattr(limits, name) for name in limits.model_fields_set}
    known = [each.id for each in keep_plan(report).subtasks]
    if change.subtask_id and change.subtask_id not in known:
        raise Refused(f"there is no subtask {change.subtask_id!r}; known: {', '.join(known)}")
    wanted = fork_goal(goal, report, change, Catalogue.of(settings.project)).model_copy(
        update={
            "limits": goal.limits.model_copy(update=named),
            "approval": approval or goal.approval,
            "plan_only": plan_only,
            "requester": "",
        }
    )
    if wanted.use_models:
        check_payable(wanted.limits, unpriced=wanted.unpriced)
    return await with_rows(connection, wanted, run_id)


async def with_rows(connection: Connection, goal: Goal, run_id: str) -> Goal:
    """Return the goal of a fork with the complete rows of the maps that it does again. What an
    earlier run had given that run stands where its own map did not begin.
    """
    assert goal.fork is not None and goal.plan is not None
    kept = [each.subtask_id for each in goal.fork.findings]
    if not any(each.map and each.id not in kept for each in goal.plan.subtasks):
        return goal.model_copy(update={"reuse": None})
    own, given = await read_tables(connection, run_id), goal.reuse or Reuse(run=run_id)
    reuse = own.model_copy(
        update={
            "tables": {**given.tables, **own.tables},
            "complete": {**given.complete, **own.complete},
        }
    )
    return goal.model_copy(update={"reuse": reuse if reuse.tables else None})


async def _read_finished(connection: Connection, run_id: str) -> tuple[Goal, Report]:
    """Return the goal and report of a closed run. Refused if it cannot be forked."""
    look = await Reader(connection, run_id).look()
    if not look.closed:
        raise Refused(f"run {run_id} is not over; steer it instead, or cancel it first")
    ended = read_end(run_id, look)
    goal = await goal_of_run(connection, run_id)
    if ended.report is None or ended.report.plan is None or goal is None:
        raise Refused(f"run {run_id} has no plan to fork; {ended.reason or 'start it anew'}")
    return goal, ended.report


def fork_goal(
    goal: Goal, report: Report, change: Change, catalogue: Catalogue | None = None
) -> Goal:
    """Return the same goal with the changed plan, on the inputs that the run has pinned, and with
    the findings that the change does not touch. `catalogue`: of the run's project; None: what is
    shipped.

    Refused lists every mistake in the changed plan.
    """
    was = keep_plan(report)
    changed = [each.id for each in was.subtasks if change.touches(each)]
    subtasks = (change.applied(each) if each.id in changed else each for each in was.subtasks)
    plan = was.model_copy(update={"subtasks": tuple(subtasks)})
    names = [each.name for each in goal.inputs]
    catalogue = catalogue or Catalogue.load()
    roles, unusable = catalogue.roles_for(goal.playbook), catalogue.unusable_for(goal.playbook)
    longest = goal.limits.subtask_timeout_seconds
    wrong = validity.problems(
        plan, roles, names, HARD_SUBTASK_LIMIT, unusable=unusable, longest=longest
    )
    if wrong:
        raise plans.refuse_plan(f"the plan of {report.run_id} with this change", wrong)
    again = subtasks_to_redo(plan, report.findings, changed)
    kept = tuple(
        each
        for each in report.findings
        if each.subtask_id not in again and each.status == "complete"
    )
    fork = Fork(run_id=report.run_id, findings=kept, inputs=report.inputs)
    return goal.model_copy(update={"plan": plan, "fork": fork, "pinned": report.inputs})


def keep_plan(report: Report) -> Plan:
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


def describe_fork(goal: Goal) -> str:
    """Return a sentence on what is taken over and one on what is done again."""
    assert goal.fork is not None and goal.plan is not None
    kept = [each.subtask_id for each in goal.fork.findings]
    again = [each.id for each in goal.plan.subtasks if each.id not in kept]
    done = f"Done again: {', '.join(again)}." if again else "Only the answer is written again."
    complete = goal.reuse.complete if goal.reuse else {}
    rows = [f"{complete[id]} rows of {id}" for id in again if id in complete]
    told = f" Of these, what is asked the same is taken over: {', '.join(rows)}." if rows else ""
    return f"Taken over: {', '.join(kept) or 'nothing'}. {done}{told}"
