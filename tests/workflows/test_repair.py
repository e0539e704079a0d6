"""What fails is dealt with, and said: every path of docs/repair.md, against the scripted model."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from conftest import Runs, seen
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Bill, Goal, Order, Report
from holdfast.contracts.errors import CallRefused, PossiblyBilled
from scripted import ScriptedModel, digests, plans, ready, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio

DOUBT = works("unsure", confidence=10)


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare three engines", "use_models": True, **fields})


def statuses(report: Report) -> dict[str, str]:
    return {finding.subtask_id: finding.status for finding in report.findings}


def change(op: str, item: dict[str, object], why: str = "because") -> dict[str, object]:
    return {"op": op, "subtask": item, "why": why}


# ---------------------------------------------------------------- checks, reviews, refinement


async def test_a_criterion_that_no_check_covers_is_reviewed_and_its_reason_reaches_the_next_try(
    runs: Runs,
) -> None:
    criteria = "Names the cheapest engine"
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku", acceptance_criteria=criteria))],
            "t1": [works("They are all fine."), works("B is the cheapest.")],
            "review": [
                {"verdict": "fail", "why": "no engine is named as the cheapest"},
                {"verdict": "pass", "why": "B is named"},
            ],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    [finding] = report.findings
    assert finding.content == "B is the cheapest."
    verdicts = [(each.tier, each.verdict, each.why) for each in finding.tries]
    assert verdicts == [
        ("haiku", "failed_review", "no engine is named as the cheapest"),
        ("sonnet", "accepted", "B is named"),
    ]
    assert "no engine is named as the cheapest" in model.requests[3].prompt
    review = model.requests[2]
    assert review.model == "claude-haiku-5-5" and criteria in review.prompt
    # Another role than the author: the reviewer never sees the author's system prompt.
    assert review.system != model.requests[1].system


async def test_a_subtask_without_criteria_is_not_reviewed(runs: Runs) -> None:
    check = {"kind": "max_words", "argument": "3"}
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", checks=[check]))],
            "t1": [works("three short words")],
            "synthesize": [synthesizes("done")],
        }
    )
    await runs.run(goal(), model)
    assert "review" not in model.heard


@pytest.mark.long
async def test_a_review_that_fails_leaves_the_draft_accepted_and_says_so(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", acceptance_criteria="is good"))],
            "t1": [works("one")],
            "review": [CallRefused("400")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.findings[0].status == "complete"
    assert report.findings[0].tries[0].why.startswith("not reviewed: ")


async def test_the_third_try_has_a_refined_instruction_and_the_refiner_sees_every_reason(
    runs: Runs,
) -> None:
    """D6 and D7: the reasons are not empty, and refinement is not a matter of luck."""
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"))],
            "t1": [
                works("", status="failed", why="the table has no year column"),
                DOUBT,
                works("found it"),
            ],
            "refine": [{"instruction": "Use the footnotes for part t1 of the goal"}],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    [finding] = report.findings
    assert finding.status == "complete"
    assert [each.tier for each in finding.tries] == ["haiku", "sonnet", "opus"]
    refine = model.requests[model.heard.index("refine")].prompt
    assert "the table has no year column" in refine and "confidence 10 is below 60" in refine
    assert "the result of the last try" in refine
    role = shipped_catalogue().roles["analyst"].card
    assert f"<role>\n{role.description}" in refine and "<acceptance_criteria>" not in refine
    assert "Use the footnotes" in model.requests[4].prompt
    assert "refine-t1-1" in await runs.activities()


@pytest.mark.long
async def test_a_role_with_a_fixed_tier_does_not_climb(runs: Runs) -> None:
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True)
    head = "name: clerk\ndescription: copies\nmodel: haiku\nfixed_tier: true"
    (home / "clerk.md").write_text(f"---\n{head}\n---\nCopy.\n")
    model = ScriptedModel({"t1": [DOUBT, works("one")], "synthesize": [synthesizes("done")]})
    plan = ready(subtask("t1", role="clerk"))
    report = await runs.run(goal(plan=plan), model, catalogue=Catalogue.load(runs.folder / "home"))
    assert [each.tier for each in report.findings[0].tries] == ["haiku", "haiku"]


# ---------------------------------------------------------------- escalations


async def test_out_of_scope_goes_to_the_roles_fallback(runs: Runs) -> None:
    declines = works("", status="escalate", reason="out_of_scope", why="needs judgement")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", role="writer"))],
            "t1": [declines, works("judged")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    [finding] = report.findings
    assert finding.status == "complete" and finding.content == "judged"
    assert finding.tries[0].verdict == "escalated"
    assert "You turn facts into conclusions" in model.requests[2].system


@pytest.mark.long
async def test_out_of_scope_without_a_fallback_is_replanned(runs: Runs) -> None:
    declines = works("", status="escalate", reason="out_of_scope", why="needs a lawyer")
    other = subtask("t3", role="researcher")
    needs_other = subtask("t2", "t3")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1"))],
            "t1": [declines],
            "replan": [{"changes": [change("add", other), change("replace", needs_other)]}],
            "t3": [works("three")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert statuses(report) == {"t1": "escalated", "t2": "complete", "t3": "complete"}
    [revision] = report.revisions
    assert revision.added == ("t3",) and revision.replaced == ("t2",)
    assert report.status == "complete_with_gaps"
    assert "needs a lawyer" in model.requests[model.heard.index("replan")].prompt


@pytest.mark.parametrize("how", [{"confidence": 10}, {"status": "failed", "why": "no time"}])
async def test_whoever_tries_next_is_told_the_result_that_was_not_accepted(
    how: dict[str, Any], runs: Runs
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"))],
            "t1": [works("Perhaps it grew by 3", **how), works("It grew by 4")],
            "synthesize": [synthesizes("done [t1]")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    first, second = (
        request.prompt
        for request, heard in zip(model.requests, model.heard, strict=True)
        if heard == "t1"
    )
    assert "Perhaps it grew by 3" in second and "Perhaps it grew by 3" not in first


async def test_what_is_not_in_the_material_is_a_gap_and_no_other_role_is_asked(
    runs: Runs,
) -> None:
    lacks = works(
        "2024 alone", status="escalate", reason="not_in_material", why="no figure of 2025"
    )
    planned = plans({**subtask("t1"), "secondary": "researcher"}, subtask("t2"))
    model = ScriptedModel(
        {
            "plan": [planned],
            "t1": [lacks],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(limits={"replans": 0}), model)
    assert statuses(report) == {"t1": "escalated", "t2": "complete"}
    assert report.status == "complete_with_gaps"
    (gap,) = report.gaps
    assert "no figure of 2025" in gap.why and model.heard.count("t1") == 1


async def test_an_ambiguous_input_gets_the_best_guess_when_nobody_may_be_asked(
    runs: Runs,
) -> None:
    asks = works("", status="escalate", reason="ambiguous_input", why="which year?")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"))],
            "t1": [asks, works("Assuming 2026: 5")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.findings[0].content == "Assuming 2026: 5"
    assert "state the assumption" in model.requests[2].prompt


async def test_an_ambiguous_input_waits_for_a_person_who_answers(runs: Runs) -> None:
    asks = works("", status="escalate", reason="ambiguous_input", why="which year?")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"))],
            "t1": [asks, works("5 in 2025")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    async with runs.worker(model):
        handle = await runs.start(goal(ask_people=True), skipping=False)
        await model.asked("t1", "t2")
        await seen(handle, lambda view: view.waiting)
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update("answer", Order(subtask_id="t2", text="2025"))
        assert "t2 does not wait for an answer" in str(refused.value.cause)
        said = await handle.execute_update("answer", Order(subtask_id="t1", text="2025"))
        report = await handle.result()
    assert "t1" in said
    assert report.status == "complete"
    assert "A person was asked and answered: 2025" in model.requests[-3].prompt


@pytest.mark.long
async def test_a_person_who_never_answers_leaves_the_best_guess_after_a_day(runs: Runs) -> None:
    """The deadline stands still meanwhile: fifteen minutes of work are not over after a day."""
    asks = works("", status="escalate", reason="ambiguous_input", why="which year?")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"))],
            "t1": [asks, works("Assuming 2026: 5")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(ask_people=True), model)
    assert report.status == "complete"
    assert report.timings.makespan >= 24 * 3600


async def test_a_subtask_that_is_too_big_is_split_by_a_patch(runs: Runs) -> None:
    too_big = works("the first tenth", status="escalate", reason="timeout", why="too much")
    halves = [change("add", subtask("t1a")), change("add", subtask("t1b"))]
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1"))],
            "t1": [too_big],
            "replan": [{"changes": [*halves, change("replace", subtask("t2", "t1a", "t1b"))]}],
            "t1a": [works("half a")],
            "t1b": [works("half b")],
            "t2": [works("both")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert statuses(report) == {
        "t1": "escalated",
        "t2": "complete",
        "t1a": "complete",
        "t1b": "complete",
    }
    t2 = model.requests[model.heard.index("t2")].prompt
    assert "half a" in t2 and "half b" in t2 and "the first tenth" not in t2


# ---------------------------------------------------------------- replanning


async def test_a_failure_that_others_need_changes_the_plan_and_finished_findings_stay(
    runs: Runs,
) -> None:
    fails = works("", status="failed", why="the site is gone")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"))],
            "t1": [fails] * 3,
            "t2": [works("two")],
            "refine": [{"instruction": "Search again for part t1 of the goal"}],
            "replan": [
                {
                    "changes": [
                        change("add", subtask("t4", role="researcher"), "another source"),
                        change("replace", subtask("t3", "t4", "t2"), "needs t4 instead"),
                    ]
                }
            ],
            "t4": [works("four")],
            "t3": [works("three")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert statuses(report) == {
        "t1": "failed",
        "t2": "complete",
        "t3": "complete",
        "t4": "complete",
    }
    assert model.heard.count("t2") == 1
    assert report.revisions[0].why == "another source; needs t4 instead"
    assert report.status == "complete_with_gaps"


async def test_a_patch_that_reuses_ids_touches_what_finished_or_repeats_is_refused_with_reasons(
    runs: Runs,
) -> None:
    """D18: the loop guard looks for role and instruction, so no legitimate retry trips it."""
    fails = works("", status="failed", why="gone")
    again = subtask("t9", instruction="Find out  everything about PART t1 of the goal, as a LIST")
    bad = [
        change("add", subtask("t2")),
        change("replace", subtask("t2", role="researcher")),
        change("add", again),
    ]
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1"))],
            "t1": [fails] * 3,
            "t2": [works("two")],
            "refine": [{"instruction": "Search again for part t1 of the goal"}],
            "replan": [{"changes": bad}, {"changes": [change("drop", subtask("t3"), "moot")]}],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    second = [
        request.prompt
        for request, what in zip(model.requests, model.heard, strict=True)
        if what == "replan"
    ][1]
    assert "add 't2': this id has been used" in second
    assert "replace 't2': it is not waiting" in second
    assert "add 't9': repeats an earlier subtask" in second
    skipped = report.findings[2]
    assert skipped.status == "skipped" and skipped.why == "dropped by revision 1: moot"


@pytest.mark.long
async def test_replans_are_bounded_and_then_dependents_are_skipped(runs: Runs) -> None:
    fails = works("", status="failed", why="gone")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1"))],
            "t1": [fails] * 3,
            "t2": [works("two")],
            "refine": [{"instruction": "Search again for part t1 of the goal"}],
            "replan": [{"changes": [change("add", subtask("t2"))]}] * 2,
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert model.heard.count("replan") == 2
    assert statuses(report) == {"t1": "failed", "t2": "complete", "t3": "skipped"}
    assert any(note.startswith("The plan could not be changed: ") for note in report.notes)


@pytest.mark.long
async def test_a_planner_that_says_that_nothing_could_help_is_asked_once(runs: Runs) -> None:
    fails = works("", status="failed", why="gone")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1"))],
            "t1": [fails] * 3,
            "t2": [works("two")],
            "refine": [{"instruction": "Search again for part t1 of the goal"}],
            "replan": [{"changes": []}],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert model.heard.count("replan") == 1
    assert statuses(report) == {"t1": "failed", "t2": "complete", "t3": "skipped"}
    assert "The plan was not changed: the planner was asked what could help, and knew nothing." in (
        report.notes
    )


@pytest.mark.long
async def test_the_same_instruction_twice_is_a_loop_unless_the_best_is_to_be_selected(
    runs: Runs,
) -> None:
    twice = [
        subtask("t1"),
        subtask("t2", instruction="Find out everything about part t1 of the goal, as a list"),
    ]
    model = ScriptedModel(
        {
            "plan": [plans(*twice), {**plans(*twice), "strategy": "select"}],
            "t1": [works("one"), works("also one")],
            "judge": [{"winner": "t2", "why": "better sourced"}],
        }
    )
    report = await runs.run(goal(), model)
    assert "repeats an earlier subtask" in model.requests[1].prompt
    assert report.status == "complete"


# ---------------------------------------------------------------- strategies and the way to the
# answer


async def test_select_lets_a_judge_on_the_top_tier_pick_and_the_winner_is_the_answer(
    runs: Runs,
) -> None:
    plan = ready(subtask("t1"), subtask("t2")).model_copy(update={"strategy": "select"})
    model = ScriptedModel(
        {
            "t1": [works("weak answer")],
            "t2": [works("strong answer")],
            "judge": [{"winner": "t2", "why": "shows its sources"}],
        }
    )
    report = await runs.run(goal(plan=plan), model)
    judge = model.requests[model.heard.index("judge")]
    assert judge.model == "claude-opus-5-5"
    # The attempts are asked at once, in either order.
    assert sorted(model.heard) == ["judge", "t1", "t2"], "nobody writes it anew"
    assert (report.status, report.answer) == ("complete", "strong answer")
    [note] = [each for each in report.notes if "attempts at one question" in each]
    assert note.endswith("t2 was chosen, and its finding is the answer: shows its sources")
    assert "Several agents attempt this, and the best result is handed on" in (
        model.requests[0].prompt
    )


async def test_a_long_finding_is_digested_for_the_synthesis_and_its_full_text_is_kept(
    runs: Runs,
) -> None:
    long = "every detail of the matter " * 400
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    model = ScriptedModel(
        {
            "t1": [works(long)],
            "t2": [works("two")],
            "digest": [digests("the matter in short")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(plan=plan), model)
    assert report.findings[0].content == long
    assert report.findings[0].digest == "- the matter in short"
    synthesis = model.requests[model.heard.index("synthesize")].prompt
    assert "the matter in short" in synthesis and long not in synthesis
    assert long not in str(model.requests[model.heard.index("t2")].messages)


@pytest.mark.long
async def test_findings_beyond_the_context_are_reduced_in_rounds(runs: Runs) -> None:
    ids = [f"t{number}" for number in range(1, 7)]
    plan = ready(*(subtask(each) for each in ids))
    model = ScriptedModel(
        {
            **{each: [works(f"{each} " + "fact " * 400)] for each in ids},
            "digest": [digests(f"batch {number}") for number in range(1, 10)],
            "synthesize": [synthesizes("done")],
        }
    )
    limits = {"supervisor_context_tokens": 2_000, "dollars": "5"}
    report = await runs.run(goal(plan=plan, limits=limits), model)
    assert report.status == "complete"
    synthesis = model.requests[model.heard.index("synthesize")].prompt
    assert "batch 1" in synthesis and "fact fact" not in synthesis
    assert any(each.startswith("digest-ROLL1") for each in await runs.activities())


async def test_contradictions_are_judged_and_both_sides_stay_where_nobody_can_decide(
    runs: Runs,
) -> None:
    plan = ready(subtask("t1"), subtask("t2"))
    conflicts = ["t1 says 5, t2 says 6", "t1 says red, t2 says blue"]
    model = ScriptedModel(
        {
            "t1": [works("5 and red")],
            "t2": [works("6 and blue")],
            "synthesize": [synthesizes("open", conflicts=conflicts), synthesizes("settled")],
            "judge": [
                {"winner": "t2", "why": "newer source"},
                {"winner": "none", "why": "no source for either"},
            ],
        }
    )
    report = await runs.run(goal(plan=plan, limits={"concurrency": 1}), model)
    assert report.answer == "settled"
    assert "The answer was written anew by what a judge said of its contradictions." in report.notes
    assert report.conflicts == (
        "t1 says 5, t2 says 6 (judged for t2: newer source)",
        "t1 says red, t2 says blue (could not be decided: no source for either)",
    )
    revision = model.requests[-1].prompt if model.heard[-1] == "synthesize" else ""
    assert "judged for t2: newer source" in revision


async def test_a_critic_gets_one_revision_and_no_more(runs: Runs) -> None:
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    serious = {"severity": "critical", "problem": "the second half is missing", "fix": "add it"}
    model = ScriptedModel(
        {
            "t1": [works("both halves")],
            "t2": [works("nothing more")],
            "synthesize": [synthesizes("one half"), synthesizes("both halves")],
            "critique": [{"issues": [serious]}],
        }
    )
    report = await runs.run(goal(plan=plan), model)
    assert report.answer == "both halves"
    assert model.heard == ["t1", "t2", "synthesize", "critique", "synthesize"]
    assert "the second half is missing" in model.requests[-1].prompt


@pytest.mark.long
async def test_a_revision_that_fails_leaves_the_first_answer_and_names_what_was_not_mended(
    runs: Runs,
) -> None:
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    serious = {"severity": "critical", "problem": "the second half is missing", "fix": "add it"}
    model = ScriptedModel(
        {
            "t1": [works("both halves")],
            "t2": [works("nothing more")],
            "synthesize": [synthesizes("one half"), CallRefused("400")],
            "critique": [{"issues": [serious]}],
        }
    )
    report = await runs.run(goal(plan=plan), model)
    assert report.answer == "one half"
    assert "Not mended: the second half is missing" in report.notes


async def test_what_no_finding_supports_is_flagged(runs: Runs) -> None:
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    answer = "It grew by 12.5% to 4,200 [t1], or 77% [t9]; see https://example.com/made-up."
    model = ScriptedModel(
        {
            "t1": [works("Growth 12.5% to 4200.")],
            "t2": [works("Nothing more.")],
            "synthesize": [synthesizes(answer)],
        }
    )
    report = await runs.run(goal(plan=plan), model)
    assert report.flags == (
        "cites [t9], and there is no such subtask",
        "gives the address https://example.com/made-up, which no finding contains",
        "gives the number 77, which no finding contains",
    )


async def test_only_what_found_something_may_be_cited(runs: Runs) -> None:
    fails = works("", status="failed", why="closed")
    answer = (
        "One [t1], both [t1, T2], the rest [t3; see the note and t9], a [1] and [an aside] stay."
    )
    model = ScriptedModel(
        {
            "t1": [works("one")],
            "t2": [fails],
            "synthesize": [synthesizes(answer)],
        }
    )
    plan = ready(subtask("t1"), subtask("t2"), subtask("t3", "t2"))
    limits = {"tries_per_subtask": 1, "replans": 0}
    report = await runs.run(goal(plan=plan, limits=limits), model)
    assert report.flags == (
        "cites [t2], which has no finding: it failed",
        "cites [t3], which has no finding: it was skipped",
        "cites [t9], and there is no such subtask",
    )


# ---------------------------------------------------------------- status and the exercise


async def test_t1_fails_for_good_and_the_most_is_made_of_the_rest(runs: Runs) -> None:
    """T1 and T2 are roots, T3 needs T1, T4 needs T2, T5 needs T3 and T4; T1 fails permanently.

    T3 and T5 cannot run; T2 and T4 are delivered, and the gaps are named.
    """
    fails = works("", status="failed", why="the source is closed")
    model = ScriptedModel(
        {
            "t1": [fails] * 3,
            "refine": [{"instruction": "Search again for part t1 of the goal"}],
            "replan": [{"changes": []}, {"changes": []}],
            "t2": [works("two")],
            "t4": [works("four")],
            "synthesize": [synthesizes("What t2 and t4 say; t1 is missing.")],
        }
    )
    plan = ready(
        subtask("t1"),
        subtask("t2"),
        subtask("t3", "t1"),
        subtask("t4", "t2"),
        subtask("t5", "t3", "t4"),
    )
    report = await runs.run(goal(plan=plan), model)
    assert report.status == "complete_with_gaps"
    assert statuses(report) == {
        "t1": "failed",
        "t2": "complete",
        "t3": "skipped",
        "t4": "complete",
        "t5": "skipped",
    }
    gaps = {gap.subtask_id: gap for gap in report.gaps}
    assert gaps["t1"].why == "the source is closed" and gaps["t1"].took_down == ("t3", "t5")
    assert gaps["t3"].why == "needs t1, which failed"
    assert gaps["t5"].why == "needs t3, which was skipped"


@pytest.mark.long
async def test_a_lost_review_is_asked_again_and_the_loss_is_paid(runs: Runs) -> None:
    plan = ready(subtask("t1", acceptance_criteria="is good"))
    model = ScriptedModel(
        {
            "t1": [works("one")],
            "review": [
                PossiblyBilled("dropped", Bill(calls=1)),
                {"verdict": "pass", "why": "good"},
            ],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(plan=plan), model)
    assert report.findings[0].tries[0].verdict == "accepted"
    assert report.model_calls == 3
    assert "review-t1-2" in await runs.activities()
