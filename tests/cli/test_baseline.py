"""`baseline`, on a real server: what a review finds today is known tomorrow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.activities.review.scope import baseline as baselines
from holdfast.cli.commands.runs import baseline
from holdfast.cli.screen.exits import Code, Exit
from holdfast.contracts import Goal, GoalInput
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from repositories import Repository

pytestmark = pytest.mark.usefixtures("bare_environment")
BAD = "print(nope)\n"


@pytest.mark.anyio
@pytest.mark.long
async def test_what_a_review_finds_is_known_to_the_next_one_here_and_in_the_repository(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = Repository.at(runs.folder / "reviewed")
    repository.commit({"a.py": BAD})
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    every = GoalInput(name="scope", kind="text", value="all")
    goal = Goal(text="Review it", playbook="code-review", inputs=(given, every))
    here = replace(connection, settings=Settings(state_dir=runs.folder))
    tools = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    async with runs.worker(tools=tools):
        assert await baseline.run(here, goal, in_repo=False) == Code.COMPLETE
        handle = await runs.start(goal)
        known: Any = (await handle.result()).data
        kept = baselines.path_of(StateDir.of(here.settings).baselines, repository.path)
        kept.unlink()
        assert await baseline.run(here, goal, in_repo=True) == Code.COMPLETE
        again: Any = (await (await runs.start(goal)).result()).data
    for data in (known, again):
        assert data["remarks"] == [] and data["hidden"] == {"known": 1}
    said = capsys.readouterr().err
    assert f"Baseline: {kept}" in said and "1 remark known" in said
    written = json.loads((repository.path / baselines.NAME).read_text())
    assert list(written["known"].values()) == ["bugs:F821 a.py"]
    assert written["commit"] == repository.git("rev-parse", "HEAD")


@pytest.mark.long
@pytest.mark.anyio
async def test_where_a_lens_saw_nothing_no_baseline_is_written(
    runs: Runs, connection: Connection
) -> None:
    repository = Repository.at(runs.folder / "reviewed")
    repository.commit({"a.py": BAD})
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    goal = Goal(text="Review it", playbook="code-review", inputs=(given,))
    tools = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))

    async def broken(_: object) -> Any:
        raise RuntimeError("broken")

    async with runs.worker(tools={**tools, "bugs": broken}):
        with pytest.raises(Exit, match="no baseline is written: not every lens"):
            await baseline.run(connection, goal, in_repo=True)
    assert not (repository.path / baselines.NAME).exists()


@pytest.mark.parametrize("given", ["base=main", "scope=changed"])
def test_a_baseline_is_of_the_whole_tree(given: str) -> None:
    with pytest.raises(Exit, match="of the whole tree; leave it out"):
        baseline.command([f"repo={Path.cwd()}", given])
