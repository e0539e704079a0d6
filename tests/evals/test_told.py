"""What is told of several suites: one beside the other first."""

from __future__ import annotations

from decimal import Decimal

import pytest

from holdfast.contracts.evals import EvalGoal, EvalReport, Mark, Priced, Suite, Trial
from holdfast.evals.tally import Change, tally_suites
from holdfast.rendering import evals, markdown


def mark(suite: str, number: int, *, passed: bool, dollars: str, seconds: float) -> Mark:
    return Mark(
        run=f"{suite}-{number}",
        suite=suite,
        case=f"case-{number}",
        passed=passed,
        status="complete",
        dollars=Decimal(dollars),
        seconds=seconds,
    )


def test_one_agent_and_a_team_stand_beside_each_other_in_quality_price_and_time() -> None:
    marks = (
        mark("one-agent", 1, passed=True, dollars="0.01", seconds=4),
        mark("one-agent", 2, passed=False, dollars="0.03", seconds=8),
        mark("team", 1, passed=True, dollars="0.10", seconds=20),
        mark("team", 2, passed=True, dollars="0.20", seconds=30),
    )
    report = EvalReport(name="several", marks=marks, trials=4, dollars=Decimal("0.34"))
    asked = [Suite(name=each, passing=75, cases=()) for each in ("one-agent", "team")]
    tallies = tally_suites(marks, asked)
    told = markdown.write(evals.blocks(report, tallies, None, "show {}".format))
    table, rest = told.split("## one-agent", 1)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == ["suite", "passed", "95 %", "price each", "time each", "must pass"]
    assert [row for row in rows if row[0] in ("one-agent", "team")] == [
        ["one-agent", "1 of 2", "9–91 %", r"\$0.0200", "6.0 s", "75 %"],
        ["team", "2 of 2", "34–100 %", r"\$0.1500", "25 s", "75 %"],
    ]
    assert rest.startswith(": did not hold")
    alone = markdown.write(evals.blocks(report, tallies[:1], None, str))
    assert alone.startswith("## one-agent")


@pytest.mark.parametrize("passed", [True, False])
def test_the_command_that_opens_a_failed_trial_is_told_as_it_is_to_be_typed(passed: bool) -> None:
    marks = (mark("my_suite", 1, passed=passed, dollars="0", seconds=1),)
    report = EvalReport(name="my_suite", marks=marks, trials=1)
    tallies = tally_suites(marks, [Suite(name="my_suite", passing=50, cases=())])
    command = "starter.py --project /a/my_letters show {}".format
    told = markdown.write(evals.blocks(report, tallies, None, command))
    typed = "To open one that failed:\n\n    starter.py --project /a/my_letters show my_suite-1\n"
    assert (typed in told) != passed


def test_a_case_that_is_another_than_in_the_baseline_is_told_as_not_compared() -> None:
    change = Change(kind="other", what="s/c", before=(2, 2), after=(0, 2))
    told = markdown.write(evals.blocks(EvalReport(name="s"), (), [change], str))
    assert "- not compared: s/c was another case then" in told and "0 of 2" not in told


def test_what_a_call_answered_wrongly_is_told_below_its_suite() -> None:
    failed = mark("critic", 1, passed=False, dollars="0", seconds=1)
    failed = failed.model_copy(update={"form": "call", "answer": "no issue"})
    report = EvalReport(name="critic", marks=(failed,), trials=1)
    told = markdown.write(evals.blocks(report, tally_suites((failed,), {}), None, str))
    assert "What was answered where it did not hold" in told and "case-1: no issue" in told


def test_a_price_above_the_cap_says_how_many_trials_that_leaves_out_and_which_cap_would_do() -> (
    None
):
    trials = tuple(
        Trial(run=f"r{number}", case="c", asked="", cap=Decimal(1)) for number in range(10)
    )
    price = Priced(case="c", expected=Decimal("0.50"), judge=Decimal("0.10"))
    goal = EvalGoal(name="s", trials=trials, dollars=Decimal(3))
    # Four are paid with 2.40, and a fifth has no whole dollar left.
    assert evals.say_price(goal, [price]) == (
        "10 trials: $6.00 expected, above the cap of $3.00: it would not do for about 6 of them,"
        " so none is begun. --dollars 7 does for all."
    )
    enough = goal.model_copy(update={"dollars": Decimal(7)})
    assert evals.say_price(enough, [price]) == (
        "10 trials: $6.00 expected, at most $7.00 is spent."
    )


def test_a_cap_that_holds_trials_back_says_how_many_run_at_once_before_anything_is_paid() -> None:
    trials = tuple(Trial(run=f"r{n}", case="c", asked="", cap=Decimal(2)) for n in range(21))
    price = Priced(case="c", expected=Decimal("0.001"))
    goal = EvalGoal(name="s", trials=trials, dollars=Decimal(2))
    assert evals.say_price(goal, [price]).endswith(
        " One trial may cost up to $2.00: 1 fits at once; --dollars 8 lets 4."
    )
    goal = EvalGoal(name="s", trials=trials, dollars=Decimal(8))
    assert evals.say_price(goal, [price]).endswith("at most $8.00 is spent.")
