"""Changing a running plan: a patch to the part that has not finished. Pure."""

from __future__ import annotations

from holdfast.calls.replan import Patch, ReplanMaterial
from holdfast.contracts import HARD_SUBTASK_LIMIT, Plan, Subtask
from holdfast.plans import validity
from holdfast.state import graph


def apply_patch(plan: Plan, patch: Patch) -> Plan:
    """Apply a patch. Replaced subtasks keep their place, the bounds of their calls and their map,
    none of which a change can name; added ones come last.
    """
    replaced = {each.subtask.id: each.subtask for each in patch.changes if each.op == "replace"}
    for old in plan.subtasks:
        if old.id in replaced:
            stays = {name: getattr(old, name) for name in ("timeout_seconds", "max_output", "map")}
            replaced[old.id] = replaced[old.id].model_copy(update=stays)
    dropped = [each.subtask.id for each in patch.changes if each.op == "drop"]
    kept = [replaced.get(each.id, each) for each in plan.subtasks if each.id not in dropped]
    added = [each.subtask for each in patch.changes if each.op == "add"]
    return plan.model_copy(update={"subtasks": (*kept, *added)})


def problems(patch: Patch, material: ReplanMaterial) -> tuple[str, ...]:
    """Return everything that is wrong with a patch.

    What has finished or runs is frozen, ids are never used again, and a subtask that repeats an
    earlier one is a loop.
    """
    found = list[str]()
    waiting = [each.subtask_id for each in material.standings if each.status == "waiting"]
    added = 0
    for place, change in enumerate(patch.changes):
        where = f"changes[{place}] {change.op} {change.subtask.id!r}"
        if any(each.subtask.id == change.subtask.id for each in patch.changes[:place]):
            found.append(f"{where}: it is changed twice")
        if change.op == "add":
            added += 1
            if change.subtask.id in material.used_ids:
                found.append(f"{where}: this id has been used; ids are never used again")
        elif change.subtask.id not in waiting:
            found.append(f"{where}: it is not waiting; what has finished or runs cannot be changed")
        if change.op != "drop" and _repeats(change.subtask, material.plan):
            found.append(f"{where}: repeats an earlier subtask: same role, same instruction")
    if added > material.addable:
        found.append(f"changes: {added} subtasks are added, the limit is {material.addable}")
    names = tuple(pinned.name for pinned in material.inputs)
    plan = apply_patch(material.plan, patch)
    changed = [each.subtask.id for each in patch.changes]
    unread = validity.only_by_tools(material.inputs)
    whole = validity.problems(
        plan,
        material.roles,
        names,
        HARD_SUBTASK_LIMIT,
        material.asked,
        material.barred,
        unread=unread,
        longest=material.subtask_timeout_seconds,
    )
    # What is frozen was valid when it was planned; only what the patch touches is its fault.
    found += [each for each in whole if not _concerns_frozen(each, plan, changed)]
    return tuple(found)


def _repeats(subtask: Subtask, plan: Plan) -> bool:
    wanted = graph.signature(subtask)
    return any(graph.signature(each) == wanted for each in plan.subtasks if each.id != subtask.id)


def _concerns_frozen(problem: str, plan: Plan, changed: list[str]) -> bool:
    return any(
        f" {each.id!r}: " in problem and each.id not in changed and "depends_on" not in problem
        for each in plan.subtasks
    )
