"""A finished run's receipt is made from its histories, and held against journal and store."""

from __future__ import annotations

import json
import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from holdfast import CallWaits, Plan, PlanWaits, Refused, Run, Subtask
from holdfast.cli.commands.care import receipt as command
from holdfast.cli.screen.exits import Code
from holdfast.client.receipt_key import public_key
from holdfast.receipts.account import account, sentences
from holdfast.receipts.checking import find_changes
from holdfast.receipts.file import Receipt
from holdfast.receipts.histories import find_differences
from holdfast.replaying.replay import export
from holdfast.testing import Deployment, deployed

pytestmark = pytest.mark.anyio

TEAM = "---\nname: department\ndescription: A team.\nteam: true\n---\n"
CLERK = (
    "---\nname: clerk\ndescription: Publishes.\nmodel: haiku\ntools: [publish]\n---\nYou publish.\n"
)
TOOL = '''from holdfast import Here, tool


@tool(approval=True)
async def publish(here: Here, text: str) -> str:
    """Publish a text."""
    return f"published {text}"
'''
SCRIPT = {
    "rules": [
        {
            "call": "take_turn",
            "turn": 1,
            "tools": [{"name": "publish", "input": {"text": "the rates"}}],
        },
        {"call": "plan", "plan": [{"role": "analyst"}, {"role": "analyst"}]},
    ]
}
SECRET = "2.0 percent in January and 2.5 percent in May; " * 200


def project(folder: Path) -> Path:
    """A project with a team, and a role whose tool a person approves."""
    files = {"roles/department.md": TEAM, "roles/clerk.md": CLERK, "tools/publish.py": TOOL}
    for name, text in {**files, "holdfast.toml": ""}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def subtask(id: str, role: str) -> Subtask:
    what = "Publish the rates of the input `rates`, and return in a sentence what they were."
    return Subtask(id=id, title=f"Rates {id}", role=role, instruction=what, inputs=("rates",))


async def started(deployment: Deployment) -> Run:
    """A run of an agent whose tool ada approves, of a team and another agent; bob approves it."""
    plan = Plan(
        goal="Publish the rates",
        subtasks=(
            subtask("t1", "clerk"),
            subtask("t2", "department"),
            subtask("t3", "analyst"),
        ),
    )
    run = await deployment.hf.start(
        "Publish the rates",
        plan=plan,
        inputs={"rates": f"text:{SECRET}"},
        approval="always",
        models=True,
        ask_people=True,
        dollars=2,
    )
    async for event in run:
        if isinstance(event, PlanWaits):
            await run.approve(by="bob")
        if isinstance(event, CallWaits):
            await run.approve(event.call, by="ada")
    return run


def of_kind(receipt: Receipt, kind: str, field: str) -> dict[str, object]:
    return {name: holds[field] for name, holds in receipt.of_kind(kind)}


async def test_a_receipt_is_made_of_what_histories_journal_and_store_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with deployed(SCRIPT, project=project(tmp_path)) as deployment:
        connection, state = deployment.hf.connection, Path(os.environ["HOLDFAST_STATE_DIR"])
        run = await started(deployment)
        report = await run.report()
        content = await run.receipt()
        made = Receipt.load(content)

        # All that was done below is in it, by whose yes, and the prices add up.
        key = public_key(connection.settings)
        assert find_changes(made, key) == () and made.head["lacks"] == []
        assert stat.S_IMODE((state / "receipt.key").stat().st_mode) == 0o600
        assert report.dollars is not None and made.head["dollars_of_calls"] == str(report.dollars)
        told, rests = [*account(made)], "\n".join(sentences(made))
        assert "bob approved the plan" in told and any("ada approved call 1" in x for x in told)
        assert "t1.2/tool-1-1 (publish, approved by ada)" in rests
        assert "t2.1.t2.1/turn-1 (claude-sonnet" in rests
        journal = of_kind(made, "call", "journal")
        assert {"same", ""} == {*journal.values()} and [*journal.values()].count("same") == 14

        # What it says of a history is what `export` writes.
        exported = WorkflowHistory.from_json(
            run.id, await export(connection.client, run.id, connection.store)
        )
        assert [*find_differences(made, run.id, exported.events)] == []
        agent = f"{run.id}.t1.1"
        other, *calls = find_differences(made, agent, exported.events)
        assert other.startswith(f"the history of {agent} is not this one")
        assert calls == [
            "call t1.1/turn-1: what was asked is not what the history has",
            "call t1.1/turn-1: what was answered is not what the history has",
        ]
        assert [*find_differences(made, "r0", exported.events)] == ["it has no history of r0"]

        # Inputs and prompts are in it on demand alone.
        assert SECRET[:40].encode() not in content
        whole = Receipt.load(await run.receipt(with_inputs=True))
        assert SECRET[:40].encode() in whole.dump() and find_changes(whole, key) == ()
        assert of_kind(whole, "history", "digest") == of_kind(made, "history", "digest")

        # A run that is open has none; one that was cancelled, and a fork, have.
        waits = await deployment.hf.start("Which rates fell?", approval="always", dollars=1)
        await anext(each async for each in waits if isinstance(each, PlanWaits))
        with pytest.raises(Refused, match="is open, and a receipt is for a run that is over"):
            await waits.receipt()
        await waits.cancel(by="eve")
        assert (await waits.report()).status == "cancelled"
        cancelled = Receipt.load(await waits.receipt())
        assert find_changes(cancelled, key) == ()
        assert "eve cancelled the run" in [*account(cancelled)]
        fork = await run.fork("t3", instruction="Return in a sentence which rates rose, and when.")
        async for event in fork:
            if isinstance(event, PlanWaits):
                await fork.approve(by="bob")
        forked = Receipt.load(await fork.receipt())
        assert find_changes(forked, key) == ()
        assert any(f"t1 was taken over from run {run.id}" in each for each in forked.head["lacks"])

        # What the journal and the store no longer have, or have otherwise, is said.
        answers = [*(state / "journal").glob("*.answer")]
        for answer in answers:
            text = answer.read_bytes().partition(b"\n")[2].replace(b"(scripted)", b"(forged)")
            answer.write_bytes(sha256(text).hexdigest().encode() + b"\n" + text)
        out = tmp_path / "forged.json"
        assert await command.run(connection, run.id, out, inputs=False) == Code.FAILED
        assert "The journal's answer of" in capsys.readouterr().err
        for answer in answers:
            answer.unlink()
        assert await command.run(connection, run.id, out, inputs=False) == Code.COMPLETE
        said = "".join(capsys.readouterr().err.split("\n"))
        assert "The journal no longer has 14 of 14 answers of models" in said
        for blob in (state / "store").glob("??/*"):
            blob.unlink()
        bare = Receipt.load(await run.receipt())
        assert find_changes(bare, key) == ()
        lacking = [each for each in bare.head["lacks"] if "is gone from the store" in each]
        assert lacking and of_kind(bare, "history", "digest")[f"{run.id}.t2.1"] == ""
        assert json.loads(out.read_bytes())["key"] == key
