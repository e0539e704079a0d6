"""What a person may tell a run, when it makes sense, and who wins a race."""

from __future__ import annotations

import asyncio
import itertools
from decimal import Decimal

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.service import RPCError

from conftest import Handle, Runs, seen
from holdfast.contracts import Fork, Goal, GoalInput, Limits, Order, Report
from holdfast.contracts.goals import RoleAsWas
from holdfast.contracts.view import Question
from holdfast.rules.steering import COMMANDS
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare three engines", "use_models": True, **fields})


def statuses(report: Report) -> dict[str, str]:
    return {finding.subtask_id: finding.status for finding in report.findings}


async def tell(handle: Handle, name: str, **fields: object) -> str:
    said: str = await handle.execute_update(name, Order.model_validate(fields))
    return said


async def refused(handle: Handle, name: str, **fields: object) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failure:
        await tell(handle, name, **fields)
    return str(failure.value.cause)


# ---------------------------------------------------------------- the plan


async def test_a_plan_waits_for_approval_with_its_price_and_runs_when_approved(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1", tier="haiku"))],
            "t1": [works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    async with runs.worker(model):
        handle = await runs.start(goal(approval={"when": "always"}), skipping=False)
        view = await seen(handle, lambda each: each.phase == "approval")
        assert model.heard == ["plan"]
        preview = view.preview
        assert preview is not None and preview.critical_path == ("t1", "t2")
        low, expected, high = preview.low, preview.expected, preview.high
        assert low is not None and expected is not None and high is not None
        assert Decimal(0) < low < expected < high <= Decimal(2)
        assert preview.makespan == 40.0
        assert "no plan waits" not in await tell(handle, "approve", by="me")
        report = await handle.result()
    assert report.status == "complete"
    assert report.dollars_estimated == expected


async def test_a_plan_below_the_amount_goes_through_by_itself(runs: Runs) -> None:
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})
    approval = {"when": "above", "dollars": "0.50"}
    report = await runs.run(goal(plan=ready(subtask("t1")), approval=approval), model)
    assert report.status == "complete"


async def test_a_rejected_plan_closes_the_run_as_declined_and_no_work_is_paid(runs: Runs) -> None:
    model = ScriptedModel({"plan": [plans(subtask("t1"))]})
    async with runs.worker(model):
        handle = await runs.start(goal(approval={"when": "always"}), skipping=False)
        await seen(handle, lambda each: each.phase == "approval")
        await tell(handle, "reject", text="too dear", by="me")
        report = await handle.result()
    assert report.status == "declined"
    assert any("rejected by me: too dear" in note for note in report.notes)
    assert model.heard == ["plan"]


async def test_a_run_that_waits_for_a_person_can_be_cancelled(runs: Runs) -> None:
    model = ScriptedModel({"plan": [plans(subtask("t1"))]})
    async with runs.worker(model):
        handle = await runs.start(goal(approval={"when": "always"}), skipping=False)
        await seen(handle, lambda each: each.phase == "approval")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        report = await handle.query(SupervisorWorkflow.report)
    assert report.status == "cancelled"


async def test_a_plan_that_nobody_approves_in_a_week_is_declined(runs: Runs) -> None:
    model = ScriptedModel({"plan": [plans(subtask("t1"))]})
    report = await runs.run(goal(approval={"when": "always"}), model)
    assert report.status == "declined"
    assert report.timings.makespan >= 7 * 86_400


async def test_an_edited_plan_runs_and_a_bad_edit_is_refused_with_every_error(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"))],
            "t7": [works("seven")],
            "synthesize": [synthesizes("done")],
        }
    )
    async with runs.worker(model):
        handle = await runs.start(goal(approval={"when": "always"}), skipping=False)
        await seen(handle, lambda each: each.phase == "approval")
        bad = ready(subtask("t1", "t9", role="wizard"))
        why = await refused(handle, "edit", plan=bad)
        assert "unknown role 'wizard'" in why and "unknown subtask 't9'" in why
        pattern = ready(subtask("t7", checks=[{"kind": "regex", "argument": "("}]))
        assert "subtasks[0] 't7': checks: regex '('" in await refused(handle, "edit", plan=pattern)
        await tell(handle, "edit", plan=ready(subtask("t7")), by="me")
        report = await handle.result()
    assert statuses(report) == {"t7": "complete"}
    assert "The plan was edited by me before it ran." in report.notes


# ---------------------------------------------------------------- subtasks


