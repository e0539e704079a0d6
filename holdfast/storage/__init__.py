"""What a deployment keeps: the store of blobs, what of it is needed, and how the rest goes away."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from holdfast.deployment.extras import lacking
from holdfast.storage.bucket import BucketStore
from holdfast.storage.directory import DirectoryStore
from holdfast.storage.gcs import GCSObjects
from holdfast.storage.keys import Keyring, keyring
from holdfast.storage.moved import MovedStore
from holdfast.storage.objects import Objects
from holdfast.storage.s3 import S3Objects
from holdfast.storage.store import Store, StoreAway

__all__ = [
    "BadStore",
    "BucketStore",
    "DirectoryStore",
    "MovedStore",
    "Store",
    "StoreAway",
    "store_at",
]

BUCKETS: dict[str, type[Objects]] = {each.scheme: each for each in (S3Objects, GCSObjects)}


class BadStore(ValueError):
    """The store's address is of an unsupported kind, or needs a package that is not installed."""


def store_at(url: str, keys: Keyring | None = None) -> Store:
    """Return the store at an address: `file:///PATH`, `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`.
    Further ones, after spaces, are where it was before: they are only read. With keys, all that is
    put is encrypted.
    """
    keys = keys or keyring("")
    now, *before = [_at(each, keys) for each in url.split()] or [_at("", keys)]
    return MovedStore(now, before) if before else now


def _at(url: str, keys: Keyring) -> Store:
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.path.startswith("/") and not parts.netloc:
        return DirectoryStore(Path(unquote(parts.path)), keys)
    bare = not (parts.query or parts.fragment or "@" in parts.netloc or ":" in parts.netloc)
    if parts.scheme in BUCKETS and parts.netloc and bare:
        if why := lacking(BUCKETS[parts.scheme].extra):
            raise BadStore(f"STORE_URL {url!r} {why}")
        return _bucket(parts, keys)
    raise BadStore(
        f"STORE_URL {url!r}: not an address of the form file:///PATH, s3://BUCKET/PREFIX or"
        " gs://BUCKET/PREFIX"
    )


@cache
def _bucket(parts: SplitResult, keys: Keyring) -> BucketStore:
    """Return the one store of a process in a bucket: its connections and threads are shared."""
    objects = BUCKETS[parts.scheme](parts.netloc, unquote(parts.path).strip("/"))
    return BucketStore(objects, keys)
