"""When what was done: a line for each subtask, and for what the supervisor asked itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import htpy
from htpy import Element, Node, a, li, p, span, ul

from holdfast.history.steps import PREPARE, WORDS, Step
from holdfast.rendering.amounts import seconds
from holdfast.rendering.html.pictured import Pictured, clock, section, short
from holdfast.rendering.html.refusals import why_not
from holdfast.rendering.report import took


@dataclass(frozen=True)
class Bar:
    """One line of the picture."""

    name: str
    anchor: str
    steps: tuple[Step, ...]
    begun: datetime | None = None
    ended: datetime | None = None
    waited: float = 0.0


def times(run: Pictured) -> Node:
    """Return the chapter; nothing where nothing has a time."""
    start, end = run.report.started, run.end
    lines = [*_lines(run)]
    if start is None or end is None or end <= start or not lines:
        return None
    whole = (end - start).total_seconds()
    drawn = [_drawn(line, start, whole, end) for line in lines]
    return section(
        "times",
        p[_told(run)],
        ul(".times", aria_label="When each part was at work")[drawn, _axis(whole)],
        p(".soft.small")[
            _key("work"),
            " at work, ",
            _key("odd"),
            " at work, and not accepted or without an answer, ",
            _key("span"),
            " begun and waiting: for a worker, the endpoint's limits, money or a person.",
        ],
    )


def worked(steps: Sequence[Step]) -> float:
    """Return the seconds of work in these steps, added up."""
    spans = [each.worked for each in steps]
    return sum((end - begun).total_seconds() for begun, end in spans if end is not None)


def _told(run: Pictured) -> Node:
    parts: list[Node] = [took(run.report, over=run.over, whole=run.took, waited=run.waited), " "]
    since = run.view.waiting_since if run.view and not run.over else None
    if since:
        parts.append(f"It waits since {clock(since)}. ")
    if run.chain:
        parts.append("The chain: ")
        for place, each in enumerate(run.chain):
            parts += [" → " if place else "", run.link(each)]
        parts.append(". ")
    if total := worked(run.steps):
        parts.append(f"All work of the run, added up, is {seconds(total)}. ")
    parts.append(
        "How long the same would have taken one after another was not measured: side by side, each"
        " call may wait longer for its turn."
    )
    return parts


def _lines(run: Pictured) -> Iterator[Bar]:
    own: dict[str, list[Step]] = {}
    for step in run.steps:
        if not step.subtask_id:
            own.setdefault(step.kind, []).append(step)
    first = [kind for kind in (PREPARE, "plan") if kind in own]
    for kind in first:
        yield Bar(WORDS[kind], "", tuple(own[kind]))
    if back := tuple(each for each in run.steps if each.taken_back):
        yield Bar("Begun, and taken back", "notes", back)
    for subtask in run.subtasks.values():
        found = run.findings.get(subtask.id)
        steps = tuple(each for each in run.steps_of(subtask.id) if not each.taken_back)
        begun = found.started if found else steps[0].begun if steps else None
        if (found and found.reused_from) or begun is None:
            continue
        name = f"{subtask.id} {subtask.title}"
        ended = found.finished if found else None
        waited = found.waited if found else 0.0
        yield Bar(name, run.anchors[subtask.id], steps, begun, ended, waited)
    for kind, steps_of_kind in own.items():
        if kind not in first:
            yield Bar(WORDS.get(kind, kind), "", tuple(steps_of_kind))


def _drawn(line: Bar, start: datetime, whole: float, now: datetime) -> Element:
    def bar(kind: str, begun: datetime, ended: datetime | None, y: int, high: int) -> Element:
        left = max((begun - start).total_seconds(), 0.0) / whole * 100
        long = max(((ended or now) - begun).total_seconds(), 0.0) / whole * 100
        return htpy.rect(
            class_=kind,
            x=f"{min(left, 99.6):.2f}%",
            y=y,
            width=f"{max(long, 0.4):.2f}%",
            height=high,
            rx=2,
        )

    bars = [bar("span", each.begun, each.ended, 7, 4) for each in line.steps]
    if line.begun:
        bars = [bar("span", line.begun, line.ended, 7, 4)]
    bars += [bar("odd" if why_not(each) else "work", *each.worked, 3, 12) for each in line.steps]
    took = worked(line.steps)
    if line.begun and not line.steps:
        took = ((line.ended or now) - line.begun).total_seconds() - line.waited
    name = short(line.name, 70)
    said = f"{name}: {seconds(took)} at work in {len(line.steps)} steps"
    return li[
        span(".who")[a(href=f"#{line.anchor}")[name] if line.anchor else name],
        htpy.svg(".row", role="img", aria_label=said)[bars],
        span(".t")[seconds(took)],
    ]


def _axis(whole: float) -> Element:
    marks = [
        htpy.text(
            class_="axis",
            x=f"{place * 100:g}%",
            y="13",
            text_anchor="start" if place == 0 else "end" if place == 1 else "middle",
        )[seconds(whole * place)]
        for place in (0, 0.5, 1)
    ]
    return li(aria_hidden="true")[span, htpy.svg(".row")[marks], span]


def _key(kind: str) -> Element:
    return htpy.svg(".key", width=22, height=12, aria_hidden="true")[
        htpy.rect(class_=kind, y=2, width=22, height=8, rx=2)
    ]
