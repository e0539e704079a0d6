"""`doctor` and the start say what on disk is damaged, missing, full or of another deployment."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.service import RPCError, RPCStatusCode

from encrypted import write_keys
from holdfast.activities.asking.journal import FileJournal
from holdfast.cli.checks import kept as module
from holdfast.cli.checks.diagnosis import Checkup
from holdfast.cli.checks.kept import check_storage
from holdfast.cli.commands.care.doctor import check_ui
from holdfast.client import connecting
from holdfast.deployment.settings import Settings
from holdfast.embedded import Programs, StateDir, ensure_up
from holdfast.embedded.database import find_trouble
from holdfast.embedded.state import Endpoint
from holdfast.errors import EmbeddedError
from holdfast.storage import DirectoryStore
from holdfast.storage.keys import keyring
from holdfast.temporal.connection import Target

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, state_dir=tmp_path / "state")


@pytest.fixture
def state(settings: Settings) -> StateDir:
    """A state directory as a deployment leaves it."""
    state = StateDir.of(settings)
    state.create()
    sound(state.database)
    endpoint = Endpoint(
        port=1,
        ui_port=2,
        http_port=3,
        metrics_port=4,
        task_queue="holdfast-1",
        store_url=state.store.as_uri(),
        salt="s",
    )
    state.write(endpoint)
    return state


def sound(path: Path) -> None:
    """A database in WAL mode with some pages, and the server's tables as far as they are asked."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA journal_mode=wal")
        for name in ("namespaces", "executions"):
            database.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, data TEXT)")
            database.execute(f"CREATE INDEX {name}_data ON {name} (data)")
            rows = [("x" * 500 + str(each),) for each in range(400)]
            database.executemany(f"INSERT INTO {name} (data) VALUES (?)", rows)


def said(settings: Settings) -> dict[str, tuple[str, str]]:
    return {name: (mark, detail) for name, mark, detail in check_storage(settings)}


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100_000])


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(100_000))


def overwritten(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:8192] + os.urandom(80_000) + content[88_192:])


