"""Repositories for tests: built by git itself, in a folder of the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.repositories.wanted import Wanted
from holdfast.activities.review.lenses import lenses_of
from holdfast.activities.snapshots.snapshot import take
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft, Finding, PinnedInput, Remark, Subtask
from holdfast.storage import DirectoryStore
from holdfast.untrusted.roots import Root

GIT = shutil.which("git") or "git"
SPARSE = {
    "GIT_TEMPLATE_DIR": "",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
}
"""No samples of hooks in a new repository, and behind a commit no program that tidies up."""


@dataclass(frozen=True)
class Repository:
    """A repository under construction."""

    path: Path

    @classmethod
    def at(cls, path: Path, *options: str) -> Repository:
        """An empty repository."""
        path.mkdir(parents=True, exist_ok=True)
        repository = cls(path)
        repository.git("init", "-q", "-b", "main", *options)
        return repository

    def git(self, *arguments: str, author: str = "Ada", stdin: bytes | None = None) -> str:
        """Run git here, as an author; its output."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_COMMITTER_NAME": author,
            "GIT_COMMITTER_EMAIL": "a@example.com",
            **SPARSE,
        }
        done = subprocess.run(
            [GIT, *arguments],
            cwd=self.path,
            env=environment,
            input=stdin,
            check=True,
            capture_output=True,
        )
        return done.stdout.decode().strip()

    @classmethod
    def with_a_file(cls, path: Path) -> Repository:
        """One with one commit of one small file."""
        repository = cls.at(path)
        repository.commit({"a.txt": "a\n"})
        return repository

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the working tree."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(
        self,
        files: dict[str, str | bytes] | None = None,
        author: str = "Ada",
        message: str = "A change",
    ) -> str:
        """Write files, commit everything; the commit's id."""
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, author=author)
        return self.git("rev-parse", "HEAD")


@dataclass(frozen=True)
class Bench:
    """A store and a scratch folder, to take snapshots and look at them."""

    folder: Path

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.folder / "store")

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.store, self.folder / "scratch")

    async def pin(
        self, repository: Repository, base: str = "", *, scope: str = "", models: bool = False
    ) -> PinnedInput:
        """The repository as `prepare` pins it."""
        roots = (Root.of(repository.path),)
        wanted = Wanted(base, scope, for_models=models)
        snapshots = self.snapshots
        return await take("repo", repository.path, roots, wanted, self.store, snapshots=snapshots)

    async def snapshot(self, repository: Repository, base: str = "") -> Snapshot:
        """A snapshot, on disk."""
        return await self.snapshots.open((await self.pin(repository, base)).digest)

    async def look(self, lens: str, repository: Repository, base: str = "") -> Draft:
        """What one lens makes of a repository."""
        return await self.look_at(lens, await self.pin(repository, base))

    async def look_at(self, lens: str, pinned: PinnedInput, seconds: int = 300) -> Draft:
        """What one lens makes of a pinned repository."""
        subtask = Subtask(id=lens, title=lens, instruction="", role=lens, inputs=("repo",))
        material = WorkMaterial(
            subtask=subtask, inputs=(pinned,), lens=lens, timeout_seconds=seconds
        )
        return await lenses_of(self.snapshots)[lens](material)


def remarks_of(draft: Draft | Finding) -> list[Remark]:
    """The remarks of a draft."""
    found = draft.data["remarks"]
    assert isinstance(found, list)
    return [Remark.model_validate(item) for item in found]
