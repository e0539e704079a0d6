"""A run that is over beside a fork of it with one thing changed: which answered better, at which
price. Code decides what it can; what is left a judge is asked, in both orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Literal

from holdfast.contracts import Finding, Report
from holdfast.contracts.base import Contract, Money, ReportStatus
from holdfast.ledger.ranges import total_of
from holdfast.text import pluralize

Verdict = Literal["better", "worse", "equal", "not decided"]
"""Of the fork, beside its run."""
WELL: tuple[tuple[ReportStatus, ...], ...] = (
    ("complete",),
    ("complete_with_gaps",),
    ("budget_stopped", "deadline_partial"),
)
"""How runs end, the best first; any other way is worse."""


class Cost(Contract):
    """What the subtasks that were done again took, in one of the two runs."""

    dollars: Money | None = Decimal(0)
    """None: a model has no known price."""
    assumed: Money = Decimal(0)
    """The part of `dollars` that is the worst case of calls whose answers were lost."""
    seconds: float = 0.0
    """Added up, also of what ran at the same time."""
    tries: int = 0


class Decided(Contract):
    """Which of a pair is better, and what decided that."""

    verdict: Verdict
    by: Literal["code", "judge", "none"]
    """`none`: code found no difference, and no judge was asked."""
    why: str


class Pair(Contract):
    """A run and its fork."""

    run: str
    fork: str
    title: str
    decided: Decided
    before: Cost
    now: Cost
    differ: tuple[str, ...] = ()
    """Subtasks done again that found something else."""
    run_cost: Money | None
    """What the whole run cost."""
    calls_of_run: int
    calls_asked: int
    paid: Money | None
    """What the fork cost in all, its answer included."""
    assumed: Money = Decimal(0)
    """The part of `paid` that is the worst case of calls whose answers were lost."""
    judging: Money | None = Decimal(0)
    """What its judge cost; None: not known."""

    @property
    def run_now(self) -> Money | None:
        """What the whole run would have cost: what was not done again, and its answer, as then."""
        known = self.run_cost, self.before.dollars, self.now.dollars
        if any(each is None for each in known):
            return None
        run, before, now = (each or Decimal(0) for each in known)
        return run - before + now


def decide(run: Report, fork: Report, again: Sequence[str]) -> Decided | None:
    """Return which is better by what code can tell; None: code sees no difference, and the answers
    differ. `again`: subtasks that the fork did again.
    """
    for before, now, said in _told(run, fork, again):
        if before != now:
            verdict: Verdict = "better" if now < before else "worse"
            return Decided(verdict=verdict, by="code", why=said)
    if not _same(run.answer, fork.answer):
        return None
    changed = differing(run, fork, again)
    but = f"; what {', '.join(changed)} found differs" if changed else ""
    return Decided(verdict="equal", by="code", why=f"the answer is the same{but}")


def differing(run: Report, fork: Report, again: Sequence[str]) -> tuple[str, ...]:
    """Return the subtasks done again that found something else than before."""
    before = {each.subtask_id: each.content for each in _redone(run, again)}
    now = _redone(fork, again)
    return tuple(
        each.subtask_id for each in now if not _same(before.get(each.subtask_id, ""), each.content)
    )


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()


def _told(run: Report, fork: Report, again: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield what is less in the better one of two, the weightiest first, each with its words."""
    one, other = _place(run.status), _place(fork.status)
    yield one, other, f"{_words(fork.status)}, {_words(run.status)} before"
    one, other = len(run.gaps), len(fork.gaps)
    yield one, other, f"{pluralize(other, 'gap')}, {one} before"
    one, other = _unfit(run), _unfit(fork)
    yield one, other, f"its answer is {'not ' * other}in the form that was asked for"
    one, other = len(run.flags), len(fork.flags)
    yield one, other, f"{pluralize(other, 'statement')} without support, {one} before"
    one, other = (sum(map(_refused, _redone(each, again))) for each in (run, fork))
    yield one, other, f"checks and criteria refused {other} of its drafts, {one} before"


def _unfit(report: Report) -> int:
    return int(report.form.is_data and report.document is None)


def _place(status: ReportStatus) -> int:
    return next((n for n, each in enumerate(WELL) if status in each), len(WELL))


def _words(status: ReportStatus) -> str:
    return status.replace("_", " ")


def _redone(report: Report, again: Sequence[str]) -> list[Finding]:
    return [each for each in report.findings if each.subtask_id in again]


def _refused(finding: Finding) -> int:
    """Return how many tries checks, criteria or the form of an answer refused."""
    return sum(each.verdict != "accepted" for each in finding.tries)


def cost_of(report: Report, again: Sequence[str]) -> Cost:
    found = _redone(report, again)
    return Cost(
        dollars=total_of([each.dollars for each in found]),
        assumed=sum((each.assumed for each in found), Decimal(0)),
        seconds=round(sum(each.seconds for each in found), 3),
        tries=sum(len(each.tries) for each in found),
    )


def settle(judged: Sequence[Verdict], why: str) -> Decided:
    """Return what the judgements of a pair come to, each of another order of the two answers."""
    if "not decided" in judged:
        return Decided(verdict="not decided", by="judge", why=why)
    if len({*judged}) == 1:
        return Decided(verdict=judged[0], by="judge", why=why)
    said = "the judge said otherwise when it saw the two in the other order"
    return Decided(verdict="equal", by="judge", why=said)