async def test_a_failed_subtask_is_retried_with_a_new_instruction_and_revives_what_it_took_down(
    runs: Runs,
) -> None:
    hold = asyncio.Event()
    fails = works("", status="failed", why="gone")
    model = ScriptedModel(
        {
            "t1": [fails, works("one")],
            "t2": [works("two")],
            "t3": [hold, works("three")],
            "synthesize": [synthesizes("done")],
        }
    )
    plan = ready(subtask("t1"), subtask("t2", "t1"), subtask("t3"))
    limits = {"replans": 0, "tries_per_subtask": 1}
    async with runs.worker(model):
        handle = await runs.start(goal(plan=plan, limits=limits), skipping=False)
        await seen(handle, lambda each: each.rows and each.rows[1].status == "skipped")
        better = "Look into the archive for part t1 of the goal"
        await tell(handle, "retry", subtask_id="t1", text=better, tier="haiku")
        await model.asked("t2")
        hold.set()
        report = await handle.result()
    assert report.status == "complete"
    again = [request for request in model.requests if better in request.prompt]
    assert again[0].model == "claude-haiku-5-5"


async def test_a_finding_can_be_supplied_by_hand(runs: Runs) -> None:
    hold = asyncio.Event()
    fails = works("", status="failed", why="gone")
    model = ScriptedModel(
        {
            "t1": [fails],
            "t2": [works("two")],
            "t3": [hold, works("three")],
            "synthesize": [synthesizes("done")],
        }
    )
    plan = ready(subtask("t1"), subtask("t2", "t1"), subtask("t3"))
    limits = {"replans": 0, "tries_per_subtask": 1}
    async with runs.worker(model):
        handle = await runs.start(goal(plan=plan, limits=limits), skipping=False)
        await seen(handle, lambda each: each.rows and each.rows[0].status == "failed")
        await tell(handle, "supply", subtask_id="t1", text="It is 42.", by="me")
        await model.asked("t2")
        hold.set()
        report = await handle.result()
    assert report.status == "complete"
    assert report.findings[0].content == "It is 42."
    assert report.findings[0].sources == ("supplied by hand by me",)
    assert report.findings[0].model == "", "no model wrote it"
    assert report.findings[0].confidence is None, "nobody stated any"
    assert '"confidence":null' in report.findings[0].model_dump_json()
    assert 'source="finding of subtask t1"' in model.requests[model.heard.index("t2")].prompt
    assert "It is 42." in model.requests[model.heard.index("t2")].prompt


async def test_a_subtask_at_work_can_be_cancelled_and_the_run_goes_on(runs: Runs) -> None:
    never = asyncio.Event()
    model = ScriptedModel(
        {"t1": [never], "t2": [works("two")], "synthesize": [synthesizes("done")]}
    )
    plan = ready(subtask("t1"), subtask("t2"), subtask("t3", "t1"))
    async with runs.worker(model):
        handle = await runs.start(goal(plan=plan), skipping=False)
        await model.asked("t1")
        assert await tell(handle, "cancel_subtask", subtask_id="t1", by="me") == "t1 is cancelled"
        report = await handle.result()
    assert statuses(report) == {"t1": "cancelled", "t2": "complete", "t3": "skipped"}
    assert report.findings[0].why == "cancelled by me"
    assert [each.confidence for each in report.findings] == [None, 90, None], "nothing to judge"


async def test_a_waiting_subtask_can_be_skipped(runs: Runs) -> None:
    hold = asyncio.Event()
    model = ScriptedModel({"t1": [hold, works("one")], "synthesize": [synthesizes("done")]})
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    async with runs.worker(model):
        handle = await runs.start(goal(plan=plan), skipping=False)
        await model.asked("t1")
        await tell(handle, "skip", subtask_id="t2", text="not needed")
        hold.set()
        report = await handle.result()
    assert report.findings[1].why == "skipped: not needed"


async def test_of_two_who_answer_one_escalation_one_wins_and_the_other_is_told(
    runs: Runs,
) -> None:
    asks = works("", status="escalate", reason="ambiguous_input", why="which year?")
    model = ScriptedModel(
        {"t1": [asks, works("5")], "synthesize": [synthesizes("done")]},
    )
    async with runs.worker(model):
        plan = ready(subtask("t1"))
        handle = await runs.start(goal(plan=plan, ask_people=True), skipping=False)
        await seen(handle, lambda each: each.waiting)
        said = await asyncio.gather(
            tell(handle, "answer", subtask_id="t1", text="2025"),
            tell(handle, "answer", subtask_id="t1", text="2026"),
            return_exceptions=True,
        )
        report = await handle.result()
    failures = [each for each in said if isinstance(each, WorkflowUpdateFailedError)]
    assert len(failures) == 1
    assert report.status == "complete"


