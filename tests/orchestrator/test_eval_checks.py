"""What must hold of an answer: each check holds of what is right and says what is wrong."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, TerminatedError

from driving import subtask
from holdfast.contracts import Bill, Finding, Gap, Goal, Plan
from holdfast.contracts.evals import Answered, Asked, Case, Must, Trial
from holdfast.evals import single
from holdfast.evals.checks import wrong_with
from holdfast.evals.marking import mark_outcome, with_grades
from holdfast.evals.outcomes import Outcome, of_answer
from holdfast.history.payloads import activity_error

PLAN = Plan(goal="Compare", subtasks=(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2")))
DONE = Outcome(
    text="Mill costs 12 % less [t1], [t2].",
    document={"rows": [{"rate": 7}], "issues": [{"problem": "the date is wrong"}, "noise"]},
    plan=PLAN,
    findings=tuple(Finding(subtask_id=f"t{n}", status="complete") for n in (1, 2, 3)),
    gaps=(Gap(title="the rent", status="failed", why="It was not said."),),
    dollars=Decimal("0.20"),
    seconds=12.0,
)
HOLDS: list[dict[str, Any]] = [
    {"says": ["mill  COSTS", "12 %"]},
    {"says_not": "Harbour"},
    {"matches": "MILL .* less"},
    {"matches_not": r"\$\d"},
    {"told": ["mill costs", "not said"]},
    {"has": {"rows.0.rate": 7}},
    {"result": {"type": "object", "required": ["rows"]}},
    {"cites": 2},
    {"cites": ["t1", "t2"]},
    {"check": {"kind": "max_words", "argument": "9"}},
    {"route": ["analyst"]},
    {"plan": {"least": 2, "most": 3, "independent": 2, "longest": 2, "roles": "analyst"}},
    {"finds": {"planted": "DATE", "most_false": 1}},
    {"status": ["complete"]},
    {"gaps": 1},
    {"dollars": 0.2},
    {"seconds": 12},
]
FAILS: list[tuple[dict[str, Any], str]] = [
    ({"says": ["Harbour", "mill"]}, "does not say 'Harbour'"),
    ({"says_not": "mill costs"}, "says 'mill costs'"),
    ({"matches": r"\$\d"}, r"nothing matches '\$\d'"),
    ({"matches_not": "less"}, "'less' matches"),
    ({"told": "harbour"}, "neither answer nor gaps match 'harbour'"),
    ({"has": {"rows.0.rate": 8}}, "rows.0.rate is 7, not 8"),
    ({"has": {"rows.1.rate": 7}}, "rows.1.rate is missing"),
    ({"result": {"required": ["name"]}}, "data: $: 'name' is a required property"),
    ({"cites": 3}, "cites 2, at least 3"),
    ({"cites": ["t3"]}, "does not cite [t3]"),
    ({"check": {"kind": "min_words", "argument": "90"}}, "at least 90"),
    ({"route": "writer"}, "role analyst, not writer"),
    ({"plan": {"least": 4}}, "the plan has 3 subtasks, not 4 to 1000"),
    ({"plan": {"independent": 3}}, "2 subtasks wait for none"),
    ({"plan": {"longest": 1}}, "2 subtasks wait for each other in a row"),
    ({"plan": {"roles": "writer"}}, "no subtask has the role writer"),
    ({"plan": {"only": "writer"}}, "role analyst, not writer"),
    ({"plan": {"second": "writer"}}, "second role none, not writer"),
    ({"finds": {"planted": ["date", "price"]}}, "'price' was not found"),
    (
        {"finds": {"planted": "date"}},
        '1 found that are none of the planted faults, at most 0 may be: "noise"',
    ),
    ({"status": "failed"}, "it ended complete, not failed"),
    ({"gaps": 0}, "1 gaps, at most 0 may be: the rent"),
    ({"dollars": 0.1}, "it cost $0.20"),
    ({"seconds": 3}, "it took 12.0 s"),
]


def case(*must: dict[str, Any], **fields: Any) -> Case:
    return Case(name="c", must=tuple(map(Must.model_validate, must)), **fields)


def test_every_kind_of_check_is_tried_here_as_right_and_as_wrong() -> None:
    kinds = {*Must.model_fields} - {"judge"}
    assert {next(iter(each)) for each in HOLDS} == {next(iter(each)) for each, _ in FAILS} == kinds


@pytest.mark.parametrize("must", HOLDS, ids=str)
def test_what_is_right_passes(must: dict[str, Any]) -> None:
    assert wrong_with(case(must), DONE) == {}


@pytest.mark.parametrize(("must", "why"), FAILS, ids=str)
def test_what_is_wrong_is_said_under_the_kind_of_its_check(must: dict[str, Any], why: str) -> None:
    [(kind, [said, *_])] = wrong_with(case(must), DONE).items()
    assert kind == next(iter(must)) and why in said


def test_a_run_that_failed_passes_only_where_its_case_says_so() -> None:
    failed = Outcome(status="failed", text="no")
    assert wrong_with(case({"says": "no"}), failed) == {"": ("it ended failed",)}
    assert wrong_with(case({"status": "failed"}, {"says": "no"}), failed) == {}
    planned = Outcome(status="declined", plan=PLAN)
    assert wrong_with(case({"route": "analyst"}, stop="plan"), planned) == {}


def test_an_answer_with_a_word_that_nothing_supports_does_not_cite() -> None:
    flagged = Outcome(text="[t1]", findings=DONE.findings, flags=("cites [t9], and there is none",))
    assert wrong_with(case({"cites": 1}), flagged) == {
        "cites": ("the answer cites [t9], and there is none",)
    }


def test_a_tool_that_refuses_is_held_to_its_words() -> None:
    refused = of_answer(Answered(text="ab", failed=True), case(tool="calculate"), "no such name")
    right = case({"status": "failed"}, {"says": "no such"}, tool="calculate")
    assert wrong_with(right, refused) == {}
    [why] = wrong_with(case({"says": "no such"}, tool="calculate"), refused)[""]
    assert why == "it ended failed: no such name"


def test_a_call_that_could_not_be_prepared_has_paid_nothing_and_another_may_have() -> None:
    refused = activity_error("prepare", 1, 2, ApplicationError("the cap is too small"))
    told = single.closed(refused, Decimal("0.5"))
    assert (told.why, told.bill.dollars) == ("the cap is too small", Decimal(0))
    told = single.closed(TerminatedError("terminated"), Decimal("0.5"))
    assert (told.bill.dollars, told.bill.assumed) == (Decimal("0.5"), Decimal("0.5"))


# ---------------------------------------------------------------- judges

ASKED = Asked(suite="s", case=case({"says": "mill"}, {"judge": "It is short"}), goal=Goal(text="G"))
TRIAL = Trial(run="r", suite="s", case="c", asked="")


def test_a_judge_is_asked_only_where_code_finds_nothing_wrong() -> None:
    scored = mark_outcome(TRIAL, ASKED, DONE)
    [question] = scored.judging
    assert question.asked.case.material["rubric"] == "It is short"
    assert scored.mark.kinds == ("says", "judge")
    scored = mark_outcome(TRIAL, ASKED, Outcome(text="Harbour"))
    assert scored.judging == () and scored.mark.kinds == ("says",) and not scored.mark.passed


def test_the_judge_is_told_the_goal_that_was_asked_and_not_the_name_of_a_case() -> None:
    called = case({"judge": "x"}, call="critique", material={"goal": "How many?"})
    [question] = mark_outcome(TRIAL, ASKED.model_copy(update={"case": called}), DONE).judging
    assert question.asked.case.material["goal"] == "How many?"
    [question] = mark_outcome(TRIAL, ASKED, DONE).judging
    assert question.asked.case.material["goal"] == "G"


def test_a_call_that_does_not_pass_shows_how_its_answer_begins_as_nothing_else_does() -> None:
    called = case({"says": "mill"}, {"judge": "It is short"}, call="judge")
    asked = ASKED.model_copy(update={"case": called})
    fell = mark_outcome(TRIAL, asked, Outcome(text=f"Harbour\n {'x' * 500}")).mark
    assert fell.answer == f"Harbour {'x' * 392}…"
    mark = mark_outcome(TRIAL, asked, DONE).mark
    assert with_grades(mark, [Answered(value={"holds": True, "why": ""})]).answer == ""
    said = with_grades(mark, [Answered(value={"holds": False, "why": ""})])
    assert said.answer == DONE.text
    assert mark_outcome(TRIAL, ASKED, Outcome(text="Harbour")).mark.answer == "", "it is a run"


def test_what_a_judge_says_and_costs_stands_in_the_mark_apart() -> None:
    mark = mark_outcome(TRIAL, ASKED, DONE).mark
    bill = Bill(calls=1, dollars=Decimal("0.01"))
    held = with_grades(mark, [Answered(value={"holds": True, "why": "ok"}, bill=bill)])
    assert held.passed and (held.dollars, held.judged) == (mark.dollars, bill.dollars)
    fell = with_grades(mark, [Answered(value={"holds": False, "why": "long"}, bill=bill)])
    assert (fell.passed, fell.wrong, fell.missed) == (False, ("judge: long",), ("judge",))
    lost = with_grades(mark, [Answered(why="cut")])
    assert lost.wrong == ("nobody judged it: cut",)
