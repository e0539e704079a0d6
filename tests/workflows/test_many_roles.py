"""More roles than a planner chooses among surely: it is shown those of the groups that another call
has chosen. The `runs` fixture replays every history.
"""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Runs
from driving import BRIEFING, START
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.calling import gathering
from holdfast.contracts import Goal, RoleCard
from holdfast.contracts.replacing import replace
from holdfast.state.run import first_state
from scripted import ScriptedModel, plans, subtask, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio

LEGAL = "group: legal, what contracts and statutes say"
CHOICE = {"reason": "It is about contracts", "groups": ["Legal"]}


def catalogue(runs: Runs, count: int = 8) -> Catalogue:
    """The shipped roles and as many of a group of their own."""
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True)
    for number in range(count):
        group = "group: legal" if number else LEGAL
        head = f"name: reader{number}\ndescription: reads\n{group}"
        (home / f"reader{number}.md").write_text(f"---\n{head}\n---\nRead.\n")
    extra, shipped = Catalogue.load(runs.folder / "home"), shipped_catalogue()
    return Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Which contract ends first?", "use_models": True, **fields})


def script(choice: Any, role: str = "reader3") -> ScriptedModel:
    return ScriptedModel(
        {"choose": [choice], "plan": [plans(subtask("t1", role=role))], "t1": [works("The first.")]}
    )


async def test_a_planner_of_many_roles_is_shown_those_of_the_chosen_groups(runs: Runs) -> None:
    model = script(CHOICE)
    report = await runs.run(goal(), model, catalogue=catalogue(runs))
    assert report.status == "complete", report.gaps
    choose, plan = (each.prompt for each in model.requests[:2])
    assert "- legal: what contracts and statutes say (reader0, reader1" in choose
    assert "- common (analyst, coder" in choose
    assert "- reader7 (sonnet)" in plan and "- analyst" not in plan
    assert await runs.activities() == ["prepare", "choose-1", "plan-1", "work-t1-1"]
    assert "the planner was shown the 8 of legal: It is about contracts." in " ".join(report.notes)


@pytest.mark.parametrize(
    "choice", ["no JSON", {"reason": "", "groups": ["sales"]}], ids=["malformed", "unknown"]
)
async def test_an_answer_that_names_no_group_is_done_without(runs: Runs, choice: Any) -> None:
    model = script(choice, role="analyst")
    report = await runs.run(goal(), model, catalogue=catalogue(runs))
    assert report.status == "complete", report.gaps
    assert model.heard == ["choose", "plan", "t1"]
    assert "- reader7 (sonnet)" in model.requests[1].prompt
    assert "- analyst (sonnet)" in model.requests[1].prompt
    assert any("was shown all" in note for note in report.notes)


async def test_the_shipped_roles_are_one_menu(
    runs: Runs,
) -> None:
    model = ScriptedModel({"plan": [plans(subtask("t1"))], "t1": [works("one")]})
    report = await runs.run(goal(), model, catalogue=catalogue(runs, 0))
    assert report.status == "complete" and model.heard == ["plan", "t1"]


async def test_a_cap_that_pays_for_the_least_alone_is_not_spent_on_a_choice(runs: Runs) -> None:
    model = ScriptedModel({"plan": [plans(subtask("t1"))], "t1": [works("one")]})
    wanted = goal(limits={"model_calls": 3})
    report = await runs.run(wanted, model, catalogue=catalogue(runs))
    assert model.heard[0] == "plan" and report.answer == "one"


@pytest.mark.parametrize("of", ["", "playbook", "roles_of"])
def test_who_names_a_playbook_has_chosen_its_roles_for_its_teams_as_well(of: str) -> None:
    names = [*(f"common{each}" for each in range(6)), "clause-reader", "risk-reader"]
    roles = tuple(
        RoleCard(
            name=name, description="works", group="common" if "common" in name else "contracts"
        )
        for name in names
    )
    wanted = goal(**({of: "contracts"} if of else {}))
    state = first_state("run", wanted, START, "first")
    state = replace(state, briefing=BRIEFING.model_copy(update={"roles": roles}))
    assert gathering.is_large_menu(state) is (not of)
