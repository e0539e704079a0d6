"""Receipts and keys in files that a person names."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.cli.screen.exits import Code, Exit
from holdfast.receipts.file import MOST_BYTES, NotReceipt, Receipt
from holdfast.receipts.signing import read_public
from holdfast.untrusted.folders import Unreadable, read_named_bytes

KEY_BYTES = 16 * 1024
_PUBLIC = re.compile("[0-9a-f]{64}")
_BEGIN = b'{"holdfast_receipt"'


def read_receipt(file: Path) -> Receipt:
    """Return the receipt in a file. Exit if it is none, or not as it was written."""
    try:
        content = read_named_bytes(file, MOST_BYTES)
    except Unreadable as error:
        raise Exit(str(error)) from error
    try:
        return Receipt.load(content)
    except NotReceipt as error:
        if content.startswith(_BEGIN):
            raise Exit(f"✗ {file}: {error}", Code.FAILED) from error
        why = f"{str(file)!r} is no receipt: {error}; `receipt ID --out FILE` writes one"
        raise Exit(why) from error


def read_public_key(given: str, option: str) -> str:
    """Return a public key that is given as such or by its file. Exit if it is none."""
    if not given or _PUBLIC.fullmatch(given):
        return given
    try:
        content = read_named_bytes(Path(given), KEY_BYTES)
        text = content.strip().decode("ascii", "replace")
        return text if _PUBLIC.fullmatch(text) else read_public(content)
    except Unreadable as error:
        what = "give 64 hexadecimal digits, as `doctor` prints them, or a file"
        raise Exit(f"{option}: {error}; {what}") from error
    except ValueError as error:
        raise Exit(f"{option} {given[:60]!r} is no public key: {error}") from error
