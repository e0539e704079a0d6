"""Git over a repository that is not trusted.

Git never sees the repository as its own: GIT_DIR is an empty bare repository of ours, whose object
store names the repository's as an alternate. So no configuration, hook, filter, attribute driver or
alias of the repository is in force. Revisions are resolved against validated copies of its refs;
everything else works on object ids. The working tree is listed by git and read by us.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread

from activities import git_layout
from activities.git_layout import Layout
from activities.git_output import LogEntry, TreeEntry, log_entries, ranges, records
from activities.process import ProgramStopped, run
from orchestrator.errors import BadGoal
from orchestrator.text import for_terminal

SECONDS = 120.0
"""Time limit of one git command."""
LISTING_SECONDS = 60.0
"""Of the walk for untracked files, which reads the working tree's ignore files."""
INDEX_LIMIT = 512 * 1024 * 1024
OUTPUT_LIMIT = 512 * 1024 * 1024
REVISION_LETTERS = 250

_CONFIG = """[core]
	bare = true
	repositoryformatversion = {version}
	attributesFile = /dev/null
	excludesFile = /dev/null
	hooksPath = /dev/null
	fsmonitor = false
	untrackedCache = false
	commitGraph = false
[protocol]
	allow = never
"""


class GitFailed(Exception):
    """A git command could not do its work; one line."""


class Git:
    """Commands of git over one repository. GitFailed says why one did not work."""

    def __init__(self, layout: Layout, folder: Path, program: str) -> None:
        self.layout = layout
        self._folder = folder
        self._program = program

    async def commit(self, revision: str) -> str:
        """The id of the commit that a revision names. BadGoal if there is none."""
        readable = for_terminal(revision)[:REVISION_LETTERS]
        if 0 < len(revision) <= REVISION_LETTERS and revision.isprintable():
            arguments = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
            try:
                return (await self._run("rev-parse", *arguments)).decode().strip()
            except GitFailed:
                pass
        raise BadGoal(
            f"revision {readable!r} does not exist in {str(self.layout.tree)!r}; "
            "name a branch, a tag or a commit"
        )

    async def head(self) -> str:
        """The id of the commit that is checked out; empty when there is none yet."""
        try:
            output = await self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitFailed:
            return ""
        return output.decode().strip()

    async def index(self) -> dict[bytes, TreeEntry]:
        """What the index tracks, by raw path."""
        found: dict[bytes, TreeEntry] = {}
        for record in records(await self._run("ls-files", "--stage", "-z")):
            description, _, path = record.partition(b"\t")
            mode, hash_, _stage = description.decode().split(" ")
            found[path] = TreeEntry(mode, hash_)
        return found

    async def untracked(self, seconds: float = LISTING_SECONDS) -> list[bytes]:
        """Raw paths that are neither tracked nor ignored; a folder that is a repository of its own
        ends with a slash.
        """
        arguments = ("ls-files", "--others", "--exclude-standard", "-z")
        return records(await self._run(*arguments, seconds=seconds, tree=True))

    async def tree(self, commit: str) -> dict[bytes, TreeEntry]:
        """Every entry of a commit's tree, by raw path."""
        found: dict[bytes, TreeEntry] = {}
        for record in records(await self._run("ls-tree", "-r", "-z", "--full-tree", commit)):
            description, _, path = record.partition(b"\t")
            mode, _kind, hash_ = description.decode().split(" ")
            found[path] = TreeEntry(mode, hash_)
        return found

    async def history(self, commit: str, limit: int) -> list[LogEntry]:
        """The last `limit` commits before and including this one, newest first; merges without
        changes.
        """
        output = await self._run(
            "log", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv",
            "--no-show-signature", "--no-notes", f"--max-count={limit}",
            "--format=tformat:%H %at %an", "--end-of-options", commit, "--",
        )  # fmt: skip
        return log_entries(records(output))

    async def touched(
        self, old: Sequence[tuple[bytes, str]], new: Sequence[tuple[bytes, bytes]]
    ) -> dict[bytes, tuple[tuple[int, int], ...]]:
        """The line ranges of each new content (path, bytes) that differ from the old one (path,
        blob id). A new path that looks like a vanished old one, renamed, is compared with that.
        """
        present = await self._present(sorted({hash_ for _, hash_ in old}))
        paths = sorted({path for path, _ in old} | {path for path, _ in new})
        # Numbers for names: a diff's headers then hold nothing that the repository chose.
        numbers = {path: index for index, path in enumerate(paths)}
        before = {numbers[path]: hash_ for path, hash_ in old if hash_ in present}
        hashes = await self._write([content for _, content in new])
        after = {numbers[path]: hash_ for (path, _), hash_ in zip(new, hashes, strict=True)}
        diff = await self._run(
            "diff-tree", "-p", "-r", "-U0", "-M", "--text", "--no-ext-diff", "--no-textconv",
            "--no-color", "--src-prefix=a/", "--dst-prefix=b/",
            await self._tree_of(before), await self._tree_of(after),
        )  # fmt: skip
        found = ranges(diff)
        return {path: found.get(numbers[path], ()) for path, _ in new}

    async def _present(self, hashes: Sequence[str]) -> set[str]:
        question = "".join(f"{hash_}\n" for hash_ in hashes).encode()
        answer = await self._run("cat-file", "--batch-check=%(objectname) %(objecttype)",
                                 stdin=question)  # fmt: skip
        return {
            line.split(" ")[0] for line in answer.decode().splitlines() if line.endswith("blob")
        }

    async def _write(self, contents: Sequence[bytes]) -> list[str]:
        if not contents:
            return []
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            paths = [Path(folder, str(index)) for index in range(len(contents))]
            await anyio.to_thread.run_sync(_write_files, paths, contents)
            names = "".join(f"{path}\n" for path in paths).encode()
            output = await self._run(
                "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names
            )
        return output.decode().split()

    async def _tree_of(self, entries: dict[int, str]) -> str:
        lines = [f"100644 blob {hash_}\t{number:08d}\0" for number, hash_ in entries.items()]
        return (await self._run("mktree", "-z", stdin="".join(lines).encode())).decode().strip()

    async def _run(
        self, *arguments: str, stdin: bytes = b"", seconds: float = SECONDS, tree: bool = False
    ) -> bytes:
        environment = self._environment()
        if tree:
            environment["GIT_WORK_TREE"] = str(self.layout.tree)
        try:
            finished = await run(
                [self._program, "--no-pager", *arguments],
                folder=self.layout.tree if tree else self._folder,
                environment=environment,
                seconds=seconds,
                stdin=stdin,
                output_limit=OUTPUT_LIMIT,
            )
        except ProgramStopped as stop:
            raise GitFailed(f"git {arguments[0]} {stop}") from None
        if finished.code:
            said = finished.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
            raise GitFailed(f"git {arguments[0]}: {for_terminal(said[-1])[:300]}")
        return finished.stdout

    def _environment(self) -> dict[str, str]:
        quoted = str(self.layout.objects).replace("\\", "\\\\").replace('"', '\\"')
        return {
            "PATH": os.defpath,
            "HOME": str(self._folder),
            "LC_ALL": "C",
            "GIT_DIR": str(self._folder / "git"),
            "GIT_INDEX_FILE": str(self._folder / "git" / "index"),
            # Quoted, because a colon separates and a leading quote begins a quoted path.
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"',
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_LITERAL_PATHSPECS": "1",
        }


