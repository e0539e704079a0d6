"""Digests of what stands in histories: of each event, of what was asked, of what was answered.

Each is SHA-256 over parts, each behind its length in eight bytes. They are the same whether a
payload stands in the history or in the store, as long as the store has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent


def digest_parts(parts: Iterable[bytes]) -> str:
    found = sha256()
    for each in parts:
        found.update(len(each).to_bytes(8, "big") + each)
    return found.hexdigest()


def digest_history(events: Iterable[HistoryEvent]) -> str:
    """Return the digest of a history whose payloads are inside, as `export` has them."""
    return digest_parts(each.SerializeToString(deterministic=True) for each in events)


def digest_payloads(payloads: Sequence[Payload]) -> str:
    """Return the digest of the arguments or the result of an activity; empty if there are none, or
    one of them is gone from the store.
    """
    if not payloads or any(each.external_payloads for each in payloads):
        return ""
    return digest_parts(each.data for each in payloads)
