"""What a change of a role would cost over runs that are over, and what came of it, in blocks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Literal

from holdfast.contracts.base import Contract, Money
from holdfast.evals.intervals import mean, wilson
from holdfast.ledger.ranges import total_of
from holdfast.rendering import markdown
from holdfast.rendering.amounts import at_most, money, seconds
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
from holdfast.rendering.findings import shorten
from holdfast.rendering.pairs import Cost, Pair
from holdfast.rendering.report import ToType
from holdfast.text import code_span, pluralize, visible

MOST_LOOKED_AT = 10
"""Pairs that are named to be looked at."""
MOST_WHY = 200


class ForkPrice(Contract):
    """One fork before it is paid."""

    run: str
    title: str
    again: tuple[str, ...]
    """Subtasks that it does again."""
    calls_of_run: int
    calls: int
    """Calls of it that are expected, an agent with tools counted once."""
    low: Money | None
    expected: Money | None
    high: Money | None
    """No bound where closed runs say it: 5 % of such rows took more."""
    past: int = 0
    """Rows of closed runs that say it, the fewest of any row; 0: by sizes alone."""


class LeftOut(Contract):
    run: str
    why: str


class Judging(Contract):
    """The judge of answers that code cannot tell apart, two calls a pair."""

    model: str
    expected: Money | None
    """If code can decide no pair."""


class WhatIf(Contract):
    """A change of a role over runs that are over."""

    change: str
    forks: tuple[ForkPrice, ...]
    unusable: tuple[LeftOut, ...] = ()
    judging: Judging | None = None
    """None: no model judges."""
    lane: Literal["now", "batch"] = "now"
    budget: Money | None = None
    """The most that all of it may cost."""
    pairs: tuple[Pair, ...] = ()
    """Empty: only priced."""
    not_tried: tuple[LeftOut, ...] = ()

    @property
    def expected(self) -> Money | None:
        return total_of([each.expected for each in self.forks])

    @property
    def high(self) -> Money | None:
        return total_of([each.high for each in self.forks])

    @property
    def paid(self) -> Money | None:
        return total_of([each.paid for each in self.pairs])

    @property
    def judged(self) -> Money | None:
        """What the judge was paid."""
        return total_of([each.judging for each in self.pairs])


def as_markdown(made: WhatIf, to_type: ToType) -> str:
    blocks: list[Block] = [Heading(f"What if: {made.change}", 1)]
    blocks += [*_result(made, to_type)] if made.pairs else [*_price(made)]
    named = (*made.unusable, *made.not_tried)
    blocks += listed(
        (Marked(f"{code_span(each.run)}: {markdown.text(each.why)}") for each in named), "Left out"
    )
    return markdown.write(blocks) + "\n"


# ---------------------------------------------------------------- before


def _price(made: WhatIf) -> Iterator[Block]:
    columns = ("run", "about", "done again", "expected", "up to")
    lines = [
        Line(
            (
                each.run,
                shorten(each.title, 60),
                ", ".join(each.again),
                money(each.expected),
                money(each.high),
            )
        )
        for each in made.forks
    ]
    if lines:
        yield Table(tuple(map(Column, columns)), tuple(lines))
    yield Paragraph(tell_price(made))


def tell_price(made: WhatIf) -> str:
    """Return in a line what all forks would ask and cost, and what their judge would."""
    asked = sum(each.calls for each in made.forks)
    of = sum(each.calls_of_run for each in made.forks)
    said = (
        f"{pluralize(asked, 'call')} in {pluralize(len(made.forks), 'fork')}, where the runs asked"
        f" {of}; {money(made.expected)} expected{_usual(made)}{_never_above(made)}."
    )
    if made.lane == "batch":
        said += " By batches, at half the price: each call may wait up to a day."
    if made.judging is None:
        return said
    return (
        f"{said} What code cannot tell apart {made.judging.model} judges, in both orders:"
        f" {money(made.judging.expected)} if that is all of it."
    )


def _usual(made: WhatIf) -> str:
    """Return what it may take, and what says so; empty where the cap ends it before."""
    if made.high is None or (made.budget is not None and made.high >= made.budget):
        return ""
    rows = min((each.past for each in made.forks if each.past), default=0)
    if not rows:
        return f", up to {money(made.high)} by sizes alone"
    return f", usually up to {money(made.high)} (as {rows} such rows of closed runs took)"


def _never_above(made: WhatIf) -> str:
    return "" if made.budget is None else f", never more than {money(made.budget)} (--dollars)"


# ---------------------------------------------------------------- after


def _result(made: WhatIf, to_type: ToType) -> Iterator[Block]:
    pairs = made.pairs
    verdicts = [str(each.decided.verdict) for each in pairs]
    better, worse, equal = map(verdicts.count, ("better", "worse", "equal"))
    open_ = verdicts.count("not decided")
    told = f"{better} came out better, {worse} worse, {equal} equal"
    told += f", {open_} not decided." if open_ else "."
    yield Paragraph(f"Of {pluralize(len(pairs), 'run')} {told}")
    differ = better + worse
    if differ:
        low, high = wilson(better, differ)
        yield Paragraph(
            f"Of the {differ} that differ {better / differ:.0%} are better"
            f" (95 % interval: {low:.0%} to {high:.0%})."
        )
    yield from _costs(pairs)
    if made.lane == "batch":
        yield Paragraph("These compare both at the price of calls at once; batches cost half.")
    else:
        yield _time(pairs)
    yield Paragraph(_paid(made))
    columns = ("run", "fork", "it is", "by", "why", "before", "now")
    yield Table(tuple(map(Column, columns)), tuple(map(_line, pairs)))
    yield from _to_look_at(pairs, to_type)


def _line(pair: Pair) -> Line:
    decided = pair.decided
    why = shorten(decided.why, MOST_WHY)
    prices = [at_most(each.dollars, each.assumed) for each in (pair.before, pair.now)]
    return Line((pair.run, pair.fork, decided.verdict, decided.by, why, *prices))


def _costs(pairs: Sequence[Pair]) -> Iterator[Block]:
    """Yield what the subtasks that were done again took before and now."""
    # The worst case of a lost call says nothing of the change, and is far above what calls take.
    told = [each for each in pairs if not (each.before.assumed or each.now.assumed)]
    if told:
        yield from _compared(told)
    if left := len(pairs) - len(told):
        yield Paragraph(
            f"Prices leave out {pluralize(left, 'run')} in which the answer of a call was lost: its"
            " worst case is assumed."
        )


def _compared(pairs: Sequence[Pair]) -> Iterator[Block]:
    before, now = (total_of([side.dollars for side in sides]) for sides in _sides(pairs))
    if before is not None and now is not None:
        saved = mean([float(p.now.dollars or 0) - float(p.before.dollars or 0) for p in pairs])
        yield Paragraph(
            f"What was done again cost {money(before)} before and {money(now)} now"
            f"{_percent(before, now)}{_between(saved, _dollars)}."
        )
    before, now = (total_of(c) for c in ([p.run_cost for p in pairs], [p.run_now for p in pairs]))
    if before is not None and now is not None:
        yield Paragraph(
            f"Whole runs, with all else at its price of then: {money(before)} before and"
            f" {money(now)} now{_percent(before, now)}."
        )


def _time(pairs: Sequence[Pair]) -> Block:
    took = [sum(side.seconds for side in sides) for sides in _sides(pairs)]
    slower = mean([p.now.seconds - p.before.seconds for p in pairs])
    return Paragraph(
        f"It took {seconds(took[0])} before and {seconds(took[1])} now{_between(slower, _seconds)}."
    )


def _sides(pairs: Sequence[Pair]) -> tuple[list[Cost], list[Cost]]:
    return [each.before for each in pairs], [each.now for each in pairs]


def _percent(before: Decimal, now: Decimal) -> str:
    if not before or before == now:
        return ""
    return f", {abs(now - before) / before:.0%} {'cheaper' if now < before else 'dearer'}"


def _between(change: tuple[float, float, float] | None, unit: Callable[[float], str]) -> str:
    """Return how much a run changes, with the interval; empty where it is not known."""
    if change is None:
        return ""
    middle, low, high = map(unit, change)
    return f" ({middle} a run; 95 % interval: {low} to {high})"


def _dollars(amount: float) -> str:
    return f"{'-' if amount < 0 else '+'}${abs(amount):.4f}"


def _seconds(amount: float) -> str:
    return f"{'-' if amount < 0 else '+'}{seconds(abs(amount))}"


def _paid(made: WhatIf) -> str:
    forks = total_of([each.expected for each in made.forks])
    asked = sum(each.calls_asked for each in made.pairs)
    of = sum(each.calls_of_run for each in made.pairs)
    judged = f", {money(made.judged)} for the judge" if made.judged else ""
    whole = total_of([made.paid, made.judged])
    assumed = sum((each.assumed for each in made.pairs), Decimal(0))
    return (
        f"Asked: {pluralize(asked, 'call')}, where their runs asked {of}. Paid:"
        f" {at_most(whole, assumed)}, of it {at_most(made.paid, assumed)} for the forks with their"
        f" answers ({money(forks)} expected)"
        f"{judged}."
    )


def _to_look_at(pairs: Sequence[Pair], to_type: ToType) -> Iterator[Block]:
    differ = sorted(
        (each for each in pairs if each.decided.verdict != "equal"),
        key=lambda each: each.decided.verdict != "worse",
    )
    if differ:
        yield Heading("To look at")
        shown = (f"{to_type('compare', each.run)} {each.fork}" for each in differ[:MOST_LOOKED_AT])
        yield Code("\n".join(shown))
    found = [
        each
        for each in pairs
        if each.decided.verdict == "equal" and each.decided.by == "code" and each.differ
    ]
    if found:
        yield Heading("Found otherwise")
        yield Code("\n".join(_shown(each, to_type) for each in found[:MOST_LOOKED_AT]))


def _shown(pair: Pair, to_type: ToType) -> str:
    """Return the commands that show the first finding that differs, before and now."""
    subtask = visible(shlex.quote(pair.differ[0]))
    return "\n".join(f"{to_type('show', run)} {subtask}" for run in (pair.run, pair.fork))