@asynccontextmanager
async def opened(repository: Path) -> AsyncIterator[Git]:
    """Git over the repository with this top folder, for the length of the block. BadGoal if it is
    none.
    """
    program = shutil.which("git")
    if program is None:
        raise BadGoal("git was not found on PATH; a repository cannot be read without it")
    layout = await anyio.to_thread.run_sync(git_layout.locate, repository)
    with tempfile.TemporaryDirectory(prefix="git-") as name:
        folder = Path(name).resolve()
        await anyio.to_thread.run_sync(_prepare, layout, folder / "git")
        yield Git(layout, folder, os.path.abspath(program))


def _prepare(layout: Layout, git: Path) -> None:
    """An empty bare repository with copies of what cannot be reached through the objects."""
    for name in ("objects/info", "objects/pack", "refs", "info"):
        (git / name).mkdir(parents=True)
    config = _CONFIG.format(version=0 if layout.hash_letters == 40 else 1)
    if layout.hash_letters == 64:
        config += "[extensions]\n\tobjectFormat = sha256\n"
    (git / "config").write_text(config)
    (git / "HEAD").write_text((git_layout.head(layout) or "ref: refs/heads/none") + "\n")
    lines = [
        f"{hash_} {name}\n".encode("utf-8", "surrogateescape")
        for name, hash_ in sorted(git_layout.refs(layout).items())
        if len(hash_) == layout.hash_letters
    ]
    (git / "packed-refs").write_bytes(b"".join(lines))
    shallow = (git_layout.read_small(layout.common / "shallow") or "").split()
    if boundary := [hash_ for hash_ in shallow if git_layout.is_hash(hash_)]:
        (git / "shallow").write_text("".join(f"{hash_}\n" for hash_ in boundary))
    excludes = git_layout.read_regular(layout.common / "info" / "exclude", 1024 * 1024)
    (git / "info" / "exclude").write_bytes(excludes or b"")
    for path in (layout.git / "index", *layout.git.glob("sharedindex.*")):
        if (content := git_layout.read_regular(path, INDEX_LIMIT)) is not None:
            (git / path.name).write_bytes(content)


def _write_files(paths: Sequence[Path], contents: Sequence[bytes]) -> None:
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
