"""Stored snapshots, put on disk for the analysers: once each, read-only, whole or not at all."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import tarfile
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import anyio.to_thread

from activities.seam import Store
from activities.snapshot import Manifest
from orchestrator.errors import ToolFailed

KEEP_SECONDS = 86_400
"""A snapshot that nobody opened for this long is removed; the store still has it."""
PARTIAL = "partial-"
PARTIAL_SECONDS = 3_600
"""What a killed worker left half-written is removed after this long."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot on disk: the files of the manifest below `root`."""

    root: Path
    manifest: Manifest

    def path(self, file: str) -> Path:
        """Where a file of the manifest is."""
        return self.root / file


class Snapshots:
    """The snapshots of a store, materialised below a scratch folder of this machine."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}

    async def open(self, digest: str) -> Snapshot:
        """The snapshot with this manifest. ToolFailed when the store does not have it."""
        manifest = Manifest.model_validate_json(await self._get(digest))
        root = self._folder / digest
        async with self._locks.setdefault(digest, asyncio.Lock()):
            if not await anyio.to_thread.run_sync(_is_there, root):
                archive = await self._get(manifest.archive)
                await anyio.to_thread.run_sync(_materialise, root, manifest, archive)
        return Snapshot(root, manifest)

    async def _get(self, digest: str) -> bytes:
        try:
            return await self._store.get(digest)
        except FileNotFoundError:
            raise ToolFailed(
                f"snapshot {digest[:12]} is not in this worker's store; "
                "workers and starters must share one store (STORE_URL)"
            ) from None


def _is_there(root: Path) -> bool:
    try:
        # Marks it as used, so that nobody removes it in the next minutes.
        os.utime(root)
    except FileNotFoundError:
        return False
    return True


def _materialise(root: Path, manifest: Manifest, archive: bytes) -> None:
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_old(root.parent)
    partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=root.parent))
    try:
        _unpack(partial, manifest, archive)
        # One rename: whoever looks sees a whole snapshot or none.
        os.rename(partial, root)
    except OSError:
        _remove(partial)
        if not root.is_dir():
            raise


def _unpack(folder: Path, manifest: Manifest, archive: bytes) -> None:
    expected = {file.path for file in manifest.files}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
        for member in members:
            parts = PurePosixPath(member.name).parts
            content = members.extractfile(member)
            if member.name not in expected or ".." in parts or content is None:
                raise ToolFailed(f"the archive of the snapshot holds {member.name!r} unexpectedly")
            target = folder.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            target.chmod(0o444)
    for path, _, _ in os.walk(folder, topdown=False):
        os.chmod(path, 0o555 if Path(path) != folder else 0o755)


def _remove_old(folder: Path) -> None:
    now = time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            keep = PARTIAL_SECONDS if entry.name.startswith(PARTIAL) else KEEP_SECONDS
            # Another worker may rename or remove its own at any moment.
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False) and now - status.st_mtime > keep:
                    _remove(Path(entry.path))


def _remove(folder: Path) -> None:
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
