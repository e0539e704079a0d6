"""`verify`: check a receipt, on any machine: no server, no store and no key of its deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say
from holdfast.client.receipt_key import check_installed
from holdfast.text import for_terminal


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A receipt from `receipt`.")],
    key: Annotated[
        str | None,
        typer.Option(
            "--key", metavar="PUBLIC", help="The public key that must have signed it, or its file."
        ),
    ] = None,
    countersigned_by: Annotated[
        str | None,
        typer.Option(
            "--countersigned-by", metavar="PUBLIC", help="One that must have signed it, too."
        ),
    ] = None,
    sentences: Annotated[
        bool, typer.Option("--sentences", help="Print on what each sentence of the answer rests.")
    ] = False,
) -> int:
    """Say what was changed in a receipt since it was signed, or what it says."""
    check_installed("verify")
    # Only who checks loads what does.
    from holdfast.cli.shared.receipts import read_public_key, read_receipt
    from holdfast.receipts import account
    from holdfast.receipts.checking import find_changes

    if key == "" or countersigned_by == "":
        raise Exit("a public key is empty; `doctor` prints that of a deployment")
    known = read_public_key(key or "", "--key")
    other = read_public_key(countersigned_by or "", "--countersigned-by")
    receipt = read_receipt(file)
    if changed := find_changes(receipt, known, other):
        for line in changed:
            say(f"✗ {file}: {line}", "bold red")
        return Code.FAILED
    try:
        lines = [*account.account(receipt, known)]
        rests = [*account.sentences(receipt)] if sentences else []
    except (
        ArithmeticError,
        LookupError,
        AttributeError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # Its signature is good and its sums are right, and it was not made by us.
        raise Exit(f"✗ {file}: it is signed, and no receipt of ours", Code.FAILED) from error
    put(
        for_terminal(
            "\n".join((f"✓ {file}: whole", *(f"  {each}" for each in lines), *rests)), lines=True
        )
    )
    return Code.COMPLETE
