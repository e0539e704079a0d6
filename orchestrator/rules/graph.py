"""Pure questions about a plan's graph: is it valid, what depends on what, what takes longest."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from orchestrator.contracts import Plan, RoleCard, Subtask

ID_LENGTH = 32
ID_CHARACTERS = frozenset(string.ascii_lowercase + string.digits + "-_")
FEWEST_INSTRUCTION_WORDS = 5
"""Below this an instruction cannot be self-contained; "analyse the data" is the classic defect."""

ABOVE = "repeats a subtask of a run above: same role, same instruction"


def problems(
    plan: Plan,
    roles: Sequence[RoleCard],
    inputs: Collection[str],
    subtask_limit: int,
    asked: Collection[str] = (),
    unusable: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Everything that is wrong with a plan, all at once, each with its place; empty: the plan is
    valid. `asked`: fingerprints of what the runs above have planned. `unusable` says of roles that
    exist why they cannot be used.
    """
    known = {role.name: role for role in roles}
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
        wrong = (
            *_role_problems(subtask, known, unusable),
            *_problems_of(subtask, inputs, ids),
        )
        found += [f"{where}: {problem}" for problem in wrong]
        # To select the best of several attempts, the same instruction may stand more than once.
        if plan.strategy != "select" and signature(subtask) in signatures[:place]:
            found.append(f"{where}: repeats an earlier subtask: same role, same instruction")
        if fingerprint(subtask) in asked:
            found.append(f"{where}: {ABOVE}")
    cycle = find_cycle(plan.subtasks)
    if cycle:
        found.append(f"depends_on: there is a cycle: {' -> '.join(cycle)}")
    return tuple(found)


def folder_problem(plan: Plan | None, roles: Sequence[RoleCard], folders: Collection[str]) -> str:
    """Why a run cannot have these folders as inputs: no agent reads any, only tools do."""
    if not folders:
        return ""
    tools = [role.name for role in roles if role.tier == "none"]
    remedy = "agents cannot read folders yet; give the files that matter one by one"
    if plan is None:
        return f"input {next(iter(folders))!r} is a folder, and {remedy}"
    for subtask in plan.subtasks:
        for name in subtask.inputs:
            if name in folders and subtask.role not in tools:
                return f"{subtask.id}: input {name!r} is a folder, and {remedy}"
    return ""


def _role_problems(
    subtask: Subtask, roles: Mapping[str, RoleCard], unusable: Mapping[str, str]
) -> list[str]:
    """What the subtask's role cannot be, or cannot do."""
    role = roles.get(subtask.role)
    if role is None and subtask.role in unusable:
        return [f"role {subtask.role!r} cannot be used: {unusable[subtask.role]}"]
    if role is None:
        return [f"unknown role {subtask.role!r}; known: {', '.join(sorted(roles))}"]
    kind, idle = "", ["tier", "checks"]
    if role.tier == "none":
        kind, idle = "has no model", [*idle, "acceptance_criteria"]
    elif role.team:
        kind = "is a team"
    elif role.fixed_tier and subtask.tier != role.tier:
        kind, idle = f"is always of the tier {role.tier}", ["tier"]
    named = ", ".join(name for name in idle if getattr(subtask, name))
    return [f"{named}: no effect, because role {role.name!r} {kind}"] if kind and named else []


def _problems_of(subtask: Subtask, inputs: Collection[str], ids: Collection[str]) -> list[str]:
    found: list[str] = []
    if not 0 < len(subtask.id) <= ID_LENGTH or not set(subtask.id) <= ID_CHARACTERS:
        found.append(f"an id is 1 to {ID_LENGTH} of a-z, 0-9, '-' and '_'")
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


def fingerprint(subtask: Subtask) -> str:
    """The signature as 32 hex digits: what a run tells the runs below it."""
    return hashlib.sha256("\n".join(signature(subtask)).encode()).hexdigest()[:32]


def find_cycle(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    """One cycle, its first id repeated at the end, or nothing. Unknown edges are ignored."""
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
    """Every subtask that depends on this one, directly or not, in plan order. No cycle may be."""
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
