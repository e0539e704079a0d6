"""A confirmed critical of a review carries a script that was run on what is reviewed and on its
base, or says why there is none; and that costs no remark and no cap.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.calling.proving import by_need
from holdfast.contracts import Goal, GoalInput, Limits, Remark, Report
from holdfast.contracts.remarks import read_review
from holdfast.rendering.comment import as_comment
from holdfast.rendering.proofs import patches_of
from holdfast.rendering.sarif import as_sarif
from parameters import rest_long
from repositories import Repository
from reviewing import UNPROVED, ReviewingModel, finds, only

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

BASE = '''def pages(total: int, size: int) -> int:
    """How many pages it takes."""
    return -(-total // size)
'''
HEAD = BASE.replace("-(-total // size)", "total // size")
LOST_PAGE = {"file": "repo/a.py", "line": 3, "message": "The last, partly filled page is lost."}
TRUE = {
    "why": "7 items need a third page.",
    "shows": "7 items in pages of 3 are 2 pages.",
    "script": "assert pages(7, 3) == 3, pages(7, 3)",
    "fails_with": "AssertionError",
}
BROKEN = {**TRUE, "script": "assert pages(7) == 3"}
FALSE = {**TRUE, "script": "assert pages(7, 3) == 2"}


def confirms(count: int = 1) -> dict[str, Any]:
    verdicts = [
        {"remark": number, "why": "Line 3 shows it.", "verdict": "confirmed"}
        for number in range(1, count + 1)
    ]
    return {"verdicts": verdicts}


async def review(runs: Runs, model: ReviewingModel, *more: GoalInput, **limits: Any) -> Report:
    folder = runs.folder / "repository"
    if not folder.exists():
        repository = Repository.at(folder)
        repository.commit({"a.py": BASE})
        repository.git("switch", "-q", "-c", "change")
        repository.commit({"a.py": HEAD})
    goal = Goal(
        text="Review",
        playbook="code-review",
        inputs=(GoalInput(name="repo", kind="repository", value=str(folder)), *more),
        use_models=True,
        limits=Limits.model_validate(limits),
    )
    lenses = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    return await runs.run(goal, model, tools=only(lenses, "bugs"))


async def proved(runs: Runs, *scripts: dict[str, Any], **limits: Any) -> tuple[Report, Remark]:
    """A review whose agent reports one critical, for which these scripts are written."""
    lines = {"logic": [finds(LOST_PAGE)], "verify": [confirms()], "prove": list(scripts)}
    report = await review(runs, ReviewingModel(lines), **limits)
    data = read_review(report)
    assert data is not None and report.status == "complete", report.gaps
    (remark,) = [each for each in data.remarks if each.severity == "critical"]
    assert remark.verdict == "confirmed"
    return report, remark


async def test_a_script_that_fails_on_the_branch_and_passes_on_the_base_stands_in_every_form(
    runs: Runs,
) -> None:
    report, remark = await proved(runs, TRUE)
    assert remark.proof is not None and remark.proof.verdict == "proved", remark.proof
    assert "head: AssertionError" in remark.proof.output
    for form in (report.answer, as_comment(report), as_sarif(report)):
        assert "assert pages(7, 3) == 3" in form
        assert "passes on the base" in form


@pytest.mark.long
async def test_a_script_that_does_not_run_is_written_once_more(runs: Runs) -> None:
    _, remark = await proved(runs, BROKEN, TRUE)
    assert remark.proof is not None and remark.proof.verdict == "proved", remark.proof


@pytest.mark.long
async def test_after_a_second_one_that_does_not_run_it_says_so(runs: Runs) -> None:
    report, remark = await proved(runs, BROKEN, BROKEN)
    assert remark.proof is not None and remark.proof.verdict == "not tried"
    assert "A proof could not be tried: it ended with TypeError" in report.answer


@pytest.mark.long
async def test_what_does_not_fail_takes_no_remark_away_and_is_said(runs: Runs) -> None:
    report, remark = await proved(runs, FALSE)
    assert remark.proof is not None and remark.proof.verdict == "not proved"
    assert "Not proved: it passes on the code under review" in report.answer


@pytest.mark.long
async def test_what_a_model_cannot_show_says_why(runs: Runs) -> None:
    report, _ = await proved(runs, UNPROVED)
    assert "A proof could not be tried: A script cannot show it." in report.answer


@pytest.mark.long
async def test_without_money_for_it_a_critical_says_that(runs: Runs) -> None:
    _, remark = await proved(runs, model_calls=7)
    assert remark.proof is not None and "budget" in remark.proof.why


@pytest.mark.long
async def test_only_so_many_are_tried(runs: Runs) -> None:
    many = [{**LOST_PAGE, "message": f"A page is lost, says {n}."} for n in range(5)]
    model = ReviewingModel({"logic": [finds(*many)], "verify": [confirms(5)], "prove": [TRUE] * 3})
    data = read_review(await review(runs, model))
    assert data is not None
    found = [each.proof for each in data.remarks if each.severity == "critical" and each.proof]
    assert sorted(each.verdict for each in found) == ["not tried"] * 2 + ["proved"] * 3
    assert model.heard.count("prove") == 3


def test_the_surest_and_touched_production_code_come_first_to_the_few_proofs() -> None:
    told = {
        "warning": Remark(severity="warning", file="a.py", line=1, message="m", confidence=99),
        "untouched": Remark(
            severity="critical", file="a.py", line=1, message="m", confidence=90, new_since="b" * 40
        ),
        "unsure": Remark(severity="critical", file="a.py", line=1, message="m", confidence=60),
        "touched": Remark(severity="critical", file="a.py", line=1, message="m", confidence=90),
    }
    first = by_need(enumerate(told.values()))
    assert [[*told][place] for place, _ in first] == ["touched", "untouched", "unsure", "warning"]


# ---------------------------------------------------------------- patches

RIGHT = {
    "why": "It rounds up.",
    "old": "    return total // size",
    "new": "    return -(-total // size)",
}
NO_MEND = {**RIGHT, "new": "    return total // size + 0"}
NEW_DEFECT = {**RIGHT, "new": "    return -(-totals // size)"}
NOWHERE = {**RIGHT, "old": "    return total / size"}
UNSURE = {"why": "What is meant is not clear.", "old": "", "new": ""}


async def mended(runs: Runs, patch: dict[str, Any]) -> tuple[Report, Remark]:
    lines = {
        "logic": [finds(LOST_PAGE)],
        "verify": [confirms()],
        "prove": [TRUE],
        "fix": [patch],
    }
    wanted = GoalInput(name="fix", kind="text", value="yes")
    report = await review(runs, ReviewingModel(lines), wanted)
    data = read_review(report)
    assert data is not None and report.status == "complete", report.gaps
    (remark,) = [each for each in data.remarks if each.severity == "critical"]
    assert remark.fix is not None
    return report, remark


async def test_a_patch_after_which_lenses_and_proof_are_content_is_one_that_git_applies(
    runs: Runs,
) -> None:
    report, remark = await mended(runs, RIGHT)
    assert remark.fix is not None and "the proof passes" in remark.fix.why
    data = read_review(report)
    assert data is not None
    repository = Repository(runs.folder / "repository")
    repository.git("apply", "-", stdin=patches_of(data)[0].encode())
    assert (repository.path / "a.py").read_text() == BASE
    assert "```suggestion\n    return -(-total // size)\n```" in as_comment(report)
    (result,) = json.loads(as_sarif(report))["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["deletedRegion"]["startLine"] == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("patch", "why"),
    rest_long(
        [
            (NOWHERE, "stand nowhere in a.py"),
            (NO_MEND, "its proof ends with AssertionError"),
            (NEW_DEFECT, "it brings bugs:F821"),
            (UNSURE, "What is meant is not clear"),
        ]
    ),
)
async def test_a_patch_that_something_speaks_against_is_not_proposed(
    runs: Runs, patch: dict[str, Any], why: str
) -> None:
    report, remark = await mended(runs, patch)
    assert remark.fix is not None and not remark.fix.diff
    assert "No patch is proposed" in report.answer and why in remark.fix.why


@pytest.mark.long
async def test_nothing_is_run_to_prove_a_remark_where_that_is_said(runs: Runs) -> None:
    model = ReviewingModel({"logic": [finds(LOST_PAGE)], "verify": [confirms()], "prove": []})
    no = GoalInput(name="prove", kind="text", value="no")
    report = await review(runs, model, no)
    data = read_review(report)
    assert data is not None and report.status == "complete", report.gaps
    (remark,) = [each for each in data.remarks if each.severity == "critical"]
    assert remark.verdict == "confirmed" and remark.proof is None
    assert not any("input prove" in each.what for each in report.not_run)
