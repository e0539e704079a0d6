"""`compare` on a real server, and what it refuses."""

from __future__ import annotations

import asyncio
import json

import pytest

from commanded import refused, script
from conftest import Runs
from holdfast.cli.commands.runs import compare, run, start
from holdfast.cli.screen.exits import Code, Exit, exit_of
from holdfast.contracts import Goal
from holdfast.deployment.invocation import to_type
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection
from scripted import synthesizes, works

pytestmark = pytest.mark.usefixtures("bare_environment")

GOAL = Goal(text="Compare three engines", use_models=True)


async def finish(connection: Connection, run_id: str) -> None:
    options = run.RunOptions(run_id, as_json=True, out=None, stay=False)
    assert await run.run(connection, GOAL, options) == Code.COMPLETE


@pytest.mark.anyio
async def test_two_runs_of_one_goal_are_compared_in_text_and_as_json(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    async with runs.worker(script()):
        await finish(connection, "first")
    other = script(t2=[works("three")], synthesize=[synthesizes("Neither [t1] [t2].")])
    async with runs.worker(other):
        await finish(connection, "second")
    capsys.readouterr()
    assert await compare.run(connection, "first", "second", as_json=False) == Code.COMPLETE
    said = capsys.readouterr()
    assert "Compare three engines" in said.out and said.err == ""
    assert "-Both [t1] [t2]." in said.out and "+Neither [t1] [t2]." in said.out
    assert "says something else" in said.out and "The same in both: t1." in said.out
    assert "\\" not in said.out, "plain text for a pipe"
    assert await compare.run(connection, "first", "second", as_json=True) == Code.COMPLETE
    told = json.loads(capsys.readouterr().out)
    assert [(each["a"]["id"], each["differs"]) for each in told["both"]] == [
        ("t1", []),
        ("t2", ["text"]),
    ]
    with pytest.raises(HoldfastError, match="no run 'third'") as unknown:
        await compare.run(connection, "first", "third", as_json=False)
    assert exit_of(unknown.value).code == Code.REFUSED


@pytest.mark.long
@pytest.mark.anyio
async def test_a_run_that_goes_on_or_was_refused_is_not_compared(
    runs: Runs, connection: Connection
) -> None:
    held = asyncio.Event()
    async with runs.worker(script(t1=[held, works("one")])):
        await start.run(connection, GOAL, "open")
        with pytest.raises(Exit, match="open is not finished; compare it when it is") as early:
            await compare.run(connection, "open", "open-2", as_json=False)
        assert early.value.code == Code.REFUSED and to_type("watch", "open") in str(early.value)
        held.set()
        await connection.handle("open").result()
    async with runs.worker(None):
        unplanned = GOAL.model_copy(update={"use_models": False})
        options = run.RunOptions("refused", as_json=True, out=None, stay=False)
        await run.run(connection, unplanned, options)
    with pytest.raises(Exit, match="refused has no report to compare: without a model") as without:
        await compare.run(connection, "open", "refused", as_json=False)
    assert without.value.code == Code.REFUSED


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("compare one one", "one is named twice; name two runs"),
        ("compare one", "Missing argument 'B'"),
        ("compare 'a b' one", "'a b' is not an id of a run"),
        ("compare one ../two", "'../two' is not an id of a run"),
    ],
)
def test_what_cannot_be_two_runs_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], typed: str, said: str
) -> None:
    assert said in refused(capsys, typed)
