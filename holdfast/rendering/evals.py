"""An eval as people are shown it: what it would cost, how it stands, what came of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from holdfast.contracts.evals import EvalGoal, EvalReport, Priced
from holdfast.evals.tally import Change, SuiteTally, Tally
from holdfast.ledger.ranges import format_price, total_of
from holdfast.rendering.amounts import at_most, money, seconds
from holdfast.rendering.blocks import Block, Code, Column, Heading, Line, Paragraph, Table, listed
from holdfast.text import pluralize

COLUMNS = (
    Column("case"),
    Column("passed", "number"),
    Column("95 %", "number"),
    Column("price each", "number"),
    Column("time each", "number"),
    Column("why not"),
)
SUITES = (Column("suite"), *COLUMNS[1:5], Column("must pass", "number"))
PRICES = (
    Column("suite"),
    Column("trials", "number"),
    Column("least", "number"),
    Column("expected", "number"),
    Column("most", "number"),
    Column("judge", "number"),
)
MOST_SHOWN = 20
"""Cases of a suite that are listed where all of their trials passed."""
STOPPED = {
    "cap": "The cap left no money for the rest: give more with --dollars, under the same --id.",
    "cancelled": "It was cancelled. The same --id goes on with it.",
}


def standing(report: EvalReport) -> str:
    """Return in a line how an eval stands."""
    passed = sum(mark.passed for mark in report.marks)
    paid = at_most(report.dollars, report.assumed)
    return f"{len(report.marks)} of {report.trials} trials, {passed} passed, {paid}"


# ---------------------------------------------------------------- before


def price_blocks(goal: EvalGoal, prices: Sequence[Priced]) -> list[Block]:
    """Return what each suite is expected to cost, all trials together."""
    counts: dict[tuple[str, str], int] = {}
    for trial in goal.trials:
        counts[trial.suite, trial.case] = counts.get((trial.suite, trial.case), 0) + 1
    by_suite: dict[str, list[tuple[Priced, int]]] = {}
    for each in prices:
        by_suite.setdefault(each.suite, []).append((each, counts[each.suite, each.case]))
    lines = [Line((name, *_sums(found))) for name, found in by_suite.items()]
    if len(lines) > 1:
        every = [each for found in by_suite.values() for each in found]
        lines.append(Line(("all", *_sums(every)), total=True))
    return [
        Table(PRICES, tuple(lines)),
        *listed(say_unprepared(prices), "Cannot be prepared"),
        Paragraph(say_price(goal, prices)),
    ]


def say_unprepared(prices: Iterable[Priced]) -> list[str]:
    return [f"{each.suite}/{each.case}: {each.why}" for each in prices if each.why]


def say_price(goal: EvalGoal, prices: Sequence[Priced]) -> str:
    """Return what all trials are expected to cost, and what they may, or how many of them the cap
    leaves no money for, and which cap would do.
    """
    trials, total = pluralize(len(goal.trials), "trial"), expected(goal, prices)
    if total is None or total <= goal.dollars:
        return (
            f"{trials}: {money(total)} expected, at most {money(goal.dollars)} is spent."
            f"{_say_room(goal)}"
        )
    # A trial begins only while its whole cap is free.
    enough = math.ceil(total + max(each.cap for each in goal.trials))
    return (
        f"{trials}: {money(total)} expected, above the cap of {money(goal.dollars)}: it would not"
        f" do for about {_beyond_cap(goal, prices)} of them, so none is begun. --dollars {enough}"
        " does for all."
    )


def _say_room(goal: EvalGoal) -> str:
    """Return how many trials run at once, where the cap holds more of them back."""
    largest = max((each.cap for each in goal.trials), default=Decimal(0))
    at_once = min(goal.concurrency, len(goal.trials))
    if largest * at_once <= goal.dollars:
        return ""
    fit = max(1, int(goal.dollars / largest))
    return (
        f" One trial may cost up to {money(largest)}: {fit} fit{'s' * (fit == 1)} at once;"
        f" --dollars {math.ceil(largest * at_once)} lets {at_once}."
    )


def _beyond_cap(goal: EvalGoal, prices: Iterable[Priced]) -> int:
    """Return how many trials are not run where each costs what is expected."""
    known = {(each.suite, each.case): each for each in prices}
    spent, beyond = Decimal(0), 0
    for trial in goal.trials:
        if spent + trial.cap > goal.dollars:
            beyond += 1
        else:
            each = known[trial.suite, trial.case]
            spent += (each.expected or Decimal(0)) + (each.judge or Decimal(0))
    return beyond


def expected(goal: EvalGoal, prices: Iterable[Priced]) -> Decimal | None:
    """Return what an eval is expected to cost, judges included; None: not known."""
    known = {(each.suite, each.case): each for each in prices}
    found = (known[trial.suite, trial.case] for trial in goal.trials)
    return total_of([sum_ for each in found for sum_ in (each.expected, each.judge)])


def _sums(found: Iterable[tuple[Priced, int]]) -> Iterator[str]:
    found = [*found]
    yield str(sum(count for _, count in found))
    for name in ("low", "expected", "high", "judge"):
        amounts = [(getattr(each, name), count) for each, count in found]
        total = total_of([None if each is None else each * count for each, count in amounts])
        yield format_price(total)


# ---------------------------------------------------------------- after


def blocks(
    report: EvalReport,
    suites: Sequence[SuiteTally],
    changes: Sequence[Change] | None,
    show: Callable[[str], str],
) -> list[Block]:
    """Return what came of an eval. `changes`: against a baseline; None: there is none. `show`: the
    command that opens a run.
    """
    made: list[Block] = []
    if len(suites) > 1:
        made.append(Table(SUITES, tuple(map(_summary, suites))))
    for suite in suites:
        made += _suite(suite)
    failed = [run for suite in suites for run in suite.whole.runs]
    if failed:
        made += [Paragraph("To open one that failed:"), Code(show(failed[0]))]
    if changes is not None:
        made += listed(map(_changed, changes), "Against the baseline") or [
            Paragraph("Against the baseline: no rate has surely changed.")
        ]
    judged = f", {money(report.judged)} of it for judges" if report.judged else ""
    paid = at_most(report.dollars, report.assumed)
    made.append(Paragraph(f"Paid: {paid}{judged}."))
    if report.stopped:
        made.append(Paragraph(STOPPED[report.stopped]))
    return made


def _suite(suite: SuiteTally) -> Iterator[Block]:
    sign = "held" if suite.held else "did not hold"
    yield Heading(f"{suite.name}: {sign}")
    passed = [name for name, each in suite.cases.items() if each.passed == len(each)]
    shown = [name for name in suite.cases if name not in passed[MOST_SHOWN:]]
    lines = [_line(name, suite.cases[name]) for name in shown]
    if len(passed) > MOST_SHOWN:
        rest = pluralize(len(passed) - MOST_SHOWN, "case")
        lines.append(Line((f"and {rest}, all passed", "", "", "", "", "")))
    total = _line(f"all, {suite.passing} % must pass", suite.whole, total=True)
    yield Table(COLUMNS, (*lines, total))
    answers = [f"{name}: {said}" for name in shown for said in suite.cases[name].answers]
    yield from listed(answers, "What was answered where it did not hold", 3)
    kinds = [f"{kind} {held} of {asked}" for kind, (held, asked) in suite.whole.kinds.items()]
    if len(kinds) > 1:
        yield Paragraph(f"Checks that held: {', '.join(kinds)}.")


def _summary(suite: SuiteTally) -> Line:
    return Line((suite.name, *_rates(suite.whole), f"{suite.passing} %"))


def _line(name: str, tally: Tally, *, total: bool = False) -> Line:
    why = "" if total else "; ".join((*tally.why, *_where(tally)))
    return Line((name, *_rates(tally), why), total=total)


def _rates(tally: Tally) -> tuple[str, ...]:
    low, high = tally.bounds
    left = f", {tally.not_run} not run" if tally.not_run else ""
    return (
        f"{tally.passed} of {tally.trials}{left}",
        f"{100 * low:.0f}–{100 * high:.0f} %",
        format_price(tally.each_dollars),
        seconds(tally.each_seconds),
    )


def _where(tally: Tally) -> Iterator[str]:
    if tally.runs:
        yield f"show {tally.runs[0]}"


def _changed(change: Change) -> str:
    if change.kind == "other":
        return f"not compared: {change.what} was another case then"
    one, other = (f"{passed} of {trials}" for passed, trials in (change.before, change.after))
    return f"{change.kind}: {change.what}: {one} before, {other} now"
