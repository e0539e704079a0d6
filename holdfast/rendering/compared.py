"""A comparison of two runs, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.contracts import Remark
from holdfast.rendering import markdown, remarks
from holdfast.rendering.amounts import money, seconds
from holdfast.rendering.blocks import (
    Block,
    Code,
    Column,
    Heading,
    Line,
    Marked,
    Paragraph,
    Table,
    listed,
)
from holdfast.rendering.comparing import Compared, Pair, Remarks, Side
from holdfast.rendering.findings import shorten
from holdfast.rendering.many import beginning
from holdfast.rendering.report import ToType
from holdfast.text import code_span, inline, pluralize, visible

MOST_REMARKS = 20
"""Remarks of one list."""
MOST_WHY = 160
"""Letters of why a subtask has no complete finding."""


def as_markdown(made: Compared, to_type: ToType) -> str:
    """Return the comparison: runs, facts, subtasks, remarks, answer; what is the same in a line."""
    blocks: list[Block] = [Heading(made.title or "Two runs", 1)]
    blocks += listed(Marked(f"{name}: {code_span(run)}") for name, run in _runs(made))
    blocks += [*_facts(made), *_subtasks(made, to_type)]
    blocks += _remarks(made.remarks) if made.remarks else _answer(made)
    return markdown.write(blocks) + "\n"


def _runs(made: Compared) -> tuple[tuple[str, str], ...]:
    return (("A", made.a), ("B", made.b))


def _facts(made: Compared) -> Iterator[Block]:
    differ = [Line((each.name, *_both(each.a, each.b))) for each in made.facts if each.a != each.b]
    if differ:
        yield Table((Column(""), Column("A"), Column("B")), tuple(differ))
    # Of nothing, none and no change nobody needs to hear that it is the same.
    alike = [each for each in made.facts if each.a == each.b and each.a not in ("", "0", "0.0 s")]
    if alike:
        said = "; ".join(f"{each.name.lower()}: {each.a}" for each in alike)
        yield Paragraph(f"The same in both: {said}.")


def _both(a: str, b: str) -> tuple[str, str]:
    return a or "not known", b or "not known"


def _subtasks(made: Compared, to_type: ToType) -> Iterator[Block]:
    lines = [f"Only in A: {_alone(each)}" for each in made.only_a]
    lines += [f"Only in B: {_alone(each)}" for each in made.only_b]
    lines += [_differing(each) for each in made.both if each.differs]
    same = [each.a.id for each in made.both if not each.differs]
    if not lines and not same:
        return
    yield Heading("Subtasks")
    yield from listed(map(Marked, lines))
    if same:
        yield Paragraph(f"The same in both: {', '.join(same)}.")
    if any("text" in each.differs for each in made.both):
        shown = (code_span(f"{to_type('show', run)} SUBTASK") for _, run in _runs(made))
        yield Paragraph(Marked(f"What one found: {' and '.join(shown)}"))


def _alone(side: Side) -> str:
    parts = [_status(side), inline(side.role), inline(side.model)]
    parts.append(money(side.dollars) if side.model else "")
    parts.append(seconds(side.seconds) if side.seconds else "")
    return f"{_name(side)}: {', '.join(part for part in parts if part)}"


def _name(side: Side) -> str:
    return f"**{inline(f'{side.id} {side.title}')}**"


def _status(side: Side) -> str:
    why = shorten(" ".join(side.why.split()), MOST_WHY)
    return inline(side.status or "never ran") + (f" ({inline(why)})" if why else "")


def _differing(pair: Pair) -> str:
    """Return in what a subtask of both runs differs, and nothing else of it."""
    a, b = pair.a, pair.b
    name = _name(a) if a.id == b.id else f"{_name(a)} (in B {inline(b.id)})"
    said = []
    if "status" in pair.differs:
        said.append(f"A {_status(a)}, B {_status(b)}")
    for field in ("role", "model", "tries", "confidence"):
        if field in pair.differs:
            one, other = (_value(getattr(side, field)) for side in (a, b))
            said.append(f"{field} {one} in A, {other} in B")
    if "plan" in pair.differs:
        said.append("planned in another way")
    if "text" in pair.differs:
        said.append("says something else")
    return f"{name}: {'; '.join(said)}"


def _value(value: object) -> str:
    return "none" if value in (None, "") else inline(str(value))


def _remarks(made: Remarks) -> Iterator[Block]:
    yield Heading("Remarks")
    if not (made.new or made.gone or made.not_looked_for):
        yield Paragraph(f"The same in both: {pluralize(made.kept, 'remark')}.")
        return
    yield Paragraph(f"{len(made.new)} new in B, {len(made.gone)} gone, {made.kept} kept.")
    yield from _first("New: only in B", made.new)
    yield from _first("Gone: only in A", made.gone)
    unseen = "In one run alone, because its lens did not end well in the other"
    yield from _first(unseen, made.not_looked_for)


def _first(heading: str, found: Sequence[Remark]) -> list[Block]:
    shown, more = beginning(found, MOST_REMARKS)
    rest = [Marked(f"and {more} more; `--json` has them")] if more else []
    return listed([*map(remarks.line, shown), *rest], heading, 3)


def _answer(made: Compared) -> Iterator[Block]:
    yield Heading("Answer")
    if made.same_answer:
        yield Paragraph("The same in both.")
    elif not made.answer:
        yield Paragraph("They differ only in blank space, or beyond what is compared.")
    else:
        # Indented and not fenced: a fence in an answer would end it.
        yield Code("\n".join(map(visible, made.answer)))
        if made.answer_left_out:
            yield Paragraph(f"And {pluralize(made.answer_left_out, 'line')} more that differ.")
