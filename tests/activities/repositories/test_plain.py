"""A folder that is no repository is pinned, too: its text and its documents, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.activities.repositories import working_tree
from holdfast.activities.repositories.documents import DOCUMENT_BYTES
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.snapshots import plain
from holdfast.contracts import GoalInput, PinnedInput
from holdfast.contracts.errors import BadGoal
from holdfast.storage import DirectoryStore
from holdfast.untrusted.roots import Root

pytestmark = pytest.mark.anyio


async def taken(folder: Path, tmp_path: Path) -> tuple[PinnedInput, Snapshot]:
    """The folder as pinned, and its snapshot on disk."""
    store = DirectoryStore(tmp_path / "store")
    given = GoalInput(name="reports", kind="folder", value=str(folder))
    pinned = await plain.take(given, (Root.of(folder),), store)
    return pinned, await Snapshots(store, tmp_path / "scratch").open(pinned.digest)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "reports"
    (made / "2026").mkdir(parents=True)
    return made


async def test_text_and_documents_of_a_folder_are_pinned_with_those_below_it(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "notes.md").write_text("one\ntwo\n")
    (folder / "2026" / "May.PDF").write_bytes(b"%PDF-1.7\0\xff")
    (folder / "figures.xlsx").write_bytes(b"PK\x03\x04" + b"\0" * working_tree.FILE_LIMIT)
    pinned, snapshot = await taken(folder, tmp_path)
    assert (pinned.kind, pinned.name, pinned.is_folder) == ("folder", "reports", True)
    assert pinned.preview.startswith("A folder: 3 files, ")
    paths = ["2026/May.PDF", "figures.xlsx", "notes.md"]
    assert [file.path for file in snapshot.manifest.files] == paths
    for path in paths:
        assert snapshot.path(path).read_bytes() == (folder / path).read_bytes()


async def test_what_is_no_text_and_no_document_is_left_out_and_named(
    folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "secret.txt"
    outside.write_text("secret")
    (folder / "link.pdf").symlink_to(outside)
    (folder / "away").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo.pdf")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\0\0")
    (folder / "long.txt").write_bytes(b"a" * (working_tree.FILE_LIMIT + 1))
    with (folder / "huge.pdf").open("wb") as huge:
        huge.truncate(DOCUMENT_BYTES + 1)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    pinned, snapshot = await taken(folder, tmp_path)
    assert snapshot.manifest.files == ()
    assert {each.path: each.why for each in snapshot.manifest.unread} == {
        "away": "a link",
        "fifo.pdf": "a FIFO",
        "huge.pdf": "larger than 32 MiB",
        "link.pdf": "a link",
        "long.txt": "larger than 1 MiB",
        "photo.jpg": "binary",
    }
    assert pinned.size == 0


async def test_a_folder_with_too_many_files_is_pinned_as_far_as_it_goes_and_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "MOST_FILES", 5)
    for number in range(10):
        (folder / f"{number}.txt").write_text("x")
    _, snapshot = await taken(folder, tmp_path)
    assert len(snapshot.manifest.files) == 6
    assert snapshot.manifest.notes == ("not all of the folder was looked through",)


async def test_the_same_folder_is_the_same_snapshot(folder: Path, tmp_path: Path) -> None:
    (folder / "b.txt").write_text("b")
    (folder / "a.txt").write_text("a")
    assert (await taken(folder, tmp_path))[0] == (await taken(folder, tmp_path))[0]


async def test_a_folder_that_is_not_below_a_root_is_refused(folder: Path, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    given = GoalInput(name="reports", kind="folder", value=str(tmp_path))
    with pytest.raises(BadGoal, match="is below no allowed root"):
        await plain.take(given, (Root.of(folder),), store)
    missing = GoalInput(name="reports", kind="folder", value=str(folder / "none"))
    with pytest.raises(BadGoal, match="cannot be read"):
        await plain.take(missing, (Root.of(folder),), store)
