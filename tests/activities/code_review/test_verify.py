"""`--models` on a code review: a verifier adds verdicts to what was found and takes nothing away;
secrets stay here.
"""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.contracts import Goal, GoalInput, Limits, Report
from holdfast.contracts.errors import CallRefused
from holdfast.ports import ModelRequest
from repositories import Repository
from reviewing import ReviewingModel, only, verdicts
from scripted import ScriptedModel, calls

pytestmark = pytest.mark.usefixtures("secrets_found_here")

SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
CODE = f"""import subprocess
import sys


def run():
    subprocess.call("ls " + sys.argv[1], shell=True)
    return undefined_name


TOKEN = "{SECRET}"
"""
FOUND = 3
"""Remarks that the lenses have on that."""
ASKED = FOUND - 1
"""Those that a verifier is asked about: the line of the secret is shown to nobody."""


async def review(
    runs: Runs,
    model: ScriptedModel | None,
    limits: Limits = Limits(),  # noqa: B008
) -> Report:
    folder = runs.folder / "repository"
    if not folder.exists():
        Repository.at(folder).commit({"a.py": CODE})
    goal = Goal(
        text="Review",
        playbook="code-review",
        inputs=(GoalInput(name="repo", kind="repository", value=str(folder)),),
        use_models=model is not None,
        limits=limits,
    )
    lenses = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    return await runs.run(goal, model, tools=only(lenses, "bugs", "secrets", "security"))


def asked_of(model: ReviewingModel) -> list[ModelRequest]:
    """What the verifier was asked, in order."""
    heard = zip(model.heard, model.requests, strict=True)
    return [request for what, request in heard if what == "verifier"]


async def test_a_verifier_adds_a_verdict_to_each_remark_and_no_remark_is_lost(runs: Runs) -> None:
    plain = await review(runs, None)
    count = len(plain.data["remarks"])  # type: ignore[arg-type]
    model = ReviewingModel({"verifier": [verdicts(*["confirmed"] * (ASKED - 1), "refuted")]})
    report = await review(runs, model)

    def bare(data: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**each, "verdict": "", "why": "", "proof": None} for each in data["remarks"]]

    assert count == FOUND
    assert report.status == "complete", report.gaps
    assert sorted(map(str, bare(report.data))) == sorted(map(str, bare(plain.data)))
    assert [each["verdict"] for each in report.data["remarks"]][-1] == "refuted"  # type: ignore
    assert report.data["by_verdict"] == {"confirmed": ASKED - 1, "refuted": 1}
    assert "### Refuted by a model" in report.answer
    assert f"Line {ASKED} shows it" in report.answer
    (asked,) = asked_of(model)
    told = str(asked.messages)
    assert "shell=True" in told, "the code of a remark is its material"
    assert SECRET not in told and SECRET not in asked.system


@pytest.mark.long
async def test_a_verifier_is_not_told_who_made_a_remark_and_has_tools_for_what_it_is_not_shown(
    runs: Runs,
) -> None:
    looks = calls(("search_files", {"path": "repo", "pattern": "undefined_name"}))
    model = ReviewingModel({"verifier": [looks, verdicts(*["confirmed"] * ASKED)]})
    report = await review(runs, model)
    first, second = asked_of(model)
    for word in ("bugs", "F821", "B602", "confidence 9", "analyser", "logic"):
        assert word not in str(first.messages), word
    assert "a.py:7" in str(second.messages), "the result of its tool"
    (finding,) = [each for each in report.findings if each.subtask_id == "verify-1"]
    assert (finding.status, finding.tool_calls) == ("complete", 1)


@pytest.mark.long
async def test_a_remark_without_a_verdict_is_asked_for_again_of_a_stronger_model(
    runs: Runs,
) -> None:
    some, all_of_them = verdicts(*["confirmed"] * (ASKED - 1)), verdicts(*["open"] * ASKED)
    model = ReviewingModel({"verifier": [some, all_of_them]})
    report = await review(runs, model)
    asked = asked_of(model)
    assert ["opus" in each.model for each in asked] == [False, True]
    assert f"verdicts: none with a reason on remark {ASKED}" in str(asked[1].messages)
    assert report.data["by_verdict"] == {"open": ASKED}
    assert len(report.data["remarks"]) == FOUND  # type: ignore[arg-type]


@pytest.mark.long
async def test_without_an_answer_or_the_money_the_remarks_stand_as_they_were(runs: Runs) -> None:
    plain = await review(runs, None)
    refusing = await review(runs, ReviewingModel({"verifier": [CallRefused("not today")]}))
    poor = await review(runs, ReviewingModel({}), Limits.model_validate({"model_calls": 3}))
    for report, status in ((refusing, "complete_with_gaps"), (poor, "budget_stopped")):
        assert report.status == status
        assert report.data["remarks"] == plain.data["remarks"]
        assert "could not be verified" in report.answer
        assert [each.subtask_id for each in report.gaps] == ["verify-1"]
