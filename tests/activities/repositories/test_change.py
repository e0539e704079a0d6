"""What a snapshot of a change holds beside the files in scope: the tree around them, the base's
versions, where they differ, and what commits said and did.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.snapshots import around, changes, past
from holdfast.contracts import PinnedChange
from holdfast.contracts.errors import LensFailed
from repositories import Bench, Repository

pytestmark = pytest.mark.anyio

TEN = "".join(f"line {number}\n" for number in range(1, 11))
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def below(folder: Path) -> dict[str, str]:
    """The text of each file below a folder, by its path there."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def test_the_whole_tree_of_the_head_lies_below_the_root_and_is_told_apart(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.py": "a\n", "lib/b.py": "b\n", "README.md": "r\n"})
    repository.write("a.py", "a\nnew\n")
    snapshot = await bench.snapshot(repository, "HEAD")
    assert [file.path for file in snapshot.manifest.files] == ["a.py"]
    assert [file.path for file in snapshot.manifest.around] == ["README.md", "lib/b.py"]
    assert below(snapshot.root) == {"README.md": "r\n", "a.py": "a\nnew\n", "lib/b.py": "b\n"}
    assert below(snapshot.before) == {"a.py": "a\n"}
    assert {file.touched for file in snapshot.manifest.around} == {()}


async def test_without_a_base_there_is_nothing_around(repository: Repository, bench: Bench) -> None:
    repository.commit({"a.py": "a\n"})
    snapshot = await bench.snapshot(repository)
    manifest = snapshot.manifest
    assert (manifest.around, manifest.before, manifest.around_cut) == ((), (), 0)
    assert (below(snapshot.before), below(snapshot.patches)) == ({}, {})
    assert (await bench.pin(repository)).change is None


async def test_each_file_says_where_it_differs_and_each_of_the_base_which_lines_are_gone(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": TEN, "b.txt": "b\n"})
    head = TEN.replace("line 2\n", "").replace("line 5\n", "five\nfive and a half\n") + "last\n"
    repository.write("a.txt", head)
    repository.write("new.txt", "n\nn\n")
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    changed, new = manifest.files
    assert (changed.was, changed.hunks) == ("a.txt", ((2, 1, 1, 0), (5, 1, 4, 2), (10, 0, 11, 1)))
    assert changed.touched == ((4, 5), (11, 11))
    assert (new.was, new.hunks, new.touched) == ("", ((0, 0, 1, 2),), ((1, 2),))
    (before,) = manifest.before
    assert (before.path, before.now, before.touched) == ("a.txt", "a.txt", ((2, 2), (5, 5)))


async def test_a_deleted_file_alone_is_a_change(repository: Repository, bench: Bench) -> None:
    repository.commit({"a.txt": TEN, "b.txt": "b\n"})
    repository.git("rm", "-q", "a.txt")
    repository.commit()
    pinned = await bench.pin(repository, "HEAD~1")
    assert pinned.change == PinnedChange(files=1, added=0, deleted=10)
    assert pinned.scope.startswith("what differs from HEAD~1")
    assert "1 file deleted" in pinned.scope
    snapshot = await bench.snapshots.open(pinned.digest)
    (gone,) = snapshot.manifest.deleted
    assert (gone.path, gone.now, gone.touched) == ("a.txt", "", ((1, 10),))
    assert below(snapshot.before) == {"a.txt": TEN}
    assert below(snapshot.root) == {"b.txt": "b\n"}


@pytest.mark.parametrize("staged", [True, False], ids=["staged", "not staged"])
async def test_a_file_that_is_gone_from_the_working_tree_is_deleted(
    repository: Repository, bench: Bench, staged: bool
) -> None:
    repository.commit({"a.txt": TEN})
    (repository.path / "a.txt").unlink()
    if staged:
        repository.git("add", "-A")
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    assert [file.path for file in manifest.deleted] == ["a.txt"]


async def test_a_renamed_file_is_compared_with_what_it_was(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"old/a.txt": TEN, "old/b.txt": TEN * 3})
    repository.git("mv", "old", "new")
    repository.write("new/a.txt", TEN.replace("line 5", "five"))
    repository.git("add", "-A")
    pinned = await bench.pin(repository, "HEAD")
    snapshot = await bench.snapshots.open(pinned.digest)
    (edited,) = snapshot.manifest.files
    assert (edited.path, edited.was, edited.touched) == ("new/a.txt", "old/a.txt", ((5, 5),))
    now = {file.path: (file.now, file.touched) for file in snapshot.manifest.before}
    assert now == {"old/a.txt": ("new/a.txt", ((5, 5),)), "old/b.txt": ("new/b.txt", ())}
    # What was only renamed stands around, and says what it was.
    assert [(each.path, each.was) for each in snapshot.manifest.around] == [
        ("new/b.txt", "old/b.txt")
    ]
    assert pinned.change == PinnedChange(files=2, added=1, deleted=1)


