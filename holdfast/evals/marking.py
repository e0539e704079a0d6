"""The mark of a trial: by code first, and where that finds nothing wrong, by a judge. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from holdfast.contracts import Goal, Limits, Plan, policies
from holdfast.contracts.evals import Answered, Asked, Case, Judging, Mark, Scored, Trial
from holdfast.evals.checks import rubrics, wrong_with
from holdfast.evals.outcomes import Outcome

GRADE_DOLLARS = Decimal("0.25")
"""The most for one question to a judge."""
MOST_ANSWER = 400
"""Characters of an answer that stand in its mark."""
JUDGE = "judge"


def single_goal(text: str, dollars: Decimal, project: str, *, unpriced: bool = False) -> Goal:
    """Return what a single call of a model is prepared with."""
    return Goal(
        text=text,
        plan=Plan.single(text, policies.FALLBACK_ROLE),
        limits=Limits(dollars=dollars),
        use_models=True,
        unpriced=unpriced,
        project=project,
    )


def mark_outcome(trial: Trial, asked: Asked, outcome: Outcome) -> Scored:
    """Return the mark by code, and the questions to a judge where nothing is wrong so far."""
    case, wrong = asked.case, wrong_with(asked.case, outcome)
    kinds = tuple(dict.fromkeys(each.kind for each in case.must))
    mark = Mark(
        run=trial.run,
        suite=trial.suite,
        case=trial.case,
        form=case.form,
        passed=not wrong,
        wrong=tuple(why for whys in wrong.values() for why in whys),
        kinds=kinds,
        missed=kinds if "" in wrong else tuple(wrong),
        status=outcome.status,
        dollars=outcome.dollars,
        assumed=outcome.assumed,
        seconds=outcome.seconds,
        answer="" if case.form == "run" else _begin(outcome.text),
    )
    if wrong:
        # Nobody pays a judge for what has failed already.
        unasked = tuple(kind for kind in kinds if kind != JUDGE)
        return Scored(mark=mark.model_copy(update={"kinds": unasked}))
    asked_for = rubrics(case)
    questions = enumerate(asked_for, start=1)
    return Scored(
        mark=mark if asked_for else mark.model_copy(update={"answer": ""}),
        judging=tuple(
            Judging(run=f"{trial.run}.judge.{place}", asked=_question(asked, outcome, rubric))
            for place, rubric in questions
        ),
    )


def _begin(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= MOST_ANSWER else f"{said[:MOST_ANSWER]}…"


def _question(asked: Asked, outcome: Outcome, rubric: str) -> Asked:
    # The goal of a single call is what its material has; its own is the name of the case.
    given = asked.case.material
    told = given.get("goal", given.get("question")) if asked.case.call else asked.goal.text
    material = {"goal": str(told or ""), "answer": outcome.text, "rubric": rubric}
    goal = single_goal(
        "judge an answer", GRADE_DOLLARS, asked.goal.project, unpriced=asked.goal.unpriced
    )
    case = Case(name=asked.case.name, call="grade", material=dict(material))
    return Asked(suite=asked.suite, case=case, goal=goal, summary=f"judge {asked.case.name}")


def with_grades(mark: Mark, answers: Iterable[Answered]) -> Mark:
    """Return the mark with what judges decided, and what that cost."""
    wrong, judged = list(mark.wrong), mark.judged
    assumed, priced = mark.assumed, True
    for answer in answers:
        grade = answer.value if isinstance(answer.value, dict) else {}
        judged += answer.bill.dollars or Decimal(0)
        assumed += answer.bill.assumed
        priced = priced and answer.bill.dollars is not None
        if not grade:
            wrong.append(f"nobody judged it: {answer.why or 'no answer'}")
        elif not grade.get("holds"):
            wrong.append(f"judge: {grade.get('why', '')}")
    update = {
        "wrong": tuple(wrong),
        "passed": not wrong,
        "answer": mark.answer if wrong else "",
        "missed": mark.missed if not wrong else (*mark.missed, JUDGE),
        "judged": judged,
        "assumed": assumed,
        "dollars": mark.dollars if priced else None,
    }
    return mark.model_copy(update=update)
