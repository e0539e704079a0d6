"""Evals as runs of runs: what is wrong is found, nothing is paid twice, and the cap holds."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHandle, WorkflowHistory

from conftest import Runs
from holdfast.cli.commands.steering import cancel
from holdfast.cli.screen.exits import Code
from holdfast.client.evaluating import start_eval, trials_of
from holdfast.contracts.evals import EvalGoal, EvalReport, Mark
from holdfast.intake.connection import Connection
from holdfast.intake.suites import read_suite
from holdfast.replaying.replay import play
from holdfast.workflows import WORKFLOWS
from scripted import ScriptedModel, plans, subtask, synthesizes

pytestmark = pytest.mark.anyio

CASES = """
- name: planned
  goal: Compare two rents
  stop: plan
  must: [{plan: {least: 2}}, {route: analyst}]
- name: answered
  plan:
    goal: Rents
    subtasks:
      - {id: t1, title: A, instruction: Name the rent of the Mill, role: analyst}
      - {id: t2, title: B, instruction: Name the rent of Harbour, role: analyst}
  findings: {t1: Mill 9, t2: Harbour 7}
  must: [{says: harbour}, {cites: [t2]}]
- name: criticised
  call: critique
  material:
    goal: g
    instruction: i
    synthesis: {answer: It costs 7.}
    findings: [{subtask_id: t1, status: complete, content: It costs 9.}]
  must: [{finds: {planted: '7'}}]
- name: judged
  call: judge
  material:
    question: Which is dearer?
    findings: [{subtask_id: t1, status: complete, content: "9"}]
  must: [{has: {winner: t1}}, {judge: It names a reason}]
- name: computed
  tool: calculate
  arguments: {expression: 6 * 7}
  must: [{says: "42"}]
