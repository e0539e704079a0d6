"""Pure questions about the graph of a plan: is it valid, what follows from what, what takes
longest.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping, Sequence

from orchestrator.contracts import Plan, RoleCard, Subtask

ID_LENGTH = 32
ID_CHARACTERS = frozenset(string.ascii_lowercase + string.digits + "-_")
FEWEST_INSTRUCTION_WORDS = 5
"""Below this an instruction cannot be self-contained; "analyse the data" is the classic defect."""


def problems(
    plan: Plan, roles: Sequence[RoleCard], inputs: Collection[str], subtask_limit: int
) -> tuple[str, ...]:
    """Everything that is wrong with a plan, all at once, each with its place; empty: the plan is
    valid.
    """
    known = {role.name for role in roles}
    found: list[str] = []
    if not plan.subtasks:
        found.append("subtasks: the plan is empty; plan at least one subtask")
    if len(plan.subtasks) > subtask_limit:
        found.append(f"subtasks: {len(plan.subtasks)} are planned, the limit is {subtask_limit}")
    ids = [subtask.id for subtask in plan.subtasks]
    signatures = [signature(subtask) for subtask in plan.subtasks]
    for place, subtask in enumerate(plan.subtasks):
        where = f"subtasks[{place}] {subtask.id!r}"
        if ids.index(subtask.id) != place:
            found.append(f"{where}: this id is used twice")
        found += [f"{where}: {problem}" for problem in _problems_of(subtask, known, inputs, ids)]
        # To select the best of several attempts, the same instruction may stand more than once.
        if plan.strategy != "select" and signature(subtask) in signatures[:place]:
            found.append(f"{where}: repeats an earlier subtask: same role, same instruction")
    cycle = find_cycle(plan.subtasks)
    if cycle:
        found.append(f"depends_on: there is a cycle: {' -> '.join(cycle)}")
    return tuple(found)


def _problems_of(
    subtask: Subtask, roles: Collection[str], inputs: Collection[str], ids: Collection[str]
) -> list[str]:
    found: list[str] = []
    if not 0 < len(subtask.id) <= ID_LENGTH or not set(subtask.id) <= ID_CHARACTERS:
        found.append(f"an id is 1 to {ID_LENGTH} of a-z, 0-9, '-' and '_'")
    if subtask.role not in roles:
        found.append(f"unknown role {subtask.role!r}; known: {', '.join(sorted(roles))}")
    if subtask.tier == "opus":
        found.append("tier: a plan may not assign opus; use haiku or sonnet")
    if len(subtask.instruction.split()) < FEWEST_INSTRUCTION_WORDS:
        found.append("instruction: not concrete; say what to do, on what, and what to return")
    for name in subtask.inputs:
        if name not in inputs:
            named = ", ".join(sorted(inputs)) or "none"
            found.append(f"unknown input {name!r}; the goal's inputs: {named}")
    unknown = [edge for edge in subtask.depends_on if edge not in ids]
    return found + [f"depends_on: unknown subtask {edge!r}" for edge in unknown]


def signature(subtask: Subtask) -> tuple[str, str]:
    """Role and normalised instruction: the same twice in a run, for the same purpose, is a loop."""
    return subtask.role, " ".join(subtask.instruction.casefold().split())


def find_cycle(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    """One cycle, first id repeated at the end; empty if there is none. Unknown edges are
    ignored.
    """
    edges = {subtask.id: subtask.depends_on for subtask in subtasks}
    finished: dict[str, None] = {}
    for start in edges:
        path: dict[str, None] = {start: None}
        pending = [iter(edges[start])]
        while pending:
            step = next((edge for edge in pending[-1] if edge in edges), None)
            if step is None:
                pending.pop()
                finished[path.popitem()[0]] = None
            elif step in path:
                ring = list(path)
                return (*ring[ring.index(step) :], step)
            elif step not in finished:
                path[step] = None
                pending.append(iter(edges[step]))
    return ()


def dependents(subtasks: Sequence[Subtask], subtask_id: str) -> tuple[str, ...]:
    """Every subtask that depends on this one, directly or not, in plan order. The graph has no
    cycle.
    """
    reached = {subtask_id: None}
    remaining = [subtask for subtask in subtasks if subtask.id != subtask_id]
    grown = True
    while grown:
        grown = False
        for subtask in remaining:
            if subtask.id not in reached and any(edge in reached for edge in subtask.depends_on):
                reached[subtask.id] = None
                grown = True
    return tuple(
        subtask.id for subtask in subtasks if subtask.id in reached and subtask.id != subtask_id
    )


def chain_below(subtasks: Sequence[Subtask]) -> dict[str, int]:
    """For each subtask, how many subtasks the longest chain has that starts with it. No cycle."""
    below: dict[str, int] = {}
    pending = list(subtasks)
    while pending:
        blocked = []
        for subtask in pending:
            children = [other.id for other in subtasks if subtask.id in other.depends_on]
            if all(child in below for child in children):
                below[subtask.id] = 1 + max((below[child] for child in children), default=0)
            else:
                blocked.append(subtask)
        if len(blocked) == len(pending):
            raise ValueError("the graph has a cycle")
        pending = blocked
    return below


def critical_path(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> float:
    """Seconds of the longest chain of dependent subtasks; a subtask without a duration counts 0."""
    finish: dict[str, float] = {}
    below = chain_below(subtasks)
    for subtask in sorted(subtasks, key=lambda each: -below[each.id]):
        ready = max((finish[edge] for edge in subtask.depends_on if edge in finish), default=0.0)
        finish[subtask.id] = ready + seconds.get(subtask.id, 0.0)
    return max(finish.values(), default=0.0)
