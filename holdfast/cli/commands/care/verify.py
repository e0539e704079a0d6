"""`verify`: check a receipt, on any machine: no server, no store and no key of its deployment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, say
from holdfast.client.receipt_key import check_installed
from holdfast.text import for_terminal

if TYPE_CHECKING:
    from holdfast.receipts.file import Receipt


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
    history: Annotated[
        Path | None,
        typer.Option(
            "--history", metavar="FILE", help="A history from `export`, to compare with it."
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
    from holdfast.receipts.checking import MOST_NAMED, find_changes

    if key == "" or countersigned_by == "":
        raise Exit("a public key is empty; `doctor` prints that of a deployment")
    known = read_public_key(key or "", "--key")
    other = read_public_key(countersigned_by or "", "--countersigned-by")
    receipt = read_receipt(file)
    changed = [*find_changes(receipt, known, other)]
    lines: list[str] = []
    try:
        if history is not None and not changed:
            changed += compare(receipt, history)
        if not changed:
            lines += [f"  {each}" for each in account.account(receipt, known, other)]
            lines += [f"  the history in {history} is the one that it is of"] if history else []
            lines += account.sentences(receipt) if sentences else []
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # Its signature is good and its sums are right, and it was not made by us.
        raise Exit(f"✗ {file}: it is signed, and no receipt of ours", Code.FAILED) from error
    if changed:
        for line in changed[:MOST_NAMED]:
            say(f"✗ {file}: {line}", "bold red")
        return Code.FAILED
    put(for_terminal("\n".join((f"✓ {file}: whole", *lines)), lines=True))
    return Code.COMPLETE


def compare(receipt: Receipt, file: Path) -> list[str]:
    """Return where a history in a file is not the receipt's. Refused if it holds none."""
    # Reading one loads the workflows, to know their names.
    from holdfast.cli.shared.replayed import read_history
    from holdfast.receipts.histories import find_differences

    found = read_history(file, "--history")
    return [*find_differences(receipt, found.workflow_id, found.events)]
