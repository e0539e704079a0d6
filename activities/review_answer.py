"""The answer of a review, for a person: the counts, then what matters most, by file; the long tail
as counts. Everything that the repository may have written is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.contracts import Remark
from orchestrator.text import code_span, for_markdown

MOST_SHOWN = 30
"""Remarks shown one by one."""
MOST_PER_FILE = 6
MOST_NAMES = 8
"""Files named in a line of counts."""


@dataclass(frozen=True)
class Review:
    """The outcome of a review. `remarks` are ranked and above the least confidence."""

    remarks: tuple[Remark, ...]
    below: int = 0
    min_confidence: int = 0
    suppressed: int = 0
    cut: int = 0
    unread: int = 0
    unread_reasons: dict[str, int] = field(default_factory=dict)
    not_parsed: tuple[str, ...] = ()
    files: int = 0
    base: str = ""
    notes: tuple[str, ...] = ()
    lenses: int = 0
    gaps: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()


def write(review: Review) -> str:
    """The answer as Markdown."""
    parts = [_headline(review), _scope(review), *_by_file(review), _rest(review), _missing(review)]
    return "\n\n".join(part for part in parts if part)


def _headline(review: Review) -> str:
    if not review.remarks:
        return f"**No remarks** at a confidence of {review.min_confidence} or more."
    counts = Counter(remark.severity for remark in review.remarks)
    kinds = [
        many(counts["critical"], "critical", "critical"),
        many(counts["warning"], "warning"),
        many(counts["info"], "info", "info"),
    ]
    files = len({remark.file for remark in review.remarks})
    total = many(len(review.remarks), "remark")
    listed = ", ".join(kind for kind in kinds if not kind.startswith("0 "))
    return f"**{total} in {many(files, 'file')}**: {listed}."


def _scope(review: Review) -> str:
    what = f"what differs from {review.base[:12]}" if review.base else "the whole tree"
    lenses = many(review.lenses, "lens", "lenses")
    return f"{lenses} looked at {what}, {many(review.files, 'file')} of text."


def _by_file(review: Review) -> Iterable[str]:
    """The first remarks by rank, under their files, and counts of what is not shown."""
    shown: dict[str, list[Remark]] = {}
    left: Counter[str] = Counter()
    count = 0
    for remark in review.remarks:
        here = shown.get(remark.file, [])
        if count < MOST_SHOWN and len(here) < MOST_PER_FILE:
            shown.setdefault(remark.file, []).append(remark)
            count += 1
        else:
            left[remark.file] += 1
    for file, remarks in shown.items():
        lines = [f"### {code_span(file) if file else 'The repository'}", ""]
        lines += [_line(remark) for remark in remarks]
        if more := left.pop(file, 0):
            lines.append(f"- and {more} more in this file")
        yield "\n".join(lines)
    if left:
        yield f"And {left.total()} more in other files: {_names(left.most_common())}."


def _names(counted: list[tuple[str, int]]) -> str:
    named = [f"{code_span(file)} {n}" for file, n in counted[:MOST_NAMES]]
    rest = len(counted) - len(named)
    return ", ".join(named) + (f" and {many(rest, 'more file')}" if rest else "")


def _line(remark: Remark) -> str:
    place = f" line {remark.line}" if remark.line else ""
    rules = ", ".join(code_span(name) for name in (remark.rule, *remark.also) if name)
    text = for_markdown(remark.message.strip().rstrip("."))
    line = f"- **{remark.severity}**{place}: {text} ({rules}, {remark.confidence} %)"
    advice = for_markdown(remark.suggestion.strip().rstrip("."))
    return f"{line}. {advice}." if advice else line


def _rest(review: Review) -> str:
    """What was counted and is not shown."""
    lines = []
    if review.below:
        lines.append(f"{many(review.below, 'remark')} below confidence {review.min_confidence}")
    if review.suppressed:
        lines.append(f"{many(review.suppressed, 'remark')} suppressed by comments in the code")
    if review.cut:
        lines.append(f"{many(review.cut, 'remark')} beyond what one lens hands on")
    if review.not_parsed:
        names = ", ".join(code_span(name) for name in review.not_parsed[:MOST_NAMES])
        more = ", …" if len(review.not_parsed) > MOST_NAMES else ""
        count = many(len(review.not_parsed), "file")
        lines.append(f"{count} that some lens could not parse: {names}{more}")
    if review.unread:
        reasons = sorted(review.unread_reasons.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{n} {for_markdown(reason)}" for reason, n in reasons)
        lines.append(f"{many(review.unread, 'file')} not read: {listed}")
    lines += [for_markdown(note) for note in review.notes]
    return _list("Not shown, not read", lines)


def _missing(review: Review) -> str:
    return _list("Missing", [for_markdown(each) for each in (*review.gaps, *review.not_run)])


def _list(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return "\n".join([f"### {title}", "", *(f"- {line}" for line in lines)])


def many(count: int, noun: str, plural: str = "") -> str:
    """The count with its noun."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
