"""Git over repositories that are not trusted: what is found, and what is refused in one line."""

from __future__ import annotations

import os
import shlex
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from holdfast.activities.repositories import git
from holdfast.activities.repositories.git import Git
from holdfast.activities.repositories.output import FileDiff, Hunk
from holdfast.activities.repositories.working_tree import FILE_LIMIT
from holdfast.contracts.errors import BadGoal
from holdfast.untrusted.roots import roots_at
from repositories import Repository

pytestmark = pytest.mark.anyio


def opened(path: Path, *more: Path) -> AbstractAsyncContextManager[Git]:
    """Git over a repository, where it and the others named may be read."""
    roots, _ = roots_at([path, *more])
    return git.open_git(path, roots)


def hunks_of(compared: list[tuple[bytes, bytes, FileDiff]]) -> dict[bytes, list[Hunk]]:
    """Where files differ, by their path in the head."""
    return {path: diff.hunks for _, path, diff in compared}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


@pytest.mark.parametrize("packed", [False, True])
async def test_branches_tags_hashes_and_ancestors_name_commits(
    repository: Repository, packed: bool
) -> None:
    first = repository.commit({"a.txt": "a\n"})
    repository.git("tag", "-a", "v1.0", "-m", "first")
    second = repository.commit({"a.txt": "b\n"})
    repository.git("branch", "topic/one", first)
    if packed:
        repository.git("pack-refs", "--all")
    async with opened(repository.path) as view:
        names = ("HEAD~1", "v1.0", "topic/one", first, first[:8], "main^", "refs/heads/main~1")
        assert [await view.commit(name) for name in names] == [first] * len(names)
        assert await view.commit("main") == await view.head() == second


@pytest.mark.parametrize(
    "revision", ["nope", "--all", "-", "", "HEAD~9", "HEAD:a.txt", "a\nb", "x" * 300, "main; ls"]
)
async def test_a_revision_that_names_no_commit_is_refused_in_one_line(
    repository: Repository, revision: str
) -> None:
    repository.commit({"a.txt": "a\n"})
    async with opened(repository.path) as view:
        with pytest.raises(BadGoal, match=r"does not exist in .*; name a branch") as refusal:
            await view.commit(revision)
    assert "\n" not in refusal.value.message


async def test_what_is_no_repository_is_refused_with_what_to_do(tmp_path: Path) -> None:
    bare = Repository.at(tmp_path / "bare", "--bare")
    whole = Repository.at(tmp_path / "whole")
    whole.write("inner/file", "x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / ".git").write_text("gitdir: ../nowhere\n")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / ".git")
    cases = {
        tmp_path / "none": "is not a folder",
        tmp_path / "empty": "not a Git repository",
        bare.path: "bare repository",
        whole.path / "inner": "name its top folder",
        tmp_path / "dangling": "which is not there",
        tmp_path / "pipe": "neither a folder nor a link",
    }
    for path, why in cases.items():
        with pytest.raises(BadGoal, match=why) as refusal:
            async with opened(path, tmp_path):
                pass
        assert "\n" not in refusal.value.message


async def test_what_a_folder_without_git_is_refused_with_makes_it_one_that_is_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    with pytest.raises(BadGoal, match="make it one") as refusal:
        async with opened(folder, tmp_path):
            pass
    command = refusal.value.message.partition("make it one: ")[2].partition(" (")[0]
    await anyio.run_process(shlex.split(command))
    async with opened(folder, tmp_path) as repository:
        assert await repository.head() == ""


async def test_refs_as_reftable_are_refused_in_one_line(repository: Repository) -> None:
    (repository.path / ".git" / "reftable").mkdir()
    with pytest.raises(BadGoal, match="reftable"):
        async with opened(repository.path):
            pass


async def test_a_repository_with_sha256_hashes_works(tmp_path: Path) -> None:
    repository = Repository.at(tmp_path / "repo", "--object-format=sha256")
    commit = repository.commit({"a.txt": "a\n"})
    async with opened(repository.path) as view:
        assert len(commit) == 64
        assert await view.commit("main") == commit
        assert list(await view.index()) == [b"a.txt"]
        tree = await view.tree(commit)
        compared = await view.compare({b"a.txt": tree[b"a.txt"].hash}, {b"a.txt": b"a\nb\n"})
        assert hunks_of(compared) == {b"a.txt": [(1, 0, 2, 1)]}


async def test_another_working_tree_of_a_repository_has_its_own_head(
    repository: Repository, tmp_path: Path
) -> None:
    first = repository.commit({"a.txt": "a\n"})
    repository.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    other = Repository(tmp_path / "other")
    second = other.commit({"b.txt": "b\n"})
    async with opened(other.path) as view:
        assert await view.head() == second
        assert await view.commit("main") == first
        assert sorted(await view.index()) == [b"a.txt", b"b.txt"]


async def test_a_shallow_clone_has_the_history_that_it_has(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"a.txt": "a\n"})
    last = repository.commit({"a.txt": "b\n"})
    repository.git("clone", "-q", "--depth=1", f"file://{repository.path}", str(tmp_path / "c"))
    async with opened(tmp_path / "c") as view:
        assert [entry.hash for entry in (await view.history(last, 10))[0]] == [last]


