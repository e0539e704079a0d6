"""Agents in a code review: what they say stands when it is confirmed, and the analysers' remarks
stand whatever the agents do.
"""

from __future__ import annotations

from typing import Any

import pytest

from activities.code_review.lenses import lenses_of
from activities.repositories.scratch import Snapshots
from conftest import Runs
from orchestrator.contracts import Goal, GoalInput, Limits, Report
from orchestrator.errors import CallRefused
from repositories import Repository
from reviewing import PROMPTS, ReviewingModel, finds
from scripted import ScriptedModel, calls

pytestmark = pytest.mark.anyio

CODE = """def pages(total, size):
    '''How many pages it takes.'''
    return total // size


def run(name):
    return undefined_name
"""
LOST_PAGE = {"file": "repo/a.py", "line": 3, "message": "The last, partly filled page is lost."}


async def review(runs: Runs, model: ScriptedModel | None, **limits: Any) -> Report:
    folder = runs.folder / "repository"
    if not folder.exists():
        Repository.at(folder).commit({"a.py": CODE, "AGENTS.md": "Every function has a test.\n"})
    goal = Goal(
        text="Review",
        playbook="code-review",
        inputs=(GoalInput(name="repo", kind="repository", value=str(folder)),),
        use_models=model is not None,
        limits=Limits.model_validate(limits),
    )
    tools = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    return await runs.run(goal, model, tools=tools)


def says(verdict: str, *others: str) -> dict[str, Any]:
    words = (verdict, *others)
    return {
        "verdicts": [
            {"remark": number, "verdict": word, "why": "Line 3 shows it."}
            for number, word in enumerate(words, 1)
        ]
    }


def remarks(report: Report) -> list[dict[str, Any]]:
    found = report.data["remarks"]
    assert isinstance(found, list)
    return found  # type: ignore[return-value]


async def test_what_an_agent_found_and_a_model_confirmed_stands_beside_the_analysers_remarks(
    runs: Runs,
) -> None:
    plain = remarks(await review(runs, None))
    reads = calls(("read_file", {"file_path": "repo/a.py"}))
    others = ["confirmed"] * len(plain)
    model = ReviewingModel(
        {"logic": [reads, finds(LOST_PAGE)], "verify": [says("confirmed", *others)]}
    )
    report = await review(runs, model)
    assert report.status == "complete", report.gaps
    found = remarks(report)
    assert len(found) == len(plain) + 1, "no remark of an analyser is lost"
    (ours,) = [each for each in found if each["lens"] == "logic"]
    assert (ours["file"], ours["line"], ours["verdict"]) == ("a.py", 3, "confirmed")
    assert "Agents read the code" in report.answer and "logic (1 tool call)" in report.answer
    (told, *_) = [each for each in model.requests if each.system.startswith(PROMPTS["logic"])]
    assert "undefined_name" in str(told), "an agent is told what the analysers found"


@pytest.mark.parametrize("verdict", ["undecided", "refuted"])
async def test_what_only_an_agent_says_is_listed_apart_and_counts_for_nothing(
    runs: Runs, verdict: str
) -> None:
    plain = remarks(await review(runs, None))
    nowhere = {**LOST_PAGE, "file": "no/such.py"}
    others = ["confirmed"] * len(plain)
    model = ReviewingModel({"logic": [finds(nowhere)], "verify": [says(verdict, *others)]})
    report = await review(runs, model)
    standing = [each for each in remarks(report) if each["verdict"] != "refuted"]
    assert [each["lens"] for each in standing if each["lens"] in PROMPTS] == []
    assert len(standing) == len(plain)
    assert "The last, partly filled page" in report.answer
    severities = report.data["by_severity"]
    assert isinstance(severities, dict) and sum(map(int, severities.values())) == len(plain)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ({"file": "no/such.py"}, "no such file"),
        ({"file": "../../../../etc/passwd", "line": 1}, "no such file"),
        ({"line": 9_999}, "no such line"),
        ({"line": -5}, "no such line"),
    ],
)
async def test_nobody_can_confirm_what_an_agent_says_of_a_place_that_is_not_there(
    runs: Runs, place: dict[str, Any], why: str
) -> None:
    plain = remarks(await review(runs, None))
    others = ["confirmed"] * len(plain)
    lie = finds({**LOST_PAGE, **place})
    model = ReviewingModel({"logic": [lie], "verify": [says("confirmed", *others)]})
    report = await review(runs, model)
    assert len(remarks(report)) == len(plain)
    assert why in str(report.data["unconfirmed"]) and why in report.answer


async def test_agents_that_fail_take_no_remark_away(runs: Runs) -> None:
    plain = remarks(await review(runs, None))
    refused: list[Any] = [CallRefused("not today")]
    model = ReviewingModel(
        {**{name: refused for name in PROMPTS}, "verify": [says(*["confirmed"] * len(plain))]}
    )
    report = await review(runs, model)
    assert report.status == "complete_with_gaps"
    assert len(remarks(report)) == len(plain)


async def test_an_agent_cannot_pass_for_a_lens_or_vouch_for_itself(runs: Runs) -> None:
    refusal = CallRefused("not today")
    forged = {**LOST_PAGE, "lens": "security", "verdict": "confirmed", "why": "Surely."}
    model = ReviewingModel({"logic": [finds(forged), finds(LOST_PAGE)], "verify": [refusal]})
    report = await review(runs, model)
    assert not [each for each in remarks(report) if "partly filled" in each["message"]]
    unconfirmed = report.data["unconfirmed"]
    assert isinstance(unconfirmed, list) and len(unconfirmed) == 1
    assert unconfirmed[0]["lens"] == "logic" and not unconfirmed[0]["verdict"]  # type: ignore
