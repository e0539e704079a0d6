"""Several attempts at one question, and findings that are condensed before they are combined."""

from __future__ import annotations

import pytest

from driving import BRIEFING, Drive, subtask
from holdfast.calls.judge import Judgement
from holdfast.calls.synthesize import synthesis_prompt
from holdfast.calls.work import Told, work_prompt
from holdfast.contracts import Plan
from holdfast.plans import validity
from holdfast.rules import reporting
from outcomes import AMPLE, draft, end, in_flight

PLAN = Plan(
    goal="Compare",
    subtasks=(subtask("a"), subtask("b"), subtask("c", "a", "b"), subtask("d")),
    choices=(("a", "b"),),
)


def attempted(plan: Plan = PLAN) -> Drive:
    """Both attempts have been made, and the other subtask has ended."""
    run = Drive(plan, AMPLE)
    for id in ("a", "b", "d"):
        end(run, f"work-{id}-1", value=draft(id))
    return run


def test_what_depends_on_attempts_waits_for_the_judge_and_gets_the_best_alone() -> None:
    run = attempted()
    assert in_flight(run) == ["judge-choice-a-1"]
    end(run, "judge-choice-a-1", value=Judgement(winner="b", why="it shows its sources"))
    [work] = [each for each in run.asks["c"] if each.call.kind == "work"]
    assert [each.subtask_id for each in work.material.dependencies] == ["b"]  # type: ignore[attr-defined]
    label = (
        "finding of subtask b, confidence 90, chosen by a judge over a, which attempted the same"
    )
    assert label in work_prompt(work.material, Told({}))  # type: ignore[arg-type]
    end(run, "work-c-1")
    [written] = [each for each in run.asks[""] if each.call.kind == "synthesize"]
    assert "chosen by a judge over a" in synthesis_prompt(written.material)  # type: ignore[arg-type]
    assert written.material.aside == (draft("a").content,)  # type: ignore[attr-defined]
    found = [each.subtask_id for each in written.material.findings]  # type: ignore[attr-defined]
    assert found == ["b", "c", "d"]
    assert reporting.report(run.state).notes[0] == (
        "Of a, b, attempts at one question, b was chosen: it shows its sources"
    )


def test_a_judge_of_attempts_in_different_words_is_asked_by_no_ones_own() -> None:
    other = subtask("b").model_copy(update={"instruction": "Say it bluntly"})
    alike = subtask("b").model_copy(update={"instruction": subtask("a").instruction})
    for second, own in ((other, False), (alike, True)):
        rest = (subtask("a"), second, *PLAN.subtasks[2:])
        run = attempted(PLAN.model_copy(update={"subtasks": rest}))
        [ask] = [each for them in run.asks.values() for each in them if each.call.kind == "judge"]
        question = ask.material.question  # type: ignore[attr-defined]
        assert question.endswith(subtask("a").instruction) is own
        assert ("- b: Say it bluntly\nThe goal: Compare" in question) is not own


@pytest.mark.parametrize("winner", ["b", ""])
def test_the_best_of_a_selection_is_the_answer_and_without_one_all_are_synthesized(
    winner: str,
) -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b")), strategy="select")
    run = Drive(plan, AMPLE)
    end(run, "work-a-1", value=draft("a"))
    end(run, "work-b-1", value=draft("b"))
    end(run, "judge-1", value=Judgement(winner=winner, why="it is so"))
    assert in_flight(run) == ([] if winner else ["synthesize-1"])
    assert (run.state.phase == "closed") is bool(winner)
    assert run.state.answer == (draft("b").content if winner else "")


def test_attempts_that_hand_up_data_are_not_told_that_the_best_is_the_answer() -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b")), strategy="select")
    roles = tuple(
        each.model_copy(update={"result": {"type": "object"}}) if each.name == "analyst" else each
        for each in BRIEFING.roles
    )
    for briefing, told in ((BRIEFING, True), (BRIEFING.model_copy(update={"roles": roles}), False)):
        run = Drive(plan, AMPLE, briefing)
        assert run.state.selects is told
        [ask] = [each for each in run.asks["a"] if each.call.kind == "work"]
        assert ask.material.about.attempt is told  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["refused", "failed"])
def test_without_a_judgement_every_attempt_is_passed_on(how: str) -> None:
    run = attempted()
    end(run, "judge-choice-a-1", how) if how == "refused" else end(
        run, "judge-choice-a-1", value=Judgement(winner="", why="both are as good")
    )
    [work] = [each for each in run.asks["c"] if each.call.kind == "work"]
    assert [each.subtask_id for each in work.material.dependencies] == ["a", "b"]  # type: ignore[attr-defined]


def test_one_attempt_that_failed_takes_nothing_down_while_another_holds() -> None:
    run = Drive(PLAN, AMPLE.model_copy(update={"tries_per_subtask": 1}))
    end(run, "work-a-1", "refused")
    end(run, "work-b-1")
    end(run, "work-d-1")
    assert "work-c-1" in in_flight(run) and not run.state.replanning.setbacks
    assert not [each for each in run.asks.get("", ()) if each.call.kind == "judge"]


def test_a_plan_that_reduces_has_its_findings_condensed_in_groups_first() -> None:
    ids = [f"t{number}" for number in range(1, 7)]
    plan = Plan(goal="Compare", strategy="reduce", subtasks=tuple(map(subtask, ids)))
    run = Drive(plan, AMPLE)
    for id in ids:
        end(run, f"work-{id}-1", value=draft(id))
    digests = in_flight(run)
    assert digests == ["digest-ROLL1-0-1", "digest-ROLL1-1-1"]
    for each in digests:
        end(run, each)
    [written] = [each for each in run.asks[""] if each.call.kind == "synthesize"]
    found = [each.subtask_id for each in written.material.findings]  # type: ignore[attr-defined]
    assert found == ["ROLL1-0", "ROLL1-1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choices": (("a",),)}, "choices[0]: needs two attempts or more"),
        ({"choices": (("a", "x"),)}, "choices[0]: unknown subtask 'x'"),
        ({"choices": (("a", "d"),)}, "choices[0]: 'c' must depend on all attempts or on none"),
        ({"choices": (("a", "b"), ("b", "d"))}, "choices[1]: 'b' is in choices[0] already"),
        ({"choices": (("a", "c"),)}, "choices[0]: 'c' depends on another attempt"),
        ({"strategy": "select"}, "choices: no effect, because select makes all"),
        (
            {"strategy": "select", "choices": (), "subtasks": (subtask("a"),)},
            "strategy: select needs two subtasks or more; plan them",
        ),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(change: dict[str, object], said: str) -> None:
    plan = PLAN.model_copy(update=change)
    wrong = validity.problems(plan, BRIEFING.roles, (), 30)
    assert [each for each in wrong if each.startswith(said)], wrong
