"""What a page is made of, and the small pieces that all of its parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from htpy import Element, Node, a, code, h2, p, span
from htpy import div as block
from htpy import section as chapter

from holdfast.contracts import Finding, Report, Subtask
from holdfast.contracts.view import Preview, Row, RowStatus, RunView
from holdfast.history.steps import Step
from holdfast.rendering.report import CHAPTERS
from holdfast.rendering.sources import Footnote, footnotes
from holdfast.rendering.status import SIGNS
from holdfast.state import graph
from holdfast.tracing.steps import TraceStep

MOST_LETTERS = 20_000
"""Longest text beside others on the page; the report's other files have all of it."""
MOST_TITLE = 160


@dataclass(frozen=True)
class Pictured:
    """A run as its page shows it."""

    report: Report
    to_type: Callable[[str, str], str]
    """(command, run id) -> what the reader types for it."""
    steps: tuple[Step, ...] = ()
    """What it did, by its history; none where there is only a report."""
    view: RunView | None = None
    """State of the run; None where there is only a report."""
    over: bool = True
    turns: Mapping[str, Sequence[TraceStep]] = field(default_factory=dict)
    """What agents with tools did, by workflow; one that is missing was not read."""
    where: str = ""
    """The address of the folder that the agents' files are in; empty: nobody has written them."""

    drawn: datetime | None = None
    """The moment at which the page of an open run is drawn; None: as of what was heard last."""

    @cached_property
    def late(self) -> float:
        """Seconds since the run was heard last; 0 if it is over."""
        if self.over or self.view is None or self.drawn is None:
            return 0.0
        return max((self.drawn - self.view.now).total_seconds(), 0.0)

    @property
    def took(self) -> float:
        """Seconds from its start to its end, or to the moment that the page shows."""
        return self.report.timings.makespan + self.late

    @property
    def waited(self) -> float:
        """Seconds in which nothing but a person or a lost endpoint kept it."""
        waits = self.view is not None and self.view.waiting_since is not None
        return self.report.timings.waited + (self.late if waits else 0.0)

    @property
    def end(self) -> datetime | None:
        """The last moment that the page shows."""
        last = self.view.now if self.view else None
        return self.report.finished or (last + timedelta(seconds=self.late) if last else None)

    @cached_property
    def subtasks(self) -> dict[str, Subtask]:
        planned = self.report.plan.subtasks if self.report.plan else ()
        return {each.id: each for each in planned}

    @cached_property
    def findings(self) -> dict[str, Finding]:
        return {each.subtask_id: each for each in self.report.findings}

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Each subtask as it stands, what is under way until the moment that the page shows."""
        rows = {each.id: each for each in self.view.rows} if self.view else {}
        for id, row in rows.items():
            if self.late and row.status == "running":
                rows[id] = row.model_copy(update={"seconds": row.seconds + self.late})
        return rows

    @cached_property
    def anchors(self) -> dict[str, str]:
        """The place in the page of each subtask; ids are a model's, and could be anything."""
        ids = dict.fromkeys((*self.subtasks, *self.findings))
        return {each: f"subtask-{number}" for number, each in enumerate(ids, 1)}

    @cached_property
    def footnotes(self) -> tuple[Footnote, ...]:
        return footnotes(self.report)

    @cached_property
    def cited(self) -> set[str]:
        """The ids of what the answer cites."""
        return {each.subtask_id for each in self.footnotes if each.cited}

    @cached_property
    def cited_at(self) -> dict[str, str]:
        """The place to which a citation in the answer leads: its footnote, or, if it has none, its
        finding.
        """
        notes = enumerate(self.footnotes, 1)
        return {**self.anchors, **{each.subtask_id: f"source-{n}" for n, each in notes}}

    @property
    def preview(self) -> Preview | None:
        """The expectation of a plan that waits for approval."""
        waits = not self.over and self.view is not None and self.view.phase == "approval"
        return self.view.preview if waits and self.view else None

    @cached_property
    def chain(self) -> tuple[str, ...]:
        """The ids of the longest chain of dependent subtasks, as it was measured; of a plan that
        waits for approval, as it is expected.
        """
        if self.preview:
            path = self.preview.critical_path
            return path if len(path) > 1 else ()
        own = [each for each in self.report.findings if not each.reused_from and each.seconds]
        seconds = {each.subtask_id: each.seconds for each in own}
        if not seconds:
            return ()
        chain = graph.longest_chain(tuple(self.subtasks.values()), seconds)
        return tuple(each for each in chain if each in seconds)

    def status(self, subtask_id: str) -> RowStatus:
        """Return how a subtask stands, by its finding or its row."""
        if found := self.findings.get(subtask_id):
            return found.status
        row = self.rows.get(subtask_id)
        return row.status if row else "waiting"

    def chip(self, subtask_id: str) -> Element:
        """Return its status as a sign and a word; in a run that is over none waits."""
        status = self.status(subtask_id)
        return status_chip(status, "not run" if self.over and status == "waiting" else "")

    def steps_of(self, subtask_id: str) -> list[Step]:
        return [each for each in self.steps if each.subtask_id == subtask_id]

    def link(self, subtask_id: str) -> Node:
        """Return a subtask's id, as a link to its place if it has one."""
        anchor = self.anchors.get(subtask_id)
        name = short(subtask_id, 60)
        return a(".ref", href=f"#{anchor}")[name] if anchor else code[name]

    def links(self, ids: Iterable[str]) -> list[Node]:
        found: list[Node] = []
        for each in ids:
            found += [", ", self.link(each)] if found else [self.link(each)]
        return found


def short(text: str, most: int) -> str:
    """Return the text on one line, of at most so many letters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1]}…"


def begun(text: str) -> str:
    """Return the text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def cut(text: str, most: int = MOST_LETTERS) -> str:
    """Return the beginning of a text, and how much more there is."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n… and {len(text) - most:,} more characters"


def status_chip(status: RowStatus, said: str = "", kind: str = "") -> Element:
    """Return a status as a word with its sign: never by colour alone."""
    return span(class_=f"chip s-{status} {kind}".strip())[SIGNS[status], " ", said or status]


def section(anchor: str, *content: Node, kind: str = "", title: str = "") -> Element:
    """Return a chapter of the page."""
    return chapter(class_=f"card {kind}".strip(), id=anchor, aria_labelledby=f"{anchor}-title")[
        h2(id=f"{anchor}-title")[title or CHAPTERS[anchor]], list(content)
    ]


def wide(label: str, *content: Node, kind: str = "") -> Element:
    """Return what may be wider than a telephone: it scrolls by itself, by the keyboard too."""
    return block(class_=f"wide {kind}".strip(), tabindex="0", role="region", aria_label=label)[
        list(content)
    ]


def command(said: Node, typed: str) -> Element:
    return p(".do")[said, " ", code(".typed")[typed]]


def clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
