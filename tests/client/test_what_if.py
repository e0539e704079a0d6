"""What-if: the last runs of a role forked with one thing of it changed, priced, run, compared."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.asking.batch_of_one import BatchOfOne
from holdfast.calls.judge import Judgement
from holdfast.calls.sources import Sources
from holdfast.certifying.deployment import outcome
from holdfast.cli.commands.runs import what_if
from holdfast.cli.commands.runs.what_if import read_prompt
from holdfast.client import orders
from holdfast.client.trying import UNSEEN, Asking, Open, priced, settled, tried, verdict_of
from holdfast.client.what_if import (
    Candidate,
    Chosen,
    RoleChange,
    Unfit,
    check_change,
    check_roles,
    choose,
)
from holdfast.contracts import Capabilities, Goal, GoalInput, Order, PinnedInput, Report, RoleCard
from holdfast.contracts.errors import AuthenticationRefused
from holdfast.contracts.view import Preview
from holdfast.errors import Refused
from holdfast.intake.connection import Connection, tell_nobody
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.rendering.what_if import WhatIf, as_markdown
from holdfast.replaying.replay import play
from holdfast.workflows import WORKFLOWS
from scripted import ScriptedModel, ready, subtask, synthesizes, works
from shipped import shipped_catalogue
from steered import ALWAYS, report_of, waiting
from waiting_batches import WaitingBatches

pytestmark = pytest.mark.anyio
HAIKU = RoleChange("analyst", tier="haiku")
NEITHER = {"winner": "none", "why": "they say the same"}
PLAN = ready(subtask("t1", role="writer"), subtask("t2", "t1"))
GOAL = Goal(text="Compare", use_models=True, plan=PLAN)


def model(count: int = 1, forks: int = 0, **lines: Any) -> ScriptedModel:
    answers = {
        "t1": [works("one")] * count,
        "t2": [works("two")] * (count + forks),
        "synthesize": [synthesizes("Both [t1] [t2].")] * (count + forks),
    }
    return ScriptedModel(answers | lines)


async def record(runs: Runs, *goals: Goal) -> list[Report]:
    """Run these one after the other."""
    return [await outcome(await runs.start(each)) for each in goals]


async def choose_all(connection: Connection, change: RoleChange, count: int) -> Chosen:
    """Choose so many runs, once the server lists them all."""
    async with asyncio.timeout(60):
        while True:
            with suppress(Refused):
                listed = await choose(connection, change, count)
                if len(listed.candidates) + len(listed.unusable) == count:
                    return listed
            await asyncio.sleep(0.05)


async def test_a_fork_of_a_what_if_does_the_role_again_and_what_builds_on_it_and_no_more(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = model()
    async with runs.worker(asked):
        (report,) = await record(runs, GOAL)
        chosen = await choose_all(connection, HAIKU, 1)
        capsys.readouterr()
        for dry in (True, False):
            await what_if.run(
                connection, HAIKU, 1, Asking(), by_batch=False, dry=dry, yes=False, as_json=False
            )
    told = capsys.readouterr()
    assert told.out.count("3 calls in 1 fork, where the runs asked 4;") == 2
    assert told.err.count("Nothing was asked; --yes does it.") == 1 and len(asked.heard) == 4
    (candidate,) = chosen.candidates
    assert candidate.report == report and candidate.again == ("t2",)
    fork = candidate.goal.fork
    assert fork is not None and [each.subtask_id for each in fork.findings] == ["t1"]
    (was,) = fork.roles
    assert (was.name, was.tier) == ("analyst", "haiku")
    assert candidate.goal.plan is not None and candidate.goal.plan.subtasks[1].tier == "haiku"
    made = priced(chosen, Asking(judge=False))
    (price,) = made.forks
    assert (price.calls_of_run, price.calls) == (4, 3)
    usual = priced(await _usual(connection, report), Asking(judge=False)).expected
    assert made.expected and usual and made.expected < usual
    assert made.budget and made.budget > 2 * made.expected + 2, "and what the run could have cost"


@pytest.mark.long
async def test_forks_that_may_wait_go_by_batches_at_half_the_price(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchOfOne, "first_pause", 0.01)
    high = RoleChange("analyst", effort="high")
    answers = ["Both [t1] [t2].", "Both [t1] [t2].", "Both, shorter [t1] [t2]."]
    lines = {"synthesize": map(synthesizes, answers), "judge": [NEITHER] * 2}
    asked = model(1, 2, **lines)
    batches = WaitingBatches(asked)
    able = Capabilities(batches=True)

    async def capabilities() -> Capabilities:
        return able

    async with runs.worker(asked, batches=batches, capabilities=capabilities):
        (report,) = await record(runs, GOAL)
        now = await choose_all(connection, high, 1)
        at_once = await tried(connection, now, priced(now, Asking()), Asking(), tell_nobody)
        assert not batches.made
        chosen = await choose(connection, high, 1, by_batch=True)
        made = priced(chosen, Asking())
        waited = await tried(connection, chosen, made, Asking(), tell_nobody)
    assert made.lane == "batch" and made.expected and made.judging and made.judging.expected
    usual = priced(now, Asking())
    assert usual.expected and usual.judging and usual.judging.expected
    assert made.expected == pytest.approx(usual.expected / 2, rel=Decimal("0.01"))
    assert made.judging.expected == usual.judging.expected / 2
    assert waited.paid and at_once.paid and waited.paid < at_once.paid
    (pair,) = waited.pairs
    assert (pair.run, pair.decided.by) == (report.run_id, "judge")
    assert pair.before.dollars == pair.now.dollars, "compared at the price of calls at once"
    said = as_markdown(waited, lambda *words: " ".join(words))
    assert "batches cost half" in said and "It took" not in said
    assert pair.calls_asked == 3 and len(batches.made) == 5, (
        "the fork's calls, and two of the judge"
    )


async def _usual(connection: Connection, report: Report) -> Chosen:
    """The same with a change that has no price of its own."""
    return await choose_all(connection, RoleChange("analyst", effort="high"), 1)


async def test_what_cannot_be_done_again_is_left_out_with_the_reason(
    runs: Runs, connection: Connection
) -> None:
    note = runs.folder / "note.txt"
    note.write_text("words")
    given = GoalInput(name="note", kind="file", value=str(note))
    with_note = GOAL.model_copy(
        update={"inputs": (given,), "plan": ready(subtask("t2", inputs=["note"]))}
    )
    already = GOAL.model_copy(update={"plan": ready(subtask("t2", tier="haiku"))})
    asked = model(2, 9)
    async with runs.worker(asked):
        # The newest is listed first.
        lost, cheap, usual = await record(runs, with_note, already, GOAL)
        (runs.store.root / lost.inputs[0].digest[:2] / lost.inputs[0].digest).unlink()
        chosen = await choose_all(connection, HAIKU, 3)
    assert [each.report.run_id for each in chosen.candidates] == [usual.run_id]
    assert {each.run_id: each.why for each in chosen.unusable} == {
        lost.run_id: "what it read of its input 'note' is gone from the store",
        cheap.run_id: "its analyst had tier haiku already",
    }


@pytest.mark.long
async def test_a_run_in_which_people_had_a_part_or_that_lacks_more_is_left_out(
    runs: Runs, connection: Connection
) -> None:
    asked = ScriptedModel(
        {
            "t1": [works("one"), AuthenticationRefused("401"), works("one")],
            "t2": [works("two")] * 3,
            "synthesize": [synthesizes("Both.")] * 3,
        }
    )
    apart = ready(subtask("t1", role="writer"), subtask("t2"))
    async with runs.worker(asked):
        await waiting(runs, connection, "asked-for", GOAL.model_copy(update={"approval": ALWAYS}))
        await orders.send(connection, "asked-for", "approve", Order())
        await report_of(connection, "asked-for")
        (lacking,) = await record(runs, GOAL.model_copy(update={"plan": apart}))
        with pytest.raises(Refused) as refused:
            await choose(connection, HAIKU, 1)
        with pytest.raises(
            Refused, match=r"none of the last \d runs? is over and used role 'coder'"
        ):
            await choose(connection, RoleChange("coder", tier="haiku"), 1)
        await record(runs, GOAL)
        chosen = await choose_all(connection, HAIKU, 3)
    assert str(refused.value) == (
        "no run of role 'analyst' can be done again with that: its t1 did not end complete and"
        " would be asked again (1)"
    )
    assert {each.run_id: each.why for each in chosen.unusable} == {
        "asked-for": "a person approves its plan",
        lacking.run_id: "its t1 did not end complete and would be asked again",
    }


def test_a_role_that_may_change_something_outside_or_is_a_team_is_not_asked_twice() -> None:
    check_roles([RoleCard(name="reader", description="", tools=("read",))])
    with pytest.raises(Unfit, match=r"its sender may change something outside \(mail\)"):
        check_roles([RoleCard(name="sender", description="", effects=("mail",))])
    with pytest.raises(Unfit, match="its team crew would plan anew"):
        check_roles([RoleCard(name="crew", description="", team=True)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (RoleChange("analyst"), "what is to be changed: give one of --tier, --effort, --model"),
        (RoleChange("analyst", tier="haiku", effort="low"), "what is to be changed: give one of"),
        (RoleChange("analist", tier="haiku"), "no role 'analist' (did you mean 'analyst'?)"),
        (RoleChange("semgrep", tier="haiku"), "there is no role 'semgrep'"),
    ],
)
def test_a_change_that_is_none_is_refused_before_anything_is_read(
    change: RoleChange, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        check_change(change, shipped_catalogue())
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_prompt_is_the_text_of_a_file_without_its_front_matter_and_must_be_another(
    tmp_path: Path,
) -> None:
    file = tmp_path / "analyst.md"
    file.write_text("---\nname: analyst\n---\nYou are brief.\n")
    assert read_prompt(file) == "You are brief."
    file.write_text("You are brief.\n")
    assert read_prompt(file) == "You are brief."
    file.write_text("---\nname: x\n---\n\n")
    with pytest.raises(Refused, match="there is no text in it"):
        read_prompt(file)
    with pytest.raises(Refused, match="--prompt"):
        read_prompt(tmp_path / "none.md")
    own = shipped_catalogue().roles["analyst"].prompt
    with pytest.raises(Refused, match="is told just that already"):
        check_change(RoleChange("analyst", prompt=own), shipped_catalogue())


def test_the_judge_is_shown_the_inputs_of_the_run_or_told_that_it_is_not() -> None:
    note = PinnedInput(name="note", kind="text", size=90, digest="a" * 64)
    long = note.model_copy(update={"name": "code", "size": 10**9})
    goal = GOAL.model_copy(
        update={"plan": ready(subtask("t2", inputs=["note", "code"])), "pinned": (note, long)}
    )
    report = Report(run_id="r", status="complete", goal="Compare", answer="5.90 euros")
    other = report.model_copy(update={"answer": "5.91 euros"})
    candidate = Candidate(report, goal, ("t2",), Preview(rows=()))
    shown = Open(0, candidate, other).material(swapped=True)
    assert shown.sources.inputs == (note,) and shown.sources.unseen == ("code",)
    assert UNSEEN not in shown.question and "longer" not in shown.question
    bare = Open(0, replace(candidate, goal=GOAL), other).material(swapped=False)
    assert bare.sources == Sources() and UNSEEN in bare.question
    untold = Judgement(winner="", why="UNDECIDED: the price list is not shown.")
    assert verdict_of(untold, swapped=False) == "not decided"
    assert verdict_of(Judgement(winner="", why="alike"), swapped=False) == "equal"
    both = [("A2", "A2 cites more than A1."), ("A1", "A1 cites more.")]
    told = settled([Judgement(winner=winner, why=why) for winner, why in both])
    assert (told.verdict, told.why) == ("better", "the fork cites more than the run.")
    assert settled([untold] * 2).why == "the price list is not shown."


class Judging(ScriptedModel):
    """Its judge takes what is shorter, else what it sees first."""

    async def _answer(self, what: str, request: ModelRequest) -> ModelAnswer:
        if what == "judge":
            at, second = request.prompt.find("shorter"), request.prompt.index("subtask A2")
            winner = "A2" if at > second else "A1"
            self._left[what] = deque([{"winner": winner, "why": "it says the same in fewer words"}])
        return await super()._answer(what, request)


@pytest.mark.long
async def test_five_runs_are_asked_the_change_alone_and_compared_by_code_and_in_both_orders(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = ["Both [t1] [t2]."] * 6
    answers += ["Both, shorter [t1] [t2].", "Both, longer [t1] [t2].", answers[0], "Both [t9]."]
    lines = {"t1": [works("one")] * 5, "t2": [works("two")] * 10}
    asked = Judging({**lines, "synthesize": map(synthesizes, answers)})
    # One fork at a time: what they are answered is told in that order.
    asking = Asking(id=f"cheaper-{runs.queue}", budget=Decimal("2.5"))
    async with runs.worker(asked):
        recorded = await record(runs, *[GOAL] * 5)
        chosen = await choose_all(connection, HAIKU, 5)
        price, heard = priced(chosen, asking), len(asked.heard)
        made = await tried(connection, chosen, price, asking, tell_nobody)
        more = asked.heard[heard:]
        capsys.readouterr()
        await what_if.run(
            connection, HAIKU, 5, asking, by_batch=False, dry=False, yes=True, as_json=True
        )
        again = WhatIf.model_validate_json(capsys.readouterr().out)
    assert [each.run for each in made.pairs] == [each.run_id for each in reversed(recorded)]
    assert [(each.decided.verdict, each.decided.by) for each in made.pairs] == [
        ("equal", "code"),
        ("better", "judge"),
        ("equal", "judge"),
        ("equal", "code"),
        ("worse", "code"),
    ]
    assert Counter(more) == {"t2": 5, "synthesize": 5, "critique": 5, "judge": 4}
    again_by = {each.model for each in asked.requests[heard:] if "part t2" in each.prompt}
    assert len(again_by) == 1 and "haiku" in again_by.pop()
    assert sum(each.calls_asked for each in made.pairs) == sum(each.calls for each in price.forks)
    assert made.paid and made.high and made.judged and made.paid < made.high
    assert len(asked.heard) == heard + len(more), "nothing is paid twice"
    assert made.pairs == again.pairs
    for each in made.pairs:
        runs.handles.append(connection.handle(each.fork))
    for name in (asking.id, f"{asking.id}.judge"):
        history = await connection.client.get_workflow_handle(name).fetch_history()
        assert (await play(history, WORKFLOWS, runs.store)).differences == ()
