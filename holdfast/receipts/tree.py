"""The root of named leaves: a Merkle tree as RFC 6962 has it, with another first byte for leaves
than for nodes, so that neither is ever taken for the other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

LEAF, NODE = b"\x00", b"\x01"
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=True)


def canonical(value: object) -> str:
    """Return the one JSON text of a value: ASCII, no spaces, keys in order. Raise ValueError for
    what JSON cannot hold.
    """
    return _ENCODER.encode(value)


def leaf_digest(run: str, execution: str, name: str, holds: object) -> bytes:
    """Return the digest of a leaf. It names its run, so that it fits into no other's receipt."""
    return sha256(LEAF + canonical([run, execution, name, holds]).encode()).digest()


def root_of(digests: Sequence[bytes]) -> bytes:
    """Return the root of a tree over leaves in this order."""
    if not digests:
        return sha256(b"").digest()
    if len(digests) == 1:
        return digests[0]
    # The largest power of two below their number, as RFC 6962 says.
    half = 1 << ((len(digests) - 1).bit_length() - 1)
    return sha256(NODE + root_of(digests[:half]) + root_of(digests[half:])).digest()
