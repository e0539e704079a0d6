"""What may be read: below a root that is still the one that was allowed, and through no link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from holdfast.activities.repositories import git
from holdfast.activities.repositories.git import Git, GitFailed
from holdfast.activities.repositories.layout import ALTERNATES
from holdfast.activities.repositories.manifest import Manifest, SnapshotFile
from holdfast.activities.repositories.view import INDEX_BYTES
from holdfast.activities.repositories.working_tree import PATH_FOLDERS
from holdfast.contracts.errors import BadGoal, LensFailed
from holdfast.untrusted.folders import NotRegular, read_handle
from holdfast.untrusted.roots import Outside, Root, Roots, open_file, open_folder, roots_at
from parameters import rest_long
from repositories import Bench, Repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that is reviewed, in a place where somebody else could rename it."""
    folder = tmp_path / "shared" / "proj"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("notes")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "notes.txt").write_text("secret")
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def content(path: Path, roots: Roots) -> bytes:
    return read_handle(open_file(path, roots), 100)


# ---------------------------------------------------------------- roots


@pytest.mark.parametrize("swap", [Path.symlink_to, Path.rename])
def test_a_root_that_was_exchanged_allows_nothing_any_more(
    shared: Path, home: Path, swap: Callable[[Path, Path], object]
) -> None:
    roots = (Root.of(shared),)
    assert content(shared / "notes.txt", roots) == b"notes"
    shared.rename(shared.with_name("old"))
    if swap is Path.symlink_to:
        shared.symlink_to(home)
    else:
        home.rename(shared)
    with pytest.raises(Outside):
        content(shared / "notes.txt", roots)
    with pytest.raises(Outside):
        open_folder(shared, roots)


def test_a_file_that_was_allowed_alone_allows_neither_its_successor_nor_its_neighbour(
    shared: Path,
) -> None:
    roots = (Root.of(shared / "notes.txt"),)
    assert content(shared / "notes.txt", roots) == b"notes"
    (shared / "other.txt").write_text("other")
    with pytest.raises(Outside, match="below no allowed root"):
        content(shared / "other.txt", roots)
    (shared / "other.txt").replace(shared / "notes.txt")
    with pytest.raises(Outside, match="another file or folder now"):
        content(shared / "notes.txt", roots)


def test_a_link_put_on_the_way_between_look_and_opening_is_not_followed(
    shared: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "inner").mkdir()
    (shared / "inner" / "notes.txt").write_text("inner")
    roots = (Root.of(shared),)
    whole = Path.resolve

    def too_late(self: Path, strict: bool = False) -> Path:
        found = whole(self, strict)
        (shared / "inner").rename(shared / "gone")
        (shared / "inner").symlink_to(home)
        return found

    monkeypatch.setattr(Path, "resolve", too_late)
    with pytest.raises(OSError):
        open_file(shared / "inner" / "notes.txt", roots)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "pipe", "."])
def test_what_is_no_regular_file_is_not_even_opened(shared: Path, path: str) -> None:
    os.mkfifo(shared / "pipe")
    with pytest.raises(NotRegular):
        open_file(shared / path, (Root.of(shared), Root.of(Path("/dev"))))


@pytest.mark.parametrize("name", ["notes.txt", "none", "notes.txt/none", "loop"])
def test_of_what_is_outside_nobody_learns_whether_it_is_there(
    shared: Path, home: Path, name: str
) -> None:
    (home / "loop").symlink_to("loop")
    for path in (home / name, shared / ".." / ".." / "home" / name):
        with pytest.raises(Outside, match=r"^is below no allowed root; name one in HOLDFAST"):
            open_file(path, (Root.of(shared),))
    with pytest.raises(FileNotFoundError):
        open_file(shared / "none", (Root.of(shared),))


