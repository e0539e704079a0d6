"""`--models` on a code review: a model adds verdicts to what the analysers found and takes nothing
away; secrets stay here.
"""

from __future__ import annotations

from typing import Any

from conftest import Runs
from holdfast.activities.prompts.excerpts import excerpt
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.contracts import Goal, GoalInput, Limits, Report
from holdfast.contracts.errors import CallRefused
from repositories import Repository
from reviewing import PROMPTS, ReviewingModel
from scripted import ScriptedModel

SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
CODE = f"""import subprocess
import sys


def run():
    subprocess.call("ls " + sys.argv[1], shell=True)
    return undefined_name


TOKEN = "{SECRET}"
"""


def verdicts(*words: str) -> dict[str, Any]:
    said = [
        {"remark": number, "verdict": word, "why": f"Line {number} shows it."}
        for number, word in enumerate(words, 1)
    ]
    return {"verdicts": said}


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
    tools = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    return await runs.run(goal, model, tools=tools)


async def test_a_model_adds_a_verdict_to_each_remark_and_no_remark_is_lost(runs: Runs) -> None:
    plain = await review(runs, None)
    count = len(plain.data["remarks"])  # type: ignore[arg-type]
    model = ReviewingModel({"verify": [verdicts(*["confirmed"] * (count - 1), "refuted")]})
    report = await review(runs, model)

    def bare(data: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**each, "verdict": "", "why": ""} for each in data["remarks"]]

    assert count >= 3
    assert sorted(map(str, bare(report.data))) == sorted(map(str, bare(plain.data)))
    assert [each["verdict"] for each in report.data["remarks"]][-1] == "refuted"  # type: ignore
    assert report.data["by_verdict"] == {"confirmed": count - 1, "refuted": 1}
    assert "### Refuted by a model" in report.answer
    assert f"Line {count} shows it" in report.answer
    assert sorted(model.heard) == sorted([*PROMPTS, "verify"])
    asked = model.requests[-1]
    assert "shell=True" in asked.prompt, "the code around a remark is its material"
    assert SECRET not in asked.prompt and SECRET not in asked.system


async def test_what_a_model_leaves_undecided_is_shown_to_a_stronger_one_once(runs: Runs) -> None:
    count = len((await review(runs, None)).data["remarks"])  # type: ignore[arg-type]
    first = verdicts("undecided", *["confirmed"] * (count - 2), "undecided")
    second = verdicts("refuted", "undecided")
    model = ReviewingModel({"verify": [first, second]})
    report = await review(runs, model)
    heard = zip(model.heard, model.requests, strict=True)
    asked = [request for what, request in heard if what == "verify"]
    assert ["opus" in each.model for each in asked] == [False, True]
    assert asked[1].prompt.count("code around remark") == 2
    counts = {"confirmed": count - 2, "refuted": 1, "undecided": 1}
    assert report.data["by_verdict"] == counts
    assert len(report.data["remarks"]) == count  # type: ignore[arg-type]


async def test_without_an_answer_or_the_money_the_remarks_stand_as_they_were(runs: Runs) -> None:
    plain = await review(runs, None)
    refusing = await review(runs, ReviewingModel({"verify": [CallRefused("not today")]}))
    poor = await review(runs, ReviewingModel({}), Limits.model_validate({"model_calls": 3}))
    for report in (refusing, poor):
        assert report.status == "complete_with_gaps"
        assert report.data["remarks"] == plain.data["remarks"]
        assert "could not be verified" in report.answer


def test_an_excerpt_withholds_lines_and_keys_and_stays_small() -> None:
    key = (
        "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "MIIabc\n" * 9 + "-----END RSA PRIVATE KEY-----"
    )
    text = f"first\npassphrase of mine\n{key}\nlast\n"
    shown = excerpt(text, 5, withheld=[2])
    assert "first" in shown and "   14  last" in shown
    assert "mine" not in shown and "MIIabc" not in shown
    assert excerpt("", 1) == ""
    wide = excerpt("x" * 10_000 + "\n" + "\u4e00" * 10_000, 1)
    assert len(wide.encode()) <= 3_000