SENSELESS: list[tuple[str, dict[str, object], str]] = [
    ("approve", {}, "no plan waits for approval"),
    ("reject", {}, "no plan waits for approval"),
    ("edit", {}, "no plan waits for approval"),
    ("answer", {"subtask_id": "t1", "text": "x"}, "t1 does not wait for an answer"),
    ("answer", {"subtask_id": "t9", "text": "x"}, "there is no subtask 't9'"),
    ("retry", {"subtask_id": "t1"}, "t1 has not ended"),
    ("skip", {"subtask_id": "t9"}, "there is no subtask 't9'; known: t1"),
    ("supply", {"subtask_id": "t1", "text": "x"}, "t1 is at work; cancel it first"),
    ("cancel_subtask", {"subtask_id": "t9"}, "there is no subtask 't9'"),
    ("resume", {}, "the run is not paused"),
    ("raise_cap", {}, "no limit was given"),
    ("raise_cap", {"limits": {"dollars": "1"}}, "a cap can only be raised"),
    ("raise_cap", {"limits": {}}, "that is the present cap"),
]


async def test_what_makes_no_sense_now_is_refused_with_the_reason(runs: Runs) -> None:
    hold = asyncio.Event()
    model = ScriptedModel({"t1": [hold, works("one")], "synthesize": [synthesizes("done")]})
    async with runs.worker(model):
        handle = await runs.start(goal(plan=ready(subtask("t1"))), skipping=False)
        await model.asked("t1")
        for name, fields, why in SENSELESS:
            assert why in await refused(handle, name, **fields), name
        hold.set()
        report = await handle.result()
    assert report.status == "complete"


async def test_an_update_without_an_order_is_refused_in_a_line_and_the_run_goes_on(
    runs: Runs,
) -> None:
    hold = asyncio.Event()
    model = ScriptedModel({"t1": [hold, works("one")], "synthesize": [synthesizes("done")]})
    orders: list[list[Order | None]] = [[], [None], [Order(), Order()]]
    async with runs.worker(model):
        handle = await runs.start(goal(plan=ready(subtask("t1"))), skipping=False)
        await model.asked("t1")
        for name, given in itertools.product(COMMANDS, orders):
            with pytest.raises(WorkflowUpdateFailedError) as failure:
                await handle.execute_update(name, args=given)
            why = f"{name} takes one argument, an Order; {{}} is one without any details"
            assert str(failure.value.cause) == f"Refused: {why}"
        hold.set()
        report = await handle.result()
    assert report.status == "complete"


# ---------------------------------------------------------------- the run


async def test_a_paused_run_finishes_what_is_in_flight_and_starts_nothing(runs: Runs) -> None:
    hold = asyncio.Event()
    model = ScriptedModel(
        {
            "t1": [hold, works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    async with runs.worker(model):
        handle = await runs.start(goal(plan=plan), skipping=False)
        await model.asked("t1")
        await tell(handle, "pause")
        hold.set()
        view = await seen(handle, lambda each: each.rows[0].status == "complete")
        assert view.rows[1].status == "waiting" and "t2" not in model.heard
        assert view.waiting == (Question(kind="paused"),)
        assert "paused already" in await refused(handle, "pause")
        await tell(handle, "resume")
        report = await handle.result()
    assert report.status == "complete"


async def test_a_run_that_may_wait_for_money_goes_on_when_the_cap_is_raised(runs: Runs) -> None:
    model = ScriptedModel(
        {"t1": [works("one")], "t2": [works("two")], "synthesize": [synthesizes("done")]}
    )
    plan = ready(subtask("t1", role="writer"), subtask("t2", role="writer"))
    limits = {"model_calls": 2, "concurrency": 1}
    wanted = goal(plan=plan, limits=limits, wait_for_raise=True)
    async with runs.worker(model):
        handle = await runs.start(wanted, skipping=False)
        view = await seen(handle, lambda each: each.waiting)
        assert view.waiting[0].kind == "budget" and view.waiting[0].text
        await tell(handle, "raise_cap", limits=Limits(model_calls=10))
        report = await handle.result()
    assert report.status == "complete"
    assert report.model_calls == 4


async def test_without_a_raise_the_run_stops_after_a_day_and_synthesizes(runs: Runs) -> None:
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("part")]})
    plan = ready(subtask("t1", role="writer"), subtask("t2", role="writer"))
    limits = {"model_calls": 2, "concurrency": 1}
    report = await runs.run(goal(plan=plan, limits=limits, wait_for_raise=True), model)
    assert report.status == "budget_stopped"
    assert report.answer == "part"


