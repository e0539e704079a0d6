"""The keys by which a deployment encrypts what it keeps: HOLDFAST_PAYLOAD_KEY_FILE.

Each line of the file is an id and 32 random bytes in Base64. All keys read, the last one writes, so
that a line that is added at the end is a rotation. AES-256-GCM; payloads of histories, blobs of the
store and entries of the journal are encrypted by keys that are derived from these.
"""

from __future__ import annotations

import base64
import hmac
import io
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from holdfast.deployment import extras
from holdfast.errors import BadSettings, MissingKey, Undecipherable
from holdfast.untrusted.folders import Unreadable, read_named

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "HOLDFAST_PAYLOAD_KEY_FILE"
KEY_BYTES = 32
NONCE_BYTES = 12
FILE_ID_BYTES = 16
PIECE_BYTES = 1 << 20
SEALED_BYTES = NONCE_BYTES + PIECE_BYTES + 16
"""A piece with its nonce and its tag."""
FILE_BYTES = 64 * 1024
MARK = b"holdfast-sealed 1 "
"""What sealed content begins with; the id of its key follows, and a line end."""
_ID_BYTES = 40
_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{_ID_BYTES}}}")
_FORM = "ID KEY, with a key of 32 bytes in Base64, as `openssl rand -base64 32` prints one"
_OTHERS, _GROUP = stat.S_IRWXO, stat.S_IRWXG
Purpose = Literal["payload", "file"]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Key:
    """One key of the file, and what is derived from it."""

    id: str
    secret: bytes

    @cached_property
    def ciphers(self) -> dict[str, AESGCM]:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return {each: AESGCM(self._derive(each)) for each in get_args(Purpose)}

    def encrypt(self, purpose: Purpose, content: bytes, place: bytes, nonce: bytes = b"") -> bytes:
        """Return a nonce, by default a random one, and the content encrypted; it is good only at
        this place.
        """
        nonce = nonce or secrets.token_bytes(NONCE_BYTES)
        return nonce + self.ciphers[purpose].encrypt(nonce, content, place)

    def _derive(self, purpose: str) -> bytes:
        """Return a key for one purpose alone."""
        return hmac.digest(self.secret, b"holdfast " + purpose.encode(), "sha256")

    @cached_property
    def names(self) -> bytes:
        return self._derive("names")

    @cached_property
    def nonces(self) -> bytes:
        return self._derive("nonces")


