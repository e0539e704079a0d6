"""Each playbook, from its example to its report, with the scripted answers that come with it: the
adapter is the real one and the server is the simulator. The `runs` fixture replays every history.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError

from conftest import Runs, folded, seen
from documents import pdf
from examples import INPUTS, PLAYBOOKS
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.contracts import Goal, GoalInput, Order, Report
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.intake.plans import read_plan
from holdfast.rendering import findings
from holdfast.rendering.html.page import as_html
from holdfast.rendering.html.pictured import Pictured
from holdfast.rendering.report import as_markdown
from holdfast.replaying.replay import replay
from holdfast.simulator.script import Script, read_script
from holdfast.simulator.server import Simulator
from holdfast.text import inline
from holdfast.workflows import WORKFLOWS
from parameters import rest_long

pytestmark = pytest.mark.anyio


def goal(runs: Runs, playbook: str, *only: str, **fields: object) -> Goal:
    """The playbook's example, with all of its inputs or only these."""
    shutil.copytree(PLAYBOOKS / playbook / "examples", runs.folder / playbook, dirs_exist_ok=True)
    given = tuple(
        GoalInput(name=name, kind=_kind(path), value=str(path))
        for name, file in INPUTS[playbook].items()
        if not only or name in only
        for path in [runs.folder / playbook / file]
    )
    text = "What the playbook does"
    base = {"text": text, "playbook": playbook, "inputs": given, "use_models": True}
    return Goal.model_validate(base | fields)


def _kind(path: Path) -> str:
    return "folder" if path.is_dir() else "file"


def refund(runs: Runs, **fields: object) -> Goal:
    """The example about money, with the table of refund rules."""
    wanted = goal(runs, "tech-support", **fields)
    folder = runs.folder / "tech-support"
    files = {"ticket": folder / "charged-twice.md", "refunds": folder / "refunds.csv"}
    given = [GoalInput(name=name, kind="file", value=str(path)) for name, path in files.items()]
    return wanted.model_copy(update={"inputs": tuple(given)})


@asynccontextmanager
async def model(playbook: str, script: Script | None = None) -> AsyncIterator[Claude]:
    """An endpoint that answers by the example's script, or by this one."""
    script = script or read_script(PLAYBOOKS / playbook / "examples" / "script.yaml")
    async with Simulator(script) as simulator:
        price = Prices.of(Settings(_env_file=None)).price
        claude = Claude(key="scripted", base_url=simulator.url, price=price)
        yield claude
        await claude.aclose()


async def report_of(runs: Runs, wanted: Goal) -> Report:
    async with model(wanted.playbook) as claude:
        return await runs.run(wanted, claude)


async def test_tech_support_says_primary_and_second_role_in_plan_report_and_log(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        report = await report_of(runs, goal(runs, "tech-support"))
    assert report.status == "complete"
    assert report.plan is not None
    [case] = report.plan.subtasks
    assert (case.role, case.secondary) == ("troubleshooter", "escalator")
    assert "Something stopped working, so a cause and steps are needed" in case.why
    assert f"planned case: troubleshooter, else escalator: {case.why}" in caplog.text
    assert f"planned because: {inline(case.why)}" in findings.alone(report, report.findings[0])
    assert "Root cause" in report.answer and report.answer.startswith("(scripted)")


async def test_a_contract_is_read_clause_by_clause_and_held_against_the_rules_of_the_house(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "contract-review"))
    assert report.status == "complete"
    assert [each.subtask_id for each in report.findings] == ["terms", "duties", "risks"]
    assert "against rule 4" in report.findings[2].content
    assert "Do not sign as it stands" in report.answer
    assert not report.gaps and not report.not_run


@pytest.mark.long
async def test_a_contract_without_rules_of_the_house_is_reviewed_all_the_same(runs: Runs) -> None:
    report = await report_of(runs, goal(runs, "contract-review", "contract"))
    assert report.status == "complete"
    assert report.plan is not None
    assert [each.inputs for each in report.plan.subtasks] == [("contract",)] * 3


@pytest.mark.long
async def test_a_pdf_is_for_tools_and_whoever_answers_without_opening_it_leaves_a_gap(
    runs: Runs,
) -> None:
    wanted = goal(runs, "contract-review", "contract")
    path = runs.folder / "contract.pdf"
    path.write_bytes(pdf(["1. Service. Best effort.", "2. Price. EUR 1,900 a month."]))
    wanted = wanted.model_copy(
        update={"inputs": (GoalInput(name="contract", kind="file", value=str(path)),)}
    )
    report = await report_of(runs, wanted)
    # The scripted agents answer at once, as they do where its text stands in their prompts.
    assert report.status == "complete_with_gaps"
    assert [gap.title for gap in report.gaps] == ["Reading contract"]
    assert all(each.turns for each in report.findings), "each is an agent with tools"


