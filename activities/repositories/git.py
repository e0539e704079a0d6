"""Git over a repository that is not trusted.

Git never sees the repository as its own: GIT_DIR is an empty bare repository of ours (`git_view`),
whose object store has the repository's packs and objects as an alternate. So no configuration,
hook, filter, attribute driver or alias of the repository is in force. Revisions are resolved
against validated copies of its refs; everything else works on object ids. The working tree is
listed by git and read by us.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread

from holdfast.activities.repositories import layout as git_layout
from holdfast.activities.repositories import view as git_view
from holdfast.activities.repositories.layout import Layout
from holdfast.activities.repositories.output import (
    BlobChange,
    FileDiff,
    LogEntry,
    TreeEntry,
    blob_changes,
    file_diffs,
    index_entries,
    log_entries,
    objects_of,
    sizes_of,
    split_records,
    tree_entries,
)
from holdfast.activities.repositories.working_tree import FILE_LIMIT
from holdfast.contracts.errors import BadGoal
from holdfast.text import for_terminal
from holdfast.untrusted.process import Finished, ProgramStopped, run
from holdfast.untrusted.roots import Roots

SECONDS = 120.0
"""Time limit of one git command."""
LISTING_SECONDS = 60.0
"""How long a walk for untracked files may take; it reads the tree's ignore files."""
OUTPUT_LIMIT = 128 * 1024 * 1024
HISTORY_LIMIT = 24 * 1024 * 1024
"""Bytes of the history that are read, the newest commits first."""
REVISION_LETTERS = 250
LARGE = FILE_LIMIT + 1
PATCH = (
    "-p",
    "-r",
    "--text",
    "--ignore-cr-at-eol",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
"""Options of a diff that nothing in the repository can change."""


class GitFailed(Exception):
    """A git command could not do its work; one line."""


class GitStopped(GitFailed):
    """A git command was stopped: what it would have found is not known."""


class Git:
    """Runs git over one repository. Its methods raise GitFailed if a command does not work."""

    def __init__(self, layout: Layout, view: git_view.View, folder: Path, program: str) -> None:
        self.layout = layout
        self.notes = (*layout.notes, *view.notes)
        """Notes of what was not read of the repository."""
        self.view = view
        self._folder = folder
        self._program = program

    async def commit(self, revision: str) -> str:
        """Return the id of the commit that a revision names. Raise BadGoal if there is none."""
        readable = for_terminal(revision)[:REVISION_LETTERS]
        if 0 < len(revision) <= REVISION_LETTERS and revision.isprintable():
            arguments = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
            try:
                return (await self._run("rev-parse", *arguments)).decode().strip()
            except GitStopped as error:
                raise BadGoal(f"revision {readable!r} cannot be looked up: {error}") from None
            except GitFailed:
                pass
        remedy = "name a branch, a tag or a commit"
        if self.view.shallow:
            remedy = f"the clone is shallow: `git fetch --unshallow`, or {remedy} that is in it"
        raise BadGoal(
            f"revision {readable!r} does not exist in {str(self.layout.tree.path)!r}; {remedy}"
        )

    async def head(self) -> str:
        """Return the id of the commit that is checked out; empty if there is none yet. Raise
        GitFailed if there is one and it cannot be read.
        """
        if not self.view.head:
            raise GitFailed("its HEAD names no branch and no commit")
        if not self.view.commit:
            return ""
        try:
            output = await self._run("rev-parse", "--verify", f"{self.view.commit}^{{commit}}")
        except GitStopped:
            raise
        except GitFailed:
            raise GitFailed(f"its commit {self.view.commit[:12]} is not there") from None
        return output.decode().strip()

    async def merge_base(self, one: str, other: str) -> str:
        """Return the best common ancestor of two commits; empty if they have none, or one is not
        there.
        """
        try:
            return (await self._run("merge-base", one, other)).decode().strip()
        except GitStopped:
            raise
        except GitFailed:
            return ""

    async def blob(self, name: str) -> bytes:
        """Return the content of a small file of a commit's tree, by its id. Raise GitFailed if
        there is none, or it is larger than FILE_LIMIT.
        """
        found = await self.blobs([name], FILE_LIMIT)
        if name not in found:
            raise GitFailed(f"the file {name[:12]} is not there, or too large")
        return found[name]

    async def index(self) -> dict[bytes, TreeEntry]:
        """Return what the index tracks, by raw path."""
        listed = await self._run("ls-files", "--stage", "-z")
        return await anyio.to_thread.run_sync(index_entries, listed)

    async def untracked(self, seconds: float = LISTING_SECONDS) -> list[bytes]:
        """Return raw paths that are neither tracked nor ignored; a folder that is a repository of
        its own ends with a slash.
        """
        arguments = ("ls-files", "--others", "--exclude-standard", "-z")
        listed = await self._run(*arguments, seconds=seconds, tree=True)
        return await anyio.to_thread.run_sync(split_records, listed)

    async def modified(self, seconds: float = LISTING_SECONDS) -> list[bytes]:
        """Return raw paths of tracked files that are not as the index has them, or are gone. Git
        goes by what it remembers of a file's state and reads its content only in doubt.
        """
        listed = await self._run("ls-files", "--modified", "-z", seconds=seconds, tree=True)
        return await anyio.to_thread.run_sync(split_records, listed)

    async def not_looked_at(self) -> list[bytes]:
        """Return raw paths of tracked files that the index tells git not to look at: those that a
        sparse checkout leaves out, and those that are assumed to be unchanged.
        """
        listed = await self._run("ls-files", "-v", "-z")
        records = await anyio.to_thread.run_sync(split_records, listed)
        return [each[2:] for each in records if not each.startswith(b"H ")]

    async def not_ignored(self, paths: Sequence[bytes]) -> list[bytes]:
        """Return those of some raw paths of the working tree that its ignore files do not name."""
        if not paths:
            return []
        try:
            ignored = await self._run(
                "check-ignore",
                "--no-index",
                "--stdin",
                "-z",
                # It takes no literal pathspecs; with this before it, no name begins like another.
                stdin=b"".join(b"./" + path + b"\0" for path in paths),
                seconds=LISTING_SECONDS,
                tree=True,
                literal=False,
            )
        except GitStopped:
            raise
        except GitFailed:
            # It also fails when it has found none.
            return [*paths]
        found = {path.removeprefix(b"./") for path in split_records(ignored)}
        return [path for path in paths if path not in found]

    async def tree(self, commit: str) -> dict[bytes, TreeEntry]:
        """Return every entry of a commit's tree, by raw path."""
        listed = await self._run("ls-tree", "-r", "-z", "--full-tree", commit)
        return await anyio.to_thread.run_sync(tree_entries, listed)

    async def history(self, commit: str, limit: int) -> tuple[list[LogEntry], bool]:
        """Return the last `limit` commits up to this one, newest first, merges without changes; and
        whether there was more than HISTORY_LIMIT: then the oldest ones are missing.
        """
        finished = await self._finished(
            "log",
            "-z",
            "--numstat",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-notes",
            f"--max-count={limit}",
            "--format=tformat:%H %at %an",
            "--end-of-options",
            commit,
            "--",
            output_limit=HISTORY_LIMIT,
        )
        entries = await anyio.to_thread.run_sync(log_entries, finished.stdout)
        # Of the commit at which it was cut, changes are missing.
        return (entries[:-1] if finished.cut else entries), finished.cut

    async def commits_between(self, base: str, head: str, limit: int) -> list[str]:
        """Return the ids of the commits that one commit has and another one does not."""
        arguments = (f"--max-count={limit}", "--end-of-options", head, f"^{base}", "--")
        return (await self._run("rev-list", *arguments)).decode().split()

    async def messages(self, commits: Sequence[str], most: int) -> dict[str, str]:
        """Return the messages of commits, by id, as far as the commits have at most `most` bytes
        together, and none of them more than FILE_LIMIT.
        """
        found = await self._read(await self._fitting(commits, "commit", most))
        return {
            commit: content.partition(b"\n\n")[2].decode("utf-8", "replace")
            for commit, content in found.items()
        }

    async def blobs(self, hashes: Iterable[str], most: int) -> dict[str, bytes]:
        """Return the contents of blobs, by id: those that fit in order into `most` bytes together,
        and have at most FILE_LIMIT bytes each.
        """
        return await self._read(await self._fitting(hashes, "blob", most))

    async def blob_changes(self, commits: Sequence[str]) -> list[BlobChange]:
        """Return what these commits changed, each against its parent; nothing for merges."""
        listed = await self._run(
            "diff-tree",
            "--stdin",
            "-r",
            "--raw",
            "-z",
            "--no-renames",
            "--no-abbrev",
            "--root",
            "--no-ext-diff",
            stdin="".join(f"{commit}\n" for commit in commits).encode(),
        )
        return await anyio.to_thread.run_sync(lambda: list(blob_changes(listed)))

    async def compare(
        self, old: Mapping[bytes, str | bytes], new: Mapping[bytes, bytes]
    ) -> list[tuple[bytes, bytes, FileDiff]]:
        """Return how new contents, by path, differ from old ones (content or blob id): old path,
        new path, and the difference. They are the same if the file is not renamed; a new path that
        looks like a vanished old one is compared with that. Carriage returns at the ends of lines
        do not count.
        """
        ids = {path: each for path, each in old.items() if isinstance(each, str)}
        present = await self._sizes(sorted(set(ids.values())), "blob")
        fits = {path: each for path, each in ids.items() if present.get(each, LARGE) <= FILE_LIMIT}
        fits |= await self._write({p: each for p, each in old.items() if isinstance(each, bytes)})
        paths = sorted({*fits, *new})
        # Numbers for names: a diff's headers then hold nothing that the repository chose.
        numbers = {path: index for index, path in enumerate(paths)}
        before = {numbers[path]: each for path, each in fits.items()}
        after = {numbers[path]: each for path, each in (await self._write(new)).items()}
        diff = await self._run("diff-tree", "-U0", "-M", *PATCH, *await self._trees(before, after))
        found = await anyio.to_thread.run_sync(file_diffs, diff)
        return [(paths[each.old], paths[each.new], each) for each in found]

    async def patches(
        self, pairs: Sequence[tuple[str, str]], most: int, seconds: float
    ) -> dict[int, list[bytes]]:
        """Return the lines of the unified diff of each pair of blob ids, by its place; an id that
        is not there stands for no file. What is beyond `most` bytes of all is missing. Raise
        GitFailed if they take longer.
        """
        sizes = await self._sizes(sorted({each for pair in pairs for each in pair}), "blob")
        before, after = dict[int, str](), dict[int, str]()
        for place, (old, new) in enumerate(pairs):
            if max(sizes.get(old, 0), sizes.get(new, 0)) <= FILE_LIMIT:
                before |= {place: old} if old in sizes else {}
                after |= {place: new} if new in sizes else {}
        finished = await self._finished(
            "diff-tree",
            "-U3",
            "--no-renames",
            *PATCH,
            *await self._trees(before, after),
            seconds=seconds,
            output_limit=most,
        )
        found = await anyio.to_thread.run_sync(partial(file_diffs, keep=True), finished.stdout)
        # The file at which it was cut is not whole.
        return {each.new: each.lines for each in (found[:-1] if finished.cut else found)}

    async def _sizes(self, hashes: Sequence[str], kind: str) -> dict[str, int]:
        """Return the sizes of those objects that are there and of one kind, by id."""
        question = "".join(f"{hash_}\n" for hash_ in hashes).encode()
        wanted = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
        answer = await self._run("cat-file", wanted, stdin=question)
        return await anyio.to_thread.run_sync(sizes_of, answer, kind)

    async def _fitting(self, hashes: Iterable[str], kind: str, most: int) -> list[str]:
        """Return those objects that fit, in order, into `most` bytes together."""
        wanted = list(dict.fromkeys(hashes))
        sizes = await self._sizes(wanted, kind)
        kept, left = [], most
        for each in wanted:
            size = sizes.get(each, LARGE)
            if size <= min(FILE_LIMIT, left):
                kept.append(each)
                left -= size
        return kept

    async def _read(self, hashes: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of objects, by id."""
        question = "".join(f"{hash_}\n" for hash_ in hashes).encode()
        content = await self._run("cat-file", "--batch", stdin=question) if hashes else b""
        return await anyio.to_thread.run_sync(lambda: dict(objects_of(content)))

    async def _write(self, contents: Mapping[bytes, bytes]) -> dict[bytes, str]:
        """Write contents as blobs of ours, and return their ids, by path."""
        if not contents:
            return {}
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            places = [Path(folder, str(index)) for index in range(len(contents))]
            await anyio.to_thread.run_sync(_write_files, places, list(contents.values()))
            names = "".join(f"{place}\n" for place in places).encode()
            output = await self._run(
                "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names
            )
        return dict(zip(contents, output.decode().split(), strict=True))

    async def _trees(self, before: Mapping[int, str], after: Mapping[int, str]) -> tuple[str, str]:
        """Return two trees of blobs whose names are numbers."""
        return await self._tree_of(before), await self._tree_of(after)

    async def _tree_of(self, entries: Mapping[int, str]) -> str:
        lines = [f"100644 blob {hash_}\t{number:08d}\0" for number, hash_ in entries.items()]
        return (await self._run("mktree", "-z", stdin="".join(lines).encode())).decode().strip()

    async def _run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        seconds: float = SECONDS,
        tree: bool = False,
        literal: bool = True,
    ) -> bytes:
        finished = await self._finished(
            *arguments, stdin=stdin, seconds=seconds, tree=tree, literal=literal
        )
        if finished.cut:
            raise GitFailed(f"git {arguments[0]} wrote more than {OUTPUT_LIMIT >> 20} MiB")
        return finished.stdout

    async def _finished(
        self,
        *arguments: str,
        stdin: bytes = b"",
        seconds: float = SECONDS,
        tree: bool = False,
        literal: bool = True,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Finished:
        environment = git_view.environment(self._folder, self.view.stores, FILE_LIMIT)
        if literal:
            environment["GIT_LITERAL_PATHSPECS"] = "1"
        if tree:
            environment["GIT_WORK_TREE"] = str(self.layout.tree.path)
        try:
            finished = await run(
                [self._program, "--no-pager", *arguments],
                folder=self.layout.tree.path if tree else self._folder,
                environment=environment,
                seconds=seconds,
                stdin=stdin,
                output_limit=output_limit,
                take_beginning=True,
            )
        except ProgramStopped as stop:
            raise GitStopped(f"git {arguments[0]} {stop}") from None
        if finished.code and not finished.cut:
            said = finished.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
            raise GitFailed(f"git {arguments[0]}: {for_terminal(said[-1])[:300]}")
        return finished


@asynccontextmanager
async def open_git(repository: Path, roots: Roots) -> AsyncIterator[Git]:
    """Open git over the repository with this top folder, for the length of the block. Raise BadGoal
    if it is not a repository, or leads to what is below no root.
    """
    program = shutil.which("git")
    if program is None:
        raise BadGoal("git was not found on PATH; a repository cannot be read without it")
    with ExitStack() as kept, tempfile.TemporaryDirectory(prefix="git-") as name:
        folder = Path(name).resolve()
        layout = await anyio.to_thread.run_sync(git_layout.locate, repository, roots, kept)
        view = await anyio.to_thread.run_sync(git_view.prepare, layout, folder)
        yield Git(layout, view, folder, os.path.abspath(program))


def _write_files(paths: Sequence[Path], contents: Sequence[bytes]) -> None:
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
