"""With people to ask, what is not complete after repair, or hands a case over, waits for one of
them before anything is skipped and before the answer is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from test_steering import refused, tell

from conftest import Handle, Runs, seen
from holdfast.contracts import Goal, Report
from holdfast.rendering.orders import lines
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

FAILS = works("", status="failed", why="the source is gone")
PLAN = ready(subtask("t1", role="researcher"), subtask("t2", "t1"), subtask("t3"))
GIVES_BACK = works("Half of it.", status="escalate", reason="out_of_scope", why="not my matter")


def goal(**fields: object) -> Goal:
    limits = {"tries_per_subtask": 1, "replans": 1}
    base = {"text": "Compare them", "use_models": True, "plan": PLAN, "limits": limits}
    return Goal.model_validate({**base, "ask_people": True, **fields})


def script(**lines: Any) -> ScriptedModel:
    # Its fallback fails as well.
    usual = {"t1": [FAILS] * 2, "t2": [works("two")], "t3": [works("three")]}
    usual |= {"synthesize": [synthesizes("Done [t2] [t3].")]}
    return ScriptedModel({**usual, **lines})


async def asked(handle: Handle, subtask_id: str = "t1") -> Any:
    """What is asked of a person, once nothing else is left to do."""
    view = await seen(
        handle,
        lambda each: bool(each.waiting) and not any(r.status == "running" for r in each.rows),
    )
    (question,) = view.waiting
    assert (question.kind, question.subtask_id) == ("decision", subtask_id)
    return question


async def decided(runs: Runs, model: ScriptedModel, name: str, **order: object) -> Report:
    """The report of a run of which a person decided so on t1."""
    async with runs.worker(model):
        handle = await runs.start(goal(), skipping=False)
        question = await asked(handle)
        assert question.text == "failed: the source is gone"
        assert "synthesize" not in model.heard and "t2" not in model.heard
        assert "coder" in question.roles
        await tell(handle, name, subtask_id="t1", by="ann", **order)
        report: Report = await handle.result()
    assert model.missed == []
    assert [(each.command, each.order.by) for each in report.orders] == [(name, "ann")]
    return report


def found(report: Report) -> Mapping[str, str]:
    return {each.subtask_id: each.status for each in report.findings}


COMPLETE = {"t1": "complete", "t2": "complete", "t3": "complete"}


async def test_what_failed_for_good_is_tried_again_as_it_was(runs: Runs) -> None:
    model = script(t1=[FAILS, FAILS, works("one")])
    report = await decided(runs, model, "retry")
    assert found(report) == COMPLETE and report.status == "complete"
    assert model.requests[-4 if "critique" in model.heard else -3].prompt.count("gone") == 0


async def test_with_a_word_of_advice_it_goes_on_where_it_stood(runs: Runs) -> None:
    model = script(t1=[FAILS, FAILS, works("one")])
    report = await decided(runs, model, "answer", text="Look into the archive.")
    assert found(report) == COMPLETE
    again = [r for what, r in zip(model.heard, model.requests, strict=True) if what == "t1"][-1]
    assert "the source is gone" in again.prompt and "Look into the archive." in again.prompt
    finding = report.findings[0]
    assert "answered by ann: Look into the archive." in finding.sources
    assert [each.verdict for each in finding.tries] == ["failed", "failed", "accepted"]


async def test_the_words_of_a_person_become_its_finding_and_are_marked_so(runs: Runs) -> None:
    report = await decided(runs, script(), "supply", text="It is forty.")
    finding = report.findings[0]
    assert found(report) == COMPLETE
    assert (finding.content, finding.sources, finding.model) == (
        "It is forty.",
        ("supplied by hand by ann",),
        "",
    )


async def test_without_it_the_run_goes_on_as_if_nobody_had_been_asked(runs: Runs) -> None:
    nothing: dict[str, Any] = {"changes": []}
    report = await decided(runs, script(replan=[nothing, nothing]), "skip", text="never mind")
    assert found(report) == {"t1": "failed", "t2": "skipped", "t3": "complete"}
    assert report.findings[0].why == "the source is gone"
    assert report.status == "complete_with_gaps"
    [line] = lines(report.orders)
    assert "**ann** skipped t1: “never mind”" in line


@pytest.mark.long
async def test_it_is_handed_to_another_role_of_the_run(runs: Runs) -> None:
    model = script(t1=[FAILS, FAILS, works("one")])
    report = await decided(runs, model, "hand", role="coder")
    assert found(report) == COMPLETE
    assert [each.role for each in report.findings[0].tries] == ["", "analyst", "coder"]
    [line] = lines(report.orders)
    assert "**ann** handed over t1: to coder" in line


async def test_what_an_agent_gave_back_waits_and_its_part_is_passed_on_if_it_is_left(
    runs: Runs,
) -> None:
    """Also where a role was to take it over, once that gave it back as well."""
    model = script(t1=[GIVES_BACK, GIVES_BACK])
    async with runs.worker(model):
        handle = await runs.start(goal(limits={}), skipping=False)
        question = await asked(handle)
        assert question.text == "gave it back: out of scope: not my matter"
        await tell(handle, "skip", subtask_id="t1")
        report = await handle.result()
    assert found(report) == {"t1": "escalated", "t2": "complete", "t3": "complete"}


async def test_a_case_that_is_handed_to_a_person_waits_for_one(runs: Runs) -> None:
    plan = ready(subtask("case", role="escalator"))
    model = ScriptedModel({"case": [works("A refund is wanted.")] * 2})
    asks = {"playbook": "tech-support", "plan": plan}
    ticket = runs.folder / "ticket.txt"
    ticket.write_text("I want my money back.\n")
    asks["inputs"] = ({"name": "ticket", "kind": "file", "value": str(ticket)},)
    async with runs.worker(model):
        handle = await runs.start(goal(**asks), skipping=False)
        question = await asked(handle, "case")
        assert question.text == "hands a case over to a person: A refund is wanted."
        await tell(handle, "supply", subtask_id="case", text="Refunded in full.", by="ann")
        report = await handle.result()
    assert report.findings[0].content == "Refunded in full." and report.status == "complete"
    model = ScriptedModel({"case": [works("A refund is wanted.")]})
    alone = await runs.run(goal(**asks, ask_people=False), model)
    assert alone.status == "complete" and not alone.orders


async def test_late_double_and_odd_decisions_are_refused_in_a_line(runs: Runs) -> None:
    model = script(t1=[FAILS, FAILS, works("one")])
    async with runs.worker(model):
        handle = await runs.start(goal(), skipping=False)
        await asked(handle)
        t1 = {"subtask_id": "t1"}
        assert "there is no role 'wizard' to hand it to; known: " in await refused(
            handle, "hand", role="wizard", **t1
        )
        assert "the answer is empty" in await refused(handle, "answer", text=" ", **t1)
        assert "the finding is empty" in await refused(handle, "supply", **t1)
        assert "t2 does not wait" in await refused(handle, "answer", subtask_id="t2", text="forty")
        assert "there is no subtask 't9'" in await refused(
            handle, "hand", subtask_id="t9", role="coder"
        )
        assert "analyst has had t1" in await refused(handle, "hand", role="analyst", **t1)
        await tell(handle, "supply", text="It is forty.", **t1)
        late = [await refused(handle, name, text="x", **t1) for name in ("answer", "retry", "skip")]
        report = await handle.result()
    assert all(each.startswith("Refused: ") and "\n" not in each for each in late), late
    assert report.findings[0].content == "It is forty."


@pytest.mark.long
async def test_nobody_who_comes_in_a_day_leaves_it_as_it_is(runs: Runs) -> None:
    nothing: dict[str, Any] = {"changes": []}
    report = await runs.run(goal(), script(replan=[nothing, nothing]))
    assert found(report) == {"t1": "failed", "t2": "skipped", "t3": "complete"}
    assert "Nobody decided within 24 hours what becomes of t1: it stays so." in report.notes
    assert report.timings.makespan >= 86_400, "the deadline stood still"


async def test_who_may_not_be_asked_is_not(runs: Runs) -> None:
    nothing: dict[str, Any] = {"changes": []}
    report = await runs.run(goal(ask_people=False), script(replan=[nothing, nothing]))
    assert found(report) == {"t1": "failed", "t2": "skipped", "t3": "complete"}
    assert report.timings.makespan < 86_400