"""
ISSUE = {"severity": "critical", "problem": "It says 7", "fix": "9"}
RIGHT: dict[str, list[Any]] = {
    "plan": [plans(subtask("t1"), subtask("t2"))],
    "synthesize": [synthesizes("Harbour is cheaper [t2].")],
    "critique": [{"issues": []}, {"issues": [ISSUE]}],
    "judge": [{"why": "nine", "winner": "t1"}],
    "grade": [{"why": "it does", "holds": True}],
}


async def begun(
    connection: Connection, eval_id: str, cases: str = CASES, **options: Any
) -> WorkflowHandle[Any, EvalReport]:
    folder = connection.settings.state_dir.parent / "evals" / "offers"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.yaml").write_text("each: {limits: {dollars: 1}}")
    (folder / "cases.yaml").write_text(cases)
    trials = await trials_of(connection, [read_suite(folder)], eval_id, runs=options.pop("runs", 1))
    # One at a time, so that a line of the script is for the case that it was written for.
    goal = EvalGoal(name="offers", trials=trials, dollars=Decimal(5), concurrency=1)
    await start_eval(connection, eval_id, goal.model_copy(update=options))
    return connection.client.get_workflow_handle(eval_id, result_type=EvalReport)


async def made(runs: Runs, handle: WorkflowHandle[Any, EvalReport]) -> dict[str, Mark]:
    """The marks by case, once the history has replayed."""
    async with asyncio.timeout(60):
        report = await handle.result()
    events = [*(await handle.fetch_history()).events]
    replayed = await play(WorkflowHistory(handle.id, events), WORKFLOWS, runs.store)
    assert replayed.differences == ()
    return {each.case: each for each in report.marks}


@pytest.mark.long
async def test_every_planted_fault_is_found_and_nothing_else(
    runs: Runs, connection: Connection
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", role="writer"), subtask("t2"))],
            "synthesize": [synthesizes("Mill is cheaper [t1].")],
            "critique": [{"issues": []}, {"issues": [{**ISSUE, "problem": "too short"}]}],
            "judge": [{"why": "nine", "winner": "none"}],
        }
    )
    async with runs.worker(model):
        marks = await made(runs, await begun(connection, "wrong"))
    assert {name: each.missed for name, each in marks.items()} == {
        "planned": ("route",),
        "answered": ("says", "cites"),
        "criticised": ("finds",),
        "judged": ("has",),
        "computed": (),
    }
    assert marks["judged"].judged == 0, "nobody pays a judge for what has failed"


@pytest.mark.long
async def test_right_answers_pass_and_an_eval_that_is_started_again_pays_nothing_twice(
    runs: Runs, connection: Connection
) -> None:
    model = ScriptedModel(RIGHT)
    async with runs.worker(model):
        handle = await begun(connection, "again")
        first, report = await made(runs, handle), await handle.result()
        cases = CASES.replace("says: harbour", "says: station")
        second = await made(runs, await begun(connection, "again", cases))
    assert {name: each.wrong for name, each in first.items()} == dict.fromkeys(first, ())
    assert [*first] == ["planned", "answered", "criticised", "judged", "computed"]
    assert first["computed"].dollars == 0 and first["judged"].judged > 0
    assert report.dollars == sum((each.dollars or 0) + each.judged for each in first.values())
    assert len(model.heard) == 6 and model.missed == []
    assert [name for name, each in second.items() if not each.passed] == ["answered"]
    assert {n: e.dollars for n, e in first.items()} == {n: e.dollars for n, e in second.items()}


@pytest.mark.long
async def test_the_cap_holds_and_a_higher_one_goes_on_under_the_same_id(
    runs: Runs, connection: Connection
) -> None:
    model = ScriptedModel(RIGHT)
    async with runs.worker(model):
        handle = await begun(connection, "capped", dollars=Decimal("0.05"))
        marks = await made(runs, handle)
        assert (await handle.result()).stopped == "cap"
        assert [name for name, each in marks.items() if each.status != "not run"] == ["computed"]
        marks = await made(runs, await begun(connection, "capped"))
    assert all(each.passed for each in marks.values())


@pytest.mark.long
async def test_a_cancelled_eval_cancels_what_is_open_and_goes_on_later(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    never = asyncio.Event()
    model = ScriptedModel({**RIGHT, "synthesize": [never, *RIGHT["synthesize"]]})
    async with runs.worker(model):
        handle = await begun(connection, "cancelled")
        await model.asked("synthesize")
        assert await cancel.run(connection, "cancelled") == Code.COMPLETE
        marks = await made(runs, handle)
        assert [each.status for each in marks.values()] == [
            "declined", "cancelled", "not run", "not run", "not run",
        ]  # fmt: skip
        never.set()
        marks = await made(runs, await begun(connection, "cancelled"))
    assert all(each.passed for each in marks.values())
    assert await cancel.run(connection, "cancelled") == Code.COMPLETE
    assert model.heard.count("plan") == 1
    said = capsys.readouterr().err
    assert "The same --id goes on with it." in said and "Eval cancelled had already closed." in said


@pytest.mark.long
async def test_a_history_that_grows_too_long_is_left_for_a_new_one(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow.Info, "is_continue_as_new_suggested", lambda _: True)
    model = ScriptedModel({"judge": [{"why": "nine", "winner": "t1"}] * 2})
    cases = "\n- name: ".join(["", *CASES.split("\n- name: ")[4:]])
    async with runs.worker(model):
        handle = await begun(connection, "long", cases.replace(", {judge: It names a reason}", ""))
        marks = await made(runs, handle)
    assert [each.passed for each in marks.values()] == [True, True]
    history = await handle.fetch_history()
    assert history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id


async def test_prices_are_told_before_anything_is_asked(runs: Runs, connection: Connection) -> None:
    model = ScriptedModel({})
    async with runs.worker(model):
        handle = await begun(connection, "priced", only_prices=True)
        async with asyncio.timeout(60):
            prices = {each.case: each for each in (await handle.result()).prices}
    assert model.heard == [] and {each.why for each in prices.values()} == {""}
    for name in ("planned", "answered", "criticised", "judged"):
        low, expected, high = (getattr(prices[name], it) for it in ("low", "expected", "high"))
        assert 0 < low < expected < high <= 1, name
    assert prices["computed"].high == 0
    assert prices["judged"].judge and prices["answered"].judge == 0
