"""Pure questions about the graph of a plan: what repeats what, what follows from what, what takes
longest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from orchestrator.contracts import Subtask


def signature(subtask: Subtask) -> tuple[str, str]:
    """Role and normalised instruction: the same twice in a run, for the same purpose, is a loop."""
    return subtask.role, " ".join(subtask.instruction.casefold().split())


def fingerprint(subtask: Subtask) -> str:
    """The signature as 32 hex digits: what a run tells the runs below it."""
    return hashlib.sha256("\n".join(signature(subtask)).encode()).hexdigest()[:32]


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


def longest_chain(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> tuple[str, ...]:
    """The ids of the longest chain of dependent subtasks, first to last; a subtask without a
    duration counts 0.
    """
    finish: dict[str, float] = {}
    before: dict[str, str] = {}
    below = chain_below(subtasks)
    for subtask in sorted(subtasks, key=lambda each: -below[each.id]):
        latest = max(subtask.depends_on, key=lambda edge: finish.get(edge, 0.0), default="")
        before[subtask.id] = latest
        finish[subtask.id] = finish.get(latest, 0.0) + seconds.get(subtask.id, 0.0)
    chain: list[str] = []
    step = max(finish, key=lambda each: finish[each], default="")
    while step:
        chain.append(step)
        step = before[step]
    return tuple(reversed(chain))


def critical_path(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> float:
    """Seconds of the longest chain."""
    return sum(seconds.get(each, 0.0) for each in longest_chain(subtasks, seconds))


def makespan(subtasks: Sequence[Subtask], seconds: Mapping[str, float], concurrency: int) -> float:
    """Seconds until the last subtask ends, the longest remaining chain first, so many at once."""
    below = chain_below(subtasks)
    finish: dict[str, float] = {}
    running: list[tuple[float, str]] = []
    left = sorted(subtasks, key=lambda each: -below[each.id])
    now = 0.0
    while left or running:
        ready = [each for each in left if all(edge in finish for edge in each.depends_on)]
        for subtask in ready[: concurrency - len(running)]:
            running.append((now + seconds.get(subtask.id, 0.0), subtask.id))
            left.remove(subtask)
        running.sort()
        now, ended = running.pop(0)
        finish[ended] = now
    return now
