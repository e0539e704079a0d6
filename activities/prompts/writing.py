"""Puts a user turn together from its material."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.contracts import Call

HEAVY_TOKENS = 2**15
"""Tokens reserved for a prompt beyond which it is put together in a thread: inputs can have
megabytes, and the loop serves every call.
"""


async def write_turn(call: Call, write: Callable[..., str], *parts: object) -> str:
    """What `write` makes of these parts, as heavy as the call's reservation says."""
    if call.token_ceiling - call.max_output < HEAVY_TOKENS:
        return write(*parts)
    return await asyncio.to_thread(write, *parts)
