"""Inputs that only tools read and that nobody opened, so that nobody knows what an answer rests on.
Pure.

Each call of a tool says which inputs it read; a list of files does not count. What stands in a
prompt is read, and what a lens examines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.contracts import Finding, Plan, Subtask
from holdfast.state import graph
from holdfast.state.parts import passes_on


def find_unread(
    subtasks: Iterable[Subtask], findings: Iterable[Finding]
) -> dict[str, tuple[str, ...]]:
    """Return the inputs that somebody should have read and nobody opened, each with the subtasks
    that answered anyway. What only failed subtasks were given is their gap.
    """
    given = {each.id: each.inputs for each in subtasks}
    missed: dict[str, tuple[str, ...]] = {}
    read: dict[str, None] = {}
    for finding in filter(passes_on, findings):
        for name in given.get(finding.subtask_id, ()):
            if name in finding.unread:
                missed[name] = (*missed.get(name, ()), finding.subtask_id)
            else:
                read[name] = None
    return {name: ids for name, ids in missed.items() if name not in read}


def subtasks_to_redo(
    plan: Plan, findings: Iterable[Finding], changed: Collection[str] = ()
) -> tuple[str, ...]:
    """Return what a fork does anew: the changed subtasks, what has no complete finding, what
    answered without an input that nobody opened, and everything that builds on these.
    """
    found = tuple(findings)
    blind = {id: None for ids in find_unread(plan.subtasks, found).values() for id in ids}
    kept = [each.subtask_id for each in found if each.status == "complete"]
    again: dict[str, None] = {}
    for subtask in plan.subtasks:
        if subtask.id in again:
            continue
        if subtask.id in changed or subtask.id not in kept or subtask.id in blind:
            again |= dict.fromkeys((subtask.id, *graph.dependents(plan.subtasks, subtask.id)))
    return tuple(again)
