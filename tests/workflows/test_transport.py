"""Calls that get lost, money and time that run out. The `runs` fixture replays every history."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError
from test_supervisor import goal, statuses

from conftest import Runs
from holdfast.contracts import Bill, Usage
from holdfast.contracts.errors import (
    AllowanceReached,
    AuthenticationRefused,
    NotBilled,
    PossiblyBilled,
)
from holdfast.contracts.search import DOLLARS, STATUS, WAITING
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


async def test_what_is_surely_not_billed_is_retried_by_temporal_under_one_reservation(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"))],
            "t1": [NotBilled("429"), NotBilled("529"), works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    assert model.heard.count("t1") == 3
    assert [each for each in await runs.activities() if "t1" in each] == ["work-t1-1"]
    assert report.model_calls == 2


async def test_what_may_have_been_billed_counts_in_full_and_is_a_new_call(runs: Runs) -> None:
    lost = PossiblyBilled("dropped", Bill(model="m", calls=1))
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"))],
            "t1": [lost, works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    assert [each for each in await runs.activities() if "t1" in each] == ["work-t1-1", "work-t1-2"]
    assert report.model_calls == 3
    [finding] = report.findings
    # The whole reservation of the lost call: 8,000 tokens of output at least.
    assert finding.dollars is not None and finding.dollars > Decimal("0.004")
    # And no more than what was lost is called assumed: the answered calls are known.
    assert Decimal("0.004") < finding.assumed < finding.dollars
    assert report.assumed == finding.assumed
    assert [note for note in report.notes if "assumed" in note and "(t1)" in note]


async def test_a_lost_call_whose_usage_is_known_counts_at_that(runs: Runs) -> None:
    bill = Bill(model="m", calls=1, usage=Usage(input_tokens=7), dollars=Decimal("0.001"))
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"))],
            "t1": [PossiblyBilled("dropped", bill), works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    [finding] = report.findings
    assert finding.dollars is not None
    assert Decimal("0.001") < finding.dollars < Decimal("0.002")
    assert finding.assumed == report.assumed == 0
    assert not [note for note in report.notes if "assumed" in note]


async def test_a_synthesis_that_does_not_come_in_time_is_a_template_s(runs: Runs) -> None:
    never = asyncio.Event()
    model = ScriptedModel({"t1": [works("one")], "t2": [works("two")], "synthesize": [never]})
    plan = ready(subtask("t1"), subtask("t2"))
    report = await runs.run(goal(plan=plan, limits={"deadline_seconds": 3}), model)
    assert report.status == "deadline_partial"
    assert "one" in report.answer


async def test_a_run_can_be_found_by_its_search_attributes(runs: Runs) -> None:
    """Only those that the namespace has are set; the dev server of the tests has none of ours."""
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})
    names = (STATUS.name, DOLLARS.name)
    await runs.register(names)
    wanted = goal(plan=ready(subtask("t1")), search_attributes=names, playbook="")
    await runs.run(wanted, model)
    description = await runs.handles[-1].describe()
    found = {pair.key.name: pair.value for pair in description.typed_search_attributes}
    assert found[STATUS.name] == "complete" and found[DOLLARS.name] > 0
    assert WAITING.name not in found


@pytest.mark.long
async def test_a_call_that_keeps_getting_lost_is_given_up(runs: Runs) -> None:
    lost = PossiblyBilled("dropped", Bill(model="m", calls=1))
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"), subtask("t2"))],
            "t1": [lost, lost, lost],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert statuses(report) == {"t1": "failed", "t2": "complete"}
    assert model.heard.count("t1") == 3


async def test_a_refused_key_stops_the_run_with_what_to_do(runs: Runs) -> None:
    model = ScriptedModel({"plan": [AuthenticationRefused("401. Set ANTHROPIC_API_KEY.")]})
    report = await runs.run(goal(), model)
    assert report.status == "failed"
    assert any("Set ANTHROPIC_API_KEY" in note for note in report.notes)
    assert model.heard == ["plan"]


async def test_work_stops_when_the_cap_is_reached_and_what_exists_is_synthesized(
    runs: Runs,
) -> None:
    plan = ready(*(subtask(f"t{n}", role="writer") for n in range(1, 5)))
    model = ScriptedModel(
        {
            **{f"t{n}": [works(f"part {n}")] for n in range(1, 5)},
            "synthesize": [synthesizes("what there is")],
        }
    )
    limits = {"model_calls": 3, "concurrency": 1}
    report = await runs.run(goal(plan=plan, limits=limits), model)
    assert report.status == "budget_stopped"
    assert report.answer == "what there is"
    assert list(statuses(report).values()) == ["complete", "complete", "skipped", "skipped"]
    assert "the limit of 3 model calls does not cover" in report.gaps[0].why
    assert report.model_calls == 3


async def test_parallel_siblings_cannot_overshoot_the_cap_together(runs: Runs) -> None:
    plan = ready(*(subtask(f"t{n}", tier="haiku") for n in range(1, 7)))
    model = ScriptedModel(
        {
            **{f"t{n}": [works(f"part {n}")] for n in range(1, 7)},
            "synthesize": [synthesizes("what there is")],
        }
    )
    # The synthesis keeps about $0.29 for itself; each haiku call reserves about half a cent.
    report = await runs.run(goal(plan=plan, limits={"dollars": "0.305"}), model)
    assert report.dollars is not None and report.dollars <= Decimal("0.305")
    assert model.most_busy < 5


async def test_the_deadline_cuts_what_runs_and_synthesizes_what_exists(runs: Runs) -> None:
    never = asyncio.Event()
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t2"))],
            "t1": [works("one")],
            "t2": [never],
            "synthesize": [synthesizes("in time")],
        }
    )
    report = await runs.run(goal(limits={"deadline_seconds": 8}), model)
    assert report.status == "deadline_partial"
    assert report.answer == "in time"
    assert statuses(report) == {"t1": "complete", "t2": "cancelled", "t3": "skipped"}


async def test_a_run_cancelled_before_it_was_prepared_says_so(runs: Runs) -> None:
    handle = await runs.start(goal(), skipping=False)
    await handle.cancel()
    async with runs.worker(ScriptedModel({})):
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        report = await handle.query(SupervisorWorkflow.report)
    assert report.status == "cancelled"


async def test_cancelling_settles_what_is_in_flight_before_the_run_closes(runs: Runs) -> None:
    never = asyncio.Event()
    model = ScriptedModel(
        {"plan": [plans(subtask("t1"), subtask("t2"))], "t1": [works("one")], "t2": [never]}
    )
    async with runs.worker(model):
        handle = await runs.start(goal())
        await model.asked("t1", "t2")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
        assert isinstance(failure.value.cause, CancelledError)
        report = await handle.query(SupervisorWorkflow.report)
    assert report.status == "cancelled"
    assert statuses(report)["t2"] == "cancelled"
    assert model.busy == 0


@pytest.mark.parametrize("planned", [False, True])
async def test_the_cap_of_the_deployment_ends_a_run_as_stopped_for_money(
    runs: Runs, planned: bool
) -> None:
    full = AllowanceReached("there is room again from 2026-11-23 0:00 UTC")
    plan = ready(subtask("t1", role="writer")) if planned else None
    model = ScriptedModel({"t1" if planned else "plan": [full]})
    report = await runs.run(goal(plan=plan), model)
    assert report.status == "budget_stopped"
    assert any("room again from 2026-11-23" in note for note in report.notes)
    assert len(model.heard) == 1, "the next call would be refused as well"
