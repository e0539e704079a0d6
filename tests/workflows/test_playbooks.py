"""Each playbook, from its example to its report, with the scripted answers that come with it: the
adapter is the real one and the server is the simulator. The `runs` fixture replays every history.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError

from conftest import Runs, seen
from documents import pdf
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.contracts import Goal, GoalInput, Report
from holdfast.deployment.settings import HOME, Settings
from holdfast.rendering import findings
from holdfast.replaying.replay import replay
from holdfast.simulator.script import read_script
from holdfast.simulator.server import Simulator
from holdfast.text import inline
from holdfast.workflows import WORKFLOWS

pytestmark = pytest.mark.anyio
PLAYBOOKS = HOME / "playbooks"
INPUTS = {
    "tech-support": {"ticket": "ticket.md"},
    "contract-review": {"contract": "contract.md", "rules": "rules.md"},
    "competitive-intelligence": {"competitors": "competitors.md", "material": "material"},
}


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


@asynccontextmanager
async def model(playbook: str) -> AsyncIterator[Claude]:
    """An endpoint that answers by the example's script."""
    script = read_script(PLAYBOOKS / playbook / "examples" / "script.yaml")
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


async def test_a_contract_without_rules_of_the_house_is_reviewed_all_the_same(runs: Runs) -> None:
    report = await report_of(runs, goal(runs, "contract-review", "contract"))
    assert report.status == "complete"
    assert report.plan is not None
    assert [each.inputs for each in report.plan.subtasks] == [("contract",)] * 3


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


@pytest.mark.parametrize("content", ["", " \n\t\n", "\ufeff\n", "\u200b\u00a0"])
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
