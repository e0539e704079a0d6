"""Put a user turn together from its material."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.contracts import Call

HEAVY_TOKENS = 2**15
"""Tokens reserved for a prompt beyond which it is put together in a thread: inputs can have
megabytes, and the event loop serves every call.
"""


async def write_turn(call: Call, write: Callable[..., str], *parts: object) -> str:
    """Return what `write` makes of these parts, in a thread if the call's reservation says that
    they are heavy.
    """
    if call.token_ceiling - call.max_output < HEAVY_TOKENS:
        return write(*parts)
    return await asyncio.to_thread(write, *parts)
