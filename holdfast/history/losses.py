"""Find the attempts that were lost with their worker, by those that followed. Pure.

A history keeps of each activity its last attempt, and why the one before it ended. Which worker had
that one stands nowhere: so nobody counts workers by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from temporalio.api.enums.v1 import TimeoutType
from temporalio.api.failure.v1 import Failure

from holdfast.contracts.errors import AnswerLost, WorkerDied
from holdfast.ledger.ledger import Ledger

Loss = Literal["", "died", "silent"]
"""`died`: its process did, as another on its machine found out. `silent`: nothing was heard of it
for so long that the server gave it to another; it may have died, frozen, or ended politely.
"""
DEATHS = (WorkerDied.__name__, AnswerLost.__name__)
MOST_NAMES = 8


def loss_in(failure: Failure) -> Loss:
    """Return how an attempt was lost, by its failure; empty: it was not, or was none."""
    if failure.application_failure_info.type in DEATHS:
        return "died"
    late = failure.timeout_failure_info.timeout_type
    return "silent" if late == TimeoutType.TIMEOUT_TYPE_HEARTBEAT else ""


def describe_losses(lost: Iterable[tuple[str, Loss]]) -> str:
    """Return what is said of losses, each with the name of what was lost; empty: of none."""
    found = [*lost]
    died = [*dict.fromkeys(name for name, loss in found if loss == "died")]
    silent = [*dict.fromkeys(name for name, loss in found if loss == "silent")]
    said = []
    if died:
        said.append(
            "A worker died while this run worked, and another took up what it had in hand"
            f" ({_names(died)})."
        )
    if silent:
        said.append(
            "Nothing was heard of a worker for too long: what it had in hand was begun anew"
            f" ({_names(silent)})."
        )
    return " ".join(said)


def describe_paid_again(ledger: Ledger) -> str:
    """Return what a report says of the price of losses; empty: nobody knows.

    That nothing was paid again holds where each call has a price and none is assumed: one that had
    left when its worker died, and whose answer nobody has, counts at its worst case.
    """
    if ledger.all_assumed:
        return "What may have been paid again is in the price, as assumed."
    return "Nothing was paid again." if ledger.paid.calls and ledger.all_priced else ""


def _names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
