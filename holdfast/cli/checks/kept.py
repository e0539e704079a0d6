"""What this deployment keeps on disk, and whether it can be relied on: a part of `doctor`. Only
looks: nothing is created, started or repaired.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.activities.asking import journal
from holdfast.cli.checks.diagnosis import Mark
from holdfast.client.receipt_key import public_key
from holdfast.deployment import extras
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.pacing import paces
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir, count_unreadable
from holdfast.embedded.database import find_trouble
from holdfast.embedded.starting import SPACE_BYTES
from holdfast.errors import BadSettings, EmbeddedError
from holdfast.storage import (
    BadStore,
    BucketStore,
    DirectoryStore,
    MovedStore,
    Store,
    StoreAway,
    store_at,
)
from holdfast.storage.keys import Keyring, keyring

Line = tuple[str, Mark, str]
"""A line of `doctor`: what was checked, its state, and what to do."""
LOOK_SECONDS = 1.0
"""How long blobs and journal are each looked at: the newest first, as far as that goes."""


def check_storage(settings: Settings) -> list[Line]:
    """Check keys, state directory, database, journal and store. Blocks, for some seconds at
    most.
    """
    state = StateDir.of(settings)
    keys, told = _keys(settings, state)
    lines = [_folder("state", state.path, "set HOLDFAST_STATE_DIR to a folder that can be written")]
    if lines[0][1] == "ok" and state.path.is_dir():
        lines += _deployment(state)
        lines += _roots(settings, state)
        lines += _database(state)
        lines += _journal(state, keys)
        lines += _receipts(settings, state)
        lines += _pace(settings)
    return [*told, *lines, *_store(settings, state, keys)]


def _keys(settings: Settings, state: StateDir) -> tuple[Keyring, list[Line]]:
    """Return the keys that encrypt, and what is to be said of them."""
    try:
        endpoint = state.endpoint()
    except EmbeddedError:
        endpoint = None
    file = settings.key_file or (endpoint.key_file if endpoint else "")
    try:
        keys = keyring(file)
    except BadSettings as error:
        return keyring(""), [("encryption", "bad", str(error))]
    if not keys.ids:
        return keys, []
    said = f"histories, store and journal, with {keys.ids[-1]!r}, the last key of {file}"
    return keys, [("encryption", "ok", said)]


def _folder(name: str, path: Path, remedy: str) -> Line:
    """Check that a folder, or the nearest existing one above it, can be written and has room."""
    try:
        nearest = next(each for each in (path, *path.parents) if each.exists())
        with tempfile.TemporaryFile(dir=nearest):
            free = shutil.disk_usage(nearest).free
    except OSError as error:
        return name, "bad", f"{path}: {error.strerror}; {remedy}"
    if free < SPACE_BYTES:
        needed = SPACE_BYTES // 1_000_000
        said = f"{path}: {free // 1_000_000} MB free; a run needs {needed} MB: free some space"
        return name, "bad", f"{said} (`{STARTER} clean`), or {remedy}"
    return name, "ok", f"{path} ({free // 1_000_000:,} MB free)"


def _deployment(state: StateDir) -> Iterator[Line]:
    """Check the record of which server, queue and store belong to this directory."""
    path = state.path / "endpoint.json"
    if not path.exists():
        if state.database.exists():
            why = "is missing: open runs wait on a task queue whose name it held; put it back"
            yield "endpoint.json", "bad", f"{path} {why}"
        return
    try:
        state.endpoint()
    except EmbeddedError as error:
        yield "endpoint.json", "bad", str(error)


def _roots(settings: Settings, state: StateDir) -> Iterator[Line]:
    """Check the file of what Goals may name."""
    wrong = count_unreadable(settings)
    if wrong:
        why = (
            f"{wrong} line{'s' * (wrong != 1)} cannot be read and allow{'s' * (wrong == 1)} nothing"
        )
        yield "roots", "note", f"{state.roots}: {why}; remove them, and `run` again what they named"


def _database(state: StateDir) -> Iterator[Line]:
    path = state.database
    if not path.exists():
        return
    why = find_trouble(path)
    if why:
        remedy = f"move {path.name}* away: its runs are lost, unless you have a backup"
        yield "database", "bad", f"{path} {why}; {remedy}"
    else:
        yield "database", "ok", f"{path} ({path.stat().st_size / 1e6:,.1f} MB)"


def _journal(state: StateDir, keys: Keyring) -> Iterator[Line]:
    path = state.journal
    if not path.exists():
        if state.database.exists():
            why = "is missing: calls that were under way may be paid twice; the next start makes it"
            yield "journal", "note", f"{path} {why}"
        return
    line = _folder("journal", path, "let its owner write it")
    if line[1] == "ok":
        try:
            found = journal.find_damaged(path, LOOK_SECONDS, keys)
        except OSError as error:
            line = ("journal", "bad", f"{path}: {error.strerror}; let its owner read it")
        else:
            if found:
                why = f"{len(found)} damaged, such as {found[0].name}: calls without an answer"
                line = ("journal", "note", f"{path}: {why}; nothing is sent again")
    yield line


def _receipts(settings: Settings, state: StateDir) -> Iterator[Line]:
    """Show the public half of the key of receipts, where there is one."""
    if not state.receipt_key.exists():
        return
    if lacking := extras.lacking("receipts"):
        yield "receipt key", "note", f"{state.receipt_key}: to use it {lacking}"
        return
    try:
        yield "receipt key", "ok", public_key(settings)
    except OSError as error:
        yield "receipt key", "bad", f"{state.receipt_key}: {error.strerror}; let its owner read it"
    except EmbeddedError as error:
        yield "receipt key", "bad", str(error)


def _pace(settings: Settings) -> Iterator[Line]:
    """Show the limits that this deployment sets its calls."""
    for tier, pace in paces(settings.rate, settings.in_flight).items():
        named = [settings.variable("rate")] if pace.rate else []
        named += [settings.variable("in_flight")] if pace.in_flight else []
        yield f"own limit {tier}", "ok", f"{pace}, for this state directory ({', '.join(named)})"


def _store(settings: Settings, state: StateDir, keys: Keyring) -> Iterator[Line]:
    """Check the embedded deployment's store and the one of STORE_URL."""
    if state.database.exists():
        yield from _blobs("store", store_at(state.store.as_uri(), keys), must=True)
    if settings.store_url:
        try:
            own = store_at(settings.store_url, keys)
        except BadStore as error:
            yield "STORE_URL", "bad", str(error)
            return
        # At the first start of all there is nothing yet; a run makes it.
        yield from _blobs("STORE_URL", own, must=False)


