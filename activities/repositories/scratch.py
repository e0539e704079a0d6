"""Put stored snapshots on disk for the analysers: once each, read-only, whole or not at all."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import anyio.to_thread
from pydantic import ValidationError

from holdfast.activities.repositories.documents import DOCUMENT_BYTES
from holdfast.activities.repositories.manifest import Manifest
from holdfast.activities.repositories.working_tree import NotRead, check_name
from holdfast.contracts.errors import LensFailed
from holdfast.ports import Store
from holdfast.upkeep import cleaning

KEPT_MANIFESTS = 4


@dataclass(frozen=True)
class Snapshot:
    """A snapshot on disk: the head's files, in scope and around it, below `root`."""

    root: Path
    manifest: Manifest
    before: Path = Path()
    """Folder with the files of `manifest.before`, under their paths in the base."""
    patches: Path = Path()
    """Folder with the diffs of old commits."""

    def path(self, file: str) -> Path:
        return self.root / file


class Snapshots:
    """The snapshots of a store, materialised below a scratch folder of this machine."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}
        self._manifests: OrderedDict[str, Manifest] = OrderedDict()

    async def open(self, digest: str) -> Snapshot:
        """Return the snapshot with this manifest. Raise BlobLost if the store does not have it, and
        LensFailed if the blob is not a manifest: whoever reaches the server can name any.
        """
        content = await self._store.get(digest)
        root = self._folder / digest
        async with self._locks.setdefault(digest, asyncio.Lock()):
            manifest = await self._manifest(digest, content)
            if not await anyio.to_thread.run_sync(_is_there, root, manifest):
                archive = await self._store.get(manifest.archive)
                await anyio.to_thread.run_sync(_materialise, root, manifest, archive)
        return Snapshot(root, manifest)

    async def _manifest(self, digest: str, content: bytes) -> Manifest:
        """Return the manifest, read once for all lenses: a big one takes long."""
        if digest not in self._manifests:
            checked = await anyio.to_thread.run_sync(_load_manifest, content, digest)
            self._manifests[digest] = checked
        self._manifests.move_to_end(digest)
        while len(self._manifests) > KEPT_MANIFESTS:
            self._manifests.popitem(last=False)
        return self._manifests[digest]


def _load_manifest(content: bytes, digest: str) -> Manifest:
    """Return the manifest, if each of its paths stays below the snapshot's folder."""
    try:
        manifest = Manifest.model_validate_json(content)
        for file in manifest.files:
            check_name(file.path.encode())
    except (ValidationError, NotRead, UnicodeEncodeError):
        raise LensFailed(f"blob {digest} is not a snapshot of a repository") from None
    return manifest


def _is_there(root: Path, manifest: Manifest) -> bool:
    """True if the snapshot is on disk, whole. A file that somebody took away or cut would mean
    remarks that are missing, or wrong.
    """
    try:
        # Marks it as used, so that nobody removes it in the next minutes.
        os.utime(root)
    except FileNotFoundError:
        return False
    try:
        whole = all((root / file.path).lstat().st_size == file.size for file in manifest.files)
    except OSError:
        whole = False
    if not whole:
        cleaning.remove_snapshot(root)
    return whole


def _materialise(root: Path, manifest: Manifest, archive: bytes) -> None:
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in cleaning.find_old_snapshots(root.parent):
        cleaning.remove_snapshot(old)
    partial = Path(tempfile.mkdtemp(prefix=cleaning.PARTIAL, dir=root.parent))
    try:
        _unpack(partial, manifest, archive)
        # One rename: whoever looks sees a whole snapshot or none.
        os.rename(partial, root)
    except BaseException as error:
        cleaning.remove_snapshot(partial)
        if not isinstance(error, OSError) or not root.is_dir():
            raise


def _unpack(folder: Path, manifest: Manifest, archive: bytes) -> None:
    missing = {file.path: file.size for file in manifest.files}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
            for member in members:
                # A sparse one could claim any size.
                plain = member.isreg() and not member.issparse() and member.size <= DOCUMENT_BYTES
                if not plain or missing.pop(member.name, None) != member.size:
                    raise LensFailed(
                        f"the archive of the snapshot holds {member.name!r:.300} unexpectedly"
                    )
                content = members.extractfile(member)
                assert content is not None
                target = folder.joinpath(*PurePosixPath(member.name).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
                target.chmod(0o444)
    except (tarfile.TarError, EOFError) as error:
        raise LensFailed(f"the archive of the snapshot is none: {error}") from None
    if missing:
        raise LensFailed(f"the archive of the snapshot lacks {min(missing)!r:.300}")
    for path, _, _ in os.walk(folder, topdown=False):
        os.chmod(path, 0o555 if Path(path) != folder else 0o755)
