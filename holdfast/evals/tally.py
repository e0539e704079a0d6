"""What the marks of trials come to, by case and by suite, and beside a baseline. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from hashlib import sha256
from typing import Literal

from pydantic import Field

from holdfast.contracts import Contract, Money
from holdfast.contracts.evals import Case, EvalReport, Mark, Suite
from holdfast.evals.intervals import difference, wilson
from holdfast.ledger.ranges import total_of

NOT_RUN = "not run"
MOST_WHY = 3


class Tally(Contract):
    """How many trials of a case, or of a suite, passed."""

    passed: int = 0
    trials: int = 0
    not_run: int = 0
    """Trials that were not run; they are not among the others."""
    dollars: Money | None = Decimal(0)
    judged: Money = Decimal(0)
    seconds: float = 0.0
    """Of all trials together."""
    why: tuple[str, ...] = ()
    """The first few different reasons why trials failed."""
    runs: tuple[str, ...] = ()
    """Runs of trials that failed, to look at."""
    answers: tuple[str, ...] = ()
    """How the first few different answers of calls that failed begin."""
    kinds: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """How many trials met all checks of a kind, of how many that were asked for it."""
    case: str = ""
    """The digest of the case, as it was then."""

    def __len__(self) -> int:
        return self.trials + self.not_run

    @property
    def bounds(self) -> tuple[float, float]:
        return wilson(self.passed, self.trials)

    @property
    def each_dollars(self) -> Money | None:
        """What a trial cost, judging included; None: not all is known."""
        return None if self.dollars is None else (self.dollars + self.judged) / max(self.trials, 1)

    @property
    def each_seconds(self) -> float:
        return self.seconds / max(self.trials, 1)


class SuiteTally(Contract):
    """A suite with its cases, in the order of the marks."""

    name: str
    passing: int = 100
    """Percent of its trials that must pass."""
    whole: Tally
    cases: dict[str, Tally] = Field(default_factory=dict)

    @property
    def held(self) -> bool:
        """True if as many trials passed as must. What was not run has not passed."""
        return 100 * self.whole.passed >= self.passing * len(self.whole)


class Baseline(Contract):
    """What an earlier eval came to: the content of a file of `--save`."""

    suites: tuple[SuiteTally, ...]


class Change(Contract):
    """What is surely another rate than in the baseline, or a case that is another than there."""

    kind: Literal["regression", "improvement", "other"]
    what: str
    """The suite, or `suite/case`."""
    before: tuple[int, int]
    after: tuple[int, int]
    """Passed of trials."""


class Result(Contract):
    """An eval as a program reads it."""

    report: EvalReport
    suites: tuple[SuiteTally, ...]
    changes: tuple[Change, ...] | None = None
    """Against a baseline; None: there was none."""


def tally_suites(marks: Iterable[Mark], asked: Iterable[Suite]) -> tuple[SuiteTally, ...]:
    """Return the tallies of suites that were asked."""
    asked = [*asked]
    passing = {each.name: each.passing for each in asked}
    digests = {(each.name, case.name): _digest(case) for each in asked for case in each.cases}
    suites: dict[str, dict[str, list[Mark]]] = {name: {} for name in passing}
    for mark in marks:
        suites.setdefault(mark.suite, {}).setdefault(mark.case, []).append(mark)
    return tuple(
        SuiteTally(
            name=name,
            passing=passing.get(name, 100),
            whole=_tally([each for marks in cases.values() for each in marks]),
            cases={
                case: _tally(marks, digests.get((name, case), "")) for case, marks in cases.items()
            },
        )
        for name, cases in suites.items()
    )


def _digest(case: Case) -> str:
    """Return a mark of what a case asks and what must hold."""
    return sha256(case.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:12]


def _tally(marks: list[Mark], case: str = "") -> Tally:
    run = [each for each in marks if each.status != NOT_RUN]
    failed = [each for each in run if not each.passed]
    whys = dict.fromkeys(why for each in failed for why in each.wrong)
    return Tally(
        passed=len(run) - len(failed),
        trials=len(run),
        not_run=len(marks) - len(run),
        dollars=total_of([each.dollars for each in run]),
        judged=sum((each.judged for each in run), Decimal(0)),
        seconds=sum(each.seconds for each in run),
        why=tuple([*whys][:MOST_WHY]),
        runs=tuple(each.run for each in failed if each.form == "run")[:MOST_WHY],
        answers=tuple([*dict.fromkeys(each.answer for each in failed if each.answer)][:MOST_WHY]),
        kinds={
            kind: (
                sum(kind in each.kinds and kind not in each.missed for each in run),
                sum(kind in each.kinds for each in run),
            )
            for kind in dict.fromkeys(kind for each in run for kind in each.kinds)
        },
        case=case,
    )


def compare(before: Iterable[SuiteTally], after: Iterable[SuiteTally]) -> tuple[Change, ...]:
    """Return the suites and cases of both whose rate has surely changed: where the interval of the
    difference does not hold 0. A case that asks or demands something else than then is named
    instead, and counts for no rate.
    """
    known = {suite.name: suite for suite in before}
    found: list[Change] = []
    for suite in after:
        if then := known.get(suite.name):
            found += _changes(then, suite)
    return tuple(found)


def _changes(before: SuiteTally, after: SuiteTally) -> Iterable[Change]:
    then = before.cases
    both = {name: (then[name], now) for name, now in after.cases.items() if name in then}
    same = {name: pair for name, pair in both.items() if pair[0].case == pair[1].case}
    old, new = _sum(one for one, _ in same.values()), _sum(other for _, other in same.values())
    if same and (change := _change(after.name, old, new)):
        yield change
    for name, (one, other) in both.items():
        what, old, new = f"{after.name}/{name}", _rate(one), _rate(other)
        if name not in same:
            yield Change(kind="other", what=what, before=old, after=new)
        elif change := _change(what, old, new):
            yield change


def _change(what: str, before: tuple[int, int], after: tuple[int, int]) -> Change | None:
    low, high = difference(before, after)
    if low <= 0 <= high:
        return None
    fell = high < 0
    return Change(
        kind="regression" if fell else "improvement", what=what, before=before, after=after
    )


def _rate(tally: Tally) -> tuple[int, int]:
    return tally.passed, tally.trials


def _sum(tallies: Iterable[Tally]) -> tuple[int, int]:
    rates = [*map(_rate, tallies)]
    return sum(passed for passed, _ in rates), sum(trials for _, trials in rates)
