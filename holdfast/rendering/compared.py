"""A comparison of two runs as Markdown, for a terminal and a pipe. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from holdfast.contracts import Remark
from holdfast.rendering.amounts import money, seconds
from holdfast.rendering.comparing import Compared, Pair, Remarks, Side
from holdfast.rendering.findings import remark_line
from holdfast.rendering.many import beginning
from holdfast.text import code_span, inline, pluralize, visible

MOST_REMARKS = 20
"""Remarks of one list."""
MOST_WHY = 160
"""Letters of why a subtask has no complete finding."""
ToType = Callable[[str, str], str]
"""(command, run id) -> what the reader types for it."""


def as_markdown(made: Compared, to_type: ToType) -> str:
    """Return the comparison: runs, facts, subtasks, remarks, answer; what is the same in a line."""
    parts = [f"# {inline(made.title)}" if made.title else "# Two runs"]
    parts.append(f"- A: {code_span(made.a)}\n- B: {code_span(made.b)}")
    parts += _facts(made)
    parts += _subtasks(made, to_type)
    if made.remarks:
        parts += _remarks(made.remarks)
    else:
        parts += _answer(made)
    return "\n\n".join(parts) + "\n"


def _facts(made: Compared) -> Iterator[str]:
    differ = [each for each in made.facts if each.a != each.b]
    if differ:
        rows = (f"| {inline(each.name)} | {_cell(each.a)} | {_cell(each.b)} |" for each in differ)
        yield "\n".join(["| | A | B |", "|---|---|---|", *rows])
    # Of nothing, none and no change nobody needs to hear that it is the same.
    alike = [each for each in made.facts if each.a == each.b and each.a not in ("", "0", "0.0 s")]
    if alike:
        said = "; ".join(f"{inline(each.name.lower())}: {_cell(each.a)}" for each in alike)
        yield f"The same in both: {said}."


def _cell(text: str) -> str:
    return inline(text) or "not known"


def _subtasks(made: Compared, to_type: ToType) -> Iterator[str]:
    lines = [f"Only in A: {_alone(each)}" for each in made.only_a]
    lines += [f"Only in B: {_alone(each)}" for each in made.only_b]
    lines += [_differing(each) for each in made.both if each.differs]
    same = [each.a.id for each in made.both if not each.differs]
    if not lines and not same:
        return
    yield "## Subtasks"
    if lines:
        yield _list(lines)
    if same:
        yield f"The same in both: {', '.join(map(inline, same))}."
    if any("text" in each.differs for each in made.both):
        shown = " and ".join(code_span(f"{to_type('show', run)} SUBTASK") for run in _runs(made))
        yield f"What one found: {shown}"


def _runs(made: Compared) -> tuple[str, str]:
    return made.a, made.b


def _alone(side: Side) -> str:
    return f"{_name(side)}: {_outcome(side)}"


def _name(side: Side) -> str:
    title = inline(side.title)
    return f"**{inline(side.id)} {title}**" if title else f"**{inline(side.id)}**"


def _outcome(side: Side) -> str:
    """Return how it ended, by whom, for how much and how long."""
    parts = [_status(side), inline(side.role), inline(side.model)]
    parts.append(money(side.dollars) if side.model else "")
    parts.append(seconds(side.seconds) if side.seconds else "")
    return ", ".join(part for part in parts if part)


def _status(side: Side) -> str:
    why = " ".join(side.why.split())
    cut = f"{why[:MOST_WHY]}…" if len(why) > MOST_WHY else why
    return inline(side.status or "never ran") + (f" ({inline(cut)})" if cut else "")


def _differing(pair: Pair) -> str:
    """Return in what a subtask of both runs differs, and of nothing else."""
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


def _remarks(made: Remarks) -> Iterator[str]:
    yield "## Remarks"
    if not (made.new or made.gone or made.not_looked_for):
        yield f"The same in both: {pluralize(made.kept, 'remark')}."
        return
    counts = f"{len(made.new)} new in B, {len(made.gone)} gone, {made.kept} kept"
    yield f"{counts}."
    yield from _listed("New: only in B", made.new)
    yield from _listed("Gone: only in A", made.gone)
    yield from _listed(
        "In one run alone, because its lens did not end well in the other", made.not_looked_for
    )


def _listed(heading: str, remarks: Sequence[Remark]) -> Iterator[str]:
    if not remarks:
        return
    shown, more = beginning(remarks, MOST_REMARKS)
    lines = [*map(remark_line, shown), *([f"and {more} more; `--json` has them"] if more else [])]
    yield f"### {heading}"
    yield _list(lines)


def _answer(made: Compared) -> Iterator[str]:
    yield "## Answer"
    if made.same_answer:
        yield "The same in both."
        return
    if not made.answer:
        yield "They differ only in blank space, or beyond what is compared."
        return
    # Indented and not fenced: a fence in an answer would end it.
    yield "\n".join(f"    {visible(line)}" for line in made.answer)
    if made.answer_left_out:
        yield f"And {pluralize(made.answer_left_out, 'line')} more that differ."


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