def _bucket(name: str, store: BucketStore, *, written: bool) -> Line:
    began = time.monotonic()
    try:
        store.check(write=written)
    except StoreAway as away:
        return name, "bad", str(away)
    did = "written and read" if written else "read"
    return name, "ok", f"{store.url}: {did} in {1000 * (time.monotonic() - began):.0f} ms"


def _blobs(name: str, store: Store, *, must: bool, written: bool = True) -> Iterator[Line]:
    if isinstance(store, MovedStore):
        yield from _blobs(name, store.now, must=must)
        for each in store.all[1:]:
            yield from _blobs(f"{name} before", each, must=must, written=False)
        return
    if isinstance(store, BucketStore):
        yield _bucket(name, store, written=written)
        return
    assert isinstance(store, DirectoryStore)
    if not store.root.is_dir():
        there = store.root.exists()
        why = "is not a folder" if there else "is missing"
        remedy = "mount it, or put it back: runs with big payloads wait for it"
        mark: Mark = "bad" if must or there else "note"
        yield name, mark, f"{store.root} {why}; {remedy}"
        return
    line = _folder(name, store.root, "let its owner write it")
    found = store.damaged(LOOK_SECONDS) if line[1] == "ok" else ()
    if found:
        why = f"{len(found)} blobs are damaged, such as {found[0]}"
        line = (name, "bad", f"{store.root}: {why}; put them back from a backup")
    yield line
