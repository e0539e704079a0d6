"""Plans from the plan library: a run that worked becomes a template, and goals of its kind need no
planner. The `runs` fixture replays every history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conftest import Runs, asking_once, folded
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.library.outcomes import read_outcomes
from holdfast.activities.library.shelves import Kept
from holdfast.client import templates
from holdfast.client.ended import read_end
from holdfast.client.reading import Look, Reader
from holdfast.contracts import Goal
from holdfast.contracts.search import PLAN, STATUS
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.temporal.connection import Target
from parameters import rest_long
from scripted import ScriptedModel, plans, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio

GOAL = "Compare the prices of 'Acme' and 'Globex' in 2026."
ALIKE = "Please compare the prices of 'Initech' and 'Hooli' in 2027"
CLOSE = "How do the prices of 'Initech' and 'Hooli' compare in 2027?"
ATTRIBUTES = (STATUS.name, PLAN.name)


def goal(text: str, **fields: object) -> Goal:
    asked = {"text": text, "use_models": True, "templates": True}
    return Goal.model_validate({**asked, "search_attributes": ATTRIBUTES, **fields})


def planned() -> dict[str, Any]:
    told = "As part {} of the goal list every price of {} in 2026."
    names = {"t1": "Acme", "t2": "Globex"}
    return plans(*(subtask(id, instruction=told.format(id, name)) for id, name in names.items()))


def script(*, plan: bool, **more: Any) -> ScriptedModel:
    found: dict[str, Any] = {"t1": [works("10")], "t2": [works("20")]}
    found |= {"synthesize": [synthesizes("Acme is cheaper.")]}
    return ScriptedModel(found | ({"plan": [planned()]} if plan else {}) | more)


@pytest.fixture
def connection(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """The command line's view of the worker: of its state directory, and of its roles."""
    catalogue = asking_once(shipped_catalogue())
    monkeypatch.setattr(Catalogue, "of", lambda _: catalogue)
    target = Target("", task_queue=runs.queue, store_url=runs.store.root.as_uri(), embedded=False)
    settings = Settings(_env_file=None, project=None, state_dir=runs.folder)
    return Connection(settings, target, runs.client)


async def saved(runs: Runs, connection: Connection) -> Kept:
    """Plan a run, and make a template of it."""
    await runs.register(ATTRIBUTES)
    await runs.run(goal(GOAL), script(plan=True))
    await templates.save_template(connection, runs.handles[-1].id, "prices", {})
    return templates.find_kept(connection.settings, "prices")


async def test_a_goal_of_the_same_kind_has_its_plan_from_the_template(
    runs: Runs, connection: Connection
) -> None:
    kept = await saved(runs, connection)
    assert kept.template is not None
    assert kept.template.goal == "Compare the prices of '{text}' and '{text2}' in {year}."
    model = script(plan=False)
    report = await runs.run(goal(ALIKE), model)
    assert report.status == "complete", report.gaps
    assert await runs.activities() == [
        "prepare",
        "work-t1-1",
        "work-t2-1",
        "synthesize-1",
        "critique-1",
    ]
    assert report.plan is not None
    assert [each.instruction for each in report.plan.subtasks] == [
        "As part t1 of the goal list every price of Initech in 2027.",
        "As part t2 of the goal list every price of Hooli in 2027.",
    ]
    source = runs.handles[0].id
    said = f"Plan from template prices (of run {source}): no planner was asked, saved about $0.0"
    assert said in " ".join(report.notes)
    assert await read_outcomes(runs.client, kept.version) == ["well"]
    state = await folded(runs.handles[-1])
    assert state is not None and state.estimate is not None
    assert state.estimate.template.startswith(said), "the preview says so before anything is paid"
    assert not any(row.kind == "planning" for row in state.estimate.rows)
    # Whoever wants a new plan gets one.
    again = script(plan=True)
    await runs.run(goal(ALIKE, templates=False), again)
    assert again.heard[0] == "plan"


