"""How much of a repository is taken where nobody names a base: what differs from where its branch
left the main line, or the whole tree, and the words that say which and why.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.activities.repositories.main_line import Start
from holdfast.activities.repositories.wanted import Wanted
from holdfast.contracts import GoalInput, PinnedInput
from holdfast.contracts.errors import BadGoal
from repositories import Bench, Repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.with_a_file(tmp_path / "origin")


async def taken(bench: Bench, repository: Repository) -> tuple[str, list[str], PinnedInput]:
    """The words, the files in scope, and the pinned input of a review that names no base."""
    pinned = await bench.pin(repository, scope="changed")
    manifest = (await bench.snapshots.open(pinned.digest)).manifest
    assert manifest.scope == pinned.scope
    return pinned.scope, sorted(file.path for file in manifest.files), pinned


def clone(repository: Repository, *options: str) -> Repository:
    target = repository.path.parent / "clone"
    repository.git("clone", "-q", *options, f"file://{repository.path}", str(target))
    return Repository(target)


async def test_a_branch_is_what_it_changed_since_it_left_main_with_what_is_not_committed(
    bench: Bench, repository: Repository
) -> None:
    left = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.txt": "b\n", "c.txt": "c\n"})
    repository.git("checkout", "-q", "main")
    repository.commit({"later.txt": "of main alone\n"})
    repository.git("checkout", "-q", "feature")
    said, files, pinned = await taken(bench, repository)
    assert files == ["b.txt", "c.txt"] and pinned.base == left
    assert said == f"what differs from main ({left[:10]}), 2 files, nothing is uncommitted"
    repository.write("a.txt", "a\nedited\n")
    repository.write("new.txt", "never added\n")
    said, files, _ = await taken(bench, repository)
    assert files == ["a.txt", "b.txt", "c.txt", "new.txt"]
    assert said == f"what differs from main ({left[:10]}), 4 files, uncommitted changes included"


async def test_what_git_ignores_is_no_change(bench: Bench, repository: Repository) -> None:
    repository.commit({".gitignore": "*.log\n"})
    repository.git("checkout", "-q", "-b", "feature")
    repository.write("noise.log", "noise\n")
    assert (await taken(bench, repository))[0].startswith("the whole tree")


async def test_on_main_it_is_what_is_not_committed_and_without_that_the_whole_tree(
    bench: Bench, repository: Repository
) -> None:
    said, files, pinned = await taken(bench, repository)
    assert said == "the whole tree, because main has all of it and nothing is uncommitted"
    assert files == ["a.txt"] and pinned.base == ""
    repository.write("new.txt", "never added\n")
    said, files, pinned = await taken(bench, repository)
    assert files == ["new.txt"] and pinned.base == pinned.commit
    assert said == f"what is not committed on main ({pinned.commit[:10]}), 1 file"


async def test_on_main_commits_that_origin_does_not_have_are_what_changed(
    bench: Bench, repository: Repository
) -> None:
    here = clone(repository)
    here.commit({"mine.txt": "not pushed\n"})
    said, files, pinned = await taken(bench, here)
    assert files == ["mine.txt"] and pinned.base == repository.git("rev-parse", "HEAD")
    assert said.startswith("what differs from main (")


async def test_the_main_line_is_what_origin_calls_so_whatever_its_name(
    bench: Bench, repository: Repository
) -> None:
    repository.git("checkout", "-q", "-b", "trunk")
    repository.commit({"b.txt": "on trunk\n"})
    here = clone(repository)
    here.git("checkout", "-q", "-b", "feature")
    here.commit({"c.txt": "c\n"})
    said, files, _ = await taken(bench, here)
    assert files == ["c.txt"] and said.startswith("what differs from trunk (")


async def test_of_a_main_line_here_and_at_origin_the_nearer_one_counts(
    bench: Bench, repository: Repository
) -> None:
    here = clone(repository)
    here.commit({"local.txt": "on main here, not at origin\n"})
    here.git("checkout", "-q", "-b", "feature")
    here.commit({"mine.txt": "mine\n"})
    assert (await taken(bench, here))[1] == ["mine.txt"]
    here.git("branch", "-q", "-f", "main", "HEAD~2")
    repository.commit({"far.txt": "pushed by another\n"})
    here.git("fetch", "-q")
    here.git("merge", "-q", "--no-edit", "origin/main")
    # The branch has since taken in what origin has, which the main line here has not.
    assert (await taken(bench, here))[1] == ["local.txt", "mine.txt"]


async def test_what_the_users_own_git_calls_a_first_branch_is_a_main_line_too(
    bench: Bench, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository.git("branch", "-q", "-m", "develop")
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.txt": "b\n"})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    said, files, _ = await taken(bench, repository)
    assert said.startswith("the whole tree, because no main line was found: ")
    assert files == ["a.txt", "b.txt"]
    (tmp_path / ".gitconfig").write_text("[init]\n\tdefaultBranch = develop\n")
    assert (await taken(bench, repository))[1] == ["b.txt"]


async def test_the_only_branch_there_is_is_the_main_line(
    bench: Bench, repository: Repository
) -> None:
    repository.git("branch", "-q", "-m", "odd")
    repository.write("new.txt", "new\n")
    said, files, _ = await taken(bench, repository)
    assert files == ["new.txt"] and said.startswith("what is not committed on odd (")


def detached(repository: Repository) -> Repository:
    repository.git("checkout", "-q", "--detach")
    repository.commit({"b.txt": "b\n"})
    return repository


def linked(repository: Repository) -> Repository:
    target = repository.path.parent / "linked"
    repository.git("worktree", "add", "-q", "-b", "feature", str(target))
    found = Repository(target)
    found.commit({"b.txt": "b\n"})
    return found


def with_a_file_and_a_tag_called_main(repository: Repository) -> Repository:
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.txt": "b\n"})
    repository.git("tag", "main")
    repository.write("main", "a file\n")
    return repository


def with_a_submodule(repository: Repository) -> Repository:
    other = Repository.with_a_file(repository.path.parent / "other")
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.path), "sub"
    )
    repository.commit()
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.txt": "b\n"})
    return repository


@pytest.mark.parametrize(
    ("made", "files"),
    [
        (detached, ["b.txt"]),
        (linked, ["b.txt"]),
        (with_a_file_and_a_tag_called_main, ["b.txt", "main"]),
        (with_a_submodule, ["b.txt"]),
    ],
    ids=["a detached HEAD", "a linked tree", "a file and a tag called main", "a submodule"],
)
async def test_the_point_is_found_in_odd_repositories(
    bench: Bench,
    repository: Repository,
    made: Callable[[Repository], Repository],
    files: list[str],
) -> None:
    said, found, _ = await taken(bench, made(repository))
    assert found == files and said.startswith("what differs from main (")


async def test_a_shallow_clone_that_does_not_reach_the_point_is_taken_whole_and_says_why(
    bench: Bench, repository: Repository
) -> None:
    repository.git("checkout", "-q", "-b", "feature")
    for number in range(3):
        repository.commit({f"{number}.txt": "x\n"})
    here = clone(repository, "--depth", "1", "--no-single-branch")
    said, files, _ = await taken(bench, here)
    assert len(files) == 4
    # Of the clone, feature is what origin has checked out; main is what it left.
    here.git("remote", "set-head", "origin", "main")
    said, files, _ = await taken(bench, here)
    assert len(files) == 4
    assert said == (
        "the whole tree, because the clone is shallow and it does not reach the point where it left"
        " main: fetch its whole history (fetch-depth: 0), or give base=REVISION"
    )


@pytest.mark.parametrize("apart", [False, True], ids=["a branch", "a detached HEAD"])
async def test_a_shallow_clone_of_a_branch_alone_is_not_said_to_be_the_main_line(
    bench: Bench, repository: Repository, apart: bool
) -> None:
    repository.git("branch", "-q", "pr")
    here = clone(repository, "--depth", "1", "-b", "pr")
    if apart:
        here.git("checkout", "-q", "--detach")
        here.git("branch", "-q", "-D", "pr")
    here.write("built.txt", "by the pipeline, never committed\n")
    said, files, pinned = await taken(bench, here)
    assert (files, pinned.base) == (["a.txt", "built.txt"], "")
    assert said == (
        "the whole tree, because the clone is shallow and its main line is not in it: fetch its"
        " whole history (fetch-depth: 0), or give base=REVISION"
    )


async def test_a_shallow_clone_of_the_main_line_says_that_it_is_one(
    bench: Bench, repository: Repository
) -> None:
    repository.commit({"b.txt": "b\n"})
    here = clone(repository, "--depth", "1")
    said, _, _ = await taken(bench, here)
    assert said == (
        "the whole tree, because main has all of it and nothing is uncommitted; the clone is"
        " shallow: fetch its whole history (fetch-depth: 0), or give base=REVISION"
    )
    assert (await bench.pin(here, scope="all")).scope.endswith("asks; the clone is shallow")
    here.write("c.txt", "c\n")
    said, _, _ = await taken(bench, here)
    assert said.endswith("1 file; the clone is shallow")


async def test_without_a_commit_or_a_common_one_the_whole_tree_is_taken(
    bench: Bench, repository: Repository, tmp_path: Path
) -> None:
    repository.git("checkout", "-q", "--orphan", "apart")
    repository.commit({"b.txt": "b\n"})
    said, files, _ = await taken(bench, repository)
    assert said == "the whole tree, because no commit in common with main was found"
    assert files == ["a.txt", "b.txt"]
    empty = Repository.at(tmp_path / "empty")
    empty.write("a.txt", "a\n")
    said, files, _ = await taken(bench, empty)
    assert said == "the whole tree, because there is no commit to compare with"
    assert files == ["a.txt"]


async def test_a_run_without_the_choice_takes_the_whole_tree_and_says_nothing(
    bench: Bench, repository: Repository
) -> None:
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit({"b.txt": "b\n"})
    pinned = await bench.pin(repository)
    assert (pinned.scope, pinned.base) == ("", "")
    everything = await bench.pin(repository, scope="all")
    assert everything.scope == "the whole tree, as scope=all asks" and everything.base == ""


def given(**values: str) -> tuple[GoalInput, ...]:
    return tuple(GoalInput(name=name, kind="text", value=value) for name, value in values.items())


def test_what_changed_is_wanted_where_a_playbook_has_the_choice_and_nobody_made_it() -> None:
    assert Wanted.of((), {"scope"}) == Wanted("", "changed")
    assert Wanted.of((), ()) == Wanted("", "")
    assert Wanted.of(given(base="v1"), {"scope"}) == Wanted("v1", "changed")
    with pytest.raises(BadGoal, match="give one of them"):
        Wanted.of(given(base="v1", scope="all"), {"scope"})


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((0, 0, 0), "0 files"),
        ((1, 0, 2), "1 file and 2 deleted"),
        ((0, 1, 0), "1 file renamed"),
        ((0, 0, 3), "3 files deleted"),
        ((3, 1, 2), "3 files, 1 renamed and 2 deleted"),
    ],
)
def test_what_is_taken_says_how_many_files_were_changed_renamed_and_deleted(
    counts: tuple[int, int, int], said: str
) -> None:
    assert Start("0123456789", "main").describe(*counts, None).endswith(f", {said}")
