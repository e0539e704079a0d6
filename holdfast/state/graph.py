"""Questions about a plan's graph: repetitions, dependents, longest chains. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Protocol

from holdfast.contracts import Subtask

COMPOSED = "made-"
"""Prefix of the names of roles that a planner composes, and of no others."""


def signature(subtask: Subtask) -> tuple[str, str]:
    """Return role and normalised instruction: twice the same in a run, for the same purpose, is a
    loop. Composed roles count as one, because a new name does not make a new purpose.
    """
    role = COMPOSED if subtask.role.startswith(COMPOSED) else subtask.role
    return role, " ".join(subtask.instruction.casefold().split())


def fingerprint(subtask: Subtask) -> str:
    """Return the signature as 32 hex digits, for the runs below."""
    return hashlib.sha256("\n".join(signature(subtask)).encode()).hexdigest()[:32]


def find_cycle(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    """Return the ids of one cycle, the first also at the end. Unknown edges are ignored."""
    ids = {subtask.id for subtask in subtasks}
    edges = {each.id: [edge for edge in each.depends_on if edge in ids] for each in subtasks}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        # It lists each node before what depends on it.
        return tuple(reversed(error.args[1]))
    return ()


class Node(Protocol):
    """A node with dependencies: a subtask, or the row that shows one."""

    @property
    def id(self) -> str: ...

    @property
    def depends_on(self) -> tuple[str, ...]: ...


def children(nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Map each node to its direct dependents, in plan order. Unknown edges are ignored."""
    found: dict[str, list[str]] = {node.id: [] for node in nodes}
    for node in nodes:
        for edge in dict.fromkeys(node.depends_on):
            if edge in found:
                found[edge].append(node.id)
    return found


def named_inputs(subtask: Subtask) -> tuple[str, ...]:
    """Return the inputs that a subtask names, with the one that it goes over item by item."""
    return (*subtask.inputs, *([subtask.map.over] if subtask.map else []))


def dependents(subtasks: Sequence[Subtask], subtask_id: str) -> tuple[str, ...]:
    """Every subtask that depends on this one, directly or not, in plan order. No cycle may be."""
    reached = reach(children(subtasks), subtask_id)
    return tuple(subtask.id for subtask in subtasks if subtask.id in reached)


def reach(below: Mapping[str, Sequence[str]], start: str) -> dict[str, None]:
    """Return everything below a node, by the children of each."""
    reached: dict[str, None] = {}
    pending = [*below.get(start, ())]
    while pending:
        step = pending.pop()
        if step not in reached:
            reached[step] = None
            pending += below[step]
    return reached


def in_order(nodes: Sequence[Node]) -> list[str]:
    """Return the ids, each after all its dependencies; without those in or behind a cycle."""
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
    edges = {node.id: dict.fromkeys(node.depends_on) for node in nodes}
    return {id: sum(edge in known for edge in needed) for id, needed in edges.items()}


def chain_below(subtasks: Sequence[Subtask]) -> dict[str, int]:
    """Map each subtask to the length of the longest chain it starts. ValueError in a cycle."""
    ordered, needed_by = in_order(subtasks), children(subtasks)
    if len(ordered) < len(needed_by):
        raise ValueError("the graph has a cycle")
    below: dict[str, int] = {}
    for id in reversed(ordered):
        below[id] = 1 + max((below[child] for child in needed_by[id]), default=0)
    return below


def finishes(nodes: Sequence[Node], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return when each node ends, in seconds, were there no limit on concurrency. A node without a
    duration takes none; those in a cycle are left out.
    """
    needs = {node.id: node.depends_on for node in nodes}
    finish: dict[str, float] = {}
    for id in in_order(nodes):
        begun = max((finish[edge] for edge in needs[id] if edge in finish), default=0.0)
        finish[id] = begun + seconds.get(id, 0.0)
    return finish


def critical_path(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> float:
    """Return the seconds of the longest chain of dependent subtasks."""
    return max(finishes(subtasks, seconds).values(), default=0.0)


def longest_chain(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> tuple[str, ...]:
    """Return the ids along the critical path; among equals the one with most below it."""
    finish, below = finishes(subtasks, seconds), chain_below(subtasks)
    needs = {each.id: each.depends_on for each in subtasks}
    chain: list[str] = []
    step = max(needs, key=lambda id: (finish[id], below[id]), default="")
    while step:
        chain.append(step)
        step = max(needs[step], key=lambda edge: finish.get(edge, 0.0), default="")
    return tuple(reversed(chain))


def makespan(subtasks: Sequence[Subtask], seconds: Mapping[str, float], concurrency: int) -> float:
    """Return the seconds of the work with so many at once, the longest remaining chain first."""
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