@pytest.mark.long
async def test_a_team_for_each_competitor_works_at_the_default_cap_and_looks_into_the_material(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "competitive-intelligence"))
    assert report.status == "complete"
    assert [each.status for each in report.findings] == ["complete"] * 3
    assert "Watch Tern Express" in report.answer
    for name in ("borealis", "tern"):
        handle = runs.client.get_workflow_handle(f"{report.run_id}.{name}.1", result_type=Report)
        team = await handle.result()
        assert team.findings[0].tool_calls == 1, "the team has the folder, and its roles"
        assert team.plan is not None
        assert team.plan.subtasks[0].role == "market-researcher"
        finding = next(each for each in report.findings if each.subtask_id == name)
        assert finding.dollars == team.dollars and not finding.assumed
        assert await replay(await handle.fetch_history(), WORKFLOWS, runs.store) == ()
    spent = sum(each.dollars or 0 for each in report.findings)
    assert report.dollars is not None and spent < report.dollars < 1


# ---------------------------------------------------------------- the other domains


async def test_a_patient_case_waits_for_a_person_whatever_the_goal_says_and_sends_nothing_before(
    runs: Runs,
) -> None:
    wanted = goal(runs, "patient-case", approval={"when": "auto"})
    async with model(wanted.playbook) as claude, runs.worker(claude):
        handle = await runs.start(wanted, skipping=False)
        view = await seen(handle, lambda view: view.phase == "approval")
        assert view.preview is not None
        assert any("a person approve each plan" in each for each in view.preview.brought)
        state = await folded(handle)
        assert state is not None and state.first_paid is None and not state.ledger.reserved
        await handle.execute_update("approve", Order(by="Dr. Who"))
        report = await handle.result()
    assert report.status == "complete"
    [order] = report.orders
    assert (order.command, order.order.by) == ("approve", "Dr. Who")
    assert report.answer.startswith("> **No diagnosis and no advice on treatment. ")
    data = {each.subtask_id: each.data for each in report.findings}["summary"]
    assert str(data["notice"]).startswith("No diagnosis and no advice on treatment")
    assert data["contradictions"] == [
        "Penicillin allergy (Allergies); amoxicillin ordered on 2026-10-12 (Course)"
    ]
    (told,) = report.conflicts
    assert told.endswith("amoxicillin ordered [course]"), "and no judge says which side is right"


@pytest.mark.long
async def test_each_figure_of_a_portfolio_is_a_tools_and_its_notice_stands_in_each_view(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "portfolio"))
    assert report.status == "complete"
    found = {each.subtask_id: each for each in report.findings}
    assert [each.tool_calls for each in found.values()] == [1, 2, 2]
    assert found["positions"].data["total"] == "34351.70"
    assert found["trades"].data["net_cash"] == "-2462.30"
    assert not report.flags, "no figure of the answer is one that no finding has"
    notice = "No investment advice, and no order to buy or sell."
    assert report.answer.startswith(f"> **{notice}")
    for text in (as_markdown(report, to_type), as_html(Pictured(report, to_type))):
        assert notice in text


@pytest.mark.long
async def test_two_levels_hand_down_goal_inputs_and_money_and_hand_up_findings_gaps_and_bill(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "research"))
    assert report.status == "complete_with_gaps"
    [gap] = report.gaps
    assert gap.subtask_id == "sources" and "No source says how loud the ferry is" in gap.why
    left = Decimal(2)
    for finding in report.findings:
        handle = runs.client.get_workflow_handle(f"{report.run_id}.{finding.subtask_id}.1")
        state = await folded(handle)
        assert state is not None and report.plan is not None
        down, [subtask] = (
            state.goal,
            [each for each in report.plan.subtasks if each.id == finding.subtask_id],
        )
        assert down.text == subtask.instruction and down.depth == 1
        names = {each.name for each in down.inputs} | {each.name for each in down.pinned}
        assert names == {*subtask.inputs, *(f"finding-of-{each}" for each in subtask.depends_on)}
        assert down.limits.dollars <= left / 2
        left -= finding.dollars or 0
        up = await runs.client.get_workflow_handle(handle.id, result_type=Report).result()
        assert up.answer in finding.content and up.dollars == finding.dollars
    sources = await runs.client.get_workflow_handle(
        f"{report.run_id}.sources.1", result_type=Report
    ).result()
    assert [each.subtask_id for each in sources.gaps] == ["noise"]
    assert report.findings[0].status == "escalated", "what the team has goes on all the same"
    assert report.findings[1].status == report.findings[2].status == "complete"


@pytest.mark.long
async def test_a_launch_is_planned_by_three_teams_at_once_and_its_steps_have_no_circle(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "product-launch"))
    assert report.status == "complete"
    assert [each.status for each in report.findings] == ["complete"] * 4
    assert report.plan is not None
    cards = {each.role for each in report.plan.subtasks}
    assert {"marketing-team", "operations-team", "legal-team"} < cards
    assert report.findings[3].data["holds"] == "unclear"


