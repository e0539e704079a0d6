"""A subtask's own time-out and length: what the plan sets is in force in every call of it, and is
refused where it is out of range.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from temporalio.client import WorkflowFailureError

from conftest import Runs
from documents import pdf
from driving import ROLES
from holdfast.contracts import Bill, Goal, GoalInput, RoleCard, policies
from holdfast.contracts.errors import TookTooLong
from holdfast.plans import validity
from holdfast.ports import ModelAnswer
from parameters import rest_long
from scripted import USAGE, ScriptedModel, calls, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

MARGIN = policies.CALL_MARGIN_SECONDS
SHORT = {"timeout_seconds": 60, "max_output": 2_000}
LENS = RoleCard(name="lens", description="Looks", tier="none", tools=("bugs",))
CUT = ModelAnswer('{"cut', "max_tokens", "claude-haiku-5-5", USAGE)


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare the engines", "use_models": True, **fields})


async def times(runs: Runs, run_id: str) -> dict[str, float]:
    """Start-to-close of each activity of a run or an agent, by its id."""
    history = await runs.client.get_workflow_handle(run_id).fetch_history()
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    return {each.activity_id: each.start_to_close_timeout.seconds for each in scheduled}


def rooms(model: ScriptedModel, what: str) -> list[int]:
    asked = zip(model.heard, model.requests, strict=True)
    return [request.max_output for heard, request in asked if heard == what]


def deadlines(model: ScriptedModel, what: str) -> list[float]:
    """What each exchange might take, as the endpoint's side of this house is told."""
    asked = zip(model.heard, model.requests, strict=True)
    return [request.deadline_seconds for heard, request in asked if heard == what]


@pytest.mark.parametrize("seconds", rest_long([1, 20]))
async def test_a_turn_of_an_agent_has_the_time_that_its_plan_gives_and_no_more(
    runs: Runs, seconds: int
) -> None:
    """Though its answer may be twice as long as one without tools."""
    path = runs.folder / "engines.pdf"
    path.write_bytes(pdf(["A since 2019"]))
    given = GoalInput(name="report", kind="file", value=str(path))
    model = ScriptedModel({"t1": [works("A")], "synthesize": [synthesizes("A [t1].")]})
    own = subtask("t1", role="researcher", inputs=["report"], timeout_seconds=seconds)
    report = await runs.run(goal(plan=ready(own), inputs=(given,)), model)
    assert report.findings[0].status == "complete", report.gaps
    assert (rooms(model, "t1"), deadlines(model, "t1")) == ([16_000], [seconds])


@pytest.mark.parametrize(("role", "cuts"), rest_long([("researcher", 4), ("analyst", 3)]))
async def test_what_is_cut_again_at_its_own_time_is_given_back_as_too_big(
    runs: Runs, role: str, cuts: int
) -> None:
    path = runs.folder / "engines.pdf"
    path.write_bytes(pdf(["A since 2019"]))
    given = GoalInput(name="report", kind="file", value=str(path))
    paid = Bill(model="claude-haiku-5-5", calls=1, dollars=Decimal("0.001"), usage=USAGE)
    late = TookTooLong("claude-haiku-5-5: cut by deadline of 20 s", paid)
    # Whoever reads a document has turns and tools.
    named = ["report"] if role == "researcher" else []
    big = subtask("t1", role=role, inputs=named, timeout_seconds=20)
    changes = [
        {"op": "add", "subtask": subtask("t3"), "why": "a smaller part"},
        {"op": "replace", "subtask": subtask("t2", "t3"), "why": "needs t3"},
    ]
    model = ScriptedModel(
        {
            "t1": [late] * cuts,
            "t2": [works("B")],
            "t3": [works("C")],
            "replan": [{"changes": changes}],
            "synthesize": [synthesizes("B [t2], C [t3].")],
        }
    )
    plan = ready(big, subtask("t2", "t1"))
    report = await runs.run(goal(plan=plan, inputs=(given,) if named else ()), model)
    finding = next(each for each in report.findings if each.subtask_id == "t1")
    assert finding.escalation is not None and finding.escalation.reason == "timeout"
    assert finding.why.endswith("one call is too short for it: " + late.message)
    assert finding.dollars == cuts * Decimal("0.001") and model.heard.count("replan") == 1


