"""The key by which a deployment signs receipts: `receipt.key` of the state directory, made with the
first one.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.deployment import extras
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir, private
from holdfast.errors import EmbeddedError, Refused
from holdfast.storage.files import create

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_BYTES = 4096


def check_installed(what: str) -> None:
    """Raise Refused if what signs is not installed here."""
    if lacking := extras.lacking("receipts"):
        raise Refused(f"{what} {lacking}")


def signing_key(settings: Settings) -> Ed25519PrivateKey:
    """Return the key of this deployment, which is made when it is first needed. EmbeddedError if
    the file of it is none.
    """
    from holdfast.receipts.signing import make_key

    path = StateDir.of(settings).receipt_key
    private.make_folder(path.parent)
    with suppress(FileExistsError):
        create(path, make_key())
    return _read_key(path)


def public_key(settings: Settings) -> str:
    """Return the public key of this deployment; empty if it has made no receipt yet."""
    from holdfast.receipts.signing import public_of

    try:
        return public_of(_read_key(StateDir.of(settings).receipt_key))
    except FileNotFoundError:
        return ""


def _read_key(path: Path) -> Ed25519PrivateKey:
    from holdfast.receipts.signing import read_key

    try:
        return read_key(private.read(path, KEY_BYTES))
    except ValueError as error:
        why = f"{path} ({error})"
        remedy = "put it back from a backup, or move it away: the next receipt makes a new one"
        raise EmbeddedError("the key of receipts cannot be read", why, remedy) from None
