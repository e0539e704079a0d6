"""The supervisor's behaviour, as sentences. The `runs` fixture replays every history afterwards."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.examine import Lenses
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft, Goal, GoalInput, Report
from holdfast.contracts.errors import LensFailed
from holdfast.ports import ModelAnswer
from scripted import USAGE, ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


def goal(text: str = "Compare three engines", **fields: object) -> Goal:
    return Goal.model_validate({"text": text, "use_models": True, **fields})


def statuses(report: Report) -> dict[str, str]:
    return {finding.subtask_id: finding.status for finding in report.findings}


# ---------------------------------------------------------------- the graph


async def test_a_goal_becomes_a_plan_is_worked_through_and_synthesized(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"))],
            "t1": [works("one")],
            "t2": [works("two")],
            "t3": [works("three")],
            "synthesize": [synthesizes("All three [t3].")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    assert report.answer == "All three [t3]."
    assert [finding.content for finding in report.findings] == ["one", "two", "three"]
    assert await runs.activities() == [
        "prepare",
        "plan-1",
        "work-t1-1",
        "work-t2-1",
        "work-t3-1",
        "synthesize-1",
        "critique-1",
    ]
    assert report.model_calls == 6
    assert report.dollars is not None and 0 < report.dollars < 2


async def test_a_subtask_starts_the_moment_its_own_dependencies_have_settled(runs: Runs) -> None:
    """D1: no waves. t3 needs only t2, and runs while t1 is still busy."""
    slow = asyncio.Event()
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t2"))],
            "t1": [slow, works("one")],
            "t2": [works("two")],
            "t3": [works("three")],
            "synthesize": [synthesizes("done")],
        }
    )
    async with runs.worker(model):
        handle = await runs.start(goal())
        await model.asked("t3")
        slow.set()
        report = await handle.result()
    assert report.status == "complete"


async def test_the_longest_remaining_chain_starts_first_under_the_concurrency_cap(
    runs: Runs,
) -> None:
    order = ["a", "b", "c", "d"]
    model = ScriptedModel(
        {
            "plan": [plans(subtask("a"), subtask("b"), subtask("c", "b"), subtask("d", "c"))],
            **{each: [works(each)] for each in order},
            "synthesize": [synthesizes("done")],
        }
    )
    await runs.run(goal(limits={"concurrency": 1}), model)
    worked = [each for each in await runs.activities() if each.startswith("work")]
    assert worked == ["work-b-1", "work-c-1", "work-a-1", "work-d-1"]
    assert model.most_busy == 1


async def test_what_a_dependency_found_reaches_its_dependents_and_nobody_else(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1"))],
            "t1": [works("the secret of t1")],
            "t2": [works("two")],
            "t3": [works("three")],
            "synthesize": [synthesizes("done")],
        }
    )
    await runs.run(goal(limits={"concurrency": 1}), model)
    prompts = dict(zip(model.heard, model.requests, strict=True))
    assert 'source="finding of subtask t1, confidence 90"' in prompts["t3"].prompt
    assert "the secret of t1" in prompts["t3"].prompt
    assert "the secret of t1" not in prompts["t2"].prompt


async def test_inputs_are_enclosed_verbatim_for_the_subtasks_that_name_them(runs: Runs) -> None:
    report_file = runs.folder / "report.txt"
    report_file.write_text("Revenue was 12.5 million.")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", inputs=["report"]), subtask("t2"))],
            "t1": [works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    given = GoalInput(name="report", kind="file", value=str(report_file))
    await runs.run(goal(inputs=[given]), model)
    prompts = dict(zip(model.heard, model.requests, strict=True))
    assert "Revenue was 12.5 million." in prompts["t1"].prompt
    assert "Revenue was 12.5 million." not in prompts["t2"].prompt


# ---------------------------------------------------------------- failures


async def test_dependents_of_a_failure_are_skipped_and_siblings_are_not(runs: Runs) -> None:
    """D3, D8 and the cascade: t1 fails for good, t3 and t5 cannot run, t2 and t4 are delivered."""
    fails = works("", status="failed", why="no data")
    model = ScriptedModel(
        {
            "plan": [
                plans(
                    subtask("t1"),
                    subtask("t2"),
                    subtask("t3", "t1"),
                    subtask("t4", "t2"),
                    subtask("t5", "t3", "t4"),
                )
            ],
            "t1": [fails, fails, fails],
            "refine": [{"instruction": "Look for part t1 of the goal elsewhere"}],
            "t2": [works("two")],
            "t4": [works("four")],
            "synthesize": [synthesizes("What t2 and t4 say.")],
        }
    )
    report = await runs.run(goal(limits={"replans": 0}), model)
    assert statuses(report) == {
        "t1": "failed",
        "t2": "complete",
        "t3": "skipped",
        "t4": "complete",
        "t5": "skipped",
    }
    assert report.status == "complete_with_gaps"
    assert report.answer == "What t2 and t4 say."
    cause = next(gap for gap in report.gaps if gap.subtask_id == "t1")
    assert cause.why == "no data" and cause.took_down == ("t3", "t5")
    failures = model.requests[model.heard.index("synthesize")].prompt
    assert "no data" in failures and "needs t1, which failed" in failures


BAD: dict[str, str | dict[str, object] | ModelAnswer] = {
    "failed": works("too short", status="failed", why="gave up"),
    "unsure": works("unsure", confidence=10),
    "unchecked": works("no check word here"),
    "refused": ModelAnswer(text="", stop_reason="refusal", model="claude-haiku-5-5", usage=USAGE),
    "doubted": works("", status="escalate", reason="confidence_too_low", why="not sure"),
}


async def test_a_bad_answer_is_tried_again_one_tier_up_with_the_reason(runs: Runs) -> None:
    """D4 and D5: whatever is wrong with an answer, it climbs; it never kills the run."""
    check = {"kind": "contains", "argument": "needle"}
    model = ScriptedModel(
        {
            "plan": [plans(*(subtask(each, tier="haiku", checks=[check]) for each in BAD))],
            **{name: [bad, works("a needle")] for name, bad in BAD.items()},
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert [each.subtask_id for each in report.findings] == [*BAD]
    for finding in report.findings:
        assert finding.status == "complete" and finding.content == "a needle"
        assert [each.tier for each in finding.tries] == ["haiku", "sonnet"]
        assert finding.tries[0].verdict != "accepted" and finding.tries[1].verdict == "accepted"
        asked = zip(model.heard, model.requests, strict=True)
        _, again = (request.prompt for heard, request in asked if heard == finding.subtask_id)
        assert "why the previous try was not accepted" in again
        assert finding.tries[0].why.splitlines()[0][:40] in again
    assert report.model_calls == 13


async def test_a_malformed_answer_is_mended_by_the_same_model_in_a_call_of_its_own(
    runs: Runs,
) -> None:
    """D4: one malformed reply costs a call, not the run."""
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"), subtask("t2", "t1"))],
            "t1": ["Sure! Here is", works("one")],
            "t2": [works("two")],
            "synthesize": ["also not JSON", synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete" and report.answer == "done"
    assert [each.tier for each in report.findings[0].tries] == ["haiku"]
    assert await runs.activities() == [
        "prepare",
        "plan-1",
        "work-t1-1",
        "repair-t1-1",
        "work-t2-1",
        "synthesize-1",
        "synthesize-2",
        "critique-1",
    ]
    assert "Sure! Here is" in model.requests[2].prompt
    assert report.model_calls == 7


@pytest.mark.long
async def test_an_answer_that_stays_malformed_is_tried_again_one_tier_up(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"))],
            "t1": ["bad", "bad", "bad", works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert [each.tier for each in report.findings[0].tries] == ["haiku", "sonnet"]
    assert report.findings[0].tries[0].verdict == "malformed"


async def test_a_truncated_answer_is_asked_once_more_with_twice_the_cap(runs: Runs) -> None:
    cut = ModelAnswer(text='{"st', stop_reason="max_tokens", model="claude-haiku-5-5", usage=USAGE)
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"))],
            "t1": [cut, works("whole")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.findings[0].content == "whole"
    assert len(report.findings[0].tries) == 1
    caps = [request.max_output for request in model.requests]
    assert caps[2] == 2 * caps[1]


@pytest.mark.long
async def test_retried_dependents_still_see_what_was_finished_before(runs: Runs) -> None:
    """D9: a retry of t2 gets the finding of t1, which is not asked again."""
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1"))],
            "t1": [works("from t1")],
            "t2": [works("weak", confidence=1), works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    assert model.heard.count("t1") == 1
    assert "from t1" in model.requests[3].prompt


async def test_an_escalation_with_a_partial_is_passed_on_as_uncertain(runs: Runs) -> None:
    gives_up = works("half of it", status="escalate", reason="out_of_scope", why="not mine")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1"))],
            "t1": [gives_up],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert statuses(report) == {"t1": "escalated", "t2": "complete"}
    assert report.status == "complete_with_gaps"
    assert "uncertain" in model.requests[2].prompt and "half of it" in model.requests[2].prompt


async def test_when_nothing_is_usable_the_run_fails_and_no_synthesis_is_paid(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"))],
            "t1": [works("x", confidence=1)] * 3,
            "refine": [{"instruction": "Be sure of part t1 of the goal"}],
        }
    )
    report = await runs.run(goal(limits={"replans": 0}), model)
    assert report.status == "failed"
    assert "synthesize" not in model.heard
    assert [each.tier for each in report.findings[0].tries] == ["sonnet", "opus", "opus"]


async def test_a_failed_synthesis_is_replaced_by_a_template_and_the_report_says_so(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"))],
            "t1": [works("one")],
            "t2": [works("two")],
            "synthesize": ["garbage"] * 3,
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete_with_gaps"
    assert "one" in report.answer
    [gap] = report.gaps
    assert (gap.subtask_id, gap.title, gap.status) == ("", "The answer", "failed")
    assert gap.why.startswith("a template merged the findings, because the synthesis failed: ")
    assert gap.why.endswith(f"starter.py fork {report.run_id}")


# ---------------------------------------------------------------- plans


async def test_an_invalid_plan_goes_back_with_all_its_errors(runs: Runs) -> None:
    """D2: a cycle and an unknown role are said to the planner, both at once."""
    bad = plans(subtask("t1", "t2"), subtask("t2", "t1", role="wizard"))
    model = ScriptedModel(
        {
            "plan": [bad, plans(subtask("t1"))],
            "t1": [works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    mend = model.requests[1].prompt
    assert "there is a cycle: t1 -> t2 -> t1" in mend and "unknown role 'wizard'" in mend
    assert (await runs.activities())[:3] == ["prepare", "plan-1", "plan-2"]


async def test_a_planner_that_never_gets_it_right_leaves_one_agent_with_the_whole_goal(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "plan": ["{}", "{}", "{}"],
            "the whole goal": [works("all of it")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    assert report.findings[0].content == "all of it"
    assert any("no valid plan" in note for note in report.notes)
    asked = [request.model for request in model.requests[:3]]
    assert ["opus" in each for each in asked] == [False, False, True]
    [note] = [each for each in report.notes if each.startswith("The plan was asked of opus")]
    assert "because sonnet gave none that could be used: $0.0060." in note
    assert "subtasks: Field required" in note


async def test_a_cap_without_room_for_the_strongest_model_has_the_usual_one_plan_again(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "plan": ["{}", "{}", plans(subtask("t1"))],
            "t1": [works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(limits={"dollars": "0.2"}), model)
    assert report.status == "complete" and report.dollars and report.dollars < Decimal("0.2")
    assert not any("opus" in request.model for request in model.requests)
    assert not any("asked of opus" in note for note in report.notes)


async def test_the_model_that_is_set_to_plan_plans_and_changes_plans_and_nothing_else(
    runs: Runs,
) -> None:
    fails = works("", status="failed", why="gone")
    changes = [
        {"op": "add", "subtask": subtask("t3"), "why": "another way"},
        {"op": "replace", "subtask": subtask("t2", "t3"), "why": "needs t3"},
    ]
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1"))],
            "t1": [fails] * 3,
            "t2": [works("two")],
            "t3": [works("three")],
            "refine": [{"instruction": "Search again for part t1 of the goal"}],
            "replan": [{"changes": changes}],
            "synthesize": [synthesizes("done [t2]")],
        }
    )
    report = await runs.run(goal(), model, model_planner="claude-opus-4-8")
    asked = zip(model.heard, model.requests, strict=True)
    who = {what for what, request in asked if request.model == "claude-opus-4-8"}
    assert who == {"plan", "replan"}
    assert report.dollars is not None and report.revisions, "its price is known"
    assert not any("was asked of" in note for note in report.notes), "nothing climbed or fell"


async def test_a_model_without_a_price_may_not_plan(runs: Runs) -> None:
    with pytest.raises(WorkflowFailureError) as failure:
        await runs.run(goal(), ScriptedModel({}), model_planner="claude-grand-9")
    assert "no price is known for claude-grand-9" in str(failure.value.cause.__cause__)


async def test_a_ready_plan_skips_the_planner(runs: Runs) -> None:
    plan = ready(subtask("t1", tier="haiku"))
    model = ScriptedModel({"t1": [works("one")]})
    report = await runs.run(goal(plan=plan), model)
    assert report.status == "complete"
    assert model.heard == ["t1"]


async def test_a_bad_goal_closes_the_run_failed_at_once(runs: Runs) -> None:
    with pytest.raises(WorkflowFailureError) as failure:
        await runs.run(goal(playbook="nonsense"), ScriptedModel({}))
    cause = failure.value.cause.__cause__
    assert isinstance(cause, ApplicationError) and cause.type == "BadGoal"
    assert "unknown playbook 'nonsense'" in cause.message


# ---------------------------------------------------------------- tools without a model


def lenses(runs: Runs, *names: str) -> Goal:
    """A goal with a ready plan of roles without a model, in a catalogue made for it."""
    home = runs.folder / "home"
    (home / "roles").mkdir(parents=True)
    for name in names:
        head = f"name: {name}\ndescription: looks\nmodel: none\ntools: [{name}]"
        (home / "roles" / f"{name}.md").write_text(f"---\n{head}\n---\nLook.\n")
    return Goal(text="look", plan=ready(*(subtask(name, role=name) for name in names)))


async def test_a_tool_that_hangs_is_ended_and_its_siblings_are_delivered(runs: Runs) -> None:
    """D10: a hung tool costs its own time limit, not the run."""

    async def hangs(_: WorkMaterial) -> Draft:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def looks(_: WorkMaterial) -> Draft:
        return Draft(content="looked")

    async def breaks(_: WorkMaterial) -> Draft:
        raise LensFailed("no such analyser")

    wanted = lenses(runs, "hangs", "looks", "breaks")
    wanted = wanted.model_copy(
        update={"limits": wanted.limits.model_copy(update={"subtask_timeout_seconds": 1})}
    )
    report = await runs.run(
        wanted,
        tools={"hangs": hangs, "looks": looks, "breaks": breaks},
        catalogue=Catalogue.load(runs.folder / "home"),
    )
    assert statuses(report) == {"hangs": "failed", "looks": "complete", "breaks": "failed"}
    assert report.status == "complete_with_gaps"
    assert [gap.why for gap in report.gaps] == ["hangs: no result within 1 s", "no such analyser"]
    assert report.model_calls == 0 and report.dollars == 0


async def test_a_finished_tool_is_not_run_again_when_its_completion_was_lost(runs: Runs) -> None:
    ran: list[str] = []

    async def looks(material: WorkMaterial) -> Draft:
        ran.append(material.subtask.id)
        return Draft(content="looked")

    tools = Lenses({"looks": looks}, runs.journal)
    plan = lenses(runs, "looks").plan
    assert plan is not None
    material = WorkMaterial(subtask=plan.subtasks[0], lens="looks")
    first = await ActivityEnvironment().run(tools.examine, material)
    second = await ActivityEnvironment().run(tools.examine, material)
    assert first.value == second.value == Draft(content="looked")
    assert ran == ["looks"]
