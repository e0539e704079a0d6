"""The answer of a review, for a person: the counts, then what matters most, by file; the long tail
as counts. Everything that the repository may have written is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from activities.code_review.by_agents import not_confirmed, read_by
from activities.code_review.scope import elsewhere
from orchestrator.contracts import Remark
from orchestrator.text import code_span, for_markdown

MOST_SHOWN = 30
"""Remarks shown one by one."""
MOST_PER_FILE = 6
MOST_NAMES = 8
"""Files named in a line of counts."""


@dataclass(frozen=True)
class Outcome:
    """Of a review. `remarks` are ranked and above the least confidence."""

    remarks: tuple[Remark, ...]
    taken_out: str = ""
    """What the repository's settings and a baseline took out, as Markdown."""
    hidden: dict[str, int] = field(default_factory=dict)
    """How many remarks each word of these took out."""
    below: int = 0
    min_confidence: int = 0
    to_verify: int = 0
    """How many a model was to verify."""
    suppressed: int = 0
    cut: int = 0
    unread: int = 0
    unread_why: dict[str, int] = field(default_factory=dict)
    not_parsed: tuple[str, ...] = ()
    files: int = 0
    """Text files in scope."""
    base: str = ""
    scope: str = ""
    """How much was taken and why, in words; empty: nobody had a choice."""
    notes: tuple[str, ...] = ()
    looked: tuple[tuple[str, int], ...] = ()
    """The lenses that looked at something, each with how many files."""
    idle: tuple[tuple[str, str], ...] = ()
    """The lenses that had nothing to look at, each with the reason."""
    agents: dict[str, int] = field(default_factory=dict)
    """The agents that read the code, each with how many calls of tools it made."""
    unconfirmed: tuple[Remark, ...] = ()
    """What only an agent says."""
    missing: tuple[str, ...] = ()
    """Titles of lenses that failed or were not run; why, the report's gaps say."""


def write(outcome: Outcome) -> str:
    """The answer as Markdown."""
    parts = [
        _headline(outcome),
        _scope(outcome),
        _verified(outcome),
        *_by_file(outcome),
        elsewhere.told([each for each in outcome.remarks if each.verdict != "refuted"]),
        outcome.taken_out,
        _refuted(outcome),
        _list("Said by an agent, and not confirmed", not_confirmed(outcome.unconfirmed)),
        _rest(outcome),
        _missing(outcome),
    ]
    return "\n\n".join(part for part in parts if part)


def _standing(outcome: Outcome) -> list[Remark]:
    """What is listed: in production code, and no model has refuted it."""
    production = elsewhere.in_production(outcome.remarks)
    return [remark for remark in production if remark.verdict != "refuted"]


def _verified(outcome: Outcome) -> str:
    """How far a model has verified the remarks; nothing in a run without models."""
    if not outcome.to_verify:
        return ""
    counts = Counter(remark.verdict for remark in outcome.remarks if remark.verdict)
    said = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
    left = outcome.to_verify - counts.total()
    more = len(outcome.remarks) - outcome.to_verify
    parts = [
        f"A model looked at the code around {many(counts.total(), 'remark')}: {said or 'none'}"
    ]
    if left:
        parts.append(f"{left} of the first {outcome.to_verify} could not be verified")
    if more > 0:
        parts.append(f"the other {more} were not to be verified")
    return "; ".join(parts) + "."


def _refuted(outcome: Outcome) -> str:
    """What a model refuted, with its reason: nothing is lost by its word."""
    refuted = [remark for remark in outcome.remarks if remark.verdict == "refuted"]
    lines = []
    for remark in refuted:
        place = (
            f"{code_span(remark.file)} line {remark.line}"
            if remark.line
            else (code_span(remark.file) if remark.file else "the repository")
        )
        text = for_markdown(remark.message.strip().rstrip("."))
        why = for_markdown(remark.why.strip().rstrip("."))
        lines.append(f"{place}: {text} ({code_span(remark.rule or remark.lens)}). {why}.")
    return _list("Refuted by a model", lines)


