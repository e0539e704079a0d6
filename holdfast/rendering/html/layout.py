"""Place each subtask of a plan in its picture: columns by the longest path that leads to it,
and in each column an order in which few arrows cross.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.state.graph import Node, in_order

SWEEPS = 8
Key = str | tuple[str, str, int]
"""A subtask, or the place of an arrow where it passes a column by."""
WIDTH, HEIGHT, PASSING = 202, 86, 14
ACROSS, DOWN, MARGIN = 38, 14, 10
"""Five columns fit into a window of 1280 pixels."""
ALONE = 4
"""How many subtasks that no arrow touches stand side by side."""
Point = tuple[float, float]


@dataclass(frozen=True)
class Places:
    """Places in pixels."""

    width: float
    height: float
    boxes: Mapping[str, Point]
    """The upper left corner of each subtask."""
    arrows: Mapping[tuple[str, str], Sequence[Point]]
    """What each arrow passes, from the right of one box to the left of another."""


def layout(nodes: Sequence[Node]) -> Places:
    """Return the picture of a graph without cycles; below it, in rows, what no arrow touches."""
    known = {node.id for node in nodes}
    touched = {each for node in nodes for each in node.depends_on if each in known}
    touched |= {node.id for node in nodes if known.intersection(node.depends_on)}
    graph = _graph([node for node in nodes if node.id in touched])
    alone = [node.id for node in nodes if node.id not in touched]
    if not alone:
        return graph
    top = graph.height + DOWN - MARGIN if graph.boxes else MARGIN
    boxes = {
        id: (MARGIN + n % ALONE * (WIDTH + ACROSS), top + n // ALONE * (HEIGHT + DOWN))
        for n, id in enumerate(alone)
    }
    width = max(graph.width, width_of(min(len(alone), ALONE)))
    height = max(y for _, y in boxes.values()) + HEIGHT + MARGIN
    return Places(width, height, {**graph.boxes, **boxes}, graph.arrows)


def width_of(columns: int) -> int:
    """Return the pixels that so many columns take."""
    return 2 * MARGIN + columns * (WIDTH + ACROSS) - ACROSS


def _graph(nodes: Sequence[Node]) -> Places:
    layers = _layers(nodes)
    columns, edges = _columns(nodes, layers)
    _sweep(columns, edges)
    heights = [sum(_height(key) + DOWN for key in column) - DOWN for column in columns]
    tallest = max(heights, default=0)
    corners: dict[Key, Point] = {}
    for number, column in enumerate(columns):
        y = MARGIN + (tallest - heights[number]) / 2
        for key in column:
            corners[key] = (MARGIN + number * (WIDTH + ACROSS), y)
            y += _height(key) + DOWN
    arrows = {
        (edge, node.id): _points(edge, node.id, layers, corners)
        for node in nodes
        for edge in dict.fromkeys(node.depends_on)
        if edge in layers and node.id in layers
    }
    width = width_of(len(columns))
    boxes = {key: corner for key, corner in corners.items() if isinstance(key, str)}
    return Places(width, tallest + 2 * MARGIN, boxes, arrows)


def _layers(nodes: Sequence[Node]) -> dict[str, int]:
    needs = {node.id: node.depends_on for node in nodes}
    layers: dict[str, int] = {}
    for id in in_order(nodes):
        layers[id] = 1 + max((layers[edge] for edge in needs[id] if edge in layers), default=-1)
    return layers


def _columns(
    nodes: Sequence[Node], layers: Mapping[str, int]
) -> tuple[list[list[Key]], list[tuple[Key, Key]]]:
    """Return the columns, with the arrows that pass them, and the arrows in single steps."""
    columns: list[list[Key]] = [[] for _ in range(1 + max(layers.values(), default=-1))]
    edges: list[tuple[Key, Key]] = []
    for node in nodes:
        if node.id in layers:
            columns[layers[node.id]].append(node.id)
    for node in nodes:
        for edge in dict.fromkeys(node.depends_on):
            if node.id not in layers or edge not in layers:
                continue
            before: Key = edge
            for number in range(layers[edge] + 1, layers[node.id]):
                passing: Key = (edge, node.id, number)
                columns[number].append(passing)
                edges.append((before, passing))
                before = passing
            edges.append((before, node.id))
    return columns, edges


def _sweep(columns: list[list[Key]], edges: Sequence[tuple[Key, Key]]) -> None:
    """Move each to the mean place of its neighbours in the next column, forth and back."""
    left: dict[Key, list[Key]] = {}
    right: dict[Key, list[Key]] = {}
    for one, other in edges:
        right.setdefault(one, []).append(other)
        left.setdefault(other, []).append(one)
    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        near = left if forth else right
        for column in columns if forth else reversed(columns):
            place = {key: n for other in columns for n, key in enumerate(other)}
            means = {
                key: sum(place[each] for each in near[key]) / len(near[key])
                if key in near
                else place[key]
                for key in column
            }
            column.sort(key=lambda key: means[key])


def _height(key: Key) -> int:
    return HEIGHT if isinstance(key, str) else PASSING


def _points(
    edge: str, to: str, layers: Mapping[str, int], corners: Mapping[Key, Point]
) -> list[Point]:
    x, y = corners[edge]
    points = [(x + WIDTH, y + HEIGHT / 2)]
    for number in range(layers[edge] + 1, layers[to]):
        x, y = corners[edge, to, number]
        points += [(x, y + PASSING / 2), (x + WIDTH, y + PASSING / 2)]
    x, y = corners[to]
    return [*points, (x, y + HEIGHT / 2)]
