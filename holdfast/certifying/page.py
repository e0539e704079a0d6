"""A certificate as a page in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from holdfast.certifying.certify import NAME, Certificate, Struck
from holdfast.certifying.watching import NOT_SEEN
from holdfast.text import code_span, for_markdown, pluralize

MOST_LINES = 20


def render_page(made: Certificate) -> str:
    return "\n".join(_lines(made)) + "\n"


def summarise(made: Certificate) -> str:
    """Return the verdict in one line."""
    runs = 1 + len(made.kills) + len(made.failures)
    what = f"{pluralize(runs, 'run')}, {made.seconds:.0f} s"
    if made.wrong:
        return f"NOT certified: {pluralize(len(made.wrong), 'line')} below ({what})"
    if made.recorded:
        names = ", ".join(made.recorded)
        return f"Certified, but for what {names} would do outside, which was not done ({what})"
    if repeated := list(_repeated(made)):
        return f"Certified, but for effects that happened again: {', '.join(repeated)} ({what})"
    return f"Certified: all holds ({what})"


def _repeated(made: Certificate) -> Iterator[str]:
    if made.again:
        yield f"{made.again.total()} repeated by declaration"
    if made.within:
        yield f"{len(made.within)} within one call"


def _lines(made: Certificate) -> Iterator[str]:
    yield f"# {made.wanted.title}"
    yield ""
    yield f"**{summarise(made)}.**"
    yield ""
    for line in made.wrong[:MOST_LINES]:
        yield f"- {for_markdown(line)}"
    if len(made.wrong) > MOST_LINES:
        yield f"- and {len(made.wrong) - MOST_LINES} more"
    yield from _table(("", "killed", "failed"), _sums(made))
    yield ""
    yield from _about(made)
    yield "## Killed with -9"
    yield from _kills(made.kills)
    yield "## Failures of the endpoint"
    yield from _failures(made.failures) if made.failures else ("", "The run asks no model.")


def _sums(made: Certificate) -> Iterator[tuple[object, ...]]:
    both = (made.kills, made.failures)
    verdicts = [[each.verdict for each in group] for group in both]
    reports = [[each.seen.report for each in group] for group in both]
    charged = [[Decimal(each.seen.charged["dollars"]) for each in group] for group in both]
    yield ("runs", *map(len, both))
    yield ("not over in time", *(sum(each is None for each in group) for group in reports))
    yield ("same answer", *(sum(each.same_answer for each in group) for group in verdicts))
    yield ("answers paid again", *(sum(each.paid_again for each in group) for group in verdicts))
    doubled = tuple(sum(each.doubled for each in group) for group in verdicts)
    yield ("effects doubled", *(f"{each}{_of_calls(made)}" for each in doubled))
    again = (sum(len(each.again) for each in group) for group in verdicts)
    yield ("effects repeated by declaration", *again)
    yield ("effects told as maybe run", *(sum(len(e.told) for e in group) for group in verdicts))
    yield ("above the cap", *(sum(each.over_cap for each in group) for group in verdicts))
    yield (
        f"most charged, of ${made.plain.cap}",
        *(f"${max(group, default=Decimal(0))}" for group in charged),
    )
    yield (
        "longest, s",
        *(f"{max((each.seen.seconds for each in group), default=0):.1f}" for group in both),
    )


def _of_calls(made: Certificate) -> str:
    """Say what a count of doubled effects is of, where effects were not let happen."""
    return " (calls only; effects were recorded)" if made.recorded else ""


def _about(made: Certificate) -> Iterator[str]:
    """Yield what was tried, and what was not."""
    plain = made.plain
    assert plain.report is not None
    yield (
        f"Left alone it ends `{plain.report.status}` after {plain.seconds:.1f} s, with"
        f" {pluralize(plain.charged['admitted'], 'call')}, ${plain.charged['dollars']}. Struck at"
        f" {made.chosen}, real server and worker, one worker process."
    )
    yield ""
    if made.not_reached:
        names = ", ".join(each.when for each in made.not_reached)
        yield f"- Not reached a second time, so not struck: {for_markdown(names)}."
    if made.approved:
        yield (
            f"- {pluralize(made.approved, 'question')} of runs to a person answered as"
            f" `{NAME}`, plans and calls approved."
        )
    if made.recorded:
        names = ", ".join(map(code_span, made.recorded))
        yield (
            f"- Not run, but recorded by the key of each call: {names}. `--run-effects` runs them."
        )
    for said, runs in sorted(made.again.items()):
        yield (
            f"- Repeated by declaration in {pluralize(runs, 'run')}, as `idempotent=True` is the"
            f" default: {for_markdown(said)}. It holds only if that is harmless."
        )
    for said in made.within:
        yield f"- Happened again within one call: {for_markdown(said)}."
    for tool, programs in _started(made).items():
        named = ", ".join(map(code_span, programs))
        yield f"- {code_span(tool)} starts {named}: what that does is not seen, nor certified."
    if not made.wanted.effects:
        yield "- MCP servers, web searches and sandboxes elsewhere were not reached."
    yield (
        "- Of own tools is seen what Python tells: files opened to write, made, moved, removed;"
        " connections; programs; also in their threads. Not seen: what C libraries and other"
        " programs do, and what goes through files and connections that were open before the call."
    )
    yield ("- Waits that an endpoint asks for were cut to a second, its silence to three.")
    yield ""


def _started(made: Certificate) -> dict[str, list[str]]:
    """Return the programs that tools were seen to start, by tool."""
    runs = (made.plain, *(each.seen for each in (*made.kills, *made.failures)))
    told = {
        (each.tool, each.about.removeprefix(NOT_SEEN))
        for run in runs
        for each in run.noted
        if each.place.moment == "outside" and each.about.startswith(NOT_SEEN)
    }
    found: dict[str, list[str]] = {}
    for tool, program in sorted(told):
        found.setdefault(tool, []).append(program)
    return found


def _kills(kills: Iterable[Struck]) -> Iterator[str]:
    rows = (
        (
            one.what.removesuffix(" killed"),
            one.when,
            "same" if one.verdict.same_answer else "other",
            one.verdict.paid_again,
            "; ".join((*one.verdict.told, *one.verdict.again)) or one.verdict.doubled,
            f"{one.seen.seconds:.1f}",
            "✗" if one.verdict.wrong else "✓",
        )
        for one in kills
    )
    yield from _table(("killed", "when", "answer", "paid again", "effects", "s", ""), rows)
    yield ""


def _failures(failures: Iterable[Struck]) -> Iterator[str]:
    rows = (
        (
            one.what,
            one.when.removeprefix("at "),
            one.seen.report.status if one.seen.report else "not over",
            "same" if one.verdict.same_answer else "",
            f"{one.seen.report.model_calls if one.seen.report else '?'} /"
            f" {one.seen.charged['admitted']}",
            f"{one.seen.seconds:.1f}",
            "✗" if one.verdict.wrong else "✓",
        )
        for one in failures
    )
    head = ("failure", "at", "end", "answer", "calls: bill / charged", "s", "")
    yield from _table(head, rows)


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    named = tuple(head)
    yield ""
    yield f"| {' | '.join(named)} |"
    yield "|" + "---|" * len(named)
    for cells in rows:
        yield f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"
