"""Compare two finished runs by their reports."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from holdfast.contracts import Finding, PinnedInput, Remark, Report, Subtask
from holdfast.contracts.base import Contract, Money
from holdfast.contracts.remarks import has_remarks, rank_remarks, read_review
from holdfast.contracts.titles import describe_input
from holdfast.rendering.amounts import at_most, calls, seconds
from holdfast.rendering.findings import said_in, shorten, subtask_of, who
from holdfast.rendering.report import MOST_VALUE
from holdfast.rendering.sarif import fingerprint
from holdfast.rendering.status import STATUS
from holdfast.text import pluralize

MOST_LINES = 2_000
"""Lines of an answer that are compared: to compare takes the square of them."""
MOST_SHOWN = 40
"""Lines of the difference of two answers."""
MOST_LETTERS = 400
"""Longest line of a comparison."""
PLANNED = ("role", "secondary", "tier", "instruction", "inputs", "acceptance_criteria", "checks")
"""What of a subtask counts for whether it was planned in the same way, besides what it waits for.
"""


class Fact(Contract):
    """One thing that can be said of both runs, in words."""

    name: str
    a: str
    b: str


class Side(Contract):
    """A subtask in one of the runs."""

    id: str
    title: str
    status: str
    """Empty: its plan has it, and nothing became of it."""
    why: str = ""
    role: str = ""
    model: str = ""
    tries: int = 0
    confidence: int | None = None
    dollars: Money | None = None
    seconds: float = 0.0


class Pair(Contract):
    """A subtask that both runs have."""

    a: Side
    b: Side
    differs: tuple[str, ...] = ()
    """Differences: `status`, `role`, `model`, `tries`, `confidence`, `plan`, `text`. Price and
    time are never the same, and count for the runs as a whole.
    """


class Remarks(Contract):
    """The remarks of two reviews, by fingerprint, as far as both list them."""

    new: tuple[Remark, ...] = ()
    """Remarks of B that are not in A."""
    gone: tuple[Remark, ...] = ()
    """Remarks of A that are not in B."""
    not_looked_for: tuple[Remark, ...] = ()
    """Remarks of one run alone, since no lens that saw them ended well in the other."""
    kept: int = 0


class Compared(Contract):
    a: str
    b: str
    """Ids of the runs."""
    title: str = ""
    """What both are about; empty: they are about different things, which `facts` says."""
    facts: tuple[Fact, ...] = ()
    """Facts of the runs as a whole, also where they are the same."""
    only_a: tuple[Side, ...] = ()
    only_b: tuple[Side, ...] = ()
    both: tuple[Pair, ...] = ()
    remarks: Remarks | None = None
    """None: they are not both reviews."""
    same_answer: bool = False
    answer: tuple[str, ...] = ()
    """Line diff of the answer, `-` of A and `+` of B; empty for reviews, whose answer is made of
    their remarks.
    """
    answer_left_out: int = 0
    """Lines of the difference that are not in it."""


def compare(a: Report, b: Report) -> Compared:
    paired, only_a, only_b = _paired(_subtasks(a), _subtasks(b))
    names = {one.id: other.id for one, other in paired}
    remarks = _remarks(a, b)
    lines = [] if remarks else _difference(a.answer, b.answer)
    return Compared(
        a=a.run_id,
        b=b.run_id,
        title=_about(a) if _about(a) == _about(b) else "",
        facts=tuple(Fact(name=name, a=one, b=other) for name, one, other in _facts(a, b)),
        only_a=tuple(_side(a, each) for each in only_a),
        only_b=tuple(_side(b, each) for each in only_b),
        both=tuple(_pair(a, b, one, other, names) for one, other in paired),
        remarks=remarks,
        same_answer=a.answer.strip() == b.answer.strip(),
        answer=tuple(shorten(each, MOST_LETTERS) for each in lines[:MOST_SHOWN]),
        answer_left_out=max(len(lines) - MOST_SHOWN, 0),
    )


def _about(report: Report) -> str:
    return report.title or report.goal


def _facts(a: Report, b: Report) -> Iterator[tuple[str, str, str]]:
    if _about(a) != _about(b):
        yield "About", _about(a), _about(b)
    yield "Status", STATUS[a.status], STATUS[b.status]
    yield "Price", at_most(a.dollars, a.assumed), at_most(b.dollars, b.assumed)
    yield "Calls", calls(a.model_calls), calls(b.model_calls)
    yield "Time", seconds(a.timings.makespan), seconds(b.timings.makespan)
    yield "Of it waited", seconds(a.timings.waited), seconds(b.timings.waited)
    yield "Confidence", _percent(a.confidence), _percent(b.confidence)
    yield "Not supported by any finding", str(len(a.flags)), str(len(b.flags))
    yield "Plan", *_plans(a, b)
    yield "Changes of the plan", str(len(a.revisions)), str(len(b.revisions))
    ours, theirs = ({each.name: each for each in one.inputs} for one in (a, b))
    for name in dict.fromkeys((*ours, *theirs)):
        yield f"Input {name}", *_inputs(ours.get(name), theirs.get(name))
    yield "Version", a.version, b.version


def _percent(confidence: int | None) -> str:
    return "not judged" if confidence is None else str(confidence)


def _plans(a: Report, b: Report) -> tuple[str, str]:
    said = []
    for report in (a, b):
        count = len(_subtasks(report))
        strategy = f", {report.plan.strategy}" if report.plan else ""
        said.append(f"{pluralize(count, 'subtask')}{strategy}")
    return said[0], said[1]


def _inputs(a: PinnedInput | None, b: PinnedInput | None) -> tuple[str, str]:
    """Return each input in words; words that are alike say no more where the contents differ."""
    one, other = (_input(each) if each else "none" for each in (a, b))
    if a and b and one == other and a.digest != b.digest:
        return f"{one} ({a.digest[:10]})", f"{other} ({b.digest[:10]})"
    return one, other


def _input(pinned: PinnedInput) -> str:
    scope = f", {pinned.scope}" if pinned.scope else ""
    if pinned.path:
        return f"{describe_input(pinned)}{scope}"
    whole = len(pinned.preview.encode()) == pinned.size <= MOST_VALUE
    return " ".join(pinned.preview.split()) if whole else f"text, {pinned.size:,} bytes"


# ---------------------------------------------------------------- subtasks


def _subtasks(report: Report) -> list[Subtask]:
    """Return the subtasks as planned, and what became a finding without being in the plan."""
    planned = [*report.plan.subtasks] if report.plan else []
    known = {each.id for each in planned}
    others = (each.subtask_id for each in report.findings if each.subtask_id not in known)
    return planned + [subtask_of(report, each) for each in others]


def _paired(
    a: Sequence[Subtask], b: Sequence[Subtask]
) -> tuple[list[tuple[Subtask, Subtask]], list[Subtask], list[Subtask]]:
    """Return pairs by title, of several the one with the same id: a planner numbers its subtasks,
    so the same number alone may be other work.
    """
    left = [*b]
    pairs, only = [], []
    for one in a:
        alike = [each for each in left if each.title.casefold() == one.title.casefold()]
        if not alike:
            only.append(one)
            continue
        other = next((each for each in alike if each.id == one.id), alike[0])
        left.remove(other)
        pairs.append((one, other))
    return pairs, only, left


def _finding(report: Report, subtask: Subtask) -> Finding | None:
    return next((each for each in report.findings if each.subtask_id == subtask.id), None)


def _side(report: Report, subtask: Subtask) -> Side:
    found = _finding(report, subtask)
    if found is None:
        return Side(id=subtask.id, title=subtask.title, status="", role=subtask.role)
    return Side(
        id=subtask.id,
        title=subtask.title,
        status=found.status,
        why=found.why,
        role=who(found, subtask),
        model=found.model,
        tries=len(found.tries),
        confidence=found.confidence if found.model and found.status == "complete" else None,
        dollars=found.dollars,
        seconds=found.seconds,
    )


def _pair(a: Report, b: Report, one: Subtask, other: Subtask, names: Mapping[str, str]) -> Pair:
    left, right = _side(a, one), _side(b, other)
    fields = ("status", "role", "model", "tries", "confidence")
    differs = [name for name in fields if getattr(left, name) != getattr(right, name)]
    waits = {names.get(each, "") for each in one.depends_on} != {*other.depends_on}
    if waits or any(getattr(one, name) != getattr(other, name) for name in PLANNED):
        differs.append("plan")
    if _text(a, one) != _text(b, other):
        differs.append("text")
    return Pair(a=left, b=right, differs=tuple(differs))


def _text(report: Report, subtask: Subtask) -> str:
    """Return what it found in words; empty of a lens, whose remarks are compared one by one."""
    found = _finding(report, subtask)
    return said_in(found) if found and not has_remarks(found) else ""


# ---------------------------------------------------------------- remarks and answers


def _remarks(a: Report, b: Report) -> Remarks | None:
    one, other = read_review(a), read_review(b)
    if one is None or other is None:
        return None
    ours, theirs = (
        {fingerprint(each): each for each in review.remarks if not each.hidden}
        for review in (one, other)
    )
    new = [each for mark, each in theirs.items() if mark not in ours]
    gone = [each for mark, each in ours.items() if mark not in theirs]
    unseen = [each for each in new if not _looked(a, each)]
    unseen += [each for each in gone if not _looked(b, each)]
    return Remarks(
        new=tuple(rank_remarks(each for each in new if _looked(a, each))),
        gone=tuple(rank_remarks(each for each in gone if _looked(b, each))),
        not_looked_for=tuple(rank_remarks(unseen)),
        kept=len(ours.keys() & theirs.keys()),
    )


def _looked(report: Report, remark: Remark) -> bool:
    """True if a lens that saw the remark elsewhere ended well in this run."""
    lenses = {remark.lens, *(each.partition(":")[0] for each in remark.also)}
    return any(each.subtask_id in lenses and each.status == "complete" for each in report.findings)


def _difference(a: str, b: str) -> list[str]:
    one, other = ([*islice(text.strip().splitlines(), MOST_LINES)] for text in (a, b))
    lines = difflib.unified_diff(one, other, n=0, lineterm="")
    # The first two name files, and `@@` the places: nobody looks for a line of an answer there.
    changed = (each for each in islice(lines, 2, None) if not each.startswith("@@"))
    return [each for each in changed if each[1:].strip()]
