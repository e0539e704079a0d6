"""Shows in a copy of the project that what was added there works; `test_contributing.py` runs it.

What is imported by name is nowhere but in that copy.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from driving import subtask
from hands import Bench as Hands
from holdfast.activities.agents import Agents
from holdfast.activities.catalogue.files import read_role
from holdfast.activities.prompts.files import system_prompts
from holdfast.activities.toolset.shelf import shipped_tools
from holdfast.calls import KINDS
from holdfast.calls.plan import PlanMaterial, plan_prompt
from holdfast.cli.main import main
from holdfast.contracts import Check, Draft, Order, Plan
from holdfast.deployment.settings import Settings
from holdfast.embedded.identity import worker_environment
from holdfast.plans import checks
from holdfast.rendering.orders import lines
from holdfast.rules import steering
from holdfast.simulator.answers import answer, call_of
from holdfast.simulator.script import Script
from holdfast.state.events import Steered
from holdfast.workflows.scheduling import ACTIVITIES
from outcomes import begun, end, in_flight
from repositories import Bench, Repository, remarks_of
from shipped import shipped_catalogue

CATALOGUE = shipped_catalogue()


def test_a_role_can_be_planned() -> None:
    roles = CATALOGUE.roles_for("")
    assert "- clerk (haiku): Sorts papers." in plan_prompt(PlanMaterial(goal="Sort", roles=roles))
    assert CATALOGUE.roles["clerk"].prompt == "You sort papers by their dates."


def test_a_playbook_plans_its_role_over_its_input() -> None:
    playbook = CATALOGUE.playbooks["tender"]
    assert playbook.plan is not None and [*playbook.inputs] == ["offer"]
    assert playbook.plan.subtasks[0].role in {each.name for each in CATALOGUE.roles_for("tender")}
    assert "buyer" not in {each.name for each in CATALOGUE.roles_for("")}


@pytest.mark.anyio
async def test_a_tool_is_on_the_shelf_and_a_role_may_name_it(tmp_path: Path) -> None:
    added = shipped_tools()["count_letters"]
    assert await Hands(contents={"notes": b"abc"}).told(added, name="notes") == "3 letters"
    role = tmp_path / "counter.md"
    role.write_text("---\nname: counter\ndescription: Counts.\ntools: count_letters\n---\nCount.\n")
    assert read_role(role).card.tools == ("count_letters", "read_result")


@pytest.mark.anyio
async def test_an_analyser_is_a_lens_of_the_review_and_finds(tmp_path: Path) -> None:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({"a.py": "# TO" + "DO: all of it\n"})
    (remark,) = remarks_of(await Bench(tmp_path).look("promises", repository))
    assert (remark.rule, remark.severity, remark.confidence) == ("FIX002", "info", 85)
    plan = CATALOGUE.playbooks["code-review"].plan
    assert plan is not None
    (planned,) = (each for each in plan.subtasks if each.role == "promises")
    assert (planned.title, planned.inputs) == ("Find what was left to do", ("repo",))


def test_a_check_is_offered_accepted_and_judged() -> None:
    wanted = Check.model_validate({"kind": "begins_with", "argument": "Dear"})
    asking = subtask("a").model_copy(update={"checks": (wanted,)})
    assert checks.plan_problems(Plan(goal="Write", subtasks=(asking,))) == ()
    assert checks.verdicts((wanted,), Draft(content="Dear Ada")) == ()
    assert checks.verdicts((wanted,), Draft(content="Hi")) == ("it does not begin with 'Dear'",)
    assert "begins_with (text)" in system_prompts()["planner"]


def test_a_call_is_known_asked_for_and_taken() -> None:
    module: Any = importlib.import_module("holdfast.calls.praise")
    kind = KINDS["praise"]
    hints = get_type_hints(getattr(Agents, kind.name))
    assert (hints["material"], hints["return"]) == (module.PraiseMaterial, kind.reply)
    assert ACTIVITIES["praise"] is getattr(Agents, kind.name)
    assert kind.words and kind.policy.max_output == 2_000
    assert system_prompts()["admirer"].startswith("You say in `praise`")
    schema = module.PraiseAnswer.model_json_schema()
    assert call_of(schema) == "praise"
    said = module.PraiseAnswer.model_validate(answer(schema, "", Script(), None))
    run = begun(subtask("a"), subtask("b"))
    for call in (*in_flight(run), "synthesize-1"):
        end(run, call)
    assert in_flight(run) == ["praise-1"]
    end(run, "praise-1", value=module.PRAISE.value(said, None))
    end(run, "critique-1")
    assert run.closed and "(scripted) praise" in run.state.notes
    assert run.state.estimate is not None
    assert "praise" in {row.id for row in run.state.estimate.rows}


def test_an_order_is_refused_and_followed_and_has_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = begun(subtask("a")).state
    assert steering.refusal_on_arrival(state, "remark", Order()) == "the remark is empty"
    order = Order(text="Mind the gap.", by="ada")
    after = steering.steer(state, Steered(1, "remark", order))
    assert after.notes == (*state.notes, "Mind the gap.")
    assert "**ada** remarked: “Mind the gap.”" in next(lines(after.orders))
    rows: Any = importlib.import_module("holdfast.cli.commands.steering.rows")
    assert rows.remark("Mind the gap.") == Order(text="Mind the gap.")
    assert main(["--help"]) == 0
    assert "Note something in the report of a run." in capsys.readouterr().out
    assert main(["remark", "--help"]) == 0


def test_a_setting_is_read_and_reaches_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_MOTTO", "Festina lente")
    ours = Settings(_env_file=None)
    module: Any = importlib.import_module("holdfast.deployment.settings")
    assert module.motto_of(ours) == "Festina lente"
    assert worker_environment(ours)["HOLDFAST_MOTTO"] == "Festina lente"