@pytest.mark.long
async def test_a_text_has_a_subtask_for_each_section_of_its_outline_and_its_facts_are_looked_up(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "content"))
    assert report.status == "complete"
    outline = report.findings[0].data["sections"]
    team = await runs.client.get_workflow_handle(
        f"{report.run_id}.sections.1", result_type=Report
    ).result()
    assert isinstance(outline, list) and team.plan is not None
    assert len(team.plan.subtasks) == len(outline) == 2
    assert "ferry.md says 2024" in report.findings[2].content
    assert "2023" in report.findings[1].content and "2023" not in report.answer


async def test_a_circle_among_the_modules_of_a_course_is_found_by_code_and_the_next_try_is_told(
    runs: Runs,
) -> None:
    report = await report_of(runs, goal(runs, "curriculum"))
    assert report.status == "complete"
    first, second = report.findings[0].tries
    assert first.why == "modules.requires goes round in a circle: values → loops → values"
    assert second.verdict == "accepted"


@pytest.mark.long
async def test_money_ends_at_a_rule_of_the_table_before_it_ends_at_a_person(runs: Runs) -> None:
    report = await report_of(runs, refund(runs))
    assert report.status == "complete"
    [case] = report.findings
    assert report.plan is not None
    assert [(each.role, each.secondary) for each in report.plan.subtasks] == [
        ("refund-clerk", "escalator")
    ]
    assert case.tool_calls == 1 and "refunded in full" in report.answer


@pytest.mark.long
async def test_what_no_refund_rule_decides_is_handed_to_a_person(runs: Runs) -> None:
    wanted = refund(runs, ask_people=True)
    no_rule = {"status": "escalate", "reason": "out_of_scope", "why": "No row fits.", "result": ""}
    script = read_script(PLAYBOOKS / "tech-support" / "examples" / "script.yaml")
    rules = [
        each.model_copy(update={"result": "", "fields": no_rule})
        if each.call == "take_turn" and not each.tools
        else each
        for each in script.rules
    ]
    changed = script.model_copy(update={"rules": tuple(rules)})
    async with model(wanted.playbook, changed) as claude, runs.worker(claude):
        handle = await runs.start(wanted, skipping=False)
        view = await seen(handle, lambda view: view.waiting)
        await handle.execute_update("supply", Order(subtask_id="case", text="Paid.", by="ann"))
        report = await handle.result()
    assert [each.role for each in report.findings[0].tries][:2] == ["", "escalator"]
    assert [each.kind for each in view.waiting] == ["decision"] and report.answer == "Paid."


@pytest.mark.long
async def test_companies_of_a_text_become_a_comparison_whose_words_code_has_counted(
    runs: Runs,
) -> None:
    folder = PLAYBOOKS / "competitive-intelligence" / "examples"
    plan = read_plan(folder / "companies.yaml")
    wanted = goal(runs, "competitive-intelligence", "competitors", plan=plan)
    market = GoalInput(name="competitors", kind="file", value=str(runs.folder / "market.md"))
    shutil.copy(folder / "market.md", runs.folder)
    report = await report_of(runs, wanted.model_copy(update={"inputs": (market,)}))
    assert report.status == "complete"
    assert [each["name"] for each in json.loads(report.findings[0].content)][2] == "Auk Logistics"
    assert len(report.answer.split()) <= 201 and "1.56 times" in report.answer


async def test_what_a_role_goes_without_is_said_before_the_run_begins(runs: Runs) -> None:
    wanted = goal(runs, "competitive-intelligence", approval={"when": "always"})
    async with model(wanted.playbook) as claude, runs.worker(claude):
        handle = await runs.start(wanted, skipping=False)
        view = await seen(handle, lambda view: view.phase == "approval")
        assert view.preview is not None
        [without] = [each for each in view.preview.without if "web_search" in each]
        assert "web-researcher and market-researcher go on without" in without
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()


@pytest.mark.parametrize("content", rest_long(["", "\u200b\u00a0", " \n\t\n", "\ufeff\n"]))
async def test_an_empty_document_is_refused_before_anything_is_paid(
    runs: Runs, content: str
) -> None:
    wanted = goal(runs, "tech-support")
    (runs.folder / "tech-support" / "ticket.md").write_text(content)
    async with model(wanted.playbook) as claude:
        with pytest.raises(WorkflowFailureError) as refused:
            await runs.run(wanted, claude)
    cause = refused.value.cause
    assert isinstance(cause, ActivityError) and isinstance(cause.cause, ApplicationError)
    assert cause.cause.type == "BadGoal"
    assert "there is nothing in it; give a file that says something" in cause.cause.message
