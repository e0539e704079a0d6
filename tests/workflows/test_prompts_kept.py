"""What a role is told in a run is what its file said when the run was prepared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Goal
from scripted import ScriptedModel, plans, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio
NAMES = ("analyst", "researcher")


def saying(words: str) -> Catalogue:
    """The shipped roles, of which one that is asked and one that has tools say this."""
    catalogue = shipped_catalogue()
    for name in NAMES:
        role = catalogue.roles[name]
        catalogue.roles[name] = replace(role, prompt=f"{words} {name}")
    return catalogue


async def test_a_file_that_a_worker_has_otherwise_changes_nothing_of_a_run_that_was_prepared(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", role="analyst"), subtask("t2", role="researcher"))],
            "t1": [works("One.")],
            "t2": [works("Two.")],
            "synthesize": [synthesizes("Both [t1] [t2].")],
        }
    )
    catalogue = saying("as its worker has it,")
    async with runs.worker(model, catalogue=catalogue):
        # The part that asks has what was there when it was built; the part that prepares sees this.
        catalogue.roles.update(saying("as prepared,").roles)
        report = await outcome(await runs.start(Goal(text="Compare", use_models=True)))
    assert report.status == "complete", report.gaps
    told = [each.system for each in model.requests]
    for name in NAMES:
        assert [each for each in told if each.startswith(f"as prepared, {name}")]
    assert not [each for each in told if "as its worker has it" in each]
    agents = [each.system for each in model.requests if each.tools]
    assert any(each.startswith("as prepared, analyst") for each in agents)
