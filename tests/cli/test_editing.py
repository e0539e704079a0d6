"""A plan that a person changes before it runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import Runs
from holdfast.cli.commands.steering import edit
from holdfast.cli.screen.exits import Code, Exit
from holdfast.client import orders
from holdfast.contracts import Order
from holdfast.errors import HoldfastError, Refused
from holdfast.intake import plans
from holdfast.intake.connection import Connection
from scripted import ready, subtask, synthesizes, works
from steered import report_of, script, waiting

pytestmark = pytest.mark.anyio


async def test_an_edited_plan_from_a_file_runs_and_its_mistakes_are_listed_before_it_is_sent(
    runs: Runs, connection: Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.yaml"
    model = script(t7=[works("seven")], synthesize=[synthesizes("Only [t7].")])
    async with runs.worker(model):
        await waiting(runs, connection, "cli-edit")
        bad = subtask("t1", "t9", role="wizard", checks=[{"kind": "regex", "argument": "("}])
        file.write_text(plans.as_yaml(ready(bad)))
        with pytest.raises(Exit) as refused:
            await edit.run(connection, "cli-edit", file)
        for mistake in ("unknown role 'wizard'", "unknown subtask 't9'", "regex '('"):
            assert mistake in str(refused.value)
        same = ready(subtask("t1"), subtask("t2", "t1"))
        file.write_text(same.model_copy(update={"synthesis_instruction": "x"}).model_dump_json())
        file.write_text(plans.as_yaml(ready(subtask("t7", tier="haiku"))).replace("haiku", "opus"))
        capsys.readouterr()
        with pytest.raises(Exit, match="nothing was sent; to run the changed plan, say --yes"):
            await edit.run(connection, "cli-edit", file)
        said = capsys.readouterr().err
        assert "+- id: t7" in said and "-- id: t1" in said
        assert re.search(r"Expected before the change: \$0\.\d{4} .*; now: \$0\.\d{4} ", said)
        assert await edit.run(connection, "cli-edit", file, yes=True) == Code.COMPLETE
        assert "the edited plan runs" in capsys.readouterr().err
        report = await report_of(connection, "cli-edit")
        with pytest.raises(HoldfastError, match="is over"):
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
            await orders.send(connection, run_id, "reject", Order())
        report = await report_of(connection, run_id)
    assert report.status == status
    assert any("was edited by" in note for note in report.notes) == bool(change)


async def test_an_editor_that_leaves_a_broken_plan_sends_nothing_and_keeps_the_text(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i.old -e 's/role: .*/role: wizard/'")
    async with runs.worker(script()):
        await waiting(runs, connection, "cli-broken")
        with pytest.raises(Exit, match="unknown role 'wizard'") as refused:
            await edit.run(connection, "cli-broken", None)
        kept = connection.settings.state_dir / "edits" / "of-cli-broken" / "plan.yaml"
        assert str(kept) in str(refused.value) and "role: wizard" in kept.read_text()
        # The next edit opens it again.
        monkeypatch.setenv("VISUAL", "sed -i -e 's/role: wizard/role: writer/'")
        with pytest.raises(Exit, match="say --yes"):
            await edit.run(connection, "cli-broken", None)
        assert "role: writer" in kept.read_text()
        await orders.send(connection, "cli-broken", "reject", Order())


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

    monkeypatch.setattr(edit, "read_line", types)
    async with runs.worker(script(**{"the whole goal": [works("one"), works("two")]})):
        await waiting(runs, connection, run_id)
        capsys.readouterr()
        if sent:
            assert await edit.run(connection, run_id, None) == Code.COMPLETE
        else:
            with pytest.raises(Exit, match="nothing was sent; its plan waits as it was"):
                await edit.run(connection, run_id, None)
            assert (connection.settings.state_dir / "edits" / f"of-{run_id}" / "plan.yaml").exists()
            await orders.send(connection, run_id, "reject", Order())
        said = capsys.readouterr().err
        report = await report_of(connection, run_id)
    assert said.count("+  role: writer") == (4 if sent else 2)
    assert report.status == ("complete" if sent else "declined")


def test_a_plan_survives_being_written_and_read_as_yaml(tmp_path: Path) -> None:
    plan = ready(subtask("t1", instruction="Two lines:\n  of ünïcode, 'quoted' # and: more"))
    file = tmp_path / "plan.yml"
    file.write_text(plans.as_yaml(plan))
    assert plans.read_plan(file) == plan
    file.write_text("subtasks: [")
    with pytest.raises(Refused, match="not YAML: line 1"):
        plans.read_plan(file)
