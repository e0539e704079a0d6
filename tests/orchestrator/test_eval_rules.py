"""An eval's one cap, what its rates say, and when they have surely changed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.contracts import Goal, Limits
from holdfast.contracts.evals import Asked, Case, EvalGoal, Mark, Must, Suite, Trial
from holdfast.evals import rules
from holdfast.evals.intervals import difference, mean, wilson
from holdfast.evals.tally import SuiteTally, compare, tally_suites
from holdfast.ledger.ledger import Amount


def goal(*caps: str, dollars: str = "1", concurrency: int = 4) -> EvalGoal:
    trials = tuple(
        Trial(run=f"r{n}", suite="s", case=f"c{n}", asked="", cap=Decimal(cap))
        for n, cap in enumerate(caps)
    )
    return EvalGoal(name="s", trials=trials, dollars=Decimal(dollars), concurrency=concurrency)


def mark(run: str, dollars: str = "0", *, passed: bool = True, case: str = "c") -> Mark:
    return Mark(run=run, suite="s", case=case, passed=passed, dollars=Decimal(dollars))


def test_a_trial_starts_only_while_its_whole_cap_is_free_and_gives_back_what_it_did_not_spend() -> (
    None
):
    state, begun = rules.start(rules.first_state(goal("0.6", "0.6", "0.6")))
    assert [each.run for each in begun] == ["r0"]
    state, begun = rules.start(rules.close(state, mark("r0", "0.3")))
    assert [each.run for each in begun] == ["r1"]
    state, begun = rules.start(rules.close(state, mark("r1", "0.65")))
    assert begun == () and state.over and state.stopped == "cap"
    made = rules.report(state)
    assert made.dollars == Decimal("0.95") and made.marks[2].status == "not run"


def test_trials_go_on_one_by_one_under_what_is_left_and_none_with_nearly_nothing() -> None:
    state, _ = rules.start(rules.first_state(goal("1", "1", "1", dollars="1")))
    state, begun = rules.start(rules.close(state, mark("r0", "0.1")))
    assert [(each.run, each.cap) for each in begun] == [("r1", Decimal("0.9"))]
    of_run = Asked(case=Case(name="c1"), goal=Goal(text="x", limits=Limits(dollars=Decimal(1))))
    told = rules.under_cap(state, begun[0], of_run)
    assert told is not None and told.goal.limits.dollars == Decimal("0.9")
    # What judges may cost, 0.95 here, is not taken from.
    poor = Goal(text="x", limits=Limits(dollars=Decimal("0.05")))
    assert rules.under_cap(state, begun[0], of_run.model_copy(update={"goal": poor})) is None
    state, begun = rules.start(rules.close(state, mark("r1", "0.85")))
    assert begun == () and state.stopped == "cap"


def test_an_eval_that_goes_on_in_a_new_history_knows_what_it_has_paid() -> None:
    state, _ = rules.start(rules.first_state(goal("0.6", "0.6", "0.6", concurrency=1)))
    state = rules.close(state, mark("r0", "0.5"))
    again = rules.first_state(rules.next_goal(state))
    assert [each.run for each in again.waiting] == ["r1", "r2"]
    assert rules.report(again) == rules.report(state)
    assert again.ledger.fits(Amount(Decimal("0.5"))) and not again.ledger.fits(
        Amount(Decimal("0.51"))
    )


def test_no_more_are_open_at_once_than_may_be() -> None:
    state, begun = rules.start(rules.first_state(goal(*["0"] * 5, concurrency=2)))
    assert len(begun) == 2
    _, begun = rules.start(rules.close(state, mark("r0")))
    assert len(begun) == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12), st.integers(1, 5))
def test_the_cap_holds_whatever_the_trials_cost(runs: list[tuple[int, int]], at_once: int) -> None:
    wanted = goal(*(str(cap) for cap, _ in runs), dollars="20", concurrency=at_once)
    costs = {f"r{n}": Decimal(cost) for n, (_, cost) in enumerate(runs)}
    state, _ = rules.start(rules.first_state(wanted))
    while state.open:
        run, trial = next(iter(state.open.items()))
        state, _ = rules.start(rules.close(state, mark(run, str(min(trial.cap, costs[run])))))
        assert state.ledger.spent.dollars + state.ledger.held.dollars <= 20
    assert state.over and len(rules.report(state).marks) == len(runs)


def test_a_cancelled_eval_starts_nothing_more_and_waits_for_what_is_open() -> None:
    state, _ = rules.start(rules.first_state(goal("0", "0", concurrency=1)))
    state = rules.cancel(state)
    assert not state.over and rules.start(state)[1] == ()
    made = rules.report(rules.close(state, mark("r0")))
    assert made.stopped == "cancelled" and [each.status for each in made.marks] == ["", "not run"]


@pytest.mark.parametrize(
    ("passed", "trials", "low", "high"),
    # By R's binom.confint(method = "wilson").
    [
        (10, 10, 0.7225, 1.0),
        (0, 10, 0.0, 0.2775),
        (97, 100, 0.9155, 0.9897),
        (1, 2, 0.0945, 0.9055),
    ],
)
def test_the_interval_of_a_rate_is_wilsons(
    passed: int, trials: int, low: float, high: float
) -> None:
    assert wilson(passed, trials) == pytest.approx((low, high), abs=1e-4)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    # The example of Newcombe (1998): 56 of 70 less 48 of 80.
    assert difference((48, 80), (56, 70)) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def suite(passed: int, failed: int) -> tuple[SuiteTally, ...]:
    marks = [mark(f"p{n}") for n in range(passed)]
    marks += [mark(f"f{n}", passed=False) for n in range(failed)]
    return tally_suites(marks, [Suite(name="s", passing=90, cases=())])


def test_a_regression_is_named_only_where_the_interval_says_so() -> None:
    assert compare(suite(10, 0), suite(9, 1)) == ()
    assert [(each.kind, each.what) for each in compare(suite(20, 0), suite(12, 8))] == [
        ("regression", "s"),
        ("regression", "s/c"),
    ]
    assert {each.kind for each in compare(suite(12, 8), suite(20, 0))} == {"improvement"}


def test_a_case_with_other_checks_than_in_the_baseline_is_named_and_counts_for_no_rate() -> None:
    def tallied(says: str, *, passed: bool) -> tuple[SuiteTally, ...]:
        musts = {"kept": "x", "mended": says}
        cases = tuple(Case(name=n, must=(Must(says=(text,)),)) for n, text in musts.items())
        marks = [mark(f"k{n}", case="kept") for n in range(3)]
        marks += [mark(f"m{n}", case="mended", passed=passed) for n in range(20)]
        return tally_suites(marks, [Suite(name="s", cases=cases)])

    before = tallied("a", passed=True)
    assert compare(before, before) == ()
    [only] = compare(before, tallied("b", passed=False))
    assert (only.kind, only.what) == ("other", "s/mended")
    assert [each.what for each in compare(before, tallied("a", passed=False))] == ["s", "s/mended"]


def test_what_was_not_run_has_not_passed() -> None:
    assert suite(9, 1)[0].held and not suite(8, 2)[0].held
    left = rules.not_run(Trial(run="x", suite="s", case="c", asked=""), "no money")
    [tally] = tally_suites([mark("a"), left], [Suite(name="s", cases=())])
    assert (tally.whole.trials, tally.whole.not_run, tally.held) == (1, 1, False)


def test_a_mean_has_bounds_from_two_values_on_as_students_t_has_them() -> None:
    assert mean([1.0]) is None
    found = mean([1.0, 2.0, 3.0, 4.0, 5.0])
    # t of four degrees of freedom is 2.776, and the standard error 0.707.
    assert found is not None and [round(each, 1) for each in found] == [3.0, 1.1, 4.9]
