"""A trace as Chrome trace events: what Perfetto, speedscope and chrome://tracing open. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.tracing.steps import Step, last_moment

_NOT_SHOWN = {"session", "id", "parent", "name", "started", "ended"}
"""Of a step's fields, what its slice says already by its place."""


def chrome(steps: Sequence[Step]) -> dict[str, Any]:
    """One slice a step that has begun, those that lie within each other in one row."""
    shown = [each for each in steps if each.started is not None]
    late = last_moment(steps)
    events: list[dict[str, Any]] = []
    if late is not None:
        for row, placed in enumerate(_rows(shown, late)):
            events.append(_name_of(row, placed[0]))
            events += [_slice(row, each, late) for each in placed]
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _rows(steps: Sequence[Step], late: datetime) -> list[list[Step]]:
    """The steps in rows, in which a slice lies wholly within the one before or behind it."""
    parents = {each.id: each.parent for each in steps}
    rows: list[list[Step]] = []
    stacks: list[list[Step]] = []
    for step in sorted(steps, key=lambda each: (_start(each), -_end(each, late))):
        for row, stack in zip(rows, stacks, strict=True):
            while stack and _end(stack[-1], late) <= _start(step) and stack[-1].id != step.parent:
                stack.pop()
            around = stack[-1] if stack else None
            if around is None or _fits(step, around, parents, late):
                stack.append(step)
                row.append(step)
                break
        else:
            rows.append([step])
            stacks.append([step])
    return rows


def _fits(step: Step, around: Step, parents: Mapping[str, str], late: datetime) -> bool:
    inside = _end(step, late) <= _end(around, late)
    return inside and around.id in _above(step.id, parents)


def _above(id: str, parents: Mapping[str, str]) -> Iterator[str]:
    while id := parents.get(id, ""):
        yield id


def _name_of(row: int, first: Step) -> dict[str, Any]:
    named = {"name": first.title or first.name}
    return {"ph": "M", "pid": 1, "tid": row, "name": "thread_name", "args": named}


def _slice(row: int, step: Step, late: datetime) -> dict[str, Any]:
    told = step.model_dump(mode="json", exclude=_NOT_SHOWN, exclude_defaults=True)
    start = _start(step)
    return {
        "ph": "X",
        "pid": 1,
        "tid": row,
        "name": step.name,
        "cat": step.kind,
        "ts": start,
        "dur": _end(step, late) - start,
        "args": {"id": step.id, **told},
    }


def _start(step: Step) -> int:
    assert step.started is not None
    return micros(step.started)


def _end(step: Step, late: datetime) -> int:
    return max(micros(step.ended or late), _start(step))


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly: a float of them would not hold the last."""
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