async def test_a_file_turned_into_a_link_is_deleted_text_and_the_link_is_not_followed(
    repository: Repository, bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("not to be read\n")
    repository.commit({"a.txt": TEN, "d/b.txt": "b\n", "z.txt": "z\n"})
    for name in ("a.txt", "d/b.txt"):
        (repository.path / name).unlink()
    (repository.path / "d").rmdir()
    (repository.path / "a.txt").symlink_to(tmp_path / "secret")
    (repository.path / "d").symlink_to(tmp_path)
    snapshot = await bench.snapshot(repository, "HEAD")
    assert [file.path for file in snapshot.manifest.deleted] == ["a.txt", "d/b.txt"]
    assert below(snapshot.root) == {"z.txt": "z\n"}


async def test_other_line_ends_are_no_change_beside_one(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": TEN})
    repository.write("a.txt", TEN.replace("line 5", "five").replace("\n", "\r\n"))
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    assert manifest.files[0].hunks == ((5, 1, 5, 1),)


async def test_utf_16_is_compared_as_text(repository: Repository, bench: Bench) -> None:
    repository.commit({"a.py": TEN.encode("utf-16")})
    repository.write("a.py", TEN.replace("line 5", "five").encode("utf-16"))
    snapshot = await bench.snapshot(repository, "HEAD")
    assert snapshot.manifest.files[0].hunks == ((5, 1, 5, 1),)
    assert below(snapshot.before) == {"a.py": TEN}


async def test_base_files_that_are_no_text_or_that_nobody_can_name_are_counted(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.bin": b"\0\1\2", "b.txt": "b\n", "big.txt": b"x" * (1 << 20) + b"y"})
    (repository.path / os_path(b"\xff.txt")).write_bytes(b"n\n")
    repository.commit()
    for path in repository.path.iterdir():
        if path.is_file():
            path.unlink()
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    assert [file.path for file in manifest.before] == ["b.txt"]
    assert manifest.before_cut == 3


def os_path(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


async def test_around_a_change_rules_and_code_come_before_data_and_nobody_s_files_are_counted(
    repository: Repository, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(around, "AROUND_BYTES", 300)
    repository.commit(
        {
            "a.csv": "1," * 100,
            "CLAUDE.md": "c" * 100,
            "src/z.py": "z" * 150,
            "node_modules/x.js": "x\n",
            "made.py": "# Code generated by a program. DO NOT EDIT.\nx\n",
            "t.txt": "t\n",
        }
    )
    repository.write("t.txt", "tt\n")
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    assert [file.path for file in manifest.around] == ["CLAUDE.md", "src/z.py"]
    assert manifest.around_cut == 3
    assert [file.path for file in manifest.files] == ["t.txt"]


async def test_base_versions_are_kept_as_far_as_they_fit(
    repository: Repository, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "BEFORE_BYTES", 100)
    repository.commit({"a.txt": TEN[:50], "b.txt": TEN})
    repository.write("a.txt", "a\n")
    repository.write("b.txt", TEN + "last\n")
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    assert [file.path for file in manifest.before] == ["a.txt"]
    assert manifest.before_cut == 1
    # Where it differs is known all the same.
    assert manifest.files[1].hunks == ((10, 0, 11, 1),)


async def test_messages_of_the_change_are_kept_without_secrets_and_control_characters(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    repository.write("a.txt", "b\n")
    said = f"Check the rights\n\nToken {TOKEN}\n\x1b[2J \u202e gone\n"
    repository.git("commit", "-qam", said)
    repository.commit({"a.txt": "c\n"})
    manifest = (await bench.snapshot(repository, "HEAD~2")).manifest
    newest, second, first = manifest.commits
    assert [each.of_change for each in manifest.commits] == [True, True, False]
    assert newest.message == "A change"
    assert second.message == "Check the rights\n\nToken [redacted]\n\\x1b[2J \\u202e gone"
    assert first.message == ""


async def test_models_get_the_messages_of_older_commits_too_and_their_diffs(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": TEN, "b.txt": "b\n"})
    old = repository.commit({"a.txt": TEN.replace("line 5", f"{TOKEN} was here"), "b.txt": "c\n"})
    repository.commit({"b.txt": "d\n"})
    repository.write("a.txt", TEN)
    snapshot = await bench.snapshots.open((await bench.pin(repository, "HEAD", models=True)).digest)
    commits = snapshot.manifest.commits
    assert [each.message for each in commits] == ["A change"] * 3
    assert [each.patch_bytes > 0 for each in commits] == [False, True, True]
    patches = below(snapshot.patches)
    assert {*patches} == {f"{each.id}.diff" for each in commits if each.patch_bytes}
    patch = patches[f"{old}.diff"]
    # Only of the files under review, with what stands around it, and without the secret.
    assert patch.startswith("--- a.txt\n@@ -2,7 +2,7 @@\n line 2\n")
    assert "-line 5\n+[redacted] was here\n" in patch
    assert "b.txt" not in patch


@pytest.mark.long
async def test_a_hunk_of_an_older_commit_says_in_which_definition_it_stands(
    repository: Repository, bench: Bench
) -> None:
    text = "class Cart:\n    def pay(self):\n" + "        a = 1\n" * 9
    repository.commit({"a.py": text})
    old = repository.commit({"a.py": text + "        b = 2\n"})
    repository.commit({"a.py": text})
    repository.write("a.py", text + "\n")
    snapshot = await bench.snapshots.open((await bench.pin(repository, "HEAD", models=True)).digest)
    assert "@@ -9,3 +9,4 @@ def pay(self):\n" in below(snapshot.patches)[f"{old}.diff"]


async def test_without_models_no_diff_of_an_older_commit_is_kept(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": TEN})
    repository.write("a.txt", "a\n")
    assert below((await bench.snapshot(repository, "HEAD")).patches) == {}


async def test_the_body_of_a_private_key_whose_beginning_stands_in_no_hunk_is_not_kept() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    assert body not in past.clean_patch(["@@ -5,3 +5,3 @@", f" {body}", f"-{body}", "+x"])


@pytest.mark.long
async def test_a_hundred_megabytes_of_patches_are_bounded(
    repository: Repository, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "DIFF_BYTES", 300_000)
    for number in range(5):
        lines = "".join(f"{number} {line}\n" for line in range(20_000))
        repository.commit({"a.txt": lines})
    repository.write("a.txt", "a\n")
    snapshot = await bench.snapshots.open((await bench.pin(repository, "HEAD", models=True)).digest)
    # The first one is whole and cut by lines, those behind it are told as not kept.
    assert sum(each.patch_bytes for each in snapshot.manifest.commits) < 300_000


async def test_a_commit_of_ten_megabytes_of_words_costs_nothing(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    repository.write("a.txt", "b\n")
    repository.git("commit", "-q", "-a", "-F", "-", stdin=b"word " * 2_000_000)
    manifest = (await bench.snapshot(repository, "HEAD~1")).manifest
    assert [(each.of_change, each.message) for each in manifest.commits] == [
        (True, ""),
        (False, ""),
    ]


async def test_a_message_is_cut_with_how_much_there_is(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n"})
    repository.write("a.txt", "b\n")
    repository.git("commit", "-q", "-a", "-F", "-", stdin=b"word " * 2_000)
    (newest, _) = (await bench.snapshot(repository, "HEAD~1")).manifest.commits
    assert newest.message.endswith("word… [9,999 letters in all]")


async def test_a_snapshot_that_lost_what_stands_beside_the_head_is_put_there_anew(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": TEN, "b.txt": "b\n"})
    repository.write("a.txt", "a\n")
    snapshot = await bench.snapshot(repository, "HEAD")
    for place in (snapshot.before / "a.txt", snapshot.root / "b.txt"):
        place.unlink()
        assert await shows_whole(await bench.snapshot(repository, "HEAD"))


async def shows_whole(snapshot: Snapshot) -> bool:
    return below(snapshot.before) == {"a.txt": TEN} and "b.txt" in below(snapshot.root)


async def test_a_file_turned_into_a_fifo_or_a_submodule_is_deleted_text(
    repository: Repository, bench: Bench, tmp_path: Path
) -> None:
    repository.commit({"a.txt": TEN, "b.txt": TEN, "z.txt": "z\n"})
    (repository.path / "a.txt").unlink()
    os.mkfifo(repository.path / "a.txt")
    (repository.path / "b.txt").unlink()
    inner = Repository.with_a_file(repository.path / "b.txt")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{inner_head(inner)},b.txt")
    snapshot = await bench.snapshot(repository, "HEAD")
    assert [file.path for file in snapshot.manifest.deleted] == ["a.txt", "b.txt"]
    assert below(snapshot.root) == {"z.txt": "z\n"}


def inner_head(repository: Repository) -> str:
    return repository.git("rev-parse", "HEAD")


@pytest.mark.long
async def test_names_in_old_diffs_are_harmless(repository: Repository, bench: Bench) -> None:
    name = "a\n+++ b\x1b[2J.txt"
    repository.commit({name: "a\n"})
    repository.commit({name: "b\n"})
    repository.write(name, "c\n")
    snapshot = await bench.snapshots.open((await bench.pin(repository, "HEAD", models=True)).digest)
    (newest, _) = sorted(below(snapshot.patches).values(), key=len, reverse=True)
    assert newest == "--- a\\n+++ b\\x1b[2J.txt\n@@ -1 +1 @@\n-a\n+b\n"


async def test_a_commit_with_a_nul_in_its_message_forges_no_other(
    repository: Repository, bench: Bench
) -> None:
    first = repository.commit({"a.txt": "a\n"})
    tree = repository.git("rev-parse", "HEAD^{tree}")
    said = (
        f"tree {tree}\nparent {first}\nauthor A <a@b.c> 1 +0000\ncommitter A <a@b.c> 1 +0000\n\n"
        f"Mend\0{'f' * 40} 5 Eve\0\n1\t1\tforged.txt\0"
    )
    forged = repository.git(
        "hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=said.encode()
    )
    repository.git("update-ref", "HEAD", forged)
    manifest = (await bench.snapshot(repository, "HEAD~1")).manifest
    assert [each.id for each in manifest.commits] == [forged, first]
    assert manifest.commits[0].message.startswith("Mend\\x00ffff")
    assert manifest.commits[0].changes == ()


async def test_a_manifest_whose_paths_lead_out_of_its_parts_is_refused(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.txt": "a\n", "b.txt": "b\n"})
    repository.write("a.txt", "c\n")
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    out = manifest.before[0].model_copy(update={"path": "../../out"})
    for part in ("before", "around"):
        wrong = manifest.model_copy(update={part: (out,)})
        digest = await bench.store.put(wrong.model_dump_json().encode())
        with pytest.raises(LensFailed, match="is not a snapshot of a repository"):
            await bench.snapshots.open(digest)
    twice = manifest.model_copy(
        update={"around": manifest.files, "around_archive": manifest.archive}
    )
    digest = await bench.store.put(twice.model_dump_json().encode())
    with pytest.raises(LensFailed, match="archive of the snapshot"):
        await bench.snapshots.open(digest)


async def test_what_is_around_never_stands_in_the_way_of_what_is_in_scope(
    repository: Repository, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(around, "AROUND_BYTES", 0)
    repository.commit({"a.txt": TEN, "b.txt": "b\n"})
    repository.write("a.txt", TEN * 50)
    manifest = (await bench.snapshot(repository, "HEAD")).manifest
    assert ([file.path for file in manifest.files], manifest.around_cut) == (["a.txt"], 1)


async def test_what_differs_in_line_ends_alone_is_nothing_that_differs(
    repository: Repository, bench: Bench
) -> None:
    base = repository.commit({"a.py": "x = 1\n", "b.bin": b"\0\1"})
    same = (await bench.pin(repository, base)).change
    repository.commit({"a.py": "x = 1\r\n"})
    ends = (await bench.pin(repository, base)).change
    assert same is not None and same.nothing and ends is not None and ends.nothing
    repository.commit({"b.bin": b"\0\2"})
    binary = (await bench.pin(repository, base)).change
    assert binary is not None and not binary.nothing
