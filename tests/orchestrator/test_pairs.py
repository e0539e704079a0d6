"""A run beside its fork: which is better, by what code can tell and by a judge."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from holdfast.contracts import AnswerForm, Finding, Gap, Report, Try
from holdfast.rendering.pairs import Cost, Decided, Pair, cost_of, decide, settle
from holdfast.rendering.what_if import ForkPrice, Judging, LeftOut, WhatIf, as_markdown, tell_price

GAP = Gap(subtask_id="t1", title="t1", status="failed", why="no")
TABLE = AnswerForm(kind="table")


def report(run_id: str = "a", answer: str = "Yes.", **fields: Any) -> Report:
    known: dict[str, Any] = {"status": "complete", "goal": "g", **fields}
    return Report(run_id=run_id, answer=answer, **known)


def found(*verdicts: str, dollars: str = "0.01") -> tuple[Finding, ...]:
    tries = tuple(Try(number=n, tier="haiku", verdict=each) for n, each in enumerate(verdicts, 1))
    return (Finding(subtask_id="t1", status="complete", tries=tries, dollars=Decimal(dollars)),)


@pytest.mark.parametrize(
    ("run", "fork", "verdict", "why"),
    [
        ({}, {"status": "failed", "answer": ""}, "worse", "failed, complete before"),
        ({"status": "deadline_partial"}, {}, "better", "complete, deadline partial before"),
        ({"gaps": (GAP, GAP)}, {"gaps": (GAP,)}, "better", "1 gap, 2 before"),
        (
            {"form": TABLE, "document": {"rows": []}},
            {"form": TABLE},
            "worse",
            "its answer is not in the form that was asked for",
        ),
        ({}, {"flags": ("x",)}, "worse", "1 statement without support, 0 before"),
        (
            {"findings": found("accepted")},
            {"findings": found("failed_checks", "accepted")},
            "worse",
            "checks and criteria refused 1 of its drafts, 0 before",
        ),
        ({}, {"answer": " Yes.\n"}, "equal", "the answer is the same"),
        # The weightier counts.
        ({"flags": ("x",)}, {"status": "failed"}, "worse", "failed, complete before"),
    ],
)
def test_code_decides_what_it_can(
    run: dict[str, Any], fork: dict[str, Any], verdict: str, why: str
) -> None:
    decided = decide(report(**run), report(**fork), ["t1"])
    assert decided == Decided.model_validate({"verdict": verdict, "by": "code", "why": why})


def test_the_same_answer_from_another_finding_says_so() -> None:
    run, fork = (
        report(findings=(Finding(subtask_id="t1", status="complete", content=text),))
        for text in ("Short.", "Long and longer.")
    )
    decided = decide(run, fork, ["t1"])
    assert decided and decided.verdict == "equal"
    assert decided.why == "the answer is the same; what t1 found differs"
    assert decide(run, run, ["t1"]) == decide(report(), report(), ["t1"])


def test_answers_that_only_differ_in_words_are_left_to_a_judge() -> None:
    assert decide(report(), report(answer="No."), ["t1"]) is None


def test_what_was_not_done_again_decides_and_costs_nothing() -> None:
    one, other = report(findings=found("accepted")), report(findings=found("refusal", "accepted"))
    assert decide(one, other, ["t2"]) == decide(one, one, ["t2"])
    assert cost_of(other, ["t2"]) == Cost()
    assert cost_of(other, ["t1"]) == Cost(dollars=Decimal("0.01"), tries=2)


def test_a_judge_that_follows_the_order_of_the_answers_decides_nothing() -> None:
    assert settle(["better", "better"], "clearer").verdict == "better"
    torn = settle(["better", "worse"], "clearer")
    assert torn.verdict == "equal" and "in the other order" in torn.why
    assert settle(["equal", "worse"], "").verdict == "equal"
    assert settle(["equal", "not decided"], "").verdict == "not decided"


# ---------------------------------------------------------------- as it is told

PRICE = ForkPrice(
    run="r1",
    title="Which rates?",
    again=("t2",),
    calls_of_run=4,
    calls=3,
    low=Decimal("0.01"),
    expected=Decimal("0.02"),
    high=Decimal("0.3"),
)
MADE = WhatIf(
    change="role analyst with tier haiku",
    forks=(PRICE, PRICE.model_copy(update={"run": "r2"})),
    unusable=(LeftOut(run="r3", why="its history is gone"),),
    judging=Judging(model="opus", expected=Decimal("0.05")),
    budget=Decimal(2),
)


def pair(run: str, verdict: str, now: str, by: str = "judge") -> Pair:
    return Pair(
        run=run,
        fork=f"{run}f",
        title="g",
        decided=Decided.model_validate({"verdict": verdict, "by": by, "why": "clearer"}),
        before=Cost(dollars=Decimal("0.02"), seconds=4),
        now=Cost(dollars=Decimal(now), seconds=2),
        differ=("t1",),
        run_cost=Decimal("0.1"),
        calls_of_run=4,
        calls_asked=3,
        paid=Decimal("0.03"),
        judging=Decimal("0.01"),
    )


def to_type(command: str, run: str) -> str:
    return f"holdfast {command} {run}"


def test_the_price_says_what_is_asked_and_what_is_left_out() -> None:
    assert tell_price(MADE) == (
        "6 calls in 2 forks, where the runs asked 8; $0.04 expected, up to $0.60 by sizes"
        " alone, never more than $2.00 (--dollars)."
        " What code cannot tell apart opus judges, in both orders: $0.05 if that is all of it."
    )
    said = as_markdown(MADE, to_type)
    assert "`r3`: its history is gone" in said and "| r1 |" in said


def test_a_price_that_is_partly_assumed_is_marked_and_compared_with_none() -> None:
    lost = Cost(dollars=Decimal("0.5"), assumed=Decimal("0.4"))
    struck = pair("r2", "equal", "0").model_copy(update={"now": lost, "assumed": lost.assumed})
    pairs = (pair("r1", "equal", "0.01"), struck)
    said = " ".join(as_markdown(MADE.model_copy(update={"pairs": pairs}), to_type).split())
    assert "cost \\$0.02 before and \\$0.01 now" in said and "| ≤ \\$0.50 |" in said
    assert "Prices leave out 1 run in which the answer of a call was lost" in said
    assert "Paid: ≤ \\$0.08, of it ≤ \\$0.06 for" in said
    alone = as_markdown(MADE.model_copy(update={"pairs": (struck,)}), to_type)
    assert "cheaper" not in alone and "dearer" not in alone
    finding = found("accepted")[0].model_copy(update={"assumed": Decimal("0.01")})
    assert cost_of(report(findings=(finding,)), ["t1"]).assumed == Decimal("0.01")


def test_a_price_of_closed_runs_is_called_usual_and_only_the_cap_a_bound() -> None:
    learned = PRICE.model_copy(update={"past": 8})
    told = tell_price(MADE.model_copy(update={"forks": (learned, PRICE)}))
    assert "usually up to $0.60 (as 8 such rows of closed runs took), never more than $2" in told
    told = tell_price(MADE.model_copy(update={"budget": Decimal("0.5")}))
    assert "$0.04 expected, never more than $0.50 (--dollars)" in told
    one = PRICE.model_copy(update={"calls": 1})
    assert tell_price(MADE.model_copy(update={"forks": (one,)})).startswith("1 call in 1 fork,")


def test_the_result_says_what_got_better_what_it_saved_and_where_to_look() -> None:
    pairs = (pair("r1", "better", "0.01"), pair("r2", "worse", "0.005"))
    said = as_markdown(MADE.model_copy(update={"pairs": pairs}), to_type)
    assert "Of 2 runs 1 came out better, 1 worse, 0 equal." in said
    torn = (pair("r1", "not decided", "0.01"), pair("r2", "equal", "0.01", by="code"))
    untold = as_markdown(MADE.model_copy(update={"pairs": torn}), to_type)
    assert "0 worse, 1 equal, 1 not decided." in untold and "compare r1 r1f" in untold
    assert "before and \\$0.0150 now, 62% cheaper (-\\$0.0125 a run" in said
    assert "Asked: 6 calls, where their runs asked 8." in said
    assert "before and \\$0.1750 now, 12% cheaper." in said, "of whole runs"
    paid = "Paid: \\$0.08, of it \\$0.06 for the forks with their answers (\\$0.04 expected)"
    assert f"{paid}, \\$0.02 for the judge." in said and "Found otherwise" not in said
    assert "holdfast show r2 t1\n    holdfast show r2f t1\n" in untold
    odd = torn[1].model_copy(update={"differ": ("t1;x",)})
    assert "show r2f 't1;x'\n" in as_markdown(MADE.model_copy(update={"pairs": (odd,)}), to_type)
    looked = said[said.index("To look at") :]
    assert looked.index("holdfast compare r2 r2f") < looked.index("holdfast compare r1 r1f")
