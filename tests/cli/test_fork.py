"""Forks: what a new run takes over of one that is over, and what it does again."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import replace
from unittest.mock import AsyncMock

import pytest

from conftest import Runs, seen
from holdfast.cli.commands.runs import fork, start, watch
from holdfast.cli.commands.runs.dry_run import APPROVAL
from holdfast.cli.commands.steering import cancel
from holdfast.cli.screen.exits import Code
from holdfast.client import forking, orders
from holdfast.client.forking import ForkChange, fork_goal
from holdfast.contracts import (
    Approval,
    Finding,
    Goal,
    GoalInput,
    Limits,
    Order,
    Plan,
    Report,
    Revision,
    Subtask,
)
from holdfast.contracts.errors import AuthenticationRefused
from holdfast.contracts.view import Preview
from holdfast.deployment.invocation import STARTER
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.intake.goals import limits_of
from parameters import rest_long
from scripted import ScriptedModel, ready, subtask, synthesizes, works
from steered import GOAL, report_of, script, waiting

pytestmark = pytest.mark.anyio


def arguments(run_id: str) -> fork.ForkOptions:
    return fork.ForkOptions(run_id, Approval(), limits_of(()), as_json=True, out=None)


async def test_a_fork_pays_for_its_change_alone_and_says_what_it_takes_over(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script(
        t2=[works("two"), works("two, shorter")], synthesize=[synthesizes("a"), synthesizes("b")]
    )
    goal = GOAL.model_copy(update={"approval": Approval()})
    change = ForkChange("t2", instruction="Write part t2 of the goal in one sentence")
    async with runs.worker(model):
        await start.run(connection, goal, "cli-first")
        first = await report_of(connection, "cli-first")
        capsys.readouterr()
        await fork.run(connection, "cli-first", change, arguments("cli-second"))
        said = capsys.readouterr()
    second = Report.model_validate_json(said.out)
    assert "A fork of cli-first. Taken over: t1. Done again: t2." in said.err
    assert [each.reused_from for each in second.findings] == ["cli-first", ""]
    assert second.plan is not None and second.plan.subtasks[1].instruction == change.instruction
    assert model.heard.count("plan") == model.heard.count("t1") == 1
    assert first.dollars is not None and second.dollars is not None
    assert second.dollars < first.dollars


async def test_a_fork_works_on_what_its_run_pinned_though_the_file_has_changed_since(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("a")] * 2})
    note = runs.folder / "note.txt"
    note.write_text("before")
    given = GoalInput(name="note", kind="file", value=str(note))
    plan = ready(subtask("t1", inputs=["note"]))
    async with runs.worker(model):
        goal = Goal(text="g", use_models=True, plan=plan, inputs=(given,))
        await start.run(connection, goal, "cli-pinned")
        first = await report_of(connection, "cli-pinned")
        note.write_text("after")
        capsys.readouterr()
        await fork.run(connection, "cli-pinned", ForkChange(), arguments("cli-repinned"))
    second = Report.model_validate_json(capsys.readouterr().out)
    assert second.status == "complete" and second.inputs == first.inputs
    assert [each.reused_from for each in second.findings] == ["cli-pinned"]
    assert model.heard.count("t1") == 1


async def test_a_dry_run_of_a_fork_shows_what_it_takes_over_and_its_price_and_pays_nothing(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script()
    goal = GOAL.model_copy(update={"approval": Approval()})
    dry = replace(arguments(""), approval=APPROVAL, dry=True)
    async with runs.worker(model):
        await start.run(connection, goal, "cli-tried")
        await report_of(connection, "cli-tried")
        heard = list(model.heard)
        capsys.readouterr()
        code = await fork.run(connection, "cli-tried", ForkChange("t2"), dry)
        told = capsys.readouterr()
        await fork.run(connection, "cli-tried", ForkChange("t2"), replace(dry, as_json=False))
    shown = Preview.model_validate_json(told.out)
    taken, again = shown.subtasks
    assert (taken.id, taken.reused, str(taken.expected)) == ("t1", True, "0.000000")
    assert (again.id, again.reused) == ("t2", False) and again.expected
    assert "A fork of cli-tried. Taken over: t1. Done again: t2." in told.err
    assert "A dry run: nothing was run, and nothing was paid." in told.err
    assert "reused" in capsys.readouterr().out
    assert code == Code.COMPLETE and model.heard == heard


LOST = AuthenticationRefused("401: set ANTHROPIC_API_KEY")


@pytest.mark.parametrize(
    ("status", "limits", "lines"),
    rest_long(
        [
            ("failed", {}, {"t1": [LOST, works("one")], "t2": [works("two")]}),
            ("complete_with_gaps", {}, {"t1": [works("one")], "t2": [LOST, works("two")]}),
            (
                "budget_stopped",
                {"model_calls": 3, "concurrency": 1},
                {"t1": [works("one")], "t2": [works("two")], "t3": [works("three")]},
            ),
            (
                "deadline_partial",
                {"deadline_seconds": 3},
                {"t1": [works("one")], "t2": [asyncio.Event(), works("two")]},
            ),
            ("cancelled", {}, {"t1": [works("one")], "t2": [asyncio.Event(), works("two")]}),
        ],
    ),
)
async def test_what_a_partial_report_says_at_its_end_finishes_the_run(
    status: str,
    limits: dict[str, object],
    lines: dict[str, list[object]],
    runs: Runs,
    connection: Connection,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # One after the other: what is done when the run ends is the same each time.
    chain = zip(lines, ([], *([before] for before in lines)), strict=False)
    plan = ready(*(subtask(id, *before, tier="haiku") for id, before in chain))
    endings = [synthesizes("a"), synthesizes("b")]
    model = ScriptedModel({**lines, "synthesize": endings})  # type: ignore[dict-item]
    goal = Goal(text="g", use_models=True, plan=plan, limits=Limits.model_validate(limits))
    async with runs.worker(model):
        await start.run(connection, goal, f"cut-{status}")
        if status == "cancelled":
            await model.asked("t2")
            await seen(connection.handle(f"cut-{status}"), lambda view: view.rows[0].dollars)
            await cancel.run(connection, f"cut-{status}")
        capsys.readouterr()
        await watch.run(connection, f"cut-{status}", False, None)
        said = capsys.readouterr().out.rstrip().splitlines()
        assert said[0] == "g" and f"cut-{status}" in said[3]
        ran_out = {"budget_stopped": "model_calls=6", "deadline_partial": "deadline_seconds=6"}
        more = f" --limits {ran_out[status]}" if status in ran_out else ""
        assert said[-1].strip() == f"{STARTER} fork cut-{status}{more}"
        *_, run_id = shlex.split(said[-1].removesuffix(more))
        # As another call of the program would: the fork alone pays for what is missing.
        code = await fork.run(connection, run_id, ForkChange(), arguments(f"then-{status}"))
    second = Report.model_validate_json(capsys.readouterr().out)
    assert (code, second.status) == (Code.COMPLETE, "complete")
    reused = [each.subtask_id for each in second.findings if each.reused_from]
    assert reused == {"failed": [], "budget_stopped": ["t1", "t2"]}.get(status, ["t1"])


async def test_only_what_is_over_can_be_forked_and_only_in_what_it_has(
    runs: Runs, connection: Connection
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-unforked")
        with pytest.raises(Refused, match="is not over"):
            await fork.run(connection, "cli-unforked", ForkChange(), arguments("x"))
        await orders.send(connection, "cli-unforked", "approve", Order())
        await report_of(connection, "cli-unforked")
        with pytest.raises(Refused, match="no subtask 't9'; known: t1, t2"):
            await fork.run(connection, "cli-unforked", ForkChange("t9"), arguments("x"))
        with pytest.raises(Refused, match="unknown role 'wizard'"):
            change = ForkChange("t1", role="wizard")
            await fork.run(connection, "cli-unforked", change, arguments("x"))


def finished(*statuses: str, dropped: tuple[str, ...] = ()) -> Report:
    """A report of t1, t2, …, each dependent on the one before, with these statuses."""
    ids = [f"t{number}" for number in range(1, len(statuses) + 1)]
    return Report(
        status="complete_with_gaps",
        run_id="old",
        goal="g",
        plan=Plan(
            goal="g",
            subtasks=tuple(
                Subtask(
                    id=id,
                    title=id,
                    instruction=f"Find out everything about {id} today",
                    role="analyst",
                    depends_on=(before,) if before else (),
                )
                for id, before in zip(ids, ("", *ids), strict=False)
            ),
        ),
        findings=tuple(
            Finding.model_validate({"subtask_id": id, "status": status})
            for id, status in zip(ids, statuses, strict=True)
        ),
        revisions=(Revision(number=1, why="w", dropped=dropped),) if dropped else (),
    )


@pytest.mark.parametrize(
    ("report", "change", "kept"),
    [
        (finished("complete", "complete", "complete"), "t2", ["t1"]),
        (finished("complete", "failed", "skipped"), "", ["t1"]),
        (finished("complete", "escalated", "complete"), "", ["t1"]),
        (finished("complete", "complete"), "", ["t1", "t2"]),
    ],
)
def test_a_fork_keeps_complete_findings_outside_the_cone_of_what_is_done_again(
    report: Report, change: str, kept: list[str]
) -> None:
    goal = fork_goal(Goal(text="g", use_models=True), report, ForkChange(change))
    assert goal.fork is not None
    assert [each.subtask_id for each in goal.fork.findings] == kept


async def test_a_fork_is_of_the_project_of_its_run_which_must_be_named(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Goal(text="g", use_models=True, project="theirs")
    monkeypatch.setattr(
        forking, "_read_finished", AsyncMock(return_value=(theirs, finished("complete")))
    )
    with pytest.raises(Refused, match=r"is of the project 'theirs'; add --project FOLDER of it"):
        await fork.run(connection, "first", ForkChange(), arguments("second"))


def test_a_fork_leaves_out_what_a_revision_dropped() -> None:
    report = finished("complete", "complete", "skipped", dropped=("t3",))
    goal = fork_goal(Goal(text="g", use_models=True), report, ForkChange())
    assert goal.plan is not None
    assert [each.id for each in goal.plan.subtasks] == ["t1", "t2"]


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    (subtask_,) = ready(subtask("t1")).subtasks
    changed = ForkChange("t1", tier="haiku").applied(subtask_)
    assert changed == subtask_.model_copy(update={"tier": "haiku"})
