"""What becomes of a run whose store cannot be used for a while: it waits, says so, and pays for
nothing twice.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client

from conftest import Runs
from holdfast.contracts import Goal
from holdfast.deployment.settings import Settings
from holdfast.doors.http.problems import problem_of
from holdfast.errors import Unreachable
from holdfast.intake import launch
from holdfast.intake.connection import Connection
from holdfast.storage import DirectoryStore, StoreAway
from holdfast.temporal import connection
from holdfast.temporal.connection import Target, plugin
from parameters import rest_long
from scripted import ScriptedModel, digests, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

LONG = "It was examined, and found to be sound. " * 1_000


class Away(DirectoryStore):
    """A store that is away for as many times that what t1 found is put, and got."""

    def __init__(self, root: Path, puts: int = 0, gets: int = 0) -> None:
        super().__init__(root)
        self.puts, self.gets = puts, gets

    async def put(self, content: bytes) -> str:
        if b"found to be sound" in content and self.puts > 0:
            self.puts -= 1
            raise StoreAway(self.url, "SlowDown")
        return await super().put(content)

    async def get(self, digest: str) -> bytes:
        content = await super().get(digest)
        if b"found to be sound" in content and self.gets > 0:
            self.gets -= 1
            raise StoreAway(self.url, "SlowDown")
        return content


@pytest.mark.parametrize(("puts", "gets"), rest_long([(2, 0), (0, 3)]))
async def test_a_store_that_is_away_for_a_while_costs_time_and_no_call(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, puts: int, gets: int
) -> None:
    monkeypatch.setattr(connection, "AGAIN", timedelta(milliseconds=50))
    runs.store = away = Away(runs.folder / "store", puts, gets)
    config = runs.client.config()
    config["plugins"] = [plugin(away)]
    runs.client = Client(**config)
    model = ScriptedModel(
        {
            "t1": [works(LONG)],
            "t2": [works("two")],
            "digest": [digests("sound")],
            "synthesize": [synthesizes("sound [t1]")],
        }
    )
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    report = await runs.run(Goal(text="Compare", plan=plan, use_models=True), model)
    assert report.status == "complete" and report.findings[0].content == LONG
    assert (away.puts, away.gets) == (0, 0)
    assert {name: model.heard.count(name) for name in ("t1", "t2")} == {"t1": 1, "t2": 1}


async def test_a_start_says_in_a_line_that_the_store_cannot_be_used_and_starts_nothing(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(DirectoryStore):
        async def put(self, content: bytes) -> str:
            raise StoreAway("s3://kept/runs", "AccessDenied", passing=False)

    settings = Settings(_env_file=None, state_dir=runs.folder)
    here = Connection(settings, Target(""), runs.client)
    monkeypatch.setattr(Connection, "store", Full(runs.folder))
    with pytest.raises(Unreachable) as told:
        await launch._complete(Goal(text="Compare"), here)
    said = "nothing was started: s3://kept/runs: the store cannot be used: AccessDenied;"
    assert str(told.value).startswith(said) and "\n" not in str(told.value)
    assert problem_of(StoreAway("s3://kept/runs", "SlowDown")).status == 503