async def test_what_a_planner_sets_is_in_force_in_the_calls_of_that_subtask_alone(
    runs: Runs,
) -> None:
    criteria = {"acceptance_criteria": "It names one"}
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", role="analyst", **SHORT, **criteria), subtask("t2"))],
            "t1": [works("A")],
            "review": [{"verdict": "pass", "why": "it does"}],
            "t2": [works("B")],
            "synthesize": [synthesizes("A [t1], B [t2].")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete", report.gaps
    for bound in ("one call, 0 or 1 to 300;", "thoughts, 0 or 2000 to 8000."):
        assert bound in model.requests[0].prompt
    seconds = await times(runs, report.run_id)
    assert (seconds["work-t1-1"], seconds["work-t2-1"]) == (60 + MARGIN, 300 + MARGIN)
    assert seconds["review-t1-1"] == 300 + MARGIN
    assert (deadlines(model, "t1"), deadlines(model, "t2")) == ([60], [300])
    assert (rooms(model, "t1"), rooms(model, "t2")) == ([2_000], [8_000])
    told = [each.prompt for each in model.requests if "room for 2000 tokens" in each.prompt]
    assert len(told) == 1 and "part t1 of the goal" in told[0]


async def test_an_answer_cut_off_at_its_own_length_is_a_try_and_never_gets_twice_the_room(
    runs: Runs,
) -> None:
    model = ScriptedModel({"t1": [CUT, works("A")], "synthesize": [synthesizes("A [t1].")]})
    plan = ready(subtask("t1", tier="haiku", max_output=2_000))
    report = await runs.run(goal(plan=plan), model)
    assert rooms(model, "t1") == [2_000, 2_000]
    tries = [(each.tier, each.verdict) for each in report.findings[0].tries]
    assert tries == [("haiku", "truncated"), ("sonnet", "accepted")]
    assert "the answer was cut (max_tokens)" in model.requests[1].prompt


async def test_the_turns_and_tools_of_an_agent_keep_to_them(runs: Runs) -> None:
    path = runs.folder / "engines.pdf"
    path.write_bytes(pdf(["A since 2019"]))
    given = GoalInput(name="report", kind="file", value=str(path))
    model = ScriptedModel(
        {
            "t1": [calls(("read_document", {"file_path": "report"})), works("A")],
            "synthesize": [synthesizes("A [t1].")],
        }
    )
    plan = ready(subtask("t1", role="researcher", inputs=["report"], **SHORT))
    report = await runs.run(goal(plan=plan, inputs=(given,)), model)
    assert report.status == "complete", report.gaps
    assert rooms(model, "t1") == [2_000, 2_000]
    seconds = await times(runs, f"{report.run_id}.t1.1")
    assert seconds["turn-1"] == seconds["turn-2"] == 60 + MARGIN
    assert deadlines(model, "t1") == [60, 60]
    # A margin more, in which a tool that is too slow says so itself.
    assert 60 < seconds["tool-1-1"] < 120


async def test_a_run_of_less_time_than_the_plan_says_is_refused_before_anything_is_paid(
    runs: Runs,
) -> None:
    model = ScriptedModel({})
    plan = ready(subtask("t1", timeout_seconds=60))
    limits = {"subtask_timeout_seconds": 30}
    with pytest.raises(WorkflowFailureError) as refused:
        await runs.run(goal(plan=plan, limits=limits), model)
    assert refused.value.__cause__ is not None
    assert "timeout_seconds: 60: must be 1 to 30" in str(refused.value.__cause__.__cause__)
    assert model.heard == []


async def test_a_planner_that_is_out_of_range_gets_its_plan_back_with_the_range(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", max_output=500)), plans(subtask("t1", max_output=3_000))],
            "t1": [works("A")],
            "synthesize": [synthesizes("A [t1].")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete", report.gaps
    assert "max_output: 500: must be 2000 to 8000 tokens" in model.requests[1].prompt
    assert rooms(model, "t1") == [3_000]


@pytest.mark.parametrize(
    ("role", "fields", "said"),
    [
        ("analyst", {"timeout_seconds": 301}, "timeout_seconds: 301: must be 1 to 300"),
        ("analyst", {"timeout_seconds": -1}, "timeout_seconds: -1: must be 1 to 300"),
        ("analyst", {"max_output": 8_001}, "max_output: 8001: must be 2000 to 8000 tokens"),
        ("analyst", {"max_output": -1}, "max_output: -1: must be"),
        ("lens", {"max_output": 2_000}, "max_output: no effect, because role 'lens' has no model"),
    ],
)
def test_what_is_out_of_range_or_without_effect_is_refused(
    role: str, fields: dict[str, int], said: str
) -> None:
    plan = ready(subtask("t1", role=role, **fields))
    (wrong,) = validity.problems(plan, (*ROLES, LENS), (), 6, longest=300)
    assert said in wrong


def test_a_lens_may_have_a_time_of_its_own() -> None:
    plan = ready(subtask("t1", role="lens", timeout_seconds=10))
    assert validity.problems(plan, (LENS,), (), 6) == ()