def started_on_an_empty_file(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=wal")


HARMS = [empty, truncated, garbage, overwritten, started_on_an_empty_file]


def test_nothing_is_toldagainst_what_is_sound_or_not_there_yet(
    settings: Settings, state: StateDir, tmp_path: Path
) -> None:
    assert {mark for mark, _ in said(settings).values()} == {"ok"}
    assert {"state", "database", "journal", "store"} == said(settings).keys()
    fresh = Settings(_env_file=None, state_dir=tmp_path / "fresh")
    assert [(name, mark) for name, mark, _ in check_storage(fresh)] == [("state", "ok")]
    assert not fresh.state_dir.exists()


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_damaged_database_is_named_with_what_to_do(
    settings: Settings, state: StateDir, harm: Callable[[Path], None]
) -> None:
    harm(state.database)
    mark, detail = said(settings)["database"]
    assert mark == "bad"
    assert str(state.database) in detail and "move temporal.db* away" in detail


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_server_that_ends_on_a_damaged_database_is_one_line_that_says_what_to_do(
    settings: Settings, state: StateDir, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    harm(state.database)
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\necho 'SQL logic error: no such table' >&2\nexit 1\n")
    server.chmod(0o755)
    with pytest.raises(EmbeddedError) as refusal:
        ensure_up(settings, programs=Programs(server=server))
    said = str(refusal.value)
    assert f"{state.database} is" in said and "its runs are lost" in said
    assert str(state.logs / "server.log") in said and "\n" not in said


def test_looking_at_a_database_neither_waits_for_its_writer_nor_changes_it(state: StateDir) -> None:
    with closing(sqlite3.connect(state.database)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO executions (data) VALUES ('more')")
        assert find_trouble(state.database) == ""
        writer.commit()
        before = state.database.read_bytes()
        assert find_trouble(state.database) == ""
        assert state.database.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("journal", "paid twice"),
        ("store", "is missing; mount it"),
        ("endpoint.json", "put it back"),
    ],
)
def test_what_is_missing_is_named(
    settings: Settings, state: StateDir, path: str, line: str
) -> None:
    gone = state.path / path
    if gone.is_dir():
        gone.rmdir()
    else:
        gone.unlink()
    mark, detail = said(settings)[path]
    assert mark != "ok" and str(gone) in detail and line in detail


def test_a_damaged_endpoint_file_is_named(settings: Settings, state: StateDir) -> None:
    (state.path / "endpoint.json").write_text("{")
    assert "is damaged" in said(settings)["endpoint.json"][1]


def test_a_state_directory_that_was_copied_is_of_another_deployment(
    settings: Settings, state: StateDir, tmp_path: Path
) -> None:
    copied = settings.model_copy(update={"state_dir": tmp_path / "copy"})
    state.path.rename(tmp_path / "copy")
    assert "is of another deployment" in said(copied)["endpoint.json"][1]


async def test_damaged_blobs_and_journal_entries_are_counted_and_named(
    settings: Settings, state: StateDir
) -> None:
    store, journal = DirectoryStore(state.store), FileJournal(state.journal)
    digest = await store.put(b"something")
    await store.put(b"something else")
    await journal.record("call", "answer")
    (state.store / digest[:2] / digest).write_bytes(b"something?")
    [entry] = state.journal.glob("*.answer")
    entry.write_bytes(b"")
    mark, detail = said(settings)["store"]
    assert mark == "bad" and f"1 blobs are damaged, such as {digest}" in detail
    mark, detail = said(settings)["journal"]
    assert mark == "note" and f"1 damaged, such as {entry.name}" in detail


def test_too_little_room_is_toldwith_what_a_run_needs(
    settings: Settings, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPACE_BYTES", 2**62)
    mark, detail = said(settings)["state"]
    assert mark == "bad" and "MB free; a run needs" in detail


def test_a_server_that_is_silent_on_a_full_disk_is_toldto_be(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("127.0.0.1:1", store_url=state.store.as_uri())
    monkeypatch.setattr(connecting, "SPACE_BYTES", 0)
    assert connecting.full(target) == ""
    monkeypatch.setattr(connecting, "SPACE_BYTES", 2**62)
    assert str(state.path) in connecting.full(target) and "free some space" in connecting.full(
        target
    )
    silent = RPCError("shard status unknown", RPCStatusCode.UNAVAILABLE, b"")
    told = str(connecting.explain_failure(silent, "a", connecting.full(target)))
    assert told.startswith("Temporal server at a stopped answering: shard status unknown; its disk")
    assert connecting.full(replace(target, embedded=False)) == ""
    assert connecting.full(replace(target, store_url="")) == ""
    assert connecting.full(replace(target, store_url="file:///nowhere/store")) == ""


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    lines = check_storage(Settings(_env_file=None, state_dir=file, store_url=file.as_uri()))
    assert [(name, mark) for name, mark, _ in lines] == [("state", "bad"), ("STORE_URL", "bad")]


def test_the_deployments_own_limits_are_told_tier_by_tier(state: StateDir) -> None:
    given = Settings(
        _env_file=None, state_dir=state.path, rate="haiku=60/min, opus=1/s", in_flight="haiku=5"
    )
    told = {name: said for name, _, said in check_storage(given) if name.startswith("own limit")}
    assert told == {
        "own limit haiku": "60/min and 5 in flight, for this state directory (HOLDFAST_RATE,"
        " HOLDFAST_IN_FLIGHT)",
        "own limit opus": "1/s, for this state directory (HOLDFAST_RATE)",
    }


def test_what_encrypts_is_toldand_a_file_of_keys_that_others_may_read(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    given = Settings(
        _env_file=None, state_dir=tmp_path / "state", payload_key_file=write_keys(file, "a", "b")
    )
    mark, detail = said(given)["encryption"]
    assert mark == "ok" and f"with 'b', the last key of {file}" in detail
    file.chmod(0o644)
    keyring.cache_clear()
    mark, detail = said(given)["encryption"]
    assert mark == "bad" and f"run: chmod 600 {file}" in detail


async def test_a_web_ui_that_does_not_answer_where_it_is_guessed_is_not_called_fine() -> None:
    listens = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listens.getsockname()[1]}"
    assert await check_ui(address) == Checkup("server", "Web UI", "ok", address)
    listens.close()
    gone = await check_ui(address)
    assert gone.mark == "note"
    assert gone.detail == f"nothing answers at {address}; set HOLDFAST_WEB_UI to where it is"
    assert (await check_ui("https://cloud.temporal.io")).mark == "ok"
    assert (await check_ui("")).mark == "note"
