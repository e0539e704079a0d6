"""A receipt against a history that `export` wrote: its digest, and that of each call in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from temporalio.api.history.v1 import HistoryEvent

from holdfast.history.executions import executions_in
from holdfast.receipts.digests import digest_history, digest_payloads
from holdfast.receipts.file import Receipt, words
from holdfast.text import visible


def find_differences(
    receipt: Receipt, workflow: str, events: Sequence[HistoryEvent]
) -> Iterator[str]:
    """Yield where a history is not the one that a whole receipt has of this workflow."""
    told = receipt.named().get(f"history/{workflow}")
    shown = visible(workflow)[:100]
    if told is None:
        yield f"it has no history of {shown}"
        return
    if not told["digest"]:
        yield f"{words(f'history/{workflow}')} was not whole when the receipt was made"
    elif told["digest"] != digest_history(events):
        yield f"{words(f'history/{workflow}')} is not this one ({told['events']} events)"
    calls = executions_in(events).by_event
    for name, call in receipt.of_kind("call"):
        if call["history"] != workflow or not call["events"]:
            continue
        found = calls.get(call["events"][0])
        for what, payloads in (
            ("asked", found.input if found else ()),
            ("answered", found.result if found else ()),
        ):
            if call[what] and call[what] != digest_payloads(payloads):
                yield f"{words(f'call/{name}')}: what was {what} is not what the history has"
