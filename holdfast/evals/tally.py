"""What the marks of trials come to, by case and by suite, and beside a baseline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Literal

from pydantic import Field

from holdfast.contracts import Contract, Money
from holdfast.contracts.evals import EvalReport, Mark
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
    kinds: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """How many trials met all checks of a kind, of how many that were asked for it."""

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
    """What is surely another rate than in the baseline."""

    kind: Literal["regression", "improvement"]
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


def tally_suites(marks: Iterable[Mark], passing: Mapping[str, int]) -> tuple[SuiteTally, ...]:
    """Return the tallies. `passing`: percent that must pass, by suite."""
    suites: dict[str, dict[str, list[Mark]]] = {name: {} for name in passing}
    for mark in marks:
        suites.setdefault(mark.suite, {}).setdefault(mark.case, []).append(mark)
    return tuple(
        SuiteTally(
            name=name,
            passing=passing.get(name, 100),
            whole=_tally([each for marks in cases.values() for each in marks]),
            cases={case: _tally(marks) for case, marks in cases.items()},
        )
        for name, cases in suites.items()
    )


def _tally(marks: list[Mark]) -> Tally:
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
        kinds={
            kind: (
                sum(kind in each.kinds and kind not in each.missed for each in run),
                sum(kind in each.kinds for each in run),
            )
            for kind in dict.fromkeys(kind for each in run for kind in each.kinds)
        },
    )


def compare(before: Iterable[SuiteTally], after: Iterable[SuiteTally]) -> tuple[Change, ...]:
    """Return the suites and cases of both whose rate has surely changed: where the interval of the
    difference does not hold 0.
    """
    known = {name: each for suite in before for name, each in _named(suite)}
    found = []
    for suite in after:
        for name, now in _named(suite):
            then = known.get(name)
            if then is None:
                continue
            one, other = (then.passed, then.trials), (now.passed, now.trials)
            low, high = difference(one, other)
            if high < 0:
                found.append(Change(kind="regression", what=name, before=one, after=other))
            elif low > 0:
                found.append(Change(kind="improvement", what=name, before=one, after=other))
    return tuple(found)


def _named(suite: SuiteTally) -> Iterable[tuple[str, Tally]]:
    yield suite.name, suite.whole
    yield from ((f"{suite.name}/{case}", each) for case, each in suite.cases.items())
