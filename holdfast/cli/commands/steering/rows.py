"""Telling a run what to do: each steering command is a row, a function from its options to an
Order.

`edit` and `raise`, which start from what the run has now, and `cancel`, which can also end a whole
run, have modules of their own and send their Order in the same way, by
`holdfast/client/orders.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.screen.exits import Exit
from holdfast.cli.shared import orders
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import Embedded, OpenRunId, SubtaskId, Why, not_empty
from holdfast.client.orders import about_rows, supply_order
from holdfast.contracts import Order, Tier
from holdfast.deployment.settings import Settings
from holdfast.intake.files import read_text
from holdfast.text import says_something
from holdfast.untrusted.reading import NotPlain, from_json

Call = Annotated[
    int | None, typer.Argument(metavar="[CALL]", help="The number of a call of a tool.", min=1)
]

OfRows = Annotated[
    str,
    typer.Option(
        "--rows",
        metavar="ITEMS",
        callback=not_empty,
        help="Of a map these rows alone: `failed`, or ids of items with commas; to retry also"
        " `skipped`, to skip also `open`.",
    ),
]

# ---------------------------------------------------------------- the rows


def approve(call: Call = None) -> Order:
    """Approve the plan that a run waits with, or a call of a tool by its number."""
    return Order(call=call or 0)


def decline(
    call: Annotated[
        int,
        typer.Argument(metavar="CALL", help="The number of a call of a tool that waits.", min=1),
    ],
    why: Why = "",
) -> Order:
    """Decline a call of a tool; it is not made, and its agent is told why."""
    return Order(call=call, text=why)


def reject(why: Why = "") -> Order:
    """Reject the plan that a run waits with; the run closes as declined, its work unpaid."""
    return Order(text=why)


def answer(
    subtask: SubtaskId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the subtask asked to know.")],
) -> Order:
    """Answer what a subtask asks, or advise one that did not succeed; it goes on so."""
    if not says_something(text):
        raise Exit("the answer is empty; say something")
    return Order(subtask_id=subtask, text=text)


def retry(
    subtask: SubtaskId,
    tier: Annotated[
        Tier | None, typer.Option("--tier", help="Ask a model of this tier instead.")
    ] = None,
    instruction: Annotated[
        str, typer.Option("--instruction", metavar="TEXT", help="Say it in other words.")
    ] = "",
    rows: OfRows = "",
) -> Order:
    """Try a subtask again that did not succeed; what was skipped because of it waits again."""
    return Order(subtask_id=subtask, tier=tier, text=instruction, **about_rows(rows))


def hand(
    subtask: SubtaskId,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="A role of the run.")],
) -> Order:
    """Hand a subtask that did not succeed to another role."""
    return Order(subtask_id=subtask, role=role)


def skip(subtask: SubtaskId, why: Why = "", rows: OfRows = "") -> Order:
    """Go on without a subtask, at work or not; what needs it is skipped, too."""
    return Order(subtask_id=subtask, text=why, **about_rows(rows))


def supply(
    subtask: SubtaskId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it would have found.")] = "",
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="The text is in this file.")
    ] = None,
    row: Annotated[
        str,
        typer.Option(
            "--row",
            metavar="ITEM",
            callback=not_empty,
            help="Of a map this row alone, by its item's id.",
        ),
    ] = "",
    value: Annotated[
        str,
        typer.Option(
            "--value", metavar="JSON", callback=not_empty, help="The row's result; or by --file."
        ),
    ] = "",
) -> Order:
    """Give a subtask's finding by hand; nobody is asked and nothing is paid for it."""
    if row or value:
        return _supply_row(subtask, text, file, row, value)
    if bool(text) == bool(file):
        raise Exit("give the finding either as TEXT or by --file FILE")
    found = _text_of(file) if file else text
    if not says_something(found):
        raise Exit("the finding is empty; say something")
    return Order(subtask_id=subtask, text=found)


def _supply_row(subtask: str, text: str, file: Path | None, row: str, value: str) -> Order:
    if text or bool(value) == bool(file):
        raise Exit("give a row's result as JSON, either by --value or by --file FILE")
    try:
        given = from_json(_text_of(file) if file else value)
    except NotPlain as error:
        raise Exit(f"{f'--file {file}' if file else '--value'}: {error}") from error
    return supply_order(subtask, row=row, value=given)


def pause() -> Order:
    """Start nothing more; calls in flight finish. The deadline stands still meanwhile."""
    return Order()


def resume() -> Order:
    """Let a paused run go on."""
    return Order()


FILE_BYTES = 1024 * 1024
"""The largest finding by hand: it travels inside an Update."""
ROWS: tuple[Callable[..., Order], ...] = (
    approve, decline, reject, answer, retry, hand, skip, supply, pause, resume,
)  # fmt: skip
"""Each is named like its command and its Update; the docstring is the command's help."""


def _text_of(file: Path) -> str:
    return read_text(file, "--file", FILE_BYTES)


# ---------------------------------------------------------------- from a row to a command


def command_of(row: Callable[..., Order]) -> Callable[..., int]:
    """Return the command of a row: the run's id, the row's own options, and --embedded."""
    own = inspect.signature(row, eval_str=True).parameters.values()
    word = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter("run_id", word, annotation=OpenRunId),
        *own,
        inspect.Parameter("embedded", word, annotation=Embedded, default=False),
    ]

    def command(run_id: str, embedded: bool, **options: Any) -> int:
        order = row(**options)
        return with_connection(
            Settings(),
            embedded,
            lambda connection: orders.run(connection, run_id, row.__name__, order),
        )

    command.__doc__ = row.__doc__
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    # typer reads a command's options from its signature.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command
