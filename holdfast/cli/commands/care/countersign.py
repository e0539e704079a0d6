"""`countersign`: somebody else signs a receipt, too, with a key of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.options import write_file
from holdfast.client.receipt_key import check_installed


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A receipt from `receipt`.")],
    key_file: Annotated[
        Path,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="Your private key: PEM, as `openssl genpkey -algorithm ed25519` makes it.",
        ),
    ],
) -> int:
    """Sign the root of a whole receipt, and add that to the file."""
    check_installed("countersign")
    # Only who signs loads what signs.
    from holdfast.cli.shared.receipts import KEY_BYTES, read_receipt
    from holdfast.receipts.checking import find_changes
    from holdfast.receipts.file import MOST_COUNTERSIGNATURES
    from holdfast.receipts.signing import public_of, read_key, sign
    from holdfast.untrusted.folders import Unreadable, read_named_bytes

    try:
        key = read_key(read_named_bytes(key_file, KEY_BYTES))
    except Unreadable as error:
        raise Exit(f"--key-file: {error}") from error
    except ValueError as error:
        raise Exit(f"--key-file {str(key_file)[:60]!r}: {error}") from error
    receipt = read_receipt(file)
    if changed := find_changes(receipt):
        raise Exit(f"✗ {file}: {changed[0]}; nothing was signed", Code.FAILED)
    public = public_of(key)
    others = tuple(each for each in receipt.countersignatures if each[0] != public)
    if len(others) >= MOST_COUNTERSIGNATURES:
        raise Exit(f"{file} has {MOST_COUNTERSIGNATURES} countersignatures, and takes no more")
    own = (public, sign(key, bytes.fromhex(receipt.root), "countersignature"))
    write_file(file, replace(receipt, countersignatures=(*others, own)).dump())
    say(f"Countersigned by {public}: {file}")
    return Code.COMPLETE
