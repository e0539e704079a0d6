"""Agents in a code review: what they say stands when it is confirmed, and the analysers' remarks
stand whatever the agents do.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.calling.verifying import _by_severity, _share_room
from holdfast.contracts import Goal, GoalInput, Limits, Remark, Report
from holdfast.contracts.errors import CallRefused
from holdfast.contracts.remarks import blocks_change, rank_remarks
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.rendering.comment import as_comment
from parameters import rest_long
from repositories import Repository
from reviewing import PROMPTS, ReviewingModel, agent_of, finds, only, verdicts
from scripted import ScriptedModel, calls

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

CODE = """def pages(total, size):
    '''How many pages it takes.'''
    return total // size


def run(name):
    return undefined_name
"""
OF_ANALYSERS = 1
"""Remarks that stand without any agent."""
LOST_PAGE = {"file": "repo/a.py", "line": 3, "message": "The last, partly filled page is lost."}


async def review(runs: Runs, model: ScriptedModel | None, base: str = "", **limits: Any) -> Report:
    folder = runs.folder / "repository"
    if not folder.exists():
        Repository.at(folder).commit({"a.py": CODE, "AGENTS.md": "Every function has a test.\n"})
    goal = Goal(
        text="Review",
        playbook="code-review",
        inputs=(
            GoalInput(name="repo", kind="repository", value=str(folder)),
            *([GoalInput(name="base", kind="text", value=base)] if base else []),
        ),
        use_models=model is not None,
        limits=Limits.model_validate(limits),
    )
    lenses = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    return await runs.run(goal, model, tools=only(lenses, "bugs", "secrets"))


def remarks(report: Report) -> list[dict[str, Any]]:
    found = report.data["remarks"]
    assert isinstance(found, list)
    return found  # type: ignore[return-value]


async def test_what_an_agent_found_and_a_model_confirmed_stands_beside_the_analysers_remarks(
    runs: Runs,
) -> None:
    plain = remarks(await review(runs, None))
    assert len(plain) == OF_ANALYSERS
    reads = calls(("read_file", {"file_path": "repo/a.py"}))
    others = ["confirmed"] * len(plain)
    model = ReviewingModel(
        {
            "logic": [reads, finds(LOST_PAGE)],
            "conventions": [finds() | {"confidence": 40}],
            "verifier": [verdicts("confirmed", *others)],
        }
    )
    report = await review(runs, model)
    assert "conventions (0 tool calls, only 40 % sure of what it looked at)" in report.answer
    assert report.status == "complete", report.gaps
    assert report.data["cut"] == 0 and "beyond what" not in report.answer
    found = remarks(report)
    assert len(found) == len(plain) + 1, "no remark of an analyser is lost"
    (ours,) = [each for each in found if each["lens"] == "logic"]
    assert (ours["file"], ours["line"], ours["verdict"]) == ("a.py", 3, "confirmed")
    assert "Agents read the code" in report.answer and "logic (1 tool call)" in report.answer
    (told, *_) = [each for each in model.requests if agent_of(each) == "logic"]
    assert "undefined_name" in str(told), "an agent is told what the analysers found"


@pytest.mark.parametrize("verdict", rest_long(["open", "refuted"]))
async def test_what_only_an_agent_says_is_listed_apart_and_counts_for_nothing(
    runs: Runs, verdict: str
) -> None:
    nowhere = {**LOST_PAGE, "file": "no/such.py"}
    others = ["confirmed"] * OF_ANALYSERS
    model = ReviewingModel({"logic": [finds(nowhere)], "verifier": [verdicts(verdict, *others)]})
    report = await review(runs, model)
    standing = [each for each in remarks(report) if each["verdict"] != "refuted"]
    assert [each["lens"] for each in standing if each["lens"] in PROMPTS] == []
    assert len(standing) == OF_ANALYSERS
    assert "The last, partly filled page" in report.answer
    severities = report.data["by_severity"]
    assert isinstance(severities, dict) and sum(map(int, severities.values())) == OF_ANALYSERS  # type: ignore[arg-type]


async def test_nobody_can_confirm_what_an_agent_says_of_a_place_that_is_not_there(
    runs: Runs,
) -> None:
    places: list[dict[str, Any]] = [
        {"file": "no/such.py"},
        {"file": "../../../../etc/passwd", "line": 1},
        {"line": 9_999},
        {"line": -5},
    ]
    lies = [{**LOST_PAGE, **place, "message": f"Lie {n}."} for n, place in enumerate(places)]
    model = ReviewingModel({"logic": [finds(*lies)]})
    report = await review(runs, model)
    assert report.data["unconfirmed"] == []
    told = [each for each in remarks(report) if each["by_agent"]]
    assert [each["verdict"] for each in told] == ["refuted"] * len(lies)
    for why in ("no such file", "no such line"):
        assert str(told).count(why) == 2 and why in report.answer


async def test_agents_that_fail_take_no_remark_away(runs: Runs) -> None:
    refused: list[Any] = [CallRefused("not today")]
    model = ReviewingModel(
        {
            **{name: refused for name in PROMPTS},
            "verifier": [verdicts(*["confirmed"] * OF_ANALYSERS)],
        }
    )
    report = await review(runs, model)
    assert report.status == "complete_with_gaps"
    assert len(remarks(report)) == OF_ANALYSERS


async def test_an_agent_cannot_pass_for_a_lens_or_vouch_for_itself(runs: Runs) -> None:
    refusal = CallRefused("not today")
    forged = {**LOST_PAGE, "lens": "security", "verdict": "confirmed", "why": "Surely."}
    model = ReviewingModel({"logic": [finds(forged), finds(LOST_PAGE)], "verifier": [refusal]})
    report = await review(runs, model)
    assert not [each for each in remarks(report) if "partly filled" in each["message"]]
    unconfirmed = report.data["unconfirmed"]
    assert isinstance(unconfirmed, list) and len(unconfirmed) == 1
    assert unconfirmed[0]["lens"] == "logic" and not unconfirmed[0]["verdict"]  # type: ignore


@pytest.mark.long
async def test_of_an_agent_that_tells_very_much_ten_are_looked_at_after_what_analysers_found(
    runs: Runs,
) -> None:
    flood = [
        {**LOST_PAGE, "message": f"Lost {n:03}", "confidence": 100, "severity": "warning"}
        for n in range(600)
    ]
    model = ReviewingModel({"logic": [finds(*flood)]})
    report = await review(runs, model)
    told = [each["lens"] for each in remarks(report)]
    assert told == [*["bugs"] * OF_ANALYSERS, *["logic"] * 10]
    asked = [str(each.messages) for each in model.requests if "code of remark" in str(each)]
    first = next(each for each in asked if "Undefined name" in each)
    assert len(asked) == 2 and first.index("Undefined name") < first.index("Lost 000")
    assert report.data["cut"] == 0 and report.data["cut_of_agents"] == {"logic": 590}
    assert "590 remarks of the agent logic, which told more than the 10" in report.answer


def test_the_room_of_the_verification_is_shared_whoever_fills_it() -> None:
    def found(lens: str, count: int, **fields: Any) -> list[Remark]:
        given = {"severity": "critical", "file": "a.py", "message": "m", "confidence": 90, **fields}
        return [Remark.model_validate({**given, "lens": lens, "line": n}) for n in range(count)]

    def shares(*remarks: Remark) -> Counter[str]:
        return Counter(each.lens for each in _share_room(rank_remarks(remarks), 30))

    bugs, warnings = found("bugs", 40, rule="F821"), found("bugs", 3, rule="B", severity="warning")
    loud, quiet = (
        found("logic", 40, confidence=100, by_agent=True),
        found("rules", 10, by_agent=True),
    )
    assert shares(*bugs, *loud) == {"bugs": 15, "logic": 15}
    assert shares(*bugs, *loud, *quiet) == {"bugs": 15, "logic": 8, "rules": 7}
    assert shares(*bugs, *quiet[:2]) == {"bugs": 28, "rules": 2}
    assert shares(*warnings, *loud) == {"bugs": 3, "logic": 27}
    order = _by_severity(_share_room(rank_remarks([*warnings, *loud[:2], *bugs[:2]]), 30))
    assert [each.lens for each in order] == ["bugs"] * 2 + ["logic"] * 2 + ["bugs"] * 3


@pytest.mark.parametrize("found", rest_long([((LOST_PAGE,),), ((),)]))
async def test_what_an_agent_hands_up_is_complete_however_sure_it_is_of_the_whole(
    runs: Runs, found: tuple[dict[str, Any], ...]
) -> None:
    model = ReviewingModel({"logic": [{**finds(*found), "confidence": 5}]})
    report = await review(runs, model)
    assert report.status == "complete", report.gaps
    (logic,) = [each for each in report.findings if each.subtask_id == "logic"]
    assert [each.tier for each in logic.tries] == ["sonnet"]
    assert logic.data["remarks_in_all"] == len(found)


async def test_of_a_whole_tree_who_looks_at_changes_is_left_out_with_the_reason(
    runs: Runs,
) -> None:
    report = await review(runs, ReviewingModel({}))
    left_out = next(each for each in report.not_run if "whole tree" in each.why)
    assert left_out.what == (
        "Read who calls what changed, Read for mistakes that come back, Read what is not tested"
    )
    assert {each.subtask_id for each in report.findings if each.model} == {
        "attacks", "conventions", "logic", "verify-1",
    }  # fmt: skip


async def test_where_nothing_differs_no_agent_is_asked(runs: Runs) -> None:
    model = ReviewingModel({})
    report = await review(runs, model, base="HEAD")
    assert report.status == "complete" and not model.requests
    assert "no text differs from the base" in str(report.not_run)


async def test_a_remark_that_an_agent_is_not_sure_of_is_verified_and_shown_if_it_is_confirmed(
    runs: Runs,
) -> None:
    report = await review(runs, ReviewingModel({"logic": [finds({**LOST_PAGE, "confidence": 20})]}))
    (ours,) = [each for each in remarks(report) if each["by_agent"]]
    assert (ours["rule"], ours["confidence"], ours["verdict"]) == ("wrong-bound", 20, "confirmed")
    assert report.data["below_confidence"] == 0


async def test_open_remarks_that_are_sure_or_bad_enough_are_questions_and_nothing_is_uncounted(
    runs: Runs,
) -> None:
    told: list[dict[str, Any]] = [
        {"message": "Confirmed.", "confidence": 90},
        {"message": "Refuted.", "confidence": 90},
        {"message": "Open and sure.", "confidence": 80, "severity": "warning"},
        {"message": "Open and bad.", "confidence": 60},
        {"message": "Open and neither.", "confidence": 79, "severity": "warning"},
    ]
    said = ["confirmed", "refuted", "open", "open", "open"]

    class Deciding(ReviewingModel):
        """Says of each remark what was to become of it."""

        async def _answer(self, what: str, request: ModelRequest) -> ModelAnswer:
            if what == "verifier":
                shown = str(request.messages)
                at = {
                    shown.find(each["message"]): word for each, word in zip(told, said, strict=True)
                }
                at[shown.find("Undefined name")] = "confirmed"
                words = [at[place] for place in sorted(at)]
                self._left["verifier"] = deque([verdicts(*words)])
            return await super()._answer(what, request)

    report = await review(
        runs, Deciding({"logic": [finds(*({**LOST_PAGE, **each} for each in told))]})
    )
    assert report.status == "complete", report.gaps
    line = "5 remarks of agents: 1 confirmed, 1 refuted, 3 open (2 shown as questions)."
    assert line in report.answer and line in as_comment(report)
    apart = "Not counted: 2 questions to the author, 1 refuted, 1 not confirmed."
    assert apart in report.answer and apart in as_comment(report)
    asked = report.answer.partition("### Questions to the author")[2].partition("###")[0]
    assert "Open and sure" in asked and "Open and bad" in asked
    assert "neither" not in asked and "Open and neither" in report.answer
    assert "1 remark of agents that nobody has confirmed" in report.answer
    assert sum(blocks_change(each) for each in counted_of(report) if each.by_agent) == 1


async def test_no_model_is_asked_about_a_secret_that_an_analyser_found(runs: Runs) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    folder = runs.folder / "repository"
    Repository.at(folder).commit({"a.py": f'{CODE}\n\nTOKEN = "{token}"\n'})
    model = ReviewingModel({})
    report = await review(runs, model)
    (secret,) = [each for each in counted_of(report) if each.lens == "secrets"]
    assert blocks_change(secret) and not secret.verdict
    asked = str([each for each in model.requests if "remark 1" in str(each)])
    assert "Undefined name" in asked and "remark 2" not in asked
    assert (
        "2 remarks of analysers: 1 confirmed, 1 verified by no model, as secrets are."
        in report.answer
    )


def counted_of(report: Report) -> list[Remark]:
    return [Remark.model_validate(each) for each in remarks(report)]
