"""Steering from the command line: who decides, what is refused, what a fork takes over."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from bench.clients import outcome
from cli import plans
from cli.commands import (
    approval,
    cancel,
    completion,
    edit,
    fork,
    inbox,
    raising,
    run,
    start,
    steering,
    watch,
)
from cli.connection import Connection
from cli.exits import Code, Stop
from cli.goal import limits_of
from cli.invocation import STARTER
from cli.launch import goal_of_run
from conftest import Runs, seen
from deployment.settings import Settings
from deployment.temporal import Target
from orchestrator.contracts import (
    Approval,
    Finding,
    Goal,
    Limits,
    Order,
    Plan,
    Report,
    Revision,
    Subtask,
)
from orchestrator.errors import AuthenticationRefused
from orchestrator.rules import steering as core
from orchestrator.view import Preview
from scripted import ScriptedModel, ready, subtask, synthesizes, works
from scripted import plans as planned

pytestmark = pytest.mark.anyio

ALWAYS = Approval(when="always")
GOAL = Goal(text="Compare three engines", use_models=True, approval=ALWAYS)


def script(**lines: object) -> ScriptedModel:
    answers = {
        "plan": [planned(subtask("t1"), subtask("t2", "t1"))],
        "t1": [works("one")],
        "t2": [works("two")],
        "synthesize": [synthesizes("Both [t1] [t2].")],
    }
    return ScriptedModel(answers | lines)  # type: ignore[arg-type]


@pytest.fixture
def connection(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """The command line's view of the test server; its store is the worker's."""
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE", "STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(Settings.model_config, "env_file", None)
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(tmp_path / "state"))
    target = Target(
        address=runs.client.service_client.config.target_host,
        task_queue=runs.queue,
        store_url=(runs.folder / "store").as_uri(),
        embedded=False,
    )
    return Connection(Settings(), target, runs.client)


async def waiting(runs: Runs, connection: Connection, run_id: str, goal: Goal = GOAL) -> None:
    """Start a run, with time as usual, and return once it asks a person something."""
    with runs.env.with_time_skipping_disabled():
        await start.run(connection, goal, run_id)
    await seen(connection.handle(run_id), lambda view: view.waiting)


async def report_of(connection: Connection, run_id: str) -> Report:
    return await outcome(connection.handle(run_id))


# ---------------------------------------------------------------- the rows


def test_every_update_has_a_command() -> None:
    rows = {row.__name__ for row in steering.ROWS}
    assert rows | {"edit", "raise_cap", "cancel_subtask"} == set(core.COMMANDS)


def test_a_row_makes_the_order_that_its_options_say(tmp_path: Path) -> None:
    (tmp_path / "found.md").write_text("It is 42.")
    assert steering.answer("t1", "2025") == Order(subtask_id="t1", text="2025")
    assert steering.retry("t1", "haiku", "anew") == Order(
        subtask_id="t1", tier="haiku", text="anew"
    )
    assert steering.skip("t1", "not needed") == Order(subtask_id="t1", text="not needed")
    assert steering.supply("t1", file=tmp_path / "found.md").text == "It is 42."
    assert steering.reject("too dear") == Order(text="too dear")


async def test_a_plan_is_approved_from_elsewhere_with_the_command_that_the_run_named(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-approve")
        assert f"decide: {STARTER} approve cli-approve" in capsys.readouterr().err
        watching = asyncio.create_task(watch.run(connection, "cli-approve", True, None))
        said = ""
        while "python starter.py approve cli-approve" not in said:
            await asyncio.sleep(0.05)
            said += capsys.readouterr().err
        assert "the plan waits for approval: 2 subtasks, $" in said
        assert await steering.run(connection, "cli-approve", "approve", Order()) == Code.COMPLETE
        assert "cli-approve: the plan is approved" in capsys.readouterr().err
        assert await watching == Code.COMPLETE


async def test_what_makes_no_sense_is_refused_with_the_reason_in_one_line(
    runs: Runs, connection: Connection
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-nonsense")

        async def refusal(run_id: str, update: str, **fields: object) -> str:
            with pytest.raises(Stop) as refused:
                await steering.tell(connection, run_id, update, Order.model_validate(fields))
            assert refused.value.code == Code.REFUSED
            return str(refused.value)

        said = await refusal("cli-nonsense", "resume")
        assert said == "cli-nonsense: refused: the run is not paused"
        assert "no run 'nobody'" in await refusal("nobody", "approve")
        await steering.run(connection, "cli-nonsense", "reject", Order(text="too dear"))
        report = await report_of(connection, "cli-nonsense")
        assert "run cli-nonsense is over" in await refusal("cli-nonsense", "approve")
    assert report.status == "declined"
    assert any("too dear" in note for note in report.notes)


async def test_the_record_says_who_gave_a_command(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-who")
        await steering.run(connection, "cli-who", "reject", Order())
        report = await report_of(connection, "cli-who")
    assert any("rejected by ada" in note for note in report.notes)
    goal = await goal_of_run(connection, "cli-who")
    assert goal is not None and goal.requester == "ada"


# ---------------------------------------------------------------- a question in the terminal


@contextmanager
def typing(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal's input of which the test holds the other end."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as source:
        monkeypatch.setattr(sys, "stdin", source)
        yield writing


@pytest.mark.parametrize(("typed", "status"), [("y\n", "complete"), ("n\n", "declined")])
async def test_the_person_at_the_terminal_decides(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    status: str,
) -> None:
    run_id = f"cli-decide-{typed[0]}"
    async with runs.worker(script()):
        await waiting(runs, connection, run_id)
        with typing(monkeypatch) as keys:
            deciding = asyncio.create_task(approval.decide(connection, run_id))
            for line in ("perhaps\n", typed):
                asked = ""
                while approval.QUESTION not in asked:
                    await asyncio.sleep(0.05)
                    asked += capsys.readouterr().err
                os.write(keys, line.encode())
            assert await deciding
            os.close(keys)
        report = await report_of(connection, run_id)
    assert report.status == status


async def test_the_question_is_withdrawn_when_somebody_else_decides(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-elsewhere")
        with typing(monkeypatch) as keys:
            deciding = asyncio.create_task(approval.decide(connection, "cli-elsewhere"))
            await steering.tell(connection, "cli-elsewhere", "approve", Order())
            assert await deciding
            os.close(keys)
        assert "Decided elsewhere" in capsys.readouterr().err
        assert (await report_of(connection, "cli-elsewhere")).status == "complete"


async def test_the_end_of_the_input_leaves_the_plan_waiting(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-nobody")
        with typing(monkeypatch) as keys:
            os.close(keys)
            assert not await approval.decide(connection, "cli-nobody")
        await steering.tell(connection, "cli-nobody", "approve", Order())
        assert (await report_of(connection, "cli-nobody")).status == "complete"


# ---------------------------------------------------------------- editing


async def test_an_edited_plan_from_a_file_runs_and_its_mistakes_are_listed_before_it_is_sent(
    runs: Runs, connection: Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.yaml"
    model = script(t7=[works("seven")], synthesize=[synthesizes("Only [t7].")])
    async with runs.worker(model):
        await waiting(runs, connection, "cli-edit")
        bad = subtask("t1", "t9", role="wizard", checks=[{"kind": "regex", "argument": "("}])
        file.write_text(plans.as_yaml(ready(bad)))
        with pytest.raises(Stop) as refused:
            await edit.run(connection, "cli-edit", file)
        for mistake in ("unknown role 'wizard'", "unknown subtask 't9'", "regex '('"):
            assert mistake in str(refused.value)
        same = ready(subtask("t1"), subtask("t2", "t1"))
        file.write_text(same.model_copy(update={"synthesis_instruction": "x"}).model_dump_json())
        file.write_text(plans.as_yaml(ready(subtask("t7", tier="haiku"))).replace("haiku", "opus"))
        capsys.readouterr()
        with pytest.raises(Stop, match="nothing was sent; to run the changed plan, say --yes"):
            await edit.run(connection, "cli-edit", file)
        said = capsys.readouterr().err
        assert "+- id: t7" in said and "-- id: t1" in said
        assert re.search(r"Expected before the change: \$0\.\d{4} .*; now: \$0\.\d{4} ", said)
        assert await edit.run(connection, "cli-edit", file, yes=True) == Code.COMPLETE
        assert "the edited plan runs" in capsys.readouterr().err
        report = await report_of(connection, "cli-edit")
        with pytest.raises(Stop, match="is over"):
            await edit.run(connection, "cli-edit", file)
    assert [each.subtask_id for each in report.findings] == ["t7"]
    assert report.findings[0].tries[0].tier == "opus", "a person may choose any tier"


@pytest.mark.parametrize(
    ("change", "status"), [("s/part t2/the second part/", "complete"), ("", "declined")]
)
async def test_the_editor_gets_the_plan_and_what_is_unchanged_is_not_sent(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    status: str,
) -> None:
    run_id = f"cli-editor-{status}"
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"sed -i.old -e '{change}'")
    model = script(t1=[works("one")], **{"the whole goal": [works("two")]})
    async with runs.worker(model):
        await waiting(runs, connection, run_id)
        assert await edit.run(connection, run_id, None, yes=True) == Code.COMPLETE
        assert list((connection.settings.state_dir / "edits").iterdir()) == []
        if not change:
            await steering.tell(connection, run_id, "reject", Order())
        report = await report_of(connection, run_id)
    assert report.status == status
    assert any("was edited by" in note for note in report.notes) == bool(change)


async def test_an_editor_that_leaves_a_broken_plan_sends_nothing_and_keeps_the_text(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i.old -e 's/role: .*/role: wizard/'")
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-broken")
        with pytest.raises(Stop, match="unknown role 'wizard'") as refused:
            await edit.run(connection, "cli-broken", None)
        kept = connection.settings.state_dir / "edits" / "of-cli-broken" / "plan.yaml"
        assert str(kept) in str(refused.value) and "role: wizard" in kept.read_text()
        # The next edit opens it again.
        monkeypatch.setenv("VISUAL", "sed -i -e 's/role: wizard/role: writer/'")
        with pytest.raises(Stop, match="say --yes"):
            await edit.run(connection, "cli-broken", None)
        assert "role: writer" in kept.read_text()
        await steering.tell(connection, "cli-broken", "reject", Order())


@pytest.mark.parametrize(
    ("typed", "heard"),
    [(("e", "y"), "opened twice and sent"), (("perhaps", "n"), "opened once and kept")],
)
async def test_a_changed_plan_is_shown_with_its_price_and_asked_about_before_it_runs(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: tuple[str, str],
    heard: str,
) -> None:
    run_id = f"cli-asks-{typed[1]}"
    sent = heard.endswith("sent")
    monkeypatch.setenv("VISUAL", "sed -i -e 's/role: analyst/role: writer/; s/part t/piece t/'")
    monkeypatch.setattr(edit, "at_terminal", lambda: True)
    lines = iter(typed)

    async def types() -> str:
        return next(lines)

    monkeypatch.setattr(edit, "typed", types)
    async with runs.worker(script(**{"the whole goal": [works("one"), works("two")]})):
        await waiting(runs, connection, run_id)
        capsys.readouterr()
        if sent:
            assert await edit.run(connection, run_id, None) == Code.COMPLETE
        else:
            with pytest.raises(Stop, match="nothing was sent; its plan waits as it was"):
                await edit.run(connection, run_id, None)
            assert (connection.settings.state_dir / "edits" / f"of-{run_id}" / "plan.yaml").exists()
            await steering.tell(connection, run_id, "reject", Order())
        said = capsys.readouterr().err
        report = await report_of(connection, run_id)
    assert said.count("+  role: writer") == (4 if sent else 2)
    assert report.status == ("complete" if sent else "declined")


def test_a_plan_survives_being_written_and_read_as_yaml(tmp_path: Path) -> None:
    plan = ready(subtask("t1", instruction="Two lines:\n  of ünïcode, 'quoted' # and: more"))
    file = tmp_path / "plan.yml"
    file.write_text(plans.as_yaml(plan))
    assert plans.read(file) == plan
    file.write_text("subtasks: [")
    with pytest.raises(Stop, match="not YAML: line 1"):
        plans.read(file)


# ---------------------------------------------------------------- the inbox, and raising the cap


async def test_the_inbox_says_what_is_asked_and_the_command_that_answers_it(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = works("", status="escalate", reason="ambiguous_input", message="which year?")
    goal = Goal(text="Sum it up", use_models=True, ask_people=True, plan=ready(subtask("t1")))

    async def asked() -> list[dict[str, object]]:
        capsys.readouterr()
        await inbox.run(connection, True)
        listed = json.loads(capsys.readouterr().out)
        return [each for each in listed if each["id"] == "cli-inbox"]

    async with runs.worker(script(t1=[asks, works("2025")])):
        await waiting(runs, connection, "cli-inbox", goal)
        listed: list[dict[str, object]] = []
        while not listed:
            listed = await asked()
        assert listed[0]["goal"] == "Sum it up"
        assert listed[0]["waiting"] == [
            {
                "question": "t1 asks: ambiguous_input: which year?",
                "command": f'{STARTER} answer cli-inbox t1 "your answer"',
            }
        ]
        await steering.tell(connection, "cli-inbox", "answer", steering.answer("t1", "2025"))
        await report_of(connection, "cli-inbox")
        assert await asked() == []


async def test_raising_one_cap_keeps_what_was_raised_before(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ready(subtask("t1", role="writer"), subtask("t2", role="writer"))
    limits = Limits(model_calls=2, concurrency=1)
    goal = Goal(text="x", use_models=True, plan=plan, limits=limits, wait_for_raise=True)
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-raise", goal)
        await raising.run(connection, "cli-raise", limits_of(("dollars=3",)))
        await raising.run(connection, "cli-raise", limits_of(("tokens=6000000",)))
        with pytest.raises(Stop, match="dollars: below the present cap"):
            await raising.run(connection, "cli-raise", limits_of(("dollars=2.50",)))
        await raising.run(connection, "cli-raise", limits_of(("model_calls=10",)))
        assert "At most $3.00 and 10 model calls now." in capsys.readouterr().err
        assert (await report_of(connection, "cli-raise")).status == "complete"


# ---------------------------------------------------------------- a dry run


async def test_a_dry_run_shows_the_price_pays_the_planning_alone_and_leaves_nothing_open(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script()
    dry = run.Arguments("cli-dry", as_json=True, out=None, stay=False, dry=True)
    async with runs.worker(model):
        with runs.env.with_time_skipping_disabled():
            assert await run.run(connection, GOAL, dry) == Code.COMPLETE
        report = await report_of(connection, "cli-dry")
    said = capsys.readouterr()
    preview = Preview.model_validate_json(said.out)
    assert preview.critical_path == ("t1", "t2")
    assert preview.plan is not None and "part t2" in preview.plan.subtasks[1].instruction
    assert "Paid, for planning: $" in said.err
    assert model.heard == ["plan"]
    assert report.status == "declined"


# ---------------------------------------------------------------- forks


def arguments(run_id: str) -> fork.Arguments:
    return fork.Arguments(run_id, Approval(), limits_of(()), as_json=True, out=None)


async def test_a_fork_pays_for_its_change_alone_and_says_what_it_takes_over(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script(
        t2=[works("two"), works("two, shorter")], synthesize=[synthesizes("a"), synthesizes("b")]
    )
    goal = GOAL.model_copy(update={"approval": Approval()})
    change = fork.Change("t2", instruction="Write part t2 of the goal in one sentence")
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


LOST = AuthenticationRefused("401: set ANTHROPIC_API_KEY")


@pytest.mark.parametrize(
    ("status", "limits", "lines"),
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
        assert said[0] == "# g" and f"cut-{status}" in said[2]
        *_, command, run_id = shlex.split(said[-1])
        assert said[-1].strip() == f"{STARTER} fork cut-{status}" and command == "fork"
        # As another call of the program would: the fork alone pays for what is missing.
        code = await fork.run(connection, run_id, fork.Change(), arguments(f"then-{status}"))
    second = Report.model_validate_json(capsys.readouterr().out)
    assert (code, second.status) == (Code.COMPLETE, "complete")
    reused = [each.subtask_id for each in second.findings if each.reused_from]
    assert reused == {"failed": [], "budget_stopped": ["t1", "t2"]}.get(status, ["t1"])


async def test_only_what_is_over_can_be_forked_and_only_in_what_it_has(
    runs: Runs, connection: Connection
) -> None:
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-unforked")
        with pytest.raises(Stop, match="is not over"):
            await fork.run(connection, "cli-unforked", fork.Change(), arguments("x"))
        await steering.tell(connection, "cli-unforked", "approve", Order())
        await report_of(connection, "cli-unforked")
        with pytest.raises(Stop, match="no subtask 't9'; known: t1, t2"):
            await fork.run(connection, "cli-unforked", fork.Change("t9"), arguments("x"))
        with pytest.raises(Stop, match="unknown role 'wizard'"):
            change = fork.Change("t1", role="wizard")
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
    goal = fork.forked(Goal(text="g", use_models=True), report, fork.Change(change))
    assert goal.fork is not None
    assert [each.subtask_id for each in goal.fork.findings] == kept


def test_a_fork_leaves_out_what_a_revision_dropped() -> None:
    report = finished("complete", "complete", "skipped", dropped=("t3",))
    goal = fork.forked(Goal(text="g", use_models=True), report, fork.Change())
    assert goal.plan is not None
    assert [each.id for each in goal.plan.subtasks] == ["t1", "t2"]


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    (subtask_,) = ready(subtask("t1")).subtasks
    changed = fork.Change("t1", tier="haiku").applied(subtask_)
    assert changed == subtask_.model_copy(update={"tier": "haiku"})


# ---------------------------------------------------------------- when to ask, and completion


@pytest.mark.parametrize(
    ("text", "yes", "terminal", "expected"),
    [
        ("", False, False, Approval()),
        ("", False, True, Approval(when="above", dollars=Decimal("0.50"))),
        ("", True, True, Approval()),
        ("auto", False, True, Approval()),
        ("always", False, False, ALWAYS),
        ("$0.20", False, False, Approval(when="above", dollars=Decimal("0.20"))),
    ],
)
def test_a_dear_plan_is_asked_about_where_somebody_can_answer_unless_told_otherwise(
    text: str, yes: bool, terminal: bool, expected: Approval
) -> None:
    assert run.approval_when(text, yes=yes, terminal=terminal) == expected


async def test_completion_knows_runs_and_their_subtasks(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = connection.target
    monkeypatch.setenv("TEMPORAL_ADDRESS", target.address)
    monkeypatch.setenv("STORE_URL", target.store_url)
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-tab")
        found: completion.Ids = []
        while "cli-tab" not in found:
            found = await asyncio.to_thread(completion.open_run_ids, "cli-t")
        context = type("Context", (), {"params": {"run_id": "cli-tab"}})()
        subtasks = await asyncio.to_thread(completion.subtask_ids, context, "")
        assert subtasks == ["t1", "t2"], "plain ids, and no words of a model's"
        await steering.tell(connection, "cli-tab", "reject", Order())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "", "not an address"])
def test_completion_without_a_server_is_empty_starts_nothing_and_says_nothing(
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    monkeypatch.setenv("STORE_URL", "file:///tmp/store")
    assert completion.run_ids("") == []
    assert capsys.readouterr() == ("", "")
    assert not connection.settings.state_dir.exists()
