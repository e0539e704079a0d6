"""What a snapshot holds, what it leaves out and why, and how it comes back to disk."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from holdfast.activities.repositories.manifest import COMMIT_LIMIT, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.repositories.working_tree import Comparison, collect
from holdfast.contracts.errors import BlobLost
from holdfast.untrusted.folders import Folder
from repositories import Bench, Repository

pytestmark = pytest.mark.anyio

TEN_LINES = "".join(f"line {n}\n" for n in range(1, 11))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def files_of(snapshot: Snapshot) -> dict[str, SnapshotFile]:
    return {file.path: file for file in snapshot.manifest.files}


def unread_of(snapshot: Snapshot) -> dict[str, str]:
    return {file.path: file.why for file in snapshot.manifest.unread}


async def test_the_working_tree_is_read_and_not_the_commit(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "old\n", "gone.txt": "x\n", ".gitignore": "ignored\n"})
    repository.write("a.txt", "new\n")
    repository.write("folder/untracked.txt", "u")
    repository.write("ignored", "i\n")
    (repository.path / "gone.txt").unlink()
    snapshot = await bench.snapshot(repository)
    assert sorted(files_of(snapshot)) == [".gitignore", "a.txt", "folder/untracked.txt"]
    assert snapshot.path("a.txt").read_text() == "new\n"
    file = files_of(snapshot)["folder/untracked.txt"]
    assert (file.size, file.lines, file.touched) == (1, 1, None)


async def test_what_is_not_read_is_listed_with_the_reason(
    repository: Repository, bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("outside\n")
    repository.commit(
        {
            "ok.txt": "ok\n",
            "binary": b"\x89PNG\0",
            "big.txt": b"x" * (1 << 20) + b"y",
            "d/in.txt": "x\n",
        }
    )
    (repository.path / "link").symlink_to(tmp_path / "outside" / "secret.txt")
    (repository.path / "loop").symlink_to("loop")
    (repository.path / "folder").symlink_to(tmp_path / "outside")
    os.mkfifo(repository.path / "ok.fifo")
    # A tracked folder that is now a link to somewhere else.
    (repository.path / "d" / "in.txt").unlink()
    (repository.path / "d").rmdir()
    (repository.path / "d").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / "in.txt").write_text("outside\n")
    # A tracked file that is now a FIFO.
    repository.git("add", "-f", "ok.txt")
    (repository.path / "ok.txt").unlink()
    os.mkfifo(repository.path / "ok.txt")
    nested = Repository.at(repository.path / "nested")
    nested.commit({"n.txt": "n\n"})
    Path(os.fsdecode(os.fsencode(repository.path) + b"/caf\xe9.txt")).write_text("x\n")
    snapshot = await bench.snapshot(repository)
    assert files_of(snapshot) == {}
    assert unread_of(snapshot) == {
        "binary": "binary",
        "big.txt": "larger than 1 MiB",
        "link": "a link out of the repository",
        "loop": "a link",
        "folder": "a link out of the repository",
        "d": "a link out of the repository",
        "d/in.txt": "behind a link",
        "ok.txt": "a FIFO",
        "ok.fifo": "a FIFO",
        "nested/": "a nested repository",
        "caf\\xe9.txt": "its name is not UTF-8",
    }


def test_files_beyond_the_total_are_listed(repository: Repository) -> None:
    for name in "ab":
        repository.write(f"{name}.txt", b"x" * 600_000)
    paths = (b"a.txt", b"b.txt")
    with Folder.at(repository.path) as tree:
        collected = collect(tree, paths, Comparison({}, None), limit=1 << 20)
    assert list(collected.files) == [b"a.txt"]
    assert collected.unread == [(b"b.txt", "beyond 1 MiB in all")]


async def test_names_with_spaces_newlines_and_bidi_characters_survive(
    repository: Repository, bench: Bench
) -> None:
    names = ["a b.py", "new\nline.py", "\u202egnp.py", "-rf.py", "@file.py", "q\"uo'te.py", "é.py"]
    repository.commit(dict.fromkeys(names, "x = 1\n"))
    snapshot = await bench.snapshot(repository)
    assert sorted(files_of(snapshot)) == sorted(names)
    assert all(snapshot.path(name).read_text() == "x = 1\n" for name in names)


async def test_a_base_brings_only_what_differs_with_the_touched_lines(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"same.txt": "same\n", "edited.txt": TEN_LINES, "moved.txt": TEN_LINES * 3})
    repository.git("tag", "base")
    repository.git("mv", "moved.txt", "away.txt")
    repository.commit({"edited.txt": TEN_LINES.replace("line 3\n", "three\n"), "new.txt": "1\n2\n"})
    repository.write("edited.txt", TEN_LINES.replace("line 3\n", "three\n") + "more\nand more")
    repository.write("untracked.txt", "u\n")
    snapshot = await bench.snapshot(repository, "base")
    assert {name: file.touched for name, file in files_of(snapshot).items()} == {
        "edited.txt": ((3, 3), (11, 12)),
        "new.txt": ((1, 2),),
        "untracked.txt": ((1, 1),),
    }
    assert unread_of(snapshot) == {}


async def test_a_renamed_and_edited_file_is_touched_where_it_was_edited(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"old.txt": TEN_LINES * 5})
    repository.git("mv", "old.txt", "new.txt")
    repository.write("new.txt", TEN_LINES * 5 + "more\n")
    touched = files_of(await bench.snapshot(repository, "HEAD"))["new.txt"].touched
    assert touched == ((51, 51),)


async def test_other_line_ends_alone_are_no_difference(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": TEN_LINES})
    repository.write("a.txt", TEN_LINES.replace("\n", "\r\n"))
    assert files_of(await bench.snapshot(repository, "HEAD")) == {}


async def test_unread_files_that_do_not_differ_from_the_base_are_not_mentioned(
    repository: Repository, bench: Bench
) -> None:
    repository.write("big.txt", b"x" * (1 << 20) + b"y")
    (repository.path / "link").symlink_to("nowhere")
    repository.commit({"binary": b"\x89PNG\0", "other": b"\x89PNG\0"})
    repository.write("other", b"\x89PNG\0\0")
    assert unread_of(await bench.snapshot(repository, "HEAD")) == {"other": "binary"}


async def test_an_empty_range_is_an_empty_snapshot(repository: Repository, bench: Bench) -> None:
    repository.commit({"a.txt": "a\n"})
    pinned = await bench.pin(repository, "main")
    snapshot = await bench.snapshots.open(pinned.digest)
    assert (snapshot.manifest.files, snapshot.manifest.unread, pinned.size) == ((), (), 0)
    assert len(snapshot.manifest.commits) == 1


async def test_a_repository_without_a_commit_is_read(repository: Repository, bench: Bench) -> None:
    repository.write("a.txt", "a\n")
    snapshot = await bench.snapshot(repository)
    assert list(files_of(snapshot)) == ["a.txt"]
    assert snapshot.manifest.head == ""
    assert snapshot.manifest.notes == ("the repository has no commit yet",)


async def test_a_history_above_the_limit_is_cut_and_says_so(
    repository: Repository, bench: Bench
) -> None:
    stream = "".join(
        f"commit refs/heads/main\ncommitter Ada <a@example.com> {n} +0000\ndata 0\n"
        for n in range(1, COMMIT_LIMIT + 2)
    )
    repository.git("fast-import", "--quiet", stdin=stream.encode())
    manifest = (await bench.snapshot(repository)).manifest
    assert (len(manifest.commits), manifest.commits_cut) == (COMMIT_LIMIT, True)
    assert manifest.notes == (f"of the history, the last {COMMIT_LIMIT} commits were looked at",)


async def test_an_unchanged_repository_has_one_snapshot(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    assert await bench.pin(repository) == await bench.pin(repository)


async def test_lenses_that_open_a_snapshot_at_once_share_it(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"d/a.txt": "a\n"})
    digest = (await bench.pin(repository)).digest
    # Each has a lock of its own, as workers in other processes have.
    opened = await asyncio.gather(*(bench.snapshots.open(digest) for _ in range(8)))
    assert {snapshot.root for snapshot in opened} == {bench.folder / "scratch" / digest / "head"}
    assert [path.name for path in (bench.folder / "scratch").iterdir()] == [digest]
    assert opened[0].path("d/a.txt").read_text() == "a\n"
    assert opened[0].path("d/a.txt").stat().st_mode & 0o222 == 0


async def test_what_a_killed_worker_left_half_written_is_passed_over_and_later_removed(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    for name, age in (("partial-old", 7_200), ("partial-new", 60)):
        folder = bench.folder / "scratch" / name
        folder.mkdir(parents=True)
        (folder / "half").write_text("h")
        os.utime(folder, (time.time() - age,) * 2)
    snapshot = await bench.snapshot(repository)
    assert snapshot.path("a.txt").read_text() == "a\n"
    names = {path.name for path in (bench.folder / "scratch").iterdir()}
    assert names == {"partial-new", snapshot.root.parent.name}


async def test_a_snapshot_that_the_store_does_not_have_is_said_in_one_line(bench: Bench) -> None:
    with pytest.raises(BlobLost, match=r"is lost.*give all workers and starters the STORE_URL"):
        await bench.snapshots.open("0" * 64)


@pytest.mark.parametrize("left", ["", "b"], ids=["taken away", "cut"])
async def test_a_snapshot_that_lost_a_file_on_disk_is_put_there_anew(
    repository: Repository, bench: Bench, left: str
) -> None:
    repository.commit({"d/a.txt": "a\n", "b.txt": "bbb\n"})
    snapshot = await bench.snapshot(repository)
    snapshot.path("b.txt").unlink()
    if left:
        snapshot.path("b.txt").write_text(left)
    assert (await bench.snapshot(repository)).path("b.txt").read_text() == "bbb\n"


async def test_an_archive_that_is_damaged_is_not_looked_at(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    digest = (await bench.pin(repository)).digest
    for path in bench.store.root.glob("??/*"):
        if path.name != digest:
            path.write_bytes(path.read_bytes().replace(b"a\n", b"b\n"))
    with pytest.raises(BlobLost, match="is damaged"):
        await bench.snapshots.open(digest)
    assert not [*(bench.folder / "scratch").iterdir()]


async def test_a_pinned_repository_says_its_commit_its_base_and_what_is_not_committed(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n"})
    first = repository.git("rev-parse", "HEAD")
    repository.commit({"d.txt": "d\n"})
    head = repository.git("rev-parse", "HEAD")
    clean = await bench.pin(repository)
    assert (clean.path, clean.commit, clean.changed) == (str(repository.path), head, 0)
    repository.write("a.txt", "edited\n")
    (repository.path / "b.txt").unlink()
    repository.write("c.txt", "staged\n")
    repository.git("add", "c.txt")
    repository.write("new.txt", "new\n")
    dirty = await bench.pin(repository, "HEAD~1")
    assert (dirty.commit, dirty.changed) == (head, 4)
    assert (dirty.base, dirty.base_name) == (first, "HEAD~1")


async def test_a_repository_without_a_commit_does_not_say_how_much_is_uncommitted(
    repository: Repository, bench: Bench
) -> None:
    repository.write("a.txt", "a\n")
    pinned = await bench.pin(repository)
    assert (pinned.commit, pinned.changed) == ("", None)
