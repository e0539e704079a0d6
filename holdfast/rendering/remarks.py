"""A remark of a review for a person: its place, the code there with the place marked, why it
matters and what to do. Pure, and everything that the repository may have written is escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from holdfast.contracts import Remark, ReviewData, Severity
from holdfast.contracts.remarks import SEVERITIES, blocks_change, lens_and_rule, stands
from holdfast.rendering.blocks import Block, Folded, Marked
from holdfast.rendering.many import beginning
from holdfast.rendering.proofs import describe_fix, describe_proof, diff_of, fence_of
from holdfast.text import code_span, for_markdown, inline, pluralize, sentence, visible

MOST_PLACES, MOST_CRITICAL_PLACES = 8, 100
"""Places of a defect that stands in many that are named."""
MESSAGE_LETTERS = 120
"""Letters of the message of a remark that is folded away."""
TAB = 4
CODE = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")


def of_severity(severity: Severity, count: int) -> str:
    """Return `1 warning`, `5 warnings`, `3 critical`."""
    return pluralize(count, severity) if severity == "warning" else f"{count:,} {severity}"


def by_severity(counts: Counter[Severity] | Counter[str]) -> str:
    """Return `3 critical, 5 warnings`; leave out what has none."""
    listed = ((each, counts[each]) for each in SEVERITIES)
    return ", ".join(of_severity(severity, count) for severity, count in listed if count)


def refuted_of(remarks: Iterable[Remark]) -> str:
    """Return how many of these remarks a model refuted, to follow their number."""
    count = sum(not stands(each) for each in remarks)
    return f", {count:,} of them refuted by a model" if count else ""


def place_of(remark: Remark) -> str:
    """Return `path:line:column`, which terminals and editors open, as far as it is known."""
    where = (remark.line, remark.column) if remark.line else ()
    return ":".join([remark.file, *(str(each) for each in where if each)])


def place(remark: Remark) -> str:
    """Return the place as Markdown; a remark without a file is about the repository."""
    return code_span(place_of(remark)) if remark.file else "the repository"


def line(remark: Remark) -> Marked:
    """Return a remark in a line, with its place, its rule and how sure its lens is."""
    rule = code_span(lens_and_rule(remark))
    what = f"**{remark.severity}** {place(remark)} {inline(remark.message)}"
    return Marked(f"{what} ({rule}, {remark.confidence} %)")


def fold_unlisted(review: ReviewData, most: int = 200) -> list[Block]:
    """Return a line for each of the first remarks that are neither counted nor listed, folded away;
    nothing if there are none.
    """
    below, out = review.below_confidence, sum(review.hidden.values())
    first, _ = beginning(review.not_listed, most)
    if not first:
        return []
    parts = [f"{below:,} below confidence {review.min_confidence}"] if below else []
    parts += [f"{out:,} taken out or known"] if out else []
    lines = [_unlisted(each) for each in first]
    left = below + out - len(first)
    lines += [Marked(f"and {pluralize(left, 'more remark')}")] if left > 0 else []
    return [Folded(f"Not counted and not listed: {', '.join(parts)}", tuple(lines))]


def _unlisted(remark: Remark) -> Marked:
    said = remark.message
    cut = said if len(said) <= MESSAGE_LETTERS else f"{said[:MESSAGE_LETTERS]}…"
    why = f", {inline(remark.hidden)}" if remark.hidden else ""
    return Marked(f"{line(remark.model_copy(update={'message': cut}))}{why}")


def block(group: Sequence[Remark]) -> str:
    """Return a defect with its places: heading, message, code, why it matters, what to do."""
    first = group[0]
    parts = [f"### {first.severity} · {place(first)}", f"{said(first)} {_rules(first)}"]
    code = code_of(first)
    lines = (*advice(first), *same_at(group[1:]))
    listed = "\n".join(f"- {line}" for line in lines)
    return "\n\n".join(filter(None, [*parts, code, listed, fence_of(first), diff_of(first)]))


def said(remark: Remark) -> str:
    return sentence(prose(remark.message))


def prose(text: str) -> str:
    """Return what others wrote as Markdown on one line, with what they put in backticks as code."""
    parts = CODE.split(" ".join(text.split()))
    escaped = (code_span(part) if odd % 2 else for_markdown(part) for odd, part in enumerate(parts))
    return "".join(escaped)


def _rules(remark: Remark) -> str:
    names = (lens_and_rule(remark), *remark.also)
    listed = ", ".join(code_span(name) for name in names if name)
    return f"({listed}, {remark.confidence} %)" if listed else f"({remark.confidence} %)"


def advice(remark: Remark) -> Iterator[Marked]:
    """Yield how it is new, why it matters, what to do, what a model said of it, and its proof."""
    if remark.new_since:
        since = code_span(remark.new_since[:12])
        yield Marked(f"It stands in a line that the change did not touch; it is new since {since}.")
    if remark.matters.strip():
        yield Marked(f"Why it matters: {sentence(prose(remark.matters))}")
    if remark.suggestion.strip():
        yield Marked(f"What to do: {sentence(prose(remark.suggestion))}")
    if remark.verdict:
        counts = ""
        if not stands(remark) and blocks_change(remark):
            counts = " It counts all the same, as an analyser found it."
        why = sentence(prose(remark.why))
        yield Marked(f"{remark.verdict.capitalize()} by a model: {why}{counts}")
    if remark.proof:
        yield describe_proof(remark.proof)
    if remark.fix:
        yield describe_fix(remark.fix)


def same_at(
    others: Sequence[Remark], place: Callable[[Remark], str] = place, most: int = 0
) -> list[Marked]:
    """Return where else a defect stands, of very many the first places, `most` if that is given;
    nothing if nowhere.
    """
    if not others:
        return []
    most = most or (MOST_CRITICAL_PLACES if others[0].severity == "critical" else MOST_PLACES)
    named, more = beginning(others, most)
    rest = f" and {pluralize(more, 'more place')}" if more else ""
    return [Marked(f"The same at {', '.join(map(place, named))}{rest}.")]


# ---------------------------------------------------------------- the code


def code_of(remark: Remark) -> str:
    """Return the lines at a remark's place as a block of Markdown, with that place marked: by `-`
    what the change deleted, with its numbers in the base. Empty where none of them may be shown.
    """
    shown = rows_of(remark)
    if not any(sign.strip() for sign, _, _ in shown):
        return ""
    wide = [_wide(line) for _, _, line in shown]
    indent = min((len(line) - len(line.lstrip()) for line in wide if line.strip()), default=0)
    digits = len(str(max(number for _, number, _ in shown)))
    rows = []
    for sign, number, line in shown:
        at = remark.excerpt.letter if remark.excerpt and sign == ">" else 0
        text, letter = _placed(line, at, indent)
        rows.append(f"{sign} {number:>{digits}} | {text}".rstrip())
        if letter:
            rows.append(f"  {' ' * digits} | {_blank(text[: letter - 1])}^")
    runs = re.findall("`+", "".join(rows))
    fence = "`" * max(3, *(len(run) + 1 for run in runs), 3)
    return "\n".join([fence, *rows, fence])


def rows_of(remark: Remark) -> list[tuple[str, int, str]]:
    """Return sign, number and text of each line of a remark's code: `>` is its own line, `-` one
    that the change deleted, numbered as in the base.
    """
    excerpt = remark.excerpt
    if excerpt is None:
        return []
    gone = excerpt.deleted
    rows = [
        (">" if number == remark.line and not gone else " ", number, line)
        for number, line in enumerate(excerpt.lines, excerpt.first)
    ]
    if gone:
        at = max(gone.before - excerpt.first, 0)
        rows[at:at] = [("-", number, line) for number, line in enumerate(gone.lines, gone.first)]
    return rows


def _wide(line: str) -> str:
    """Return a line as it is shown, with spaces for its tabs."""
    return visible(line.expandtabs(TAB))


def _placed(line: str, letter: int, indent: int) -> tuple[str, int]:
    """Return the line without the indentation that all share, and where a letter of it is now."""
    text = _wide(line)[indent:]
    at = len(_wide(line[: letter - 1])) - indent + 1 if letter else 0
    return text, at if 0 < at <= len(text) else 0


def _blank(text: str) -> str:
    return "".join(" " * _cells(letter) for letter in text)


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