async def test_what_is_too_large_to_be_read_is_neither_compared_nor_counted(
    repository: Repository,
) -> None:
    """A gigabyte of line ends is some kilobytes in a repository, and many gigabytes in a diff."""
    repository.commit({"a.txt": "a\n" * FILE_LIMIT, "b.txt": "b\n"})
    last = repository.commit({"a.txt": "c\n", "b.txt": "c\n"})
    async with opened(repository.path) as view:
        entries, _ = await view.history(last, 1)
        assert entries[0].changes == [(1, 1, b"b.txt")]
        old = {path: entry.hash for path, entry in (await view.tree(f"{last}~1")).items()}
        compared = await view.compare(old, {b"a.txt": b"c\n", b"b.txt": b"b\nc\n"})
    assert hunks_of(compared) == {b"a.txt": [(0, 0, 1, 1)], b"b.txt": [(1, 0, 2, 1)]}


async def test_a_split_index_is_read(repository: Repository) -> None:
    repository.commit({"a.txt": "a\n", "b.txt": "b\n"})
    repository.git("update-index", "--split-index")
    async with opened(repository.path) as view:
        assert sorted(await view.index()) == [b"a.txt", b"b.txt"]


async def test_a_folder_with_quotes_and_colons_in_its_name_works(tmp_path: Path) -> None:
    repository = Repository.at(tmp_path / 'a "b": c\\')
    commit = repository.commit({"a.txt": "a\n"})
    async with opened(repository.path) as view:
        assert await view.commit("HEAD") == commit


async def test_the_history_has_authors_and_lines_whatever_they_are_called(
    repository: Repository,
) -> None:
    first = repository.commit({"old name\n.py": "a\nb\n"}, author="1 2\t\x02 Eve")
    second = repository.commit({"old name\n.py": "a\n", "blob": b"\0\1"}, author="Bob")
    async with opened(repository.path) as view:
        entries, cut = await view.history(second, 10)
    assert not cut
    assert [(each.hash, each.author) for each in entries] == [
        (second, "Bob"),
        (first, "1 2\t\x02 Eve"),
    ]
    assert entries[0].changes == [(0, 1, b"old name\n.py")]
    assert entries[1].changes == [(2, 0, b"old name\n.py")]


async def test_lines_of_a_file_cannot_pass_for_the_headers_of_a_diff(
    repository: Repository,
) -> None:
    old = "".join(f"{n}\n" for n in range(1, 10))
    forged = old.replace("5\n", "@@ -1 +1,900 @@\n++ b/00000000\ndiff --git a/1 b/0\n")
    repository.commit({"a.txt": old})
    async with opened(repository.path) as view:
        tree = await view.tree(await view.head())
        blobs: dict[bytes, str | bytes] = {b"a.txt": tree[b"a.txt"].hash}
        compared = await view.compare(blobs, {b"a.txt": forged.encode()})
    assert hunks_of(compared) == {b"a.txt": [(5, 1, 5, 3)]}


async def test_refs_that_git_would_not_write_are_left_out(repository: Repository) -> None:
    commit = repository.commit({"a.txt": "a\n"})
    heads = repository.path / ".git" / "refs" / "heads"
    (heads / "a..b").write_text(commit)
    (heads / "bad").write_text("; rm -rf /\n")
    os.mkfifo(heads / "pipe")
    (heads / "link").symlink_to("/etc/passwd")
    (heads / "self").write_text("ref: refs/heads/self\n")
    async with opened(repository.path) as view:
        assert await view.commit("main") == commit
        for name in ("a..b", "bad", "pipe", "link", "self"):
            with pytest.raises(BadGoal):
                await view.commit(f"refs/heads/{name}")


async def test_a_listing_that_takes_too_long_ends(repository: Repository) -> None:
    repository.commit({"a.txt": "a\n"})
    os.mkfifo(repository.path / ".gitignore")
    async with opened(repository.path) as view:
        with pytest.raises(git.GitFailed, match="took longer than"):
            await view.untracked(seconds=0.5)