@pytest.mark.parametrize("says", rest_long(["prices", "no_match"]))
async def test_a_goal_that_comes_close_is_a_question_for_a_model(
    runs: Runs, connection: Connection, says: str
) -> None:
    await saved(runs, connection)
    answer = {"reason": "The same demand", "template_id": says, "confidence": 95}
    model = script(plan=says == "no_match", match=[answer])
    report = await runs.run(goal(CLOSE), model)
    assert report.status == "complete", report.gaps
    assert model.heard[0] == "match" and ("plan" in model.heard) is (says == "no_match")
    notes = " ".join(report.notes)
    assert ("Plan from template prices" in notes) is (says == "prices")
    assert ("Template prices came close and was not used: The same" in notes) is (says != "prices")


@pytest.mark.long
async def test_a_template_whose_runs_go_wrong_is_used_no_more(
    runs: Runs, connection: Connection
) -> None:
    kept = await saved(runs, connection)
    once = {"tries_per_subtask": 1, "replans": 0}
    fails = [works("", status="failed", why="no prices")]
    for _ in range(2):
        await runs.run(goal(ALIKE, limits=once), script(plan=False, t1=fails))
    [standing] = [each async for each in templates.list_standing(connection)]
    why = "retired: 2 of its last 2 runs went wrong: had gaps"
    assert standing.why_not.startswith(why), (standing, kept.version)
    model = script(plan=True)
    report = await runs.run(goal(ALIKE), model)
    assert model.heard[0] == "plan"
    assert "Template prices fits by its words and is not used: 2 of its last" in " ".join(
        report.notes
    )


@pytest.mark.long
async def test_good_runs_of_one_shape_are_proposed_as_a_template_once(
    runs: Runs, connection: Connection
) -> None:
    await runs.register(ATTRIBUTES)
    # Of a shape that the runs of no other test have.
    chain = planned()
    chain["subtasks"][1] |= {"depends_on": ["t1"], "why": "It needs the findings of t1."}
    chain["subtasks"][1]["instruction"] += " Compare them with the findings of t1."

    async def proposed() -> str:
        await runs.run(
            goal(GOAL, templates=False), ScriptedModel({**script(plan=True).lines, "plan": [chain]})
        )
        run_id = runs.handles[-1].id
        return await templates.propose(connection, read_end(run_id, await look(run_id)))

    async def look(run_id: str) -> Look:
        return await Reader(connection, run_id).look()

    assert [await proposed(), await proposed()] == ["", ""]
    said, run_id = await proposed(), runs.handles[-1].id
    assert said.startswith("3 good runs had a plan of this shape.")
    assert said.endswith(f"template save {run_id}")
    ended = read_end(run_id, await look(run_id))
    assert ended.look.state is not None
    given = ended.look.state.goal.model_copy(update={"plan": ended.look.state.plan})
    own = replace(ended.look, state=replace(ended.look.state, goal=given))
    assert await templates.propose(connection, replace(ended, look=own)) == ""
    await templates.save_template(connection, run_id, "chain", {})
    assert await templates.propose(connection, read_end(run_id, await look(run_id))) == ""


@pytest.mark.long
async def test_no_template_is_made_of_a_run_that_failed_or_had_one(
    runs: Runs, connection: Connection
) -> None:
    await saved(runs, connection)
    await runs.run(goal(ALIKE), script(plan=False))
    fails = [works("", status="failed", why="no prices")]
    once = {"tries_per_subtask": 1, "replans": 0}
    await runs.run(goal(ALIKE, limits=once, templates=False), script(plan=True, t1=fails))
    for handle, why in zip(
        runs.handles[1:],
        ("its plan is from template prices already", "is complete with gaps; a template is made"),
        strict=True,
    ):
        with pytest.raises(Refused, match=why):
            await templates.save_template(connection, handle.id, "other", {})
    with pytest.raises(Refused, match="there is a template prices already"):
        await templates.save_template(connection, runs.handles[0].id, "prices", {})