class Keyring:
    """The keys of one file, read again when something is encrypted with a key that it lacked.
    Without a file nothing is encrypted, and what is cannot be read.
    """

    def __init__(self, file: str = "") -> None:
        """Raise BadSettings for a file that is none of keys, or that others may read."""
        self.file = file
        self._mark = (0, 0)
        self._keys: dict[str, _Key] = {}
        if file:
            self._read()

    @property
    def writes(self) -> bool:
        """True if what is written is encrypted."""
        return bool(self._keys)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def encrypt(self, content: bytes, *, alike: bool = False) -> tuple[str, bytes]:
        """Return the id of the writing key and the content of a payload, encrypted. `alike`: equal
        contents become equal, so that what is big can be kept once; else they do not.
        """
        key = self._writing
        # Of equal content it is the same, and of two others no more often than a random one.
        nonce = hmac.digest(key.nonces, content, "sha256")[:NONCE_BYTES] if alike else b""
        return key.id, key.encrypt("payload", content, key.id.encode(), nonce)

    def decrypt(self, id: str, content: bytes) -> bytes:
        """Return the content of a payload. Raise MissingKey and Undecipherable."""
        return self._checked(self._key(id), "payload", content, id.encode())

    def _checked(self, key: _Key, purpose: Purpose, content: bytes, place: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        nonce, rest = content[:NONCE_BYTES], content[NONCE_BYTES:]
        try:
            return key.ciphers[purpose].decrypt(nonce, rest, place)
        except (InvalidTag, ValueError):
            raise Undecipherable(
                f"what was encrypted with key {key.id!r} cannot be decrypted: it was changed or"
                f" cut, or the key of this id in {VARIABLE} ({self.file}) is another"
            ) from None

    def seal(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield content as a file keeps it: encrypted, piece by piece, where there is a key. All
        pieces but the last have `PIECE_BYTES`.
        """
        if not self.writes:
            yield from pieces
            return
        key, file = self._writing, secrets.token_bytes(FILE_ID_BYTES)
        yield MARK + key.id.encode() + b"\n" + file
        number, held = 0, b""
        for piece in pieces:
            if number or held:
                yield key.encrypt("file", held, _place(file, number - 1, last=False))
            number, held = number + 1, piece
        yield key.encrypt("file", held, _place(file, max(number - 1, 0), last=True))

    def open(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield what `seal` was given, piece by piece; what was never sealed as it is. Raise
        MissingKey and Undecipherable.
        """
        head = file.read(len(MARK))
        if head != MARK:
            yield head
            while piece := file.read(PIECE_BYTES):
                yield piece
            return
        id = file.readline(_ID_BYTES + 1).removesuffix(b"\n").decode("ascii", "replace")
        key, own = self._key(id), file.read(FILE_ID_BYTES)
        number, sealed = 0, file.read(SEALED_BYTES)
        while True:
            following = file.read(SEALED_BYTES)
            place = _place(own, number, last=not following)
            yield self._checked(key, "file", sealed, place)
            if not following:
                return
            number, sealed = number + 1, following

    def sealed(self, content: bytes) -> bytes:
        """Return content as `seal` yields it."""
        starts = range(0, len(content), PIECE_BYTES)
        return b"".join(self.seal(content[each : each + PIECE_BYTES] for each in starts))

    def opened(self, content: bytes) -> bytes:
        """Return content from what a file has, as `open`."""
        return b"".join(self.open(io.BytesIO(content)))

    def name(self, digest: str) -> str:
        """Return the name under which content with this SHA-256 is kept. With a key nobody without
        it can tell from the name whether content that he knows is there.
        """
        return self.names(digest)[0]

    def names(self, digest: str) -> tuple[str, ...]:
        """Return all names that content with this SHA-256 may be kept under, the present first."""
        keys = reversed(self._keys.values())
        known = (hmac.digest(each.names, digest.encode(), "sha256").hex() for each in keys)
        return (*known, digest)

    @property
    def _writing(self) -> _Key:
        return next(reversed(self._keys.values()))

    def _key(self, id: str) -> _Key:
        if id not in self._keys and self.file:
            self._read_changed()
        if id not in self._keys:
            lacks = f"{VARIABLE} ({self.file}) lacks it" if self.file else f"{VARIABLE} is not set"
            raise MissingKey(f"this is encrypted with key {id!r:.60}, and {lacks}; add that key")
        return self._keys[id]

    def _read_changed(self) -> None:
        try:
            if self._mark_now() != self._mark:
                self._read()
        except (OSError, BadSettings) as error:
            log.warning("keys not read again: %s", error)

    def _mark_now(self) -> tuple[int, int]:
        found = os.stat(self.file)
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> None:
        self._keys = {id: _Key(id, secret) for id, secret in read_keys(Path(self.file)).items()}
        self._mark = self._mark_now()


@lru_cache(maxsize=32)
def keyring(file: str) -> Keyring:
    """Return the keys of a file, the same ones to all of a process. BadSettings as `Keyring`."""
    return Keyring(file)


def read_keys(path: Path) -> Mapping[str, bytes]:
    """Return the keys of a file by their ids, in its order. BadSettings says what is wrong with it,
    with nothing of a key.
    """
    if lacking := extras.lacking("encryption"):
        raise BadSettings(f"{VARIABLE} {lacking}")
    try:
        found = os.stat(path)
        lines = read_named(path, FILE_BYTES).splitlines()
    except FileNotFoundError:
        raise BadSettings(f"{VARIABLE}: there is no file {str(path)!r}") from None
    except OSError as error:
        raise BadSettings(f"{VARIABLE}: {str(path)!r:.200}: {error.strerror}") from None
    except (Unreadable, ValueError) as error:
        raise BadSettings(f"{VARIABLE}: {error}") from None
    # A mounted secret is root's, and read by a group of ours.
    if found.st_mode & (_OTHERS | (_GROUP if found.st_uid == os.geteuid() else 0)):
        mode = f"{stat.S_IMODE(found.st_mode):o}"
        raise BadSettings(f"{VARIABLE}: others may use {path} (mode {mode}); run: chmod 600 {path}")
    keys: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            id, secret = _parse(path, number, line)
            if id in keys:
                raise BadSettings(f"{VARIABLE}: {path} has two keys with the id {id!r}; rename one")
            keys[id] = secret
    if not keys:
        raise BadSettings(f"{VARIABLE}: {path} has no key; write a line {_FORM}")
    return keys


def _parse(path: Path, number: int, line: str) -> tuple[str, bytes]:
    id, _, text = line.strip().partition(" ")
    try:
        secret = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        secret = b""
    if not _ID.fullmatch(id) or len(secret) != KEY_BYTES:
        raise BadSettings(f"{VARIABLE}: line {number} of {path} is not {_FORM}")
    return id, secret


def _place(file: bytes, number: int, *, last: bool) -> bytes:
    """Return what binds a piece to its place: none can be moved, doubled or left out."""
    return file + number.to_bytes(8) + bytes([last])