def _headline(outcome: Outcome) -> str:
    standing = _standing(outcome)
    if not standing:
        where = " in production code" if outcome.remarks else ""
        out = sum(outcome.hidden.values())
        more = f" {many(out, 'remark')} taken out of this review, see below." if out else ""
        return f"**No remarks**{where} at a confidence of {outcome.min_confidence} or more.{more}"
    counts = Counter(remark.severity for remark in standing)
    kinds = [
        many(counts["critical"], "critical", "critical"),
        many(counts["warning"], "warning"),
        many(counts["info"], "info", "info"),
    ]
    files = len({remark.file for remark in standing})
    total = many(len(standing), "remark")
    listed = ", ".join(kind for kind in kinds if not kind.startswith("0 "))
    return f"**{total} in {many(files, 'file')}**: {listed}."


def _scope(outcome: Outcome) -> str:
    """Which lens looked at how much, and which had nothing to look at: never more than was so."""
    what = f"what differs from {outcome.base[:12]}" if outcome.base else "the tree"
    parts = [f"In {what}: {many(outcome.files, 'file')} of text."]
    if outcome.scope:
        parts = [f"Reviewed: {for_markdown(outcome.scope)}."]
        if outcome.base:
            parts.append("`--input scope=all` takes the whole tree.")
    by_count: dict[int, list[str]] = {}
    for lens, count in outcome.looked:
        by_count.setdefault(count, []).append(lens)
    seen = [
        f"{names(lenses)} looked at {many(count, 'file')}"
        for count, lenses in sorted(by_count.items(), reverse=True)
    ]
    if seen:
        parts.append(f"{'; '.join(seen)}.")
    by_reason: dict[str, list[str]] = {}
    for lens, why in outcome.idle:
        by_reason.setdefault(why, []).append(lens)
    parts += [
        f"**Nothing to look at** for {names(lenses)}: {for_markdown(why)}."
        for why, lenses in by_reason.items()
    ]
    return " ".join([*parts, *filter(None, [read_by(outcome.agents)])])


def _by_file(outcome: Outcome) -> Iterable[str]:
    """The first remarks by rank, under their files, and counts of what is not shown."""
    shown: dict[str, list[Remark]] = {}
    left: Counter[str] = Counter()
    count = 0
    for remark in _standing(outcome):
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
    line = f"{line}. {advice}." if advice else line
    if not remark.verdict:
        return line
    why = for_markdown(remark.why.strip().rstrip("."))
    return f"{line.rstrip('.')}. {remark.verdict.capitalize()} by a model: {why}."


def _rest(outcome: Outcome) -> str:
    """What was counted and is not shown."""
    lines = []
    if outcome.below:
        lines.append(
            f"{many(outcome.below, 'remark')} below confidence {outcome.min_confidence}:"
            " `fork ID --limits min_confidence=0` shows them, too, and"
            " `show ID SUBTASK` those of one lens"
        )
    if outcome.suppressed:
        lines.append(f"{many(outcome.suppressed, 'remark')} suppressed by comments in the code")
    if outcome.cut:
        lines.append(f"{many(outcome.cut, 'remark')} beyond what one lens hands on")
    if outcome.not_parsed:
        names = ", ".join(code_span(name) for name in outcome.not_parsed[:MOST_NAMES])
        more = ", …" if len(outcome.not_parsed) > MOST_NAMES else ""
        count = many(len(outcome.not_parsed), "file")
        lines.append(f"{count} that some lens could not parse: {names}{more}")
    if outcome.unread:
        whys = sorted(outcome.unread_why.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{for_markdown(why)} ({n})" for why, n in whys)
        lines.append(f"{many(outcome.unread, 'file')} not read: {listed}")
    lines += [for_markdown(note) for note in outcome.notes]
    return _list("Not shown, not read", lines)


def _missing(outcome: Outcome) -> str:
    if not outcome.missing:
        return ""
    return f"**Not part of this review**: {', '.join(map(for_markdown, outcome.missing))}."


def _list(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return "\n".join([f"### {title}", "", *(f"- {line}" for line in lines)])


def names(lenses: list[str]) -> str:
    """`bugs, security and history`, as Markdown."""
    shown = [for_markdown(each) for each in lenses]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def many(count: int, noun: str, plural: str = "") -> str:
    """The count with its noun."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