def test_a_path_where_nothing_is_is_no_root(tmp_path: Path, shared: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    missing = [tmp_path / "none", tmp_path / "loop", Path("a\0b")]
    assert roots_at([shared, *missing]) == ((Root.of(shared),), tuple(missing))


# ---------------------------------------------------------------- what a repository leads to


@pytest.fixture
def private(tmp_path: Path) -> Repository:
    """A repository that nobody allowed."""
    private = Repository.at(tmp_path / "private")
    private.commit({"secret.txt": "s\n"})
    return private


async def looked_at(path: Path, *more: Path) -> tuple[Git, str]:
    """Git over a repository, with its HEAD."""
    roots, _ = roots_at([path, *more])
    async with git.open_git(path, roots) as view:
        return view, await view.head()


def git_file(tree: Path, private: Path) -> None:
    (tree / ".git").write_text(f"gitdir: {private}/.git\n")


def git_link(tree: Path, private: Path) -> None:
    (tree / ".git").symlink_to(private / ".git")


def common_file(tree: Path, private: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / ".git" / "commondir").write_text(f"{private}/.git\n")


def objects_link(tree: Path, private: Path) -> None:
    Repository.at(tree)
    (tree / ".git" / "objects").rename(tree / ".git" / "old")
    (tree / ".git" / "objects").symlink_to(private / ".git" / "objects")


def refs_link(tree: Path, private: Path) -> None:
    Repository.at(tree)
    (tree / ".git" / "refs").rename(tree / ".git" / "old")
    (tree / ".git" / "refs").symlink_to(private / ".git" / "refs")


def alternates(tree: Path, private: Path) -> None:
    Repository.at(tree)
    (tree / ".git" / "objects" / "info" / "alternates").write_text(f"{private}/.git/objects\n")


@pytest.mark.parametrize(
    "lead", [git_file, git_link, common_file, objects_link, refs_link, alternates]
)
async def test_a_repository_that_leads_elsewhere_is_refused_unless_that_is_allowed_too(
    tmp_path: Path, private: Repository, lead: Callable[[Path, Path], None]
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    lead(tree, private.path)
    with pytest.raises(BadGoal, match="below no allowed root") as refused:
        await looked_at(tree)
    assert str(private.path) in refused.value.message and "\n" not in refused.value.message
    roots, _ = roots_at([tree, private.path])
    async with git.open_git(tree, roots) as view:
        assert not view.notes


@pytest.mark.parametrize("name", ["pack", "fan-out", "file"])
async def test_links_among_the_objects_are_not_followed(
    tmp_path: Path, private: Repository, name: str
) -> None:
    commit = private.git("rev-parse", "HEAD")
    tree = Repository.with_a_file(tmp_path / "tree")
    ours, theirs = tree.path / ".git" / "objects", private.path / ".git" / "objects"
    if name == "pack":
        private.git("gc", "-q")
        (ours / "pack").rmdir()
        (ours / "pack").symlink_to(theirs / "pack")
    elif name == "fan-out":
        # Packed: else one commit in some eighty falls into a folder that the tree has itself.
        tree.git("gc", "-q")
    for folder in [each for each in theirs.iterdir() if len(each.name) == 2]:
        if name == "fan-out" and not (ours / folder.name).exists():
            (ours / folder.name).symlink_to(folder)
        for each in folder.iterdir() if name == "file" else ():
            (ours / folder.name).mkdir(exist_ok=True)
            (ours / folder.name / each.name).symlink_to(each)
    assert tree.git("cat-file", "-t", commit) == "commit", "git itself follows them"
    (root,) = roots_at([tree.path])[0]
    async with git.open_git(tree.path, (root,)) as view:
        with pytest.raises(BadGoal, match="does not exist"):
            await view.commit(commit)
        assert await view.head() == tree.git("rev-parse", "HEAD")
        assert any("not read" in note for note in view.notes)


async def test_alternates_are_followed_as_far_as_they_are_allowed(
    tmp_path: Path, private: Repository
) -> None:
    private.git("clone", "-q", "--shared", str(private.path), str(tmp_path / "one"))
    private.git("clone", "-q", "--shared", str(tmp_path / "one"), str(tmp_path / "two"))
    one, two = tmp_path / "one", tmp_path / "two"
    _, head = await looked_at(two, one, private.path)
    assert head == private.git("rev-parse", "HEAD")
    with pytest.raises(BadGoal, match=rf"{one}.*borrows objects from '{private.path}"):
        await looked_at(two, one)
    folders = [tmp_path / f"lent {number}" for number in range(ALTERNATES + 1)]
    for folder in folders:
        folder.mkdir()
    lines = "".join(f"{folder}\n" for folder in folders)
    (two / ".git" / "objects" / "info" / "alternates").write_text(lines)
    with pytest.raises(BadGoal, match=f"borrows from more than {ALTERNATES} folders"):
        await looked_at(two, *folders)


async def test_working_trees_that_their_repository_knows_need_no_root_for_it(
    tmp_path: Path, private: Repository
) -> None:
    private.git("worktree", "add", "-q", str(tmp_path / "other"))
    _, head = await looked_at(tmp_path / "other")
    assert head == private.git("rev-parse", "HEAD")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".git").write_text((tmp_path / "other" / ".git").read_text())
    with pytest.raises(BadGoal, match="below no allowed root"):
        await looked_at(copy)


async def test_a_submodule_is_read_through_the_git_folder_that_names_it(
    tmp_path: Path, private: Repository
) -> None:
    outer = Repository.with_a_file(tmp_path / "outer")
    allow = ("-c", "protocol.file.allow=always")
    outer.git(*allow, "submodule", "add", "-q", str(private.path), "inner")
    _, head = await looked_at(outer.path / "inner")
    assert head == private.git("rev-parse", "HEAD")


# ---------------------------------------------------------------- what does not fit, or waits


async def test_a_fifo_among_the_packs_keeps_nobody_waiting(tmp_path: Path, bench: Bench) -> None:
    repository = Repository.with_a_file(tmp_path / "repo")
    os.mkfifo(repository.path / ".git" / "objects" / "pack" / f"pack-{'0' * 40}.idx")
    manifest = (await bench.snapshot(repository)).manifest
    assert manifest.head == repository.git("rev-parse", "HEAD") and len(manifest.commits) == 1
    (note,) = manifest.notes
    assert note.endswith(".idx is not a regular file: not read")


async def test_a_commit_that_is_not_there_is_a_note_and_not_a_repository_without_one(
    tmp_path: Path, bench: Bench
) -> None:
    repository = Repository.with_a_file(tmp_path / "repo")
    head = repository.git("rev-parse", "HEAD")
    (repository.path / ".git" / "objects" / head[:2] / head[2:]).unlink()
    manifest = (await bench.snapshot(repository)).manifest
    assert manifest.notes == (
        f"the history was not looked at: its commit {head[:12]} is not there",
    )
    with pytest.raises(LensFailed, match="the history was not looked at"):
        await bench.look("history", repository)
    (repository.path / ".git" / "HEAD").write_text("nothing of the kind\n")
    manifest = (await bench.snapshot(repository)).manifest
    assert "HEAD names no branch" in manifest.notes[0]


async def test_a_command_that_was_stopped_says_nothing_of_what_there_is(tmp_path: Path) -> None:
    repository = Repository.with_a_file(tmp_path / "repo")
    async with git.open_git(repository.path, (Root.of(repository.path),)) as view:

        async def stopped(*_: object, **__: object) -> bytes:
            raise git.GitStopped("git rev-parse took longer than 120 s")

        view._run = stopped  # type: ignore[method-assign]
        with pytest.raises(BadGoal, match=r"cannot be looked up: .* took longer"):
            await view.commit("main")
        with pytest.raises(GitFailed, match="took longer"):
            await view.head()


async def test_of_shared_indexes_the_one_that_is_used_is_copied_and_no_more(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.with_a_file(tmp_path / "repo")
    repository.git("update-index", "--split-index")
    for number in range(6):
        with (repository.path / ".git" / f"sharedindex.{number:040x}").open("wb") as file:
            file.truncate(1 << 29)
    copied: list[int] = []
    whole = Path.write_bytes

    def counted(self: Path, content: bytes) -> int:
        copied.append(len(content))
        return whole(self, content)

    monkeypatch.setattr(Path, "write_bytes", counted)
    manifest = (await bench.snapshot(repository)).manifest
    assert [file.path for file in manifest.files] == ["a.txt"] and sum(copied) < 1_000_000


@pytest.mark.parametrize("odd", ["large", "pipe"])
async def test_an_index_that_cannot_be_copied_is_refused_and_not_held_to_be_empty(
    tmp_path: Path, odd: str
) -> None:
    repository = Repository.with_a_file(tmp_path / "repo")
    index = repository.path / ".git" / "index"
    if odd == "large":
        with index.open("ab") as file:
            file.truncate(INDEX_BYTES + 1)
    else:
        index.unlink()
        os.mkfifo(index)
    with pytest.raises(BadGoal, match="its index is larger than 128 MiB, or is not a regular file"):
        await looked_at(repository.path)


def deep(root: Path, names: list[str]) -> None:
    """A file `x.py` below nested folders whose path is longer than any call takes."""
    handle = os.open(root, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("x.py", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
    os.close(handle)


@pytest.mark.parametrize(
    ("names", "why"),
    rest_long(
        [
            (["d" * 200] * 4, "its path is longer than 700 bytes"),
            (["d" * 200] * 20, "its path is longer than 700 bytes"),
            (["d"] * (PATH_FOLDERS + 1), "below more than 100 folders"),
        ]
    ),
)
async def test_a_path_that_fits_nowhere_is_listed_and_the_others_are_read(
    tmp_path: Path, bench: Bench, names: list[str], why: str
) -> None:
    repository = Repository.with_a_file(tmp_path / "repo")
    deep(repository.path, names)
    try:
        snapshot = await bench.snapshot(repository)
        assert [file.path for file in snapshot.manifest.files] == ["a.txt"]
        assert why in [each.why for each in snapshot.manifest.unread]
        draft = await bench.look("bugs", repository)
        assert "a.txt" not in str(draft.data.get("remarks"))
    finally:
        # What removes the test's folder names paths in full.
        await anyio.run_process(["rm", "-rf", str(repository.path / names[0])])


async def test_fifos_and_sockets_are_listed_unless_they_are_ignored(
    tmp_path: Path, bench: Bench
) -> None:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({".gitignore": "*.pipe\n", "inner/a.txt": "a\n"})
    for name in ("inner/b.pipe", "inner/b.fifo", "c.fifo"):
        os.mkfifo(repository.path / name)
    nested = Repository.with_a_file(repository.path / "nested")
    os.mkfifo(nested.path / "theirs")
    unread = {each.path: each.why for each in (await bench.snapshot(repository)).manifest.unread}
    assert unread == {
        "c.fifo": "a FIFO",
        "inner/b.fifo": "a FIFO",
        "nested/": "a nested repository",
    }


@pytest.mark.parametrize("name", [".gitignore", "inner/.gitattributes"])
async def test_git_is_not_sent_where_it_would_wait(
    tmp_path: Path, bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({"inner/a.txt": "a\n"})
    os.mkfifo(repository.path / name)
    monkeypatch.setattr(git, "LISTING_SECONDS", 0.0)
    manifest = (await bench.snapshot(repository)).manifest
    assert [file.path for file in manifest.files] == ["inner/a.txt"]
    assert manifest.notes == (f"untracked files were not looked at: {name} is not a regular file",)
    assert [each.path for each in manifest.unread] == [name]


# ---------------------------------------------------------------- manifests of strangers


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../outside.txt", "a/../../outside.txt", ".git/config", "", "a//b"]
)
async def test_a_forged_manifest_reads_and_writes_nothing_outside_its_folder(
    tmp_path: Path, bench: Bench, path: str
) -> None:
    forged = Manifest(archive="", files=(SnapshotFile(path=path, size=1, lines=1),))
    digest = await bench.store.put(forged.model_dump_json().encode())
    with pytest.raises(LensFailed, match="is not a snapshot of a repository"):
        await bench.snapshots.open(digest)


@pytest.mark.parametrize("content", [b"", b"no manifest", b"{}", b"\xff"])
async def test_a_blob_that_is_no_manifest_is_refused_in_one_line(
    bench: Bench, content: bytes
) -> None:
    digest = await bench.store.put(content)
    with pytest.raises(LensFailed, match="is not a snapshot of a repository"):
        await bench.snapshots.open(digest)


async def test_an_archive_that_is_not_the_manifests_leaves_nothing_behind(bench: Bench) -> None:
    archive = await bench.store.put(b"no archive at all")
    forged = Manifest(archive=archive, files=(SnapshotFile(path="a.txt", size=1, lines=1),))
    digest = await bench.store.put(forged.model_dump_json().encode())
    with pytest.raises(LensFailed, match="the archive of the snapshot"):
        await bench.snapshots.open(digest)
    assert [*(bench.folder / "scratch").iterdir()] == []
