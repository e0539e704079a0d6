"""Pure questions about a plan's graph: what repeats, what follows from what, what takes longest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Protocol

from holdfast.contracts import Subtask

COMPOSED = "made-"
"""How the name of every role begins that a planner composes, and of no other."""


def signature(subtask: Subtask) -> tuple[str, str]:
    """Role and normalised instruction: the same twice in a run, for the same purpose, is a loop.
    Composed roles are one: another name does not make it another purpose.
    """
    role = COMPOSED if subtask.role.startswith(COMPOSED) else subtask.role
    return role, " ".join(subtask.instruction.casefold().split())


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


class Node(Protocol):
    """What depends on others: a subtask, or the row that shows one."""

    @property
    def id(self) -> str: ...

    @property
    def depends_on(self) -> tuple[str, ...]: ...


def children(nodes: Sequence[Node]) -> dict[str, list[str]]:
    """For each node what depends on it directly, in plan order. Unknown edges are ignored."""
    found: dict[str, list[str]] = {node.id: [] for node in nodes}
    for node in nodes:
        for edge in dict.fromkeys(node.depends_on):
            if edge in found:
                found[edge].append(node.id)
    return found


def dependents(subtasks: Sequence[Subtask], subtask_id: str) -> tuple[str, ...]:
    """Every subtask that depends on this one, directly or not, in plan order. No cycle may be."""
    below = children(subtasks)
    reached: dict[str, None] = {}
    pending = [*below.get(subtask_id, ())]
    while pending:
        step = pending.pop()
        if step not in reached:
            reached[step] = None
            pending += below[step]
    return tuple(subtask.id for subtask in subtasks if subtask.id in reached)


def in_order(nodes: Sequence[Node]) -> list[str]:
    """The ids, each after all that it depends on; what is in a cycle or behind one is left out."""
    below = children(nodes)
    missing = _open_edges(nodes, below)
    ordered = [id for id, count in missing.items() if not count]
    for id in ordered:
        for child in below[id]:
            missing[child] -= 1
            if not missing[child]:
                ordered.append(child)
    return ordered


def _open_edges(nodes: Sequence[Node], known: Mapping[str, object]) -> dict[str, int]:
    """On how many known nodes each depends."""
    edges = {node.id: dict.fromkeys(node.depends_on) for node in nodes}
    return {id: sum(edge in known for edge in needed) for id, needed in edges.items()}


def chain_below(subtasks: Sequence[Subtask]) -> dict[str, int]:
    """For each subtask, how many subtasks the longest chain has that starts with it. No cycle."""
    ordered, needed_by = in_order(subtasks), children(subtasks)
    if len(ordered) < len(needed_by):
        raise ValueError("the graph has a cycle")
    below: dict[str, int] = {}
    for id in reversed(ordered):
        below[id] = 1 + max((below[child] for child in needed_by[id]), default=0)
    return below


def finishes(nodes: Sequence[Node], seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds until each has ended if none had to wait for a free slot; one without a duration
    takes none. Every dependency stands before what needs it; what is in a cycle is left out.
    """
    needs = {node.id: node.depends_on for node in nodes}
    finish: dict[str, float] = {}
    for id in in_order(nodes):
        begun = max((finish[edge] for edge in needs[id] if edge in finish), default=0.0)
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
    below, needed_by = chain_below(subtasks), children(subtasks)
    order = sorted((each.id for each in subtasks), key=lambda id: -below[id])
    places = {id: place for place, id in enumerate(order)}
    missing = _open_edges(subtasks, below)
    ready = [place for id, place in places.items() if not missing[id]]
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < concurrency:
            id = order[heappop(ready)]
            heappush(running, (now + seconds.get(id, 0.0), id))
        now, ended = heappop(running)
        for child in needed_by[ended]:
            missing[child] -= 1
            if not missing[child]:
                heappush(ready, places[child])
    return now
