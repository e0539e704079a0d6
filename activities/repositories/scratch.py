"""Put stored snapshots on disk for the analysers: once each, read-only, whole or not at all."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
from pydantic import ValidationError

from holdfast.activities.repositories.documents import DOCUMENT_BYTES
from holdfast.activities.repositories.manifest import Manifest
from holdfast.activities.repositories.working_tree import NotRead, check_name
from holdfast.contracts.errors import LensFailed
from holdfast.ports import Store
from holdfast.upkeep import cleaning

KEPT_MANIFESTS = 4
HEAD, BEFORE, PATCHES = "head", "before", "patches"
"""Folders of a snapshot on disk."""
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
EMPTY = bytes(1024)
"""A tar archive with nothing in it."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot on disk: the head's files, in scope and around it, below `root`."""

    root: Path
    manifest: Manifest
    before: Path
    """Folder with the files of `manifest.before`, under their paths in the base."""
    patches: Path
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
        place = self._folder / digest
        async with self._locks.setdefault(digest, asyncio.Lock()):
            manifest = await self._manifest(digest, content)
            parts = _parts(manifest)
            if not await anyio.to_thread.run_sync(_is_there, place, parts):
                await self._materialise(place, parts)
        return Snapshot(place / HEAD, manifest, place / BEFORE, place / PATCHES)

    async def _manifest(self, digest: str, content: bytes) -> Manifest:
        """Return the manifest, read once for all lenses: a big one takes long."""
        if digest not in self._manifests:
            checked = await anyio.to_thread.run_sync(_load_manifest, content, digest)
            self._manifests[digest] = checked
        self._manifests.move_to_end(digest)
        while len(self._manifests) > KEPT_MANIFESTS:
            self._manifests.popitem(last=False)
        return self._manifests[digest]

    async def _materialise(self, place: Path, parts: Sequence[_Part]) -> None:
        partial = await anyio.to_thread.run_sync(_begin, place.parent)
        try:
            for part in parts:
                archive = await self._store.get(part.archive) if part.archive else b""
                await anyio.to_thread.run_sync(_unpack, partial, part, archive)
            await anyio.to_thread.run_sync(_finish, partial, place)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(cleaning.remove_snapshot, partial)
            if not isinstance(error, OSError) or not place.is_dir():
                raise


@dataclass(frozen=True)
class _Part:
    """Files of a snapshot that are in one archive, by path with their sizes."""

    folder: str
    archive: str
    sizes: Mapping[str, int]


def _parts(manifest: Manifest) -> tuple[_Part, ...]:
    patches = {f"{each.id}.diff": each.patch_bytes for each in manifest.commits if each.patch_bytes}
    return (
        _Part(HEAD, manifest.archive, {each.path: each.size for each in manifest.files}),
        _Part(HEAD, manifest.around_archive, {each.path: each.size for each in manifest.around}),
        _Part(BEFORE, manifest.before_archive, {each.path: each.size for each in manifest.before}),
        _Part(PATCHES, manifest.patches_archive, patches),
    )


def _load_manifest(content: bytes, digest: str) -> Manifest:
    """Return the manifest, if each of its paths stays below the snapshot's folder."""
    try:
        manifest = Manifest.model_validate_json(content)
        for part in _parts(manifest):
            for path in part.sizes:
                check_name(path.encode())
    except (ValidationError, NotRead, UnicodeEncodeError):
        raise LensFailed(f"blob {digest} is not a snapshot of a repository") from None
    return manifest


def _is_there(place: Path, parts: Sequence[_Part]) -> bool:
    """True if the snapshot is on disk, whole. A file that somebody took away or cut would mean
    remarks that are missing, or wrong.
    """
    try:
        # Marks it as used, so that nobody removes it in the next minutes.
        os.utime(place)
    except FileNotFoundError:
        return False
    try:
        whole = all(
            (place / part.folder).is_dir()
            and all(
                os.lstat(f"{place}/{part.folder}/{path}").st_size == size
                for path, size in part.sizes.items()
            )
            for part in parts
        )
    except OSError:
        whole = False
    if not whole:
        cleaning.remove_snapshot(place)
    return whole


def _begin(folder: Path) -> Path:
    """Return a new folder for a snapshot that is not whole yet."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in cleaning.find_old_snapshots(folder):
        cleaning.remove_snapshot(old)
    return Path(tempfile.mkdtemp(prefix=cleaning.PARTIAL, dir=folder))


def _finish(partial: Path, place: Path) -> None:
    """Make a snapshot that is whole read-only, and give it its name."""
    for path, _, _ in os.walk(partial, topdown=False):
        os.chmod(path, 0o555 if Path(path) != partial else 0o755)
    # One rename: whoever looks sees a whole snapshot or none.
    os.rename(partial, place)


def _unpack(partial: Path, part: _Part, archive: bytes) -> None:
    folder = partial / part.folder
    folder.mkdir(exist_ok=True)
    missing, made = dict(part.sizes), {str(folder)}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive or EMPTY), mode="r:") as members:
            for member in members:
                # A sparse one could claim any size.
                plain = member.isreg() and not member.issparse() and member.size <= DOCUMENT_BYTES
                if not plain or missing.pop(member.name, None) != member.size:
                    raise LensFailed(
                        f"the archive of the snapshot holds {member.name!r:.300} unexpectedly"
                    )
                content = members.extractfile(member)
                assert content is not None
                target = f"{folder}/{member.name}"
                if (parent := os.path.dirname(target)) not in made:
                    os.makedirs(parent, exist_ok=True)
                    made.add(parent)
                # The head's files come from two archives, and none replaces another's.
                with open(os.open(target, NEW, 0o444), "wb") as file:
                    file.write(content.read())
    except (tarfile.TarError, EOFError, FileExistsError, NotADirectoryError) as error:
        raise LensFailed(f"the archive of the snapshot is none: {error}") from None
    if missing:
        raise LensFailed(f"the archive of the snapshot lacks {min(missing)!r:.300}")