async def test_orders_that_come_while_a_run_closes_are_told_and_never_keep_it_open(
    runs: Runs,
) -> None:
    hold = asyncio.Event()
    model = ScriptedModel({"t1": [hold, works("one")], "synthesize": [synthesizes("done")]})
    async with runs.worker(model):
        handle = await runs.start(goal(plan=ready(subtask("t1"))), skipping=False)
        await model.asked("t1")
        orders = [asyncio.create_task(tell(handle, "pause")) for _ in range(2)]
        hold.set()
        orders += [asyncio.create_task(tell(handle, "resume")) for _ in range(6)]
        told = await asyncio.gather(*orders, return_exceptions=True)
        view = await handle.query(SupervisorWorkflow.view)
        if view.waiting:
            # A pause holds nothing that was asked before it: the run may have closed meanwhile.
            told += await asyncio.gather(tell(handle, "resume"), return_exceptions=True)
        report = await handle.result()
    assert report.status == "complete"
    assert all(isinstance(each, str | WorkflowUpdateFailedError | RPCError) for each in told)


# ---------------------------------------------------------------- forks


async def test_a_fork_pays_only_for_what_its_change_touches(runs: Runs) -> None:
    ids = [f"t{number}" for number in range(1, 10)]
    chain = [subtask(each, tier="haiku") for each in ids]
    plan = ready(*chain, subtask("last", *ids))
    model = ScriptedModel(
        {
            **{each: [works(each)] for each in ids},
            "last": [works("first version"), works("second version")],
            "synthesize": [synthesizes("one"), synthesizes("two")],
        }
    )
    first = await runs.run(goal(plan=plan), model)
    changed = plan.subtasks[-1].model_copy(
        update={"instruction": "Write part last of the goal, but shorter"}
    )
    forked = plan.model_copy(update={"subtasks": (*plan.subtasks[:-1], changed)})
    kept = tuple(each for each in first.findings if each.subtask_id != "last")
    fork = Fork(run_id=first.run_id, findings=kept, inputs=first.inputs)
    second = await runs.run(goal(plan=forked, fork=fork), model)
    assert second.status == "complete" and second.answer == "two"
    assert [each.reused_from for each in second.findings] == [first.run_id] * 9 + [""]
    assert second.model_calls == 3
    assert first.dollars is not None and second.dollars is not None
    assert second.dollars < first.dollars
    assert any(f"taken over from run {first.run_id}" in note for note in second.notes)


async def test_what_a_fork_has_of_a_role_reaches_the_calls_of_that_role_alone(runs: Runs) -> None:
    told = await runs.store.put(b"You are brief.")
    own = {"tier": "haiku", "effort": "low", "model": "claude-haiku-4-5"}
    was = RoleAsWas.model_validate({"name": "analyst", "prompt": told, **own})
    plan = ready(subtask("t1", role="writer"), subtask("t2", "t1"))
    model = ScriptedModel(
        {"t1": [works("one")], "t2": [works("two")], "synthesize": [synthesizes("Both.")]}
    )
    await runs.run(goal(plan=plan, fork=Fork(run_id="first", roles=(was,))), model)
    (asked,) = (each for each in model.requests if each.model == "claude-haiku-4-5")
    assert asked.effort == "low" and asked.system.startswith("You are brief.")
    assert model.heard[model.requests.index(asked)] == "t2" and len(model.heard) > 2


@pytest.mark.long
async def test_a_fork_does_not_take_over_findings_of_an_input_that_changed(runs: Runs) -> None:
    plan = ready(subtask("t1", inputs=["note"]), subtask("t2"), subtask("t3", "t1"))
    model = ScriptedModel(
        {
            "t1": [works("old"), works("new")],
            "t2": [works("two")],
            "t3": [works("on the old"), works("on the new")],
            "synthesize": [synthesizes("one"), synthesizes("two")],
        }
    )
    before = GoalInput(name="note", kind="text", value="before")
    after = GoalInput(name="note", kind="text", value="after")
    first = await runs.run(goal(plan=plan, inputs=[before]), model)
    fork = Fork(run_id=first.run_id, findings=first.findings, inputs=first.inputs)
    second = await runs.run(goal(plan=plan, inputs=[after], fork=fork), model)
    assert [each.content for each in second.findings] == ["new", "two", "on the new"]
    assert model.heard.count("t2") == 1
    assert second.timings.work < second.timings.makespan
