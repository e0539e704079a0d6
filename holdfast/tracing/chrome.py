"""A trace as Chrome trace events: what Perfetto, speedscope and chrome://tracing open. Pure.

A run, and each team below it, is a process; what the supervisor does itself is its first row, and
each subtask has a row of its own, or several where things were done side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.history.judging import ACCEPTED
from holdfast.tracing.facts import USES_TOOLS
from holdfast.tracing.steps import Step, StepStatus, last_moment

NAME_LETTERS = 80
_NOT_SHOWN = {
    "session", "id", "parent", "run", "kind", "name", "title", "subtask", "started", "ended",
    "seconds",
}  # fmt: skip
"""Of a step's fields, what its slice says by place, name and length. Some viewers write the rest
behind the name.
"""
_PARTS = ("run", "team")
_COLOURS: Mapping[StepStatus, str] = {
    "error": "terrible", "unfinished": "bad", "cancelled": "grey", "skipped": "grey",
}  # fmt: skip
"""By names that chrome://tracing knows; other viewers choose their own."""


def chrome(steps: Sequence[Step]) -> dict[str, Any]:
    """One slice a step that has begun, those that lie within each other in one row."""
    late = last_moment(steps)
    events: list[dict[str, Any]] = []
    if late is not None:
        known = {each.id: each for each in steps}
        for process, (part, lanes) in enumerate(_lanes(steps, known).items(), start=1):
            events.append(_named("process", process, 0, _title(known.get(part))))
            events += _drawn(process, lanes, known, late)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _lanes(steps: Sequence[Step], known: Mapping[str, Step]) -> dict[str, dict[str, list[Step]]]:
    """The steps that have begun, by the run or team whose they are, and then by subtask."""
    found: dict[str, dict[str, list[Step]]] = {}
    for step in steps:
        if step.started is not None:
            part, subtask = _place(step, known)
            found.setdefault(part, {}).setdefault(subtask, []).append(step)
    return found


def _place(step: Step, known: Mapping[str, Step]) -> tuple[str, str]:
    """The run or team that a step belongs to, and its subtask; empty: that of nobody."""
    # A team is a part of the subtask that it does, and what it does is its own.
    above = (
        [step, *_above(step.parent, known)]
        if step.kind != "team"
        else [*_above(step.parent, known)]
    )
    subtask = ""
    for each in above:
        if each.kind in _PARTS:
            return each.id, subtask
        if each.kind == "subtask" and not subtask:
            subtask = each.id
    return "", subtask


def _above(id: str, known: Mapping[str, Step]) -> Iterator[Step]:
    while (step := known.get(id)) is not None:
        yield step
        id = step.parent


def _drawn(
    process: int, lanes: Mapping[str, Sequence[Step]], known: Mapping[str, Step], late: datetime
) -> Iterator[dict[str, Any]]:
    """The rows of one process, the supervisor's own first, each under its name."""
    thread = 0
    for subtask in sorted(lanes, key=bool):
        name = _title(known[subtask]) if subtask else "supervisor"
        for number, row in enumerate(_rows(lanes[subtask], late), start=1):
            thread += 1
            yield _named("thread", process, thread, f"{name} ({number})" if number > 1 else name)
            yield {
                "ph": "M",
                "pid": process,
                "tid": thread,
                "name": "thread_sort_index",
                "args": {"sort_index": thread},
            }
            yield from (_slice(process, thread, each, late) for each in row)


def _rows(steps: Sequence[Step], late: datetime) -> list[list[Step]]:
    """The steps in rows, in which a slice lies wholly within the one before or behind it."""
    known = {each.id: each for each in steps}
    rows: list[list[Step]] = []
    stacks: list[list[Step]] = []
    for step in sorted(steps, key=lambda each: (_start(each), -_end(each, late))):
        for row, stack in zip(rows, stacks, strict=True):
            while stack and _end(stack[-1], late) <= _start(step) and stack[-1].id != step.parent:
                stack.pop()
            around = stack[-1] if stack else None
            if around is None or _fits(step, around, known, late):
                stack.append(step)
                row.append(step)
                break
        else:
            rows.append([step])
            stacks.append([step])
    return rows


def _fits(step: Step, around: Step, known: Mapping[str, Step], late: datetime) -> bool:
    inside = _end(step, late) <= _end(around, late)
    return inside and any(each.id == around.id for each in _above(step.parent, known))


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    named = {"name": name}
    return {"ph": "M", "pid": process, "tid": thread, "name": f"{what}_name", "args": named}


def _slice(process: int, thread: int, step: Step, late: datetime) -> dict[str, Any]:
    told = step.model_dump(mode="json", exclude=_NOT_SHOWN, exclude_defaults=True)
    start = _start(step)
    colour = {"cname": _COLOURS[step.status]} if step.status in _COLOURS else {}
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": _title(step),
        "cat": step.kind,
        **colour,
        "ts": start,
        "dur": _end(step, late) - start,
        "args": {"id": step.id, **told},
    }


def _title(step: Step | None) -> str:
    """What a step is to a reader, in few words: `t1 Engines`, `work sonnet: failed_checks`."""
    if step is None:
        return "run"
    wrong = step.verdict if step.verdict not in ("", ACCEPTED, USES_TOOLS) else ""
    match step.kind:
        case "run":
            said = f"{step.name} {step.title}"
        case "team" | "subtask":
            said = f"{step.name if step.kind == 'subtask' else 'team'} {step.title}"
        case "agent":
            said = f"{step.agent} {step.tier}"
        case "call":
            said = f"{step.call} {step.tier}{f': {wrong}' * bool(wrong)}"
        case "tool" | "lens":
            said = f"{step.tool} {step.arguments}"
        case "order":
            said = f"{step.by or 'somebody'}: {step.name}"
        case _:
            said = step.name
    line = " ".join(said.split())
    return line if len(line) <= NAME_LETTERS else f"{line[: NAME_LETTERS - 1]}…"


def _start(step: Step) -> int:
    assert step.started is not None
    return micros(step.started)


def _end(step: Step, late: datetime) -> int:
    return max(micros(step.ended or late), _start(step))


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly: a float of them would not hold the last."""
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
