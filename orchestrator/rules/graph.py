"""Pure questions about a plan's graph: what repeats, what follows from what, what takes longest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.contracts import Subtask


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


class Node(Protocol):
    """What depends on others: a subtask, or the row that shows one."""

    @property
    def id(self) -> str: ...

    @property
    def depends_on(self) -> tuple[str, ...]: ...


def finishes(nodes: Sequence[Node], seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds until each has ended if none had to wait for a free slot; one without a duration
    takes none. Every dependency stands before what needs it; what is in a cycle is left out.
    """
    ids = {node.id for node in nodes}
    needs = {node.id: [edge for edge in node.depends_on if edge in ids] for node in nodes}
    finish: dict[str, float] = {}
    while len(finish) < len(needs):
        ready = [
            id for id in needs if id not in finish and all(edge in finish for edge in needs[id])
        ]
        if not ready:
            break
        for id in ready:
            begun = max((finish[edge] for edge in needs[id]), default=0.0)
            finish[id] = begun + seconds.get(id, 0.0)
    return finish


def critical_path(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> float:
    """Seconds of the longest chain of dependent subtasks."""
    return max(finishes(subtasks, seconds).values(), default=0.0)


def longest_chain(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> tuple[str, ...]:
    """The ids along the critical path, first to last; of several, that with most below it."""
    finish, below = finishes(subtasks, seconds), chain_below(subtasks)
    needs = {each.id: each.depends_on for each in subtasks}
    chain: list[str] = []
    step = max(needs, key=lambda id: (finish[id], below[id]), default="")
    while step:
        chain.append(step)
        step = max(needs[step], key=lambda edge: finish.get(edge, 0.0), default="")
    return tuple(reversed(chain))


def makespan(subtasks: Sequence[Subtask], seconds: Mapping[str, float], concurrency: int) -> float:
    """Seconds until the last subtask ends, the longest remaining chain first, this many at once."""
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
